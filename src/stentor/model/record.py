"""What flows through an engine, in order: events and changes of subscriptions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stentor.model.event import Event
from stentor.model.subscription import Subscription
from stentor.model.values import Point
from stentor.model.values.time import FOR_GOOD


@dataclass(frozen=True, slots=True)
class Publish:
    """An event comes."""

    event: Event
    time: int | None = None
    version: int = 0  # between brokers: of the live events of one id the later is larger


@dataclass(frozen=True, slots=True)
class Update:
    """An event comes, and replaces the live one of the same id, if there is one."""

    event: Event
    time: int | None = None
    version: int = 0  # between brokers: of the live events of one id the later is larger


@dataclass(frozen=True, slots=True)
class Withdraw:
    """A live event ends before its time."""

    id: str
    time: int | None = None
    version: int = 0  # between brokers: that and what came before it


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


EventRecord = Publish | Update | Withdraw
Record = EventRecord | Subscribe | Unsubscribe | Move


def lasting(event: Event) -> Event:
    """*event* as an update brings it: live until it is withdrawn, where it says no end."""
    return replace(event, until=FOR_GOOD) if event.until is None else event
