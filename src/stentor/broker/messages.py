"""What travels between brokers, and what clients are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from stentor.model import Subscription
from stentor.model.record import Move, Publish, Record, Subscribe, Unsubscribe


@dataclass(frozen=True, slots=True)
class Greeting:
    """The first message on a link that has come up: it replaces all that was told before.

    *told* is what the sender wants from now on, *held* are the live events that it has.
    """

    told: tuple[Subscription, ...]
    held: frozenset[str]
    time: int


Message = Record | Greeting

KINDS = {
    Subscribe: "subscribe",
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
