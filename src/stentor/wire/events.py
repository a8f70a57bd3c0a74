"""Events ↔ dicts.

Flat: `{"id": "e1", "text": "iPad", "loc": [151.2, -33.9], "price": 299, "until": …}`; what is not
one of `id until time weights seq op` is an attribute. Nested: `{"id": …, "attributes": {…}}`; then
every name is free. A null is the same as leaving the attribute out, and so is NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from stentor.errors import RecordError
from stentor.model import Event, Kind, Point, Range, Schema, Value
from stentor.model.schema import Use
from stentor.model.time import format_timestamp, instant
from stentor.model.value import kind_of, value_of
from stentor.wire.fields import (
    Raw,
    check_fields,
    check_object,
    id_of,
    moment_text,
    name_of,
    shown,
    utf8_length,
    weights_of,
)
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits

#: What a flat event cannot call its attributes.
RESERVED: Final = ("id", "until", "time", "weights", "seq", "op")
#: Holds all attributes of a nested event.
NESTED: Final = "attributes"


def event_from_dict(
    raw: Raw, schema: Schema, limits: RecordLimits = DEFAULT_RECORD_LIMITS
) -> Event:
    """The event that *raw* stands for; *schema* learns from it once all of it is valid.

    In a declared schema, attributes that it does not have are left out unread.

    >>> event_from_dict({"id": "e1", "price": 299, "weights": {"price": 2}}, Schema())
    ... # doctest: +NORMALIZE_WHITESPACE
    Event(id='e1', attributes={'price': Constant(kind=<Kind.NUMBER: 'number'>, value=299.0)},
    weights={'price': 2.0}, until=None)
    """
    given = _attributes(check_object(raw, "an event"))
    _check_size(given, schema, limits)
    if raw.get("op") not in (None, "publish"):
        raise RecordError(f"an event's op is 'publish', got {shown(raw['op'])}", field="op")
    attributes: dict[str, Value] = {}
    for name, cell in given.items():
        if is_wanted(name, schema):
            value = value_of(cell, kind=schema.kind(name), plane=schema.plane, field=name)
            if value is not None:
                attributes[name] = value
    weights = weights_of(raw.get("weights"))
    event = Event(
        id_of(raw.get("id")),
        attributes,
        {name: weight for name, weight in weights.items() if is_wanted(name, schema)},
        instant(raw.get("until"), "until"),
    )
    learn_event(event, schema)
    return event


def event_to_dict(event: Event) -> dict[str, Any]:
    """*event* as a dict that JSON can hold; nested where an attribute's name needs it.

    >>> event_to_dict(Event("e1", {"loc": Point(151.2, -33.9)}, until=0))
    {'id': 'e1', 'loc': [151.2, -33.9], 'until': '1970-01-01T00:00:00+00:00'}
    """
    attributes = {name: plain(value) for name, value in event.attributes.items()}
    if needs_nested_form(attributes):
        attributes = {NESTED: attributes}
    raw = {"id": event.id, **attributes}
    if event.weights:
        raw["weights"] = dict(event.weights)
    if event.until is not None:
        raw["until"] = moment_text(event.until)
    return raw


def needs_nested_form(names: Iterable[str]) -> bool:
    """Whether one of *names* means something else in the flat form."""
    return not {*RESERVED, NESTED}.isdisjoint(names)


def is_wanted(name: str, schema: Schema) -> bool:
    """Whether *schema* takes in an event's attribute of this *name*."""
    return not schema.declared or name in schema


def learn_event(event: Event, schema: Schema) -> None:
    """Let *schema* take in what *event* uses; a TypeConflictError leaves it as it was."""
    for name, value in event.attributes.items():
        if not isinstance(value, Value):
            raise RecordError(
                f"an Event holds Constant, Range and Point values, got {shown(value)}; "
                "pass a dict, or make the event by event_from_dict",
                field=name,
            )
    where = f"event {event.id!r}"
    new: list[Use] = []
    for name, value in event.attributes.items():
        kind = kind_of(value)
        if schema.kind(name) is not kind:
            new.append(Use(name, kind, where))
    # A weight counts for IS NULL too, so its name is known even where the attribute is missing.
    new += [Use(name, None, where) for name in event.weights if name not in schema]
    if new:
        schema.learn(new)


def plain(value: Value) -> Any:
    """*value* as `value_of` reads it back: whole numbers as integers, timestamps as UTC text."""
    if isinstance(value, Point):
        return [value.x, value.y]
    if isinstance(value, Range):
        return {"low": _plain(value.kind, value.low), "high": _plain(value.kind, value.high)}
    return _plain(*value)


def _plain(kind: Kind, value: float | str) -> Any:
    if isinstance(value, str):
        return value
    if kind is Kind.TIMESTAMP:
        return format_timestamp(value)
    if kind is Kind.BOOLEAN:
        return value != 0.0
    return int(value) if value.is_integer() and abs(value) <= 2**53 else value


def _attributes(raw: Raw) -> Raw:
    nested = raw.get(NESTED)
    if isinstance(nested, Mapping):
        check_fields(raw, (*RESERVED, NESTED), 'an event with "attributes"')
        return nested
    return {name: cell for name, cell in raw.items() if name not in RESERVED}


def _check_size(attributes: Raw, schema: Schema, limits: RecordLimits) -> None:
    if len(attributes) > limits.attributes:
        raise RecordError(
            f"the event has {len(attributes):,} attributes; the limit is {limits.attributes:,}"
        )
    size = 0
    for name, cell in attributes.items():
        if name not in schema:
            name_of(name)
        if isinstance(cell, str):
            length = utf8_length(cell)
            if length > limits.string_bytes:
                raise RecordError(
                    f"the string has {length:,} bytes; the limit is {limits.string_bytes:,}",
                    field=name,
                )
            size += length
    if size > limits.record_bytes:
        raise RecordError(
            f"the event's strings have {size:,} bytes; the limit is {limits.record_bytes:,}"
        )
