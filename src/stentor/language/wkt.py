"""Well-known text of polygons: `POLYGON((x y, …), (hole…))`, read and written."""

from __future__ import annotations

import re

from stentor.errors import ExpressionError, LimitError
from stentor.language.numbers import write_number
from stentor.language.regions import checked_polygon
from stentor.model.region import Polygon

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_POINT = re.compile(rf"\s*+({_NUMBER})\s++({_NUMBER})\s*+", re.ASCII)
_POLYGON = re.compile(r"\s*+POLYGON\s*+\((.*)\)\s*+", re.ASCII | re.DOTALL | re.IGNORECASE)
_RING = re.compile(r"\s*+\(([^()]*+)\)\s*+(,|\Z)", re.ASCII)


def read_polygon(text: str, plane: bool, limit: int) -> Polygon:
    """The checked polygon that *text* describes, of at most *limit* points.

    >>> read_polygon("POLYGON((0 0, 4 0, 4 3, 0 0))", plane=True, limit=100).rings[0][1]
    Point(x=4.0, y=0.0)
    """
    polygon = _POLYGON.fullmatch(text)
    if polygon is None:
        raise ExpressionError(
            "expected a polygon as well-known text",
            hint="write POLYGON((0 0, 4 0, 4 3, 0 0)); holes follow as further rings",
        )
    body = polygon[1]
    points = body.count(",") + 1
    if points > limit:
        raise LimitError(f"the polygon has {points:,} points; the limit is {limit:,}")
    return checked_polygon(_rings(body), plane, limit)


def _rings(body: str) -> list[list[tuple[float, float]]]:
    rings = []
    start, more = 0, True
    while more:
        ring = _RING.match(body, start)
        if ring is None:
            raise ExpressionError(
                "the polygon's rings are not well formed",
                hint="each ring stands in its own parentheses: POLYGON((…), (…))",
            )
        rings.append([_pair(pair) for pair in ring[1].split(",")])
        start, more = ring.end(), ring[2] == ","
    return rings


def _pair(text: str) -> tuple[float, float]:
    point = _POINT.fullmatch(text)
    if point is None:
        shown = text.strip()
        raise ExpressionError(
            f"{shown[:60]!r} is not a point of a polygon: expected two numbers, x and y"
        )
    return float(point[1]) + 0.0, float(point[2]) + 0.0  # turns -0.0 into 0.0


def write_polygon(polygon: Polygon) -> str:
    """The well-known text that `read_polygon` reads as *polygon*."""
    rings = (
        ", ".join(f"{write_number(x)} {write_number(y)}" for x, y in ring) for ring in polygon.rings
    )
    return f"POLYGON({', '.join(f'({ring})' for ring in rings)})"
