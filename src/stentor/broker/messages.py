"""What travels between brokers, and what clients are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from stentor.broker.interest import AnyInterest, Pairs
from stentor.index.mics.space import Space
from stentor.model.record import Move, Publish, Record, Subscribe, Unsubscribe


@dataclass(frozen=True, slots=True)
class Want:
    """The sender wants what lies in *ranges* of the space, under *name*.

    It takes the place of what the sender wanted under that name; no ranges withdraw it.
    """

    name: str
    ranges: Pairs
    time: int


@dataclass(frozen=True, slots=True)
class Greeting:
    """The first message on a link that has come up: it replaces all that was told before.

    *told* is what the sender wants from now on, *held* are the live events that it has, *space* is
    how it turns them into numbers.
    """

    told: tuple[AnyInterest, ...]
    held: frozenset[str]
    time: int
    space: Space | None = None


Message = Record | Want | Greeting

KINDS = {
    Subscribe: "subscribe",
    Want: "ranges",
    Unsubscribe: "unsubscribe",
    Move: "move",
    Publish: "publish",
    Greeting: "greeting",
}


def kind_of(message: Message) -> str:
    """The kind of *message*, as counts name it."""
    return KINDS[type(message)]


class Sent(NamedTuple):
    """A message that is to go over the link to the neighbour *to*."""

    to: str
    message: Message


class Delivery(NamedTuple):
    """An event that enters a client's answer, or leaves it because the client has moved."""

    subscription: str
    event: str
    added: bool = True
