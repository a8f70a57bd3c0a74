"""The values of an event's attributes, and how Python's own values become them.

A number is a double. An integer that a double cannot hold is refused, never rounded; −0.0 is 0.0;
NaN is the same as leaving the attribute out. A timestamp is a double of microseconds since 1970
UTC (exact for every whole second of the years 1 to 9999, and for every microsecond to 2255).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NamedTuple

from stentor.errors import RecordError
from stentor.model.kind import Kind
from stentor.model.time import EARLIEST, LATEST, micros_of_datetime, parse_timestamp


class Constant(NamedTuple):
    """One value: a double for numbers, booleans and timestamps, a `str` for strings."""

    kind: Kind
    value: float | str


class Range(NamedTuple):
    """Every value from `low` to `high`, both included: an extended event's attribute."""

    kind: Kind
    low: float
    high: float


class Point(NamedTuple):
    """A place: longitude and latitude in degrees, or x and y on a plane."""

    x: float
    y: float


Value = Constant | Range | Point

#: What objects call the coordinates of a place.
_PLACES = (("lon", "lat"), ("longitude", "latitude"), ("x", "y"))


def number(value: Any, field: str | None = None) -> float:
    """*value* as a double; refused where it would have to be rounded.

    >>> number(2**53 + 1)
    Traceback (most recent call last):
    stentor.errors.RecordError: 9007199254740993 is an integer that a double cannot hold; \
send it as a string, or round it yourself
    """
    try:
        double = float(value)
    except OverflowError:
        double = math.inf
    if isinstance(value, Integral) and double != int(value):
        shown = str(value) if int(value).bit_length() < 256 else "this"
        raise RecordError(
            f"{shown} is an integer that a double cannot hold; "
            "send it as a string, or round it yourself",
            field=field,
        )
    return double + 0.0  # turns -0.0 into 0.0


def text(value: str, field: str | None = None) -> str:
    """*value* itself; refused where it has no UTF-8 form (half of a surrogate pair)."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RecordError(
            f"the character at position {error.start} is half of a surrogate pair, "
            "which has no UTF-8 form",
            field=field,
        ) from None
    return value


def point(x: Any, y: Any, *, plane: bool = False, field: str | None = None) -> Point:
    """A checked place; on the globe longitude is −180…180 and latitude −90…90."""
    if not (_is_number(x) and _is_number(y)):
        raise RecordError("a point is a pair of numbers [longitude, latitude]", field=field)
    x, y = number(x, field), number(y, field)
    if not (math.isfinite(x) and math.isfinite(y)):
        raise RecordError(f"[{x}, {y}] is not a place: coordinates must be finite", field=field)
    if not plane and not (-180 <= x <= 180 and -90 <= y <= 90):
        swapped = -180 <= y <= 180 and -90 <= x <= 90
        hint = "; the order is [longitude, latitude]" if swapped else ""
        raise RecordError(
            f"[{x}, {y}] is not on the globe (longitude −180…180, latitude −90…90){hint}",
            field=field,
        )
    return Point(x, y)


def value_of(
    raw: Any, *, kind: Kind | None = None, plane: bool = False, field: str | None = None
) -> Value | None:
    """The value that *raw* (a plain Python or JSON value) stands for; None where it is missing.

    *kind* is what the schema already knows of the attribute: it turns a string into a timestamp
    where one is expected.

    >>> value_of(299)
    Constant(kind=<Kind.NUMBER: 'number'>, value=299.0)
    >>> value_of([151.2, -33.9])
    Point(x=151.2, y=-33.9)
    >>> value_of({"low": 10, "high": 20})
    Range(kind=<Kind.NUMBER: 'number'>, low=10.0, high=20.0)
    """
    if getattr(raw, "ndim", None) == 0 and not isinstance(raw, Real):
        raw = raw.item()  # NumPy's booleans, strings and timestamps
    if is_missing(raw):
        return None
    if isinstance(raw, Mapping):
        return _value_of_object(raw, kind, plane, field)
    if getattr(raw, "ndim", 0) == 1:
        raw = raw.tolist()  # a NumPy array
    if isinstance(raw, (list, tuple)) and len(raw) == 2:
        return point(raw[0], raw[1], plane=plane, field=field)
    return _scalar(raw, kind, field)


def is_missing(raw: Any) -> bool:
    """Whether *raw* is one of the ways to leave a value out: None, NaN, NaT or pandas' NA.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    if raw is None or type(raw).__name__ == "NAType":
        return True
    return isinstance(raw, (Real, datetime)) and bool(raw != raw)  # noqa: PLR0124  # NaN and NaT


