"""What a location is: a pair of finite numbers, on the globe or on a plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from stentor.errors import RecordError
from stentor.model.values.number import is_number, read_number

#: What objects call the coordinates of a location.
COORDINATE_NAMES: Final = (("lon", "lat"), ("longitude", "latitude"), ("x", "y"))


class Point(NamedTuple):
    """A location: longitude and latitude in degrees, or x and y on a plane."""

    x: float
    y: float


def read_point(raw: Sequence[Any], *, plane: bool = False, field: str | None = None) -> Point:
    """The location of the pair *raw*; on the globe longitude is −180…180 and latitude −90…90."""
    x, y = raw
    if not (is_number(x) and is_number(y)):
        raise no_pair(field)
    x, y = read_number(x, field), read_number(y, field)
    if not (math.isfinite(x) and math.isfinite(y)):
        raise RecordError(f"[{x}, {y}] is not a place: coordinates must be finite", field=field)
    if not plane and not is_on_globe(x, y):
        hint = "; the order is [longitude, latitude]" if is_on_globe(y, x) else ""
        raise RecordError(
            f"[{x}, {y}] is not on the globe (longitude −180…180, latitude −90…90){hint}",
            field=field,
        )
    return Point(x, y)


def is_pair(raw: Sequence[Any]) -> bool:
    """Whether *raw* is a pair of numbers, on the globe or not."""
    return len(raw) == 2 and is_number(raw[0]) and is_number(raw[1])


def is_surely_a_point(raw: Sequence[Any]) -> bool:
    """Whether *raw* is a pair of doubles on the globe: a location on a plane, too."""
    if len(raw) != 2 or type(raw[0]) is not float or type(raw[1]) is not float:
        return False
    return -180.0 <= raw[0] <= 180.0 and -90.0 <= raw[1] <= 90.0


def is_on_globe(x: float, y: float) -> bool:
    """Whether x is a longitude and y a latitude."""
    return -180.0 <= x <= 180.0 and -90.0 <= y <= 90.0


def no_pair(field: str | None) -> RecordError:
    """What is said where a pair of numbers was expected."""
    return RecordError("a point is a pair of numbers [longitude, latitude]", field=field)
