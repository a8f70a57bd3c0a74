"""What a value is: the one reader of raw values, and the only sentences that refuse them.

A number is a double. An integer that a double cannot hold is refused, never rounded; −0.0 is 0.0;
NaN is the same as leaving the attribute out. A timestamp is a double of microseconds since 1970
UTC (exact for every whole second of the years 1 to 9999, and for every microsecond to 2255).

Dicts, JSON, Arrow, frames, CSV and Spark end here: readers of whole columns (`wire/cells`) only
prove that a cell is fine, and call `read_value` for every other one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any

from stentor.errors import RecordError
from stentor.model.kind import Kind
from stentor.model.values.constant import Constant, is_missing, python_scalar, read_constant
from stentor.model.values.geometry import read_geometry
from stentor.model.values.members import Set, read_set
from stentor.model.values.nested import SET, names_of_a_value
from stentor.model.values.one_of import NAMES, OneOf, excluded_by, one_of, read_one_of
from stentor.model.values.point import (
    COORDINATE_NAMES,
    Point,
    is_pair,
    is_surely_a_point,
    no_pair,
    read_point,
)
from stentor.model.values.range import Range, read_range
from stentor.model.values.string import describe, read_string

__all__ = [
    "Constant",
    "Kind",
    "OneOf",
    "Point",
    "Range",
    "Set",
    "Value",
    "check_value",
    "kind_of",
    "read_location",
    "read_value",
]

Value = Constant | Range | Point | Set | OneOf


def read_value(
    raw: Any, kind: Kind | None = None, *, plane: bool = False, field: str | None = None
) -> Value | None:
    """The value of *raw* (a plain Python or JSON value); None where it is missing.

    *kind* is what the schema already knows of the attribute: it turns a string into a timestamp
    where one is expected.

    >>> read_value(299)
    Constant(kind=<Kind.NUMBER: 'number'>, value=299.0)
    >>> read_value([151.2, -33.9])
    Point(x=151.2, y=-33.9)
    >>> read_value({"low": 10, "high": 20})
    Range(kind=<Kind.NUMBER: 'number'>, low=10.0, high=20.0)
    """
    if getattr(raw, "ndim", None) == 0:
        raw = python_scalar(raw, field)
    if is_missing(raw):
        return None
    if isinstance(raw, Mapping):
        return _read_object(raw, kind, plane, field)
    if getattr(raw, "ndim", 0) == 1:
        raw = raw.tolist()  # a NumPy array
    if kind is Kind.SET:
        return read_set(raw, field)
    if kind is Kind.POINT and isinstance(raw, (str, bytes)):
        return read_point(read_geometry(raw, field), plane=plane, field=field)
    if isinstance(raw, (list, tuple)):
        if len(raw) == 2 and (kind is not None or is_pair(raw)):
            return read_point(raw, plane=plane, field=field)
        if kind is Kind.POINT:
            raise no_pair(field)
        if kind is None:
            return read_set(raw, field)
    return read_constant(raw, kind, field)


def is_readable(raw: Any) -> bool:
    """Whether *raw*, of an attribute that nobody asks for, is of a type that values have."""
    dimensions = getattr(raw, "ndim", None)
    if dimensions is not None:
        return dimensions == 0 or (dimensions == 1 and is_readable(raw.tolist()))
    if isinstance(raw, (list, tuple)):
        return not any(isinstance(one, (bool, list, tuple)) for one in raw) and all(
            isinstance(one, (str, Real, Decimal)) or is_missing(one) for one in raw
        )
    return isinstance(raw, (str, Real, Decimal, datetime, date, Mapping)) or is_missing(raw)


def read_location(raw: Any, *, plane: bool) -> Point | None:
    """The location of a subscriber: a pair [longitude, latitude] or a GeoJSON Point."""
    if raw is None:
        return None
    if type(raw) in (tuple, list) and is_surely_a_point(raw):
        return Point(raw[0] + 0.0, raw[1] + 0.0)
    if isinstance(raw, (list, tuple, Mapping)) or getattr(raw, "ndim", 0) == 1:
        location = read_value(raw, plane=plane, field="at")
        if isinstance(location, Point):
            return location
    raise RecordError(
        f"expected a place, [longitude, latitude] or a GeoJSON Point, got {describe(raw)}",
        field="at",
    )


def _read_object(
    raw: Mapping[str, Any], kind: Kind | None, plane: bool, field: str | None
) -> Constant | Point | Range | Set | OneOf | None:
    marked = raw.get("type")
    is_point = isinstance(marked, str) and marked == "Point"
    if is_point and kind is not Kind.SET and isinstance(raw.get("coordinates"), (list, tuple)):
        coordinates = raw["coordinates"]
        if len(coordinates) not in (2, 3):  # GeoJSON allows an altitude, which is not used
            raise RecordError("a GeoJSON Point has two coordinates", field=field)
        return read_point(coordinates[:2], plane=plane, field=field)
    names = {name for name, cell in raw.items() if not is_missing(cell)}
    for x, y in COORDINATE_NAMES:
        if {x, y} in (names, set(raw)) and kind is not Kind.SET:
            return read_point((raw[x], raw[y]), plane=plane, field=field)
    if names == SET and kind in (None, Kind.SET):
        return read_set(raw["set"], field)
    if kind is Kind.SET:
        return read_set(raw, field)  # which says what a set is
    if names_of_a_value(names) and not NAMES.isdisjoint(names):
        if len(names) > 1:
            raise RecordError(
                "a value says in, not, not_in, or the ends of a range: one of these, "
                f"not {' and '.join(sorted(names))}",
                field=field,
            )
        return read_one_of(raw, kind, field)
    if names_of_a_value(names) and names != SET:
        return read_range(raw, kind, field)
    if names_of_a_value(raw) and not names:
        return None  # a range without ends
    raise RecordError(
        'an object here is a GeoJSON Point, {"lon": …, "lat": …}, a range '
        '{"low": …, "high": …}, {"in": […]}, {"not": …}, {"not_in": […]} or {"set": […]}; '
        "what is nested has names with dots, and then the name itself is no attribute",
        field=field,
    )


def check_value(value: object, *, plane: bool = False, field: str | None = None) -> None:
    """Refuse what is no value, or one that no raw value could have become."""
    match value:
        case Constant(Kind.STRING, str(string)):
            read_string(string, field)
        case Constant(kind, double) if kind not in (Kind.STRING, Kind.POINT) and _is_double(double):
            pass
        case Range(Kind.NUMBER | Kind.TIMESTAMP, low, high) if _is_double(low) and _is_double(high):
            if low > high:
                raise RecordError(f"its low end {low} is above {high}", field=field)
        case OneOf(kind, tuple(members)):
            for member in members:
                check_value(member, field=field)
            if {member.kind for member in members} != {kind} or one_of(kind, members) != value:
                raise RecordError(
                    "one of several values has two at least, of one kind, in order", field=field
                )
            excluded_by(value)  # which refuses other ranges
        case Set(tuple(members)):
            for member in members:
                check_value(member, field=field)
                if member.kind not in (Kind.STRING, Kind.NUMBER):
                    raise RecordError(
                        f"a set has strings and numbers, got a {member.kind}", field=field
                    )
        case Point():
            read_point(value, plane=plane, field=field)
        case _:
            raise RecordError(
                "an Event holds Constant, Range, OneOf, Set and Point values, "
                f"got {type(value).__name__}; pass a dict, or make the event by event_from_dict",
                field=field,
            )


def _is_double(value: object) -> bool:
    return isinstance(value, (float, int)) and not isinstance(value, bool) and not math.isnan(value)


def kind_of(value: Value) -> Kind:
    """The kind of attribute that *value* belongs to.

    >>> kind_of(Point(0, 0))
    <Kind.POINT: 'point'>
    """
    return Kind.POINT if isinstance(value, Point) else value.kind
