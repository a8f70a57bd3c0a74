"""Columns → an event of the model, as it was encoded."""

from __future__ import annotations

from stentor.encoding.columns import NO_STRING, EventColumns
from stentor.model import Constant, Event, Kind, OneOf, Point, Range, Schema, Value
from stentor.model.values.members import read_set
from stentor.model.values.time import NEVER


def event_of(columns: EventColumns, row: int, id: str, schema: Schema) -> Event:
    """The event in *row*, with the attributes that *schema* knew when it was encoded."""
    names = schema.by_code
    values = range(int(columns.value_start[row]), int(columns.value_start[row + 1]))
    attributes: dict[str, Value] = {}
    for value in values:
        name = names[columns.attribute[value]]
        found = _value(columns, value, schema.kind(name))
        known = attributes.get(name)
        if known is not None and isinstance(found, (Constant, Range)):
            before = known.members if isinstance(known, OneOf) else (known,)
            found = OneOf(found.kind, (*before, found))
        attributes[name] = found
    weights = range(int(columns.weight_start[row]), int(columns.weight_start[row + 1]))
    until = int(columns.until[row])
    return Event(
        id,
        dict(sorted(attributes.items())),
        {names[columns.weight_attribute[one]]: float(columns.weight[one]) for one in weights},
        None if until == NEVER else until,
    )


def _value(columns: EventColumns, value: int, kind: Kind | None) -> Value:
    """The *value*, whose attribute is of this *kind*."""
    string = int(columns.string[value])
    if string != NO_STRING:
        start, stop = columns.string_start[string : string + 2]
        text = columns.string_bytes[start:stop].tobytes().decode()
        return read_set(text) if kind is Kind.SET else Constant(Kind.STRING, text)
    low, high = float(columns.low[value]), float(columns.high[value])
    assert kind is not None
    if kind is Kind.POINT:
        return Point(low, high)
    return Constant(kind, low) if low == high else Range(kind, low, high)
