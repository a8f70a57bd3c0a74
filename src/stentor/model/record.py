"""Events, subscriptions, the records that bring and change them, and what is reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from stentor.model.expression import Expression
from stentor.model.values import Point, Value

#: What a record says beside its attributes: in the flat form of an event no attribute can have
#: such a name, so no subscription wants one.
RECORD_FIELDS: Final = ("id", "until", "time", "weights", "seq", "op")


def field_not_attribute(name: str) -> tuple[str, str]:
    """What is wrong with a question about the attribute *name*, a field of records; and advice."""
    return (
        f"{name!r} is a field of every record, not an attribute that can be asked for",
        f"let events carry it as an attribute of another name, such as 'event_{name}'",
    )


@dataclass(frozen=True, slots=True)
class Event:
    """Attributes by name, weights by attribute; it stays live only where it has an `until`."""

    id: str
    attributes: Mapping[str, Value]
    weights: Mapping[str, float] = field(default_factory=dict)
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a subscriber wants: an expression, its location, until when (microseconds)."""

    id: str
    expression: Expression
    at: Point | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Publish:
    """An event comes."""

    event: Event
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A subscription comes, or replaces the one of the same id."""

    subscription: Subscription
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A subscription goes."""

    id: str
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """A subscriber is somewhere else now."""

    id: str
    at: Point
    time: int | None = None


Record = Publish | Subscribe | Unsubscribe | Move


class Match(NamedTuple):
    """One delivery: an event for a subscription, with its score."""

    event: str
    subscription: str
    score: float


@dataclass(frozen=True, slots=True)
class Changes:
    """How a subscription's answer among the live events changed: ids of events, sorted."""

    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)
