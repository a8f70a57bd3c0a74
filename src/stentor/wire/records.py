"""Subscriptions and records of all kinds ↔ dicts.

A subscription is `{"id": "ana", "expression": "price < 300", "at": [151.2, -33.9], "until": …}`.
A record says in `op` what it does, and may carry its `time`:

    subscribe     id, expression, at, until
    unsubscribe   id
    move          id, at
    publish       an event
"""

from __future__ import annotations

from typing import Any, Final, Literal

from stentor.errors import RecordError
from stentor.language.parser import parse
from stentor.language.printer import to_text
from stentor.language.uses import missing_position, needs_position, uses
from stentor.model import Schema, Subscription
from stentor.model.record import Move, Publish, Record, Subscribe, Unsubscribe
from stentor.model.time import instant
from stentor.wire.events import event_from_dict, event_to_dict
from stentor.wire.fields import (
    Raw,
    check_fields,
    check_object,
    id_of,
    moment_text,
    position_of,
    shown,
)
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits

Op = Literal["subscribe", "unsubscribe", "move", "publish"]

_SUBSCRIPTION: Final = ("id", "expression", "at", "until")
_RECORD: Final = ("op", "time", "seq")
_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "subscribe": _SUBSCRIPTION,
    "unsubscribe": ("id",),
    "move": ("id", "at"),
}
OPS: Final = (*_FIELDS, "publish")


def subscription_from_dict(
    raw: Raw, schema: Schema, limits: RecordLimits = DEFAULT_RECORD_LIMITS
) -> Subscription:
    """The subscription that *raw* stands for; *schema* learns from it once all of it is valid."""
    check_fields(check_object(raw, "a subscription"), (*_SUBSCRIPTION, *_RECORD), "a subscription")
    if raw.get("op") not in (None, "subscribe"):
        raise RecordError(f"a subscription's op is 'subscribe', got {shown(raw['op'])}", field="op")
    id = id_of(raw.get("id"))
    at = position_of(raw.get("at"), plane=schema.plane)
    until = instant(raw.get("until"), "until")
    text = _expression_text(raw.get("expression"))
    expression = parse(text, schema=schema, limits=limits.expression)
    if at is None and needs_position(expression):
        raise missing_position()
    schema.learn(uses(expression, f"subscription {id!r}"))
    return Subscription(id, expression, at, until)


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
        "until": moment_text(subscription.until),
    }
    return {name: field for name, field in raw.items() if field is not None}


def record_from_dict(
    raw: Raw,
    schema: Schema,
    limits: RecordLimits = DEFAULT_RECORD_LIMITS,
    default_op: Op | None = None,
) -> Record:
    """The record that *raw* stands for; one without an `op` does *default_op*.

    >>> record_from_dict({"op": "move", "id": "ana", "at": [151.3, -33.9], "time": 5}, Schema())
    Move(id='ana', at=Point(x=151.3, y=-33.9), time=5000000)
    """
    op = op_of(check_object(raw, "a record").get("op"), default_op)
    time = instant(raw.get("time"), "time")
    check_seq(raw.get("seq"))
    if op == "publish":
        return Publish(event_from_dict(raw, schema, limits), time)
    check_fields(raw, (*_FIELDS[op], *_RECORD), f"a record of op {op!r}")
    if op == "subscribe":
        return Subscribe(subscription_from_dict(raw, schema, limits), time)
    id = id_of(raw.get("id"))
    if op == "unsubscribe":
        return Unsubscribe(id, time)
    at = position_of(raw.get("at"), plane=schema.plane)
    if at is None:
        raise _nowhere()
    return Move(id, at, time)


def check_change(op: Any, expression: Any, *, has_at: bool, has_until: bool) -> None:
    """Refuse a change of a subscription whose fields are not those of its *op*."""
    op = op_of(op, None)
    given = {"expression": expression, "at": has_at or None, "until": has_until or None}
    check_fields(given, (*_FIELDS[op], *_RECORD), f"a record of op {op!r}")
    if op == "subscribe":
        _expression_text(expression)
    if op == "move" and not has_at:
        raise _nowhere()


def _expression_text(text: Any) -> str:
    if not isinstance(text, str):
        raise RecordError(
            "expected an expression like \"price < 300 AND has_all(text, 'ipad')\", "
            f"got {'nothing' if text is None else shown(text)}",
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
        case Subscribe(subscription, time):
            op, raw = "subscribe", subscription_to_dict(subscription)
        case Unsubscribe(id, time):
            op, raw = "unsubscribe", {"id": id}
        case Move(id, at, time):
            op, raw = "move", {"id": id, "at": [at.x, at.y]}
    return {"op": op, **raw} if time is None else {"op": op, **raw, "time": moment_text(time)}


def op_of(raw: Any, default_op: Op | None) -> str:
    """What a record does: *raw*, or *default_op* where it does not say."""
    op = default_op if raw is None else raw
    if op not in OPS:
        got = "nothing" if op is None else shown(op)
        raise RecordError(f"expected one of {', '.join(OPS)}, got {got}", field="op")
    return str(op)


def check_seq(raw: Any) -> None:
    """Refuse a `seq` that is no place in an order of records."""
    if raw is not None and (type(raw) is not int or not 0 <= raw < 2**63):
        raise RecordError("expected a whole number from 0 to 2^63 − 1", field="seq")
