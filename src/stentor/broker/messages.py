"""What travels between brokers, as objects and as JSON; what clients are given; what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, get_args

import msgspec

from stentor.broker.interest import (
    CLIENT,
    AnyInterest,
    Interest,
    Pairs,
    RangeInterest,
    check_ranges,
)
from stentor.engine.report import Answer
from stentor.errors import RecordError, StentorError
from stentor.index.mics.space import Space
from stentor.language.limits import ANY_SIZE
from stentor.language.tree import uses
from stentor.model import Event, Kind, Point, Schema, Subscription
from stentor.model.expression import Expression
from stentor.model.record import (
    OPERATIONS,
    Move,
    Publish,
    Record,
    Subscribe,
    Unsubscribe,
    Update,
    Withdraw,
)
from stentor.model.schema import AttributeUse
from stentor.model.values import read_location
from stentor.model.values.string import describe, read_id, read_string
from stentor.model.values.time import BEGINNING, EARLIEST, LATEST
from stentor.wire.events import check_event, event_from_dict, event_to_dict
from stentor.wire.limits import RecordLimits
from stentor.wire.records import (
    SubscriptionFields,
    check_seq,
    record_from_dict,
    record_to_dict,
    subscription_fields,
    subscription_from_dict,
    subscription_to_dict,
)

# Messages.


@dataclass(frozen=True, slots=True)
class AnnounceRanges:
    """The sender wants what lies in *ranges* of the space, under *name*.

    It replaces what the sender wanted under that name; no ranges withdraw it.
    """

    name: str
    ranges: Pairs
    time: int


#: An event's id, the version up to which nothing of it is live, and when it would have ended.
GoneEvent = tuple[str, int, int | None]


@dataclass(frozen=True, slots=True)
class EventsGone:
    """What neighbours that greeted have found out: these events were updated or withdrawn."""

    gone: tuple[GoneEvent, ...]
    time: int


@dataclass(frozen=True, slots=True)
class LinkGreeting:
    """The first message on a link that has come up: it replaces all that was announced before.

    *interests* are what the sender wants from now on, *live_ids* the live events that it has,
    *space* is how it turns them into numbers, *learned* are the attributes that it knows.
    """

    interests: tuple[AnyInterest, ...]
    live_ids: frozenset[str]
    time: int
    space: Space | None = None
    learned: tuple[AttributeUse, ...] = ()
    versions: tuple[tuple[str, int], ...] = ()  # of the live events that have one
    gone: tuple[GoneEvent, ...] = ()
    #: Of which buckets it speaks; all others are as before. None: of everything.
    buckets: tuple[int, ...] | None = None
    is_last: bool = True  # of those that are sent together


@dataclass(frozen=True, slots=True)
class Learned:
    """Attributes that the sender has learned: of which kind they are, and where that was said.

    It comes before whatever uses them, and travels whatever is covered or merged.
    """

    learned: tuple[AttributeUse, ...]
    time: int


Announcement = AnnounceRanges | EventsGone | LinkGreeting | Learned
Message = Record | Announcement

#: The word for each kind of message, in counts and in JSON.
KINDS: Final[dict[type[Message], str]] = {
    **{rule.record: rule.word for rule in OPERATIONS.values()},
    AnnounceRanges: "ranges",
    EventsGone: "gone",
    LinkGreeting: "greeting",
    Learned: "learned",
}


def kind_of(message: Message) -> str:
    """The kind of *message*, as counts name it."""
    return KINDS[type(message)]


def about(message: Message) -> str:
    """The id of what *message* is about, for error messages."""
    match message:
        case Publish(event) | Update(event):
            return event.id
        case Subscribe(subscription):
            return subscription.id
        case Unsubscribe(id) | Move(id) | AnnounceRanges(id) | Withdraw(id):
            return id
    return kind_of(message)


class Outgoing(NamedTuple):
    """A message that is to go over the link to the neighbour *to*."""

    to: str
    message: Message


class Delivery(NamedTuple):
    """An event that enters a client's answer, or leaves it because either has changed."""

    subscription: str
    event: str
    added: bool = True


class OwedDelivery(NamedTuple):
    """A delivery of a broker, and its number there."""

    broker: str
    number: int
    delivery: Delivery

    def is_answer_to(self, record: Record) -> bool:
        """Whether this, which *record* led to, is a part of its answer."""
        match record:
            case Publish(event) | Update(event):
                return self.delivery.event == event.id
            case Withdraw(id):
                return self.delivery.event == id
            case Subscribe(subscription):
                return self.delivery.subscription == subscription.id
        return self.delivery.subscription == record.id


@dataclass(slots=True)
class BrokerOutput:
    """What messages led to: an answer for each record, what to send, what clients are given."""

    answers: list[Answer] = field(default_factory=list)
    sent: list[Outgoing] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)  # of the deliveries, to acknowledge them by
    unwanted: int = 0  # events from neighbours that nobody here or beyond wanted
    stayed: list[Delivery] = field(default_factory=list)  # who want an updated event as before


# JSON. Its words are in stores of earlier versions: they stay.

