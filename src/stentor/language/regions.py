"""Checked regions, for the parser and the builder alike.

Coordinates stay the very objects that were given: whoever follows a literal into the tree
recognises it there.
"""

from __future__ import annotations

import math

from stentor.errors import ExpressionError, LimitError, RecordError
from stentor.model.region import Box, Circle, Polygon, Ring
from stentor.model.value import Point, point


def checked_point(x: float, y: float, plane: bool) -> Point:
    """The place (x, y); on the globe longitude is −180…180 and latitude −90…90."""
    if -180.0 <= x <= 180.0 and -90.0 <= y <= 90.0:
        return Point(x, y)
    try:
        point(x, y, plane=plane)
    except RecordError as error:
        raise ExpressionError(str(error)) from None
    return Point(x, y)


def checked_box(west: float, south: float, east: float, north: float, plane: bool) -> Box:
    """The box; on the globe one whose west exceeds its east crosses 180°."""
    checked_point(west, south, plane)
    checked_point(east, north, plane)
    if south > north:
        raise ExpressionError(
            f"the box's south {south} is above its north {north}",
            hint="the order is ST_MakeEnvelope(west, south, east, north)",
        )
    if plane and west > east:
        raise ExpressionError(
            f"the box's west {west} is right of its east {east}",
            hint="only on the globe can a box go around; this schema is a plane",
        )
    return Box(west, south, east, north)


def checked_circle(centre: Point | None, radius: float) -> Circle:
    """The circle of *radius* metres (or plane units) around *centre*, or around `here()`."""
    if not (math.isfinite(radius) and radius >= 0.0):
        raise ExpressionError(f"a distance is finite and at least 0, got {radius}")
    return Circle(centre, radius)


def checked_polygon(rings: list[list[tuple[float, float]]], plane: bool, limit: int) -> Polygon:
    """The polygon of an outer ring and its holes, each closed and of four points or more."""
    if not rings:
        raise ExpressionError("a polygon needs an outer ring")
    points = sum(map(len, rings))
    if points > limit:
        raise LimitError(f"the polygon has {points:,} points; the limit is {limit:,}")
    return Polygon(tuple(_checked_ring(ring, index, plane) for index, ring in enumerate(rings)))


def _checked_ring(ring: list[tuple[float, float]], index: int, plane: bool) -> Ring:
    name = "the outer ring" if index == 0 else f"hole {index}"
    if len(ring) < 4:
        raise ExpressionError(
            f"{name} has {len(ring)} points; a ring has at least 4, its last repeating its first"
        )
    try:
        checked = tuple([checked_point(x, y, plane) for x, y in ring])
    except ExpressionError as error:
        raise ExpressionError(f"{name}: {error.message}") from None
    if checked[0] != checked[-1]:
        raise ExpressionError(
            f"{name} is not closed: it starts at {_pair(checked[0])} "
            f"and ends at {_pair(checked[-1])}",
            hint="repeat the first point at the end",
        )
    return checked


def _pair(place: Point) -> str:
    return f"{place.x} {place.y}"
