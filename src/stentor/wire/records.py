"""Subscriptions and records of all kinds ↔ dicts.

A subscription is `{"id": "ana", "expression": "price < 300", "at": [151.2, -33.9], "until": …}`.
A record says in `op` what it does, and may carry its `time`:

    subscribe     id, expression, at, until, owner, labels
    unsubscribe   id
    move          id, at
    publish       an event
    update        an event, instead of the live one of its id
    withdraw      id, of a live event
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from stentor.errors import RecordError
from stentor.language.parser import parse
from stentor.language.printer import to_text
from stentor.language.tree import missing_position, needs_position, uses
from stentor.model import Event, Point, Schema, Subscription
from stentor.model.record import (
    CHANGE_FIELDS,
    OPERATIONS,
    OPS,
    SUBSCRIPTION_FIELDS,
    Move,
    Op,
    Operation,
    Publish,
    Record,
    Subscribe,
    Unsubscribe,
    Update,
    Withdraw,
    lasting,
)
from stentor.model.values import check_value, read_location
from stentor.model.values.labels import read_labels, read_owner
from stentor.model.values.object import Raw, check_fields, check_object, says
from stentor.model.values.string import describe, read_id
from stentor.model.values.time import check_micros, read_time, time_text
from stentor.wire.events import check_event, event_from_dict, event_to_dict
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits


class SubscriptionFields(NamedTuple):
    """What a subscription's dict says, its expression a text."""

    id: str
    text: str
    at: Point | None
    until: int | None
    owner: str | None
    labels: Mapping[str, str]


def subscription_fields(raw: Raw, schema: Schema) -> SubscriptionFields:
    """What *raw* says of a subscription; nothing of its expression but that it is a text."""
    check_fields(
        check_object(raw, "a subscription"),
        (*SUBSCRIPTION_FIELDS, *CHANGE_FIELDS),
        "a subscription",
    )
    op = raw.get("op")
    if op is not None and not says(op, "subscribe"):
        raise RecordError(f"a subscription's op is 'subscribe', got {describe(op)}", field="op")
    id = read_id(raw.get("id"))
    at = read_location(raw.get("at"), plane=schema.plane)
    until = read_time(raw.get("until"), "until")
    text = _expression_text(raw.get("expression"))
    owner, labels = read_owner(raw.get("owner")), read_labels(raw.get("labels"))
    return SubscriptionFields(id, text, at, until, owner, labels)


def subscription_from_dict(
    raw: Raw, schema: Schema, limits: RecordLimits = DEFAULT_RECORD_LIMITS
) -> Subscription:
    """The subscription that *raw* describes; *schema* learns from it once all of it is valid."""
    id, text, at, until, owner, labels = subscription_fields(raw, schema)
    expression = parse(text, schema=schema, limits=limits.expression)
    if at is None and needs_position(expression):
        raise missing_position()
    schema.learn(uses(expression, f"subscription {id!r}"))
    return Subscription(id, expression, at, until, owner, labels)


def subscription_to_dict(subscription: Subscription) -> dict[str, Any]:
    """*subscription* as a dict that JSON can hold.

    >>> from stentor.model import Truth
    >>> subscription_to_dict(Subscription("ana", Truth(True), until=0))
    {'id': 'ana', 'expression': 'TRUE', 'until': '1970-01-01T00:00:00+00:00'}
    """
    at = subscription.at
    raw = {
        "id": subscription.id,
        "expression": to_text(subscription.expression),
        "at": None if at is None else [at.x, at.y],
        "until": time_text(subscription.until),
        "owner": subscription.owner,
        "labels": dict(subscription.labels) or None,
    }
    return {name: field for name, field in raw.items() if field is not None}


def record_from_dict(
    raw: Raw,
    schema: Schema,
    limits: RecordLimits = DEFAULT_RECORD_LIMITS,
    default_op: Op | None = None,
) -> Record:
    """The record that *raw* describes; one without an `op` does *default_op*.

    >>> record_from_dict({"op": "move", "id": "ana", "at": [151.3, -33.9], "time": 5}, Schema())
    Move(id='ana', at=Point(x=151.3, y=-33.9), time=5000000)
    """
    op, time = head_of(raw, default_op)
    if op == "publish":
        return Publish(event_from_dict(raw, schema, limits), time)
    if op == "update":
        return Update(lasting(event_from_dict(raw, schema, limits, op)), time)
    change = change_from_dict(raw, op, plane=schema.plane)
    if op == "subscribe":
        return Subscribe(subscription_from_dict(raw, schema, limits), time)
    if op == "withdraw":
        return Withdraw(change.id, time)
    if change.at is None:
        return Unsubscribe(change.id, time)
    return Move(change.id, change.at, time)


def head_of(raw: Raw, default_op: Op | None) -> tuple[str, int | None]:
    """What the record *raw* does, and when."""
    op = op_of(check_object(raw, "a record").get("op"), default_op)
    time = read_time(raw.get("time"), "time")
    check_seq(raw.get("seq"))
    return op, time