_LIMITS: Final = RecordLimits(expression=ANY_SIZE)
_RANGES: Final = "ranges"
#: Names are longer than clients' ids may be: they begin with their broker.
_ANY_ID: Final = "?"


def to_json(message: Message) -> dict[str, Any]:
    """*message* as a dict that JSON can hold, from which `from_json` makes an equal one.

    `op` is its kind, `time` are microseconds since 1970.

    >>> to_json(AnnounceRanges("west/ana", ((0, 7),), 5))
    {'op': 'ranges', 'id': 'west/ana', 'ranges': ((0, 7),), 'time': 5}
    """
    time: int | None = message.time
    match message:
        case AnnounceRanges(name, ranges):
            raw: dict[str, Any] = {"id": name, _RANGES: ranges}
        case EventsGone(gone):
            raw = {"gone": gone}
        case LinkGreeting(interests, live_ids, _, space, learned, versions, gone):
            announced = [{**interest_to_json(_wanted(one)), "id": one.name} for one in interests]
            of_space = None if space is None else space.to_dict()
            raw = {
                "told": announced,
                "held": sorted(live_ids),
                "space": of_space,
                "learned": learned,
                "versions": versions,
                "gone": gone,
            }
            if message.buckets is not None:
                raw |= {"buckets": message.buckets, "last": message.is_last}
        case Learned(learned):
            raw = {"learned": learned}
        case Publish() | Update() | Withdraw() | Subscribe() | Unsubscribe() | Move():
            raw = record_to_dict(replace(message, time=None))
            if version := getattr(message, "version", 0):
                raw["seq"] = version  # no attribute has this name
    return {"op": kind_of(message), **raw, "time": time}


def from_json(raw: Mapping[str, Any], schema: Schema) -> Message:
    """The message that `to_json` made *raw* of; a RecordError where it is none.

    *schema* says what its attributes are, and learns what it does not know.
    """
    try:
        return _from_json(raw, schema)
    except (LookupError, TypeError, ValueError, msgspec.MsgspecError) as error:
        if isinstance(error, StentorError):
            raise
        raise RecordError(f"no message of a broker: {error}") from None


def _from_json(raw: Mapping[str, Any], schema: Schema) -> Message:
    op, time = raw["op"], msgspec.convert(raw["time"], int | None)
    if op in ("ranges", "gone", "greeting", "learned") and time is None:
        raise RecordError("a message between brokers has a time", field="time")
    match op:
        case "ranges":
            ranges = msgspec.convert(raw[_RANGES], Pairs)
            return AnnounceRanges(msgspec.convert(raw["id"], str), ranges, time or 0)
        case "greeting":
            interests = tuple(_interest_of(one, schema) for one in raw["told"])
            space = None if raw["space"] is None else Space.from_dict(raw["space"])
            live_ids = msgspec.convert(raw["held"], frozenset[str])
            versions = msgspec.convert(raw.get("versions", ()), tuple[tuple[str, int], ...])
            learned = _uses(raw["learned"])
            gone = _gone(raw.get("gone", ()))
            buckets = msgspec.convert(raw.get("buckets"), tuple[int, ...] | None)
            last = msgspec.convert(raw.get("last", True), bool)
            said = (interests, live_ids, time or 0, space, learned, versions, gone)
            return LinkGreeting(*said, buckets, last)
        case "gone":
            return EventsGone(_gone(raw["gone"]), time or 0)
        case "learned":
            return Learned(_uses(raw["learned"]), time or 0)
        case "publish" | "update":
            event = event_from_dict(_timeless(raw), schema, _LIMITS, op)
            version = msgspec.convert(raw.get("seq", 0), int)
            return (Publish if op == "publish" else Update)(event, time, version)
        case "withdraw":
            version = msgspec.convert(raw.get("seq", 0), int)
            return Withdraw(msgspec.convert(raw["id"], str), time, version)
    name = msgspec.convert(raw["id"], str)
    record = record_from_dict({**_timeless(raw), "id": _ANY_ID}, schema, _LIMITS)
    match record:
        case Subscribe(subscription):
            return Subscribe(replace(subscription, id=name), time)
        case Unsubscribe() | Move():
            return replace(record, id=name, time=time)
    raise RecordError(f"no message of a broker has the op {describe(op)}", field="op")


def _timeless(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in raw.items() if name != "time"}


def _wanted(interest: AnyInterest) -> Subscription | Pairs:
    return interest.subscription if isinstance(interest, Interest) else interest.ranges


def _interest_of(raw: Mapping[str, Any], schema: Schema) -> AnyInterest:
    name = msgspec.convert(raw["id"], str)
    wanted = interest_from_json({key: raw[key] for key in raw if key != "id"}, name, schema)
    if isinstance(wanted, Subscription):
        return Interest(name, wanted)
    return RangeInterest(name, wanted)


def _gone(raw: Any) -> tuple[GoneEvent, ...]:
    return msgspec.convert(raw, tuple[GoneEvent, ...])


def _uses(raw: Any) -> tuple[AttributeUse, ...]:
    return tuple(msgspec.convert(raw, list[AttributeUse]))


