"""Events ↔ dicts.

Flat: `{"id": "e1", "text": "iPad", "loc": [151.2, -33.9], "price": 299, "until": …}`; what is not
one of `id until time weights seq op among` is an attribute, and what is in a nested object is one
with dots (`customer.age`). Nested: `{"id": …, "attributes": {…}}`;
then every name is free, though no subscription can name an attribute of those seven. A null is the
same as leaving the attribute out, and so is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from stentor.errors import RecordError
from stentor.model import Constant, Event, Kind, OneOf, Point, Range, Schema, Set, Value
from stentor.model.record import RECORD_FIELDS
from stentor.model.schema import AttributeUse
from stentor.model.values import check_value, is_readable, kind_of, read_value
from stentor.model.values.labels import read_labels
from stentor.model.values.members import members_length, plain_members
from stentor.model.values.nested import flattened
from stentor.model.values.number import check_weight_count, read_weight, read_weights
from stentor.model.values.object import Raw, check_fields, check_object, says
from stentor.model.values.one_of import check_choices, length_of, plain_one_of
from stentor.model.values.string import (
    check_record_bytes,
    check_string_bytes,
    describe,
    read_attribute_name,
    read_id,
    utf8_length,
)
from stentor.model.values.time import check_micros, format_timestamp, read_time, time_text
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits

#: What a flat event cannot call its attributes.
RESERVED: Final = RECORD_FIELDS
#: Holds all attributes of a nested event.
NESTED: Final = "attributes"


def event_from_dict(
    raw: Raw, schema: Schema, limits: RecordLimits = DEFAULT_RECORD_LIMITS, op: str = "publish"
) -> Event:
    """The event that *raw*, which does *op*, describes; *schema* learns once all of it is valid.

    In a declared schema, attributes that it does not have are left out unread.

    >>> event_from_dict({"id": "e1", "price": 299, "weights": {"price": 2}}, Schema())
    ... # doctest: +NORMALIZE_WHITESPACE
    Event(id='e1', attributes={'price': Constant(kind=<Kind.NUMBER: 'number'>, value=299.0)},
    weights={'price': 2.0}, until=None, among={})
    """
    given = flattened(_attributes(check_object(raw, "an event")), schema.kind)
    _check_size(given, schema, limits)
    check_event_op(raw.get("op"), op)
    attributes: dict[str, Value] = {}
    for name, cell in given.items():
        kind = schema.kind(name)
        if is_wanted(name, schema) and (kind is not None or is_readable(cell)):
            value = read_value(cell, kind=kind, plane=schema.plane, field=name)
            if value is not None:
                attributes[name] = value
    check_choices(attributes.values(), limits.choices)
    weights = read_weights(raw.get("weights"), limits.attributes)
    event = Event(
        read_id(raw.get("id")),
        attributes,
        {name: weight for name, weight in weights.items() if is_wanted(name, schema)},
        read_time(raw.get("until"), "until"),
        read_labels(raw.get("among"), "among"),
    )
    learn_event(event, schema)
    return event


def check_event_op(op: Any, expected: str = "publish") -> None:
    """Refuse an event that does something else than is *expected*."""
    if op is not None and not says(op, expected):
        raise RecordError(f"an event's op is {expected!r}, got {describe(op)}", field="op")


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
        raw["until"] = time_text(event.until)
    if event.among:
        raw["among"] = dict(event.among)
    return raw


def needs_nested_form(names: Iterable[str]) -> bool:
    """Whether one of *names* means something else in the flat form."""
    return not {*RESERVED, NESTED}.isdisjoint(names)


def is_wanted(name: str, schema: Schema) -> bool:
    """Whether *schema* takes in an event's attribute of this *name*."""
    return not schema.declared or name in schema


def check_event(event: Event, schema: Schema, limits: RecordLimits = DEFAULT_RECORD_LIMITS) -> None:
    """Refuse an *event* of somebody else's making that no dict could have become."""
    if not isinstance(event.id, str):
        raise RecordError(f"expected a string, got {describe(event.id)}", field="id")
    read_id(event.id)
    attributes = check_object(event.attributes, "what an Event has as attributes")
    strings = {
        name: value.value
        if isinstance(value, Constant)
        else plain_members(value)
        if isinstance(value, Set)
        else plain(value)
        if isinstance(value, OneOf)
        else None
        for name, value in attributes.items()
    }
    _check_size(strings, schema, limits)
    for name, value in attributes.items():
        check_value(value, plane=schema.plane, field=name)
    check_choices(attributes.values(), limits.choices)
    for name, weight in check_object(event.weights, "what an Event has as weights").items():
        read_weight(weight, read_attribute_name(name))
    check_weight_count(len(event.weights), limits.attributes)
    check_micros(event.until, "until")
    read_labels(event.among, "among")


def learn_event(event: Event, schema: Schema) -> None:
    """Let *schema* take in what *event* uses; a TypeConflictError leaves it as it was."""
    where = f"event {event.id!r}"
    new: list[AttributeUse] = []
    for name, value in event.attributes.items():
        kind = kind_of(value)
        if schema.kind(name) is not kind:
            new.append(AttributeUse(name, kind, where))
    # A weight counts for IS NULL too, so its name is known even where the attribute is missing.
    new += [AttributeUse(name, None, where) for name in event.weights if name not in schema]
    if new:
        schema.learn(new, is_asked=False)


def plain(value: Value) -> Any:
    """*value* as `value_of` reads it back: whole numbers as integers, timestamps as UTC text."""
    if isinstance(value, Point):
        return [value.x, value.y]
    if isinstance(value, Range):
        ends = {"low": value.low, "high": value.high}
        finite = {name: end for name, end in ends.items() if math.isfinite(end)}
        return {name: _plain(value.kind, end) for name, end in (finite or ends).items()}
    if isinstance(value, Set):
        return plain_members(value)
    if isinstance(value, OneOf):
        return plain_one_of(value, lambda one: _plain(value.kind, one))
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
            read_attribute_name(name)
        if isinstance(cell, str | list | Mapping):
            length = (
                utf8_length(cell)
                if isinstance(cell, str)
                else members_length(cell)
                if isinstance(cell, list)
                else length_of(cell)
            )
            check_string_bytes(length, limits.string_bytes, name)
            size += length
    check_record_bytes(size, limits.record_bytes)
