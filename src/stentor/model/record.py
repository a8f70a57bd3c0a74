"""Events, subscriptions, the records that bring and change them, and what is reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Final, Literal, NamedTuple

from stentor.model.expression import Expression
from stentor.model.values import Point, Value
from stentor.model.values.time import FOR_GOOD

#: What a record says beside its attributes: in the flat form of an event no attribute can have
#: such a name, so no subscription wants one.
RECORD_FIELDS: Final = ("id", "until", "time", "weights", "seq", "op", "among")


def field_not_attribute(name: str) -> tuple[str, str]:
    """What is wrong with a question about the attribute *name*, a field of records; and advice."""
    return (
        f"{name!r} is a field of every record, not an attribute that can be asked for",
        f"let events carry it as an attribute of another name, such as 'event_{name}'",
    )


@dataclass(frozen=True, slots=True)
class Event:
    """Attributes by name, weights by attribute; it stays live only where it has an `until`.

    It is for those subscriptions alone that have all labels of `among`.
    """

    id: str
    attributes: Mapping[str, Value]
    weights: Mapping[str, float] = field(default_factory=dict)
    until: int | None = None
    among: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a subscriber wants: an expression, its location, until when (microseconds).

    `owner` is who it belongs to, `labels` are what events choose by among subscriptions.
    """

    id: str
    expression: Expression
    at: Point | None = None
    until: int | None = None
    owner: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


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


class Operation(IntEnum):
    """What a record does. The numbers are in files."""

    PUBLISH = 0
    SUBSCRIBE = 1
    UNSUBSCRIBE = 2
    MOVE = 3
    UPDATE = 4
    WITHDRAW = 5

    @classmethod
    def of(cls, word: str) -> Operation:
        """The one that records call *word*."""
        return _BY_WORD[word]

    @property
    def is_event(self) -> bool:
        """Whether it is about an event, and not about a subscription."""
        return OPERATIONS[self].is_event

    @property
    def word(self) -> Op:
        """What records call it."""
        return OPERATIONS[self].word


Op = Literal["subscribe", "unsubscribe", "move", "publish", "update", "withdraw"]


class OperationRule(NamedTuple):
    """What is true of an operation, for every layer: plan, wire, stream, brokers, service."""

    word: Op
    record: type[Record]
    fields: tuple[str, ...] | None  # beside `CHANGE_FIELDS`; None: those of an event
    is_event: bool


#: What a subscription says, and what every record that brings no event may say beside its own.
SUBSCRIPTION_FIELDS: Final = ("id", "expression", "at", "until", "owner", "labels")
CHANGE_FIELDS: Final = ("op", "time", "seq")

#: The one table of operations, in the order in which messages list them.
OPERATIONS: Final[Mapping[Operation, OperationRule]] = {
    Operation.SUBSCRIBE: OperationRule("subscribe", Subscribe, SUBSCRIPTION_FIELDS, False),
    Operation.UNSUBSCRIBE: OperationRule("unsubscribe", Unsubscribe, ("id",), False),
    Operation.MOVE: OperationRule("move", Move, ("id", "at"), False),
    Operation.PUBLISH: OperationRule("publish", Publish, None, True),
    Operation.UPDATE: OperationRule("update", Update, None, True),
    Operation.WITHDRAW: OperationRule("withdraw", Withdraw, ("id",), True),
}
_BY_WORD: Final[dict[str, Operation]] = {rule.word: one for one, rule in OPERATIONS.items()}
#: Their words; those of records about events, and of those that bring one.
OPS: Final = tuple(rule.word for rule in OPERATIONS.values())
EVENT_OPS: Final = tuple(rule.word for rule in OPERATIONS.values() if rule.is_event)
BRINGING_OPS: Final = tuple(rule.word for rule in OPERATIONS.values() if rule.fields is None)


def lasting(event: Event) -> Event:
    """*event* as an update brings it: live until it is withdrawn, where it says no end."""
    return replace(event, until=FOR_GOOD) if event.until is None else event


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


@dataclass(frozen=True)
class EventChanges:
    """How it changed who wants an event: ids of subscriptions, sorted.

    `entered` want it now and did not before, `left` the reverse, `stayed` want it as they did.
    `shrunk` are the safe regions that it made smaller.
    """

    entered: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    stayed: list[str] = field(default_factory=list)
    shrunk: list[Any] = field(default_factory=list, compare=False, repr=False)

    def __bool__(self) -> bool:
        return bool(self.entered or self.left)
