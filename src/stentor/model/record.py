"""What flows through an engine, in order: events and changes of subscriptions."""

from __future__ import annotations

from dataclasses import dataclass

from stentor.model.event import Event
from stentor.model.subscription import Subscription
from stentor.model.values import Point


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
