"""ST_DWithin: points near a point, or near the subscriber, wherever it is (`here()`)."""

from __future__ import annotations

import math

from stentor.errors import ExpressionError
from stentor.language import syntax_errors
from stentor.language.cursor import Cursor
from stentor.language.literals import write_number
from stentor.language.predicates.calls import (
    checked_point,
    is_plane,
    numbers,
    opened,
    take,
    take_srid,
)
from stentor.model.expression import HERE, Within
from stentor.model.region import Circle
from stentor.model.values import Point


def read(cursor: Cursor, name: str) -> Within:
    """`ST_DWithin(attribute, point, metres)`, or with the point before the attribute."""
    if cursor.tokens[cursor.at + 1] == "(":
        centre = _centre(cursor)
        take(cursor, ",", "st_dwithin")
        attribute = cursor.attribute()
    else:
        attribute = cursor.attribute()
        take(cursor, ",", "st_dwithin")
        centre = _centre(cursor)
    take(cursor, ",", "st_dwithin")
    at = cursor.at
    radius = cursor.number("a distance in metres")
    try:
        circle = checked_circle(centre, radius)
    except ExpressionError as error:
        raise cursor.with_position(error, at, cursor.at) from None
    take(cursor, ")", "st_dwithin")
    return Within(attribute, circle)


def _centre(cursor: Cursor, *, may_have_srid: bool = True) -> Point | None:
    at = cursor.at
    function = opened(cursor)
    if function == "st_point":
        x, y = numbers(cursor, function, ("a longitude", "a latitude"))
        try:
            return checked_point(x, y, is_plane(cursor))
        except ExpressionError as error:
            raise cursor.with_position(error, at, cursor.at) from None
    if function == "here":
        take(cursor, ")", function)
        return HERE
    if function == "st_setsrid" and may_have_srid:
        centre = _centre(cursor, may_have_srid=False)
        take_srid(cursor, function, is_needed=True)
        return centre
    misplaced = syntax_errors.expected("ST_Point(lon, lat) or here()", cursor.tokens[at])
    raise cursor.with_position(misplaced, at)


def checked_circle(centre: Point | None, radius: float) -> Circle:
    """The circle of *radius* metres (or plane units) around *centre*, or around `here()`."""
    if not (math.isfinite(radius) and radius >= 0.0):
        raise ExpressionError(f"a distance is finite and at least 0, got {radius}")
    return Circle(centre, radius)


def to_text(region: Circle, name: str) -> str:
    """The text, of the attribute written as *name*."""
    centre = "here()"
    if region.centre is not None:
        centre = f"ST_Point({', '.join(map(write_number, region.centre))})"
    return f"ST_DWithin({name}, {centre}, {write_number(region.radius)})"