def interest_to_json(wanted: Subscription | Pairs) -> dict[str, Any]:
    """What somebody wants as a dict that JSON can hold: a subscription, or ranges."""
    return subscription_to_dict(wanted) if isinstance(wanted, Subscription) else {_RANGES: wanted}


def interest_from_json(raw: Mapping[str, Any], name: str, schema: Schema) -> Subscription | Pairs:
    """What is wanted under *name*, of what `interest_to_json` made."""
    if _RANGES in raw:
        return msgspec.convert(raw, dict[str, Pairs])[_RANGES]
    return replace(subscription_from_dict({**raw, "id": _ANY_ID}, schema, _LIMITS), id=name)


def fields_from_json(raw: Mapping[str, Any], name: str, schema: Schema) -> SubscriptionFields:
    """What `interest_to_json` says of the subscription *name*, its expression not yet read."""
    return subscription_fields({**raw, "id": _ANY_ID}, schema)._replace(id=name)


def event_from_json(raw: Mapping[str, Any], schema: Schema) -> Event:
    """The event that `event_to_dict` made *raw* of."""
    return event_from_dict(raw, schema, _LIMITS)


# What a message must be, so that it can be kept and forwarded.


def record_error(
    source: str, message: Message, schema: Schema, space: Space | None
) -> StentorError | None:
    """Why *message* of *source* cannot be understood, or not be read back from a store.

    None where it can. What was read from JSON always can. What was made by hand, or came from
    another process, may be anything.
    """
    try:
        _check(source, message, schema, space)
    except StentorError as error:
        return error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return RecordError(f"{type(message).__name__} of {source or 'a client'}: {error}")
    return None


def _check(source: str, message: Message, schema: Schema, space: Space | None) -> None:
    check_id = _check_id if source == CLIENT else _check_name
    match message:
        case Publish(Event() as event) | Update(Event() as event):
            _check_id(event.id)
            check_time(event.until)
            check_event(event, schema)
            event_from_dict(event_to_dict(event), schema.frozen())
            check_seq(message.version)
        case Withdraw(id):
            _check_id(id)
            check_seq(message.version)
        case Subscribe(Subscription() as subscription):
            check_id(subscription.id)
            _check_subscription(subscription, schema)
            if source == CLIENT:
                where = f"subscription {subscription.id!r}"
                schema.frozen().learn(uses(subscription.expression, where))
        case Unsubscribe(id):
            check_id(id)
        case Move(id, Point() as at):
            check_id(id)
            _check_location(at, schema)
        case AnnounceRanges(name, ranges) if source != CLIENT:
            _check_name(name)
            check_ranges(ranges, space)
        case LinkGreeting(interests, live_ids, learned=learned) if source != CLIENT:
            for interest in interests:
                _check_interest(interest, schema)
            for id in live_ids:
                _check_name(id)
            for id, version in message.versions:
                _check_name(id)
                check_seq(version)
            _check_gone(message.gone)
            _check_learned(learned)
        case Learned(learned) if source != CLIENT:
            _check_learned(learned)
        case EventsGone(gone) if source != CLIENT:
            _check_gone(gone)
        case _:
            who = "a client" if source == CLIENT else "a neighbour"
            raise RecordError(f"{who} sends no {describe(message)}")
    check_time(message.time, optional=not isinstance(message, Announcement))


def _check_interest(interest: AnyInterest, schema: Schema) -> None:
    """Refuse what is none; ranges are looked at one by one, since others may be fine."""
    _check_name(interest.name)
    match interest:
        case Interest(subscription=Subscription() as subscription):
            _check_subscription(subscription, schema)
        case RangeInterest(_, ranges):
            for low, high in ranges:
                int.__index__(low), int.__index__(high)
        case _:
            raise RecordError(f"nobody can want {describe(interest)}")


def _check_subscription(subscription: Subscription, schema: Schema) -> None:
    if not isinstance(subscription.expression, get_args(Expression)):
        raise RecordError(f"expected an expression, got {describe(subscription.expression)}")
    _check_location(subscription.at, schema)
    check_time(subscription.until)


def _check_learned(learned: tuple[AttributeUse, ...]) -> None:
    for name, kind, where in learned:
        _check_name(name)
        _check_name(where)
        if kind is not None and not isinstance(kind, Kind):
            raise RecordError(f"the attribute {name!r} cannot be {describe(kind)}")


def _check_gone(gone: tuple[GoneEvent, ...]) -> None:
    for id, version, until in gone:
        _check_name(id)
        check_seq(version)
        check_time(until)


def _check_location(at: Point | None, schema: Schema) -> None:
    if at is not None:
        read_location([at.x, at.y], plane=schema.plane)


def _check_id(id: object) -> None:
    _check_name(id)
    read_id(id)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise RecordError(f"expected a name, got {describe(name)}")
    read_string(name)


def check_time(time: int | None, *, optional: bool = True) -> None:
    """Refuse a *time* that is no instant; None only where it is not *optional*."""
    if time is None and optional:
        return
    is_instant = type(time) is int and (time == BEGINNING or EARLIEST <= time <= LATEST)
    if not is_instant:
        raise RecordError(
            f"expected an instant in microseconds, got {describe(time)}", field="time"
        )