def _is_number(raw: Any) -> bool:
    return isinstance(raw, (Real, Decimal)) and not isinstance(raw, bool)


def _scalar(raw: Any, kind: Kind | None, field: str | None) -> Constant | None:
    if isinstance(raw, bool):
        return Constant(Kind.BOOLEAN, float(raw))
    if isinstance(raw, str):
        if kind is Kind.TIMESTAMP:
            return Constant(Kind.TIMESTAMP, timestamp(raw, field))
        return Constant(Kind.STRING, text(raw, field))
    if isinstance(raw, (datetime, date)):
        return Constant(Kind.TIMESTAMP, timestamp(raw, field))
    if isinstance(raw, Decimal):
        is_whole = raw.is_finite() and raw.adjusted() < 400 and raw == raw.to_integral_value()
        raw = int(raw) if is_whole else float(raw)
    if isinstance(raw, Real):
        return Constant(Kind.NUMBER, number(raw, field))
    raise RecordError(
        f"a value of type {type(raw).__name__} is not supported; expected a number, a string, "
        "true or false, a timestamp, a point [lon, lat] or a range {low, high}",
        field=field,
    )


def timestamp(raw: str | datetime | date, field: str | None = None) -> float:
    """Microseconds since 1970 UTC as a double; refused where a double cannot hold them."""
    try:
        micros = parse_timestamp(raw) if isinstance(raw, str) else micros_of_datetime(raw)
    except ValueError as error:
        raise RecordError(str(error), field=field) from None
    if not EARLIEST <= micros <= LATEST:
        raise RecordError(f"{str(raw)[:60]!r} is outside the years 1 to 9999 of UTC", field=field)
    if int(float(micros)) != micros:
        raise RecordError(
            f"{raw} is finer than a double can hold so far from 1970; round it to seconds",
            field=field,
        )
    return float(micros)


def _value_of_object(
    raw: Mapping[str, Any], kind: Kind | None, plane: bool, field: str | None
) -> Value | None:
    if raw.get("type") == "Point" and isinstance(raw.get("coordinates"), (list, tuple)):
        coordinates = raw["coordinates"]
        if len(coordinates) not in (2, 3):  # GeoJSON allows an altitude, which is not used
            raise RecordError("a GeoJSON Point has two coordinates", field=field)
        return point(coordinates[0], coordinates[1], plane=plane, field=field)
    for x, y in _PLACES:
        if set(raw) == {x, y}:
            return point(raw[x], raw[y], plane=plane, field=field)
    if set(raw) == {"low", "high"}:
        low, high = (_scalar(raw[end], kind, field) for end in ("low", "high"))
        if low is None or high is None:
            raise RecordError("a range needs both of its ends", field=field)
        if low.kind is not high.kind or low.kind not in (Kind.NUMBER, Kind.TIMESTAMP):
            raise RecordError(
                f"a range goes between two numbers or two timestamps, not {low.kind} and "
                f"{high.kind}",
                field=field,
            )
        if low.value > high.value:  # type: ignore[operator]  # both are doubles here
            raise RecordError(f"its low end {raw['low']} is above {raw['high']}", field=field)
        return Range(low.kind, float(low.value), float(high.value))
    raise RecordError(
        'an object here is a GeoJSON Point, {"lon": …, "lat": …} or a range '
        '{"low": …, "high": …}; '
        "flatten other nested objects into attributes of their own",
        field=field,
    )


def kind_of(value: Value) -> Kind:
    """The kind of attribute that *value* belongs to.

    >>> kind_of(Point(0, 0))
    <Kind.POINT: 'point'>
    """
    return Kind.POINT if isinstance(value, Point) else value.kind