class ChangeFields(NamedTuple):
    """The fields of a record without attributes; what its expression means is not looked at."""

    id: str
    expression: str | None
    at: Point | None
    until: int | None


def change_from_dict(raw: Raw, op: str, *, plane: bool) -> ChangeFields:
    """The fields of *raw*, which does *op*, each checked."""
    check_fields(raw, _fields_of(op), f"a record of op {op!r}")
    id = read_id(raw.get("id"))
    if op in ("unsubscribe", "withdraw"):
        return ChangeFields(id, None, None, None)
    at = read_location(raw.get("at"), plane=plane)
    if op == "move":
        if at is None:
            raise _nowhere()
        return ChangeFields(id, None, at, None)
    until = read_time(raw.get("until"), "until")
    return ChangeFields(id, _expression_text(raw.get("expression")), at, until)


def check_record(
    record: Record, schema: Schema, limits: RecordLimits = DEFAULT_RECORD_LIMITS
) -> None:
    """Refuse a *record* of somebody else's making that no dict could have become.

    What its expression is worth is looked at elsewhere.
    """
    check_micros(record.time, "time")
    match record:
        case Publish(Event() as event) | Update(Event() as event):
            check_event(event, schema, limits)
        case Subscribe(Subscription(str(id), _, at, until, owner, labels)):
            read_id(id)
            read_owner(owner)
            read_labels(labels)
            check_micros(until, "until")
            if at is not None:
                _check_point(at, schema)
        case Unsubscribe(str(id)) | Withdraw(str(id)):
            read_id(id)
        case Move(str(id), at):
            read_id(id)
            _check_point(at, schema)
        case _:
            raise RecordError(
                f"{type(record).__name__} holds an Event, a Subscription, or an id that is a text"
            )


def _check_point(at: object, schema: Schema) -> None:
    if not isinstance(at, Point):
        raise RecordError(f"expected a Point, got {type(at).__name__}", field="at")
    check_value(at, plane=schema.plane, field="at")


def check_change(op: Any, expression: Any, *, has_at: bool, has_until: bool) -> None:
    """Refuse a change of a subscription whose fields are not those of its *op*."""
    op = op_of(op, None)
    given = {"expression": expression, "at": has_at or None, "until": has_until or None}
    check_fields(given, _fields_of(op), f"a record of op {op!r}")
    if op == "subscribe":
        _expression_text(expression)
    if op == "move" and not has_at:
        raise _nowhere()


def _fields_of(op: str) -> tuple[str, ...]:
    """What a record that does *op*, and brings no event, may say."""
    return (*(OPERATIONS[Operation.of(op)].fields or ()), *CHANGE_FIELDS)


def rows_with_other_fields(columns: Mapping[str, Any], op: Op) -> dict[int, str]:
    """Rows with a value in one of *columns* (Arrow arrays) that records of *op* do not have: why.

    As one by one: what is null is not there.
    """
    reasons: dict[int, str] = {}
    for name, array in columns.items():
        try:
            check_fields({name: True}, _fields_of(op), f"a record of op {op!r}")
        except RecordError as error:
            valued = (row for row, is_valid in enumerate(array.is_valid().to_pylist()) if is_valid)
            reasons = dict.fromkeys(valued, str(error)) | reasons
    return reasons


def _expression_text(text: Any) -> str:
    if not isinstance(text, str):
        raise RecordError(
            "expected an expression like \"price < 300 AND has_all(text, 'ipad')\", "
            f"got {'nothing' if text is None else describe(text)}",
            field="expression",
        )
    return text


def _nowhere() -> RecordError:
    return RecordError("a move says where to: [longitude, latitude]", field="at")


def record_to_dict(record: Record) -> dict[str, Any]:
    """*record* as a dict that JSON can hold, its `op` and `time` included."""
    match record:
        case Publish(event, time):
            op, raw = "publish", event_to_dict(event)
        case Update(event, time):
            op, raw = "update", event_to_dict(event)
        case Withdraw(id, time):
            op, raw = "withdraw", {"id": id}
        case Subscribe(subscription, time):
            op, raw = "subscribe", subscription_to_dict(subscription)
        case Unsubscribe(id, time):
            op, raw = "unsubscribe", {"id": id}
        case Move(id, at, time):
            op, raw = "move", {"id": id, "at": [at.x, at.y]}
    return {"op": op, **raw} if time is None else {"op": op, **raw, "time": time_text(time)}


def op_of(raw: Any, default_op: Op | None) -> str:
    """What a record does: *raw*, or *default_op* where it does not say."""
    op = default_op if raw is None else raw
    if not says(op, *OPS):
        got = "nothing" if op is None else describe(op)
        raise RecordError(f"expected one of {', '.join(OPS)}, got {got}", field="op")
    return str(op)


def check_seq(raw: Any) -> None:
    """Refuse a `seq` that is no number in an order of records."""
    if raw is not None and (type(raw) is not int or not 0 <= raw < 2**63):
        raise RecordError("expected a whole number from 0 to 2^63 − 1", field="seq")
