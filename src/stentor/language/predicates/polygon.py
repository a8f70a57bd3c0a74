"""ST_GeomFromText, ST_GeomFromGeoJSON: points in a polygon: `POLYGON((x y, …), (hole…))`.

A polygon may have several parts: `MULTIPOLYGON(((x y, …)), ((x y, …), (hole…)))`.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any

from stentor.errors import ExpressionError, LimitError
from stentor.language.cursor import Cursor
from stentor.language.literals import quote, write_number
from stentor.language.predicates.calls import check_srid, checked_point, is_plane, take, take_srid
from stentor.model.region import Polygon, Ring
from stentor.model.values import Point

# Nothing that was read is given back (`+` behind a quantifier): a text is read in linear time.
_NUMBER = r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+"
_POINT = re.compile(rf"\s*+({_NUMBER})\s++({_NUMBER})((?:\s++{_NUMBER}){{0,2}}+)\s*+", re.ASCII)
_OPENING = re.compile(
    r"\s*+(?:SRID=([0-9]{1,9}+);\s*+)?+(MULTI)?+POLYGON\s*+(ZM|Z|M)?+\s*+\(",
    re.ASCII | re.IGNORECASE,
)
_PART = re.compile(r"\s*+\(((?:[^()]*+\([^()]*+\))*+[^()]*+)\)\s*+(,|\Z)", re.ASCII)
_SPACES = " \t\n\r\f\v"
_RING = re.compile(r"\s*+\(([^()]*+)\)\s*+(,|\Z)", re.ASCII)


def read(cursor: Cursor, at: int) -> Polygon:
    """`ST_GeomFromText('POLYGON((x y, …))')`, from behind its parenthesis on."""
    text = cursor.string("well-known text")
    try:
        polygon = read_polygon(text, is_plane(cursor), cursor.limits.polygon_points)
    except ExpressionError as error:
        raise cursor.with_position(error, at + 2) from None
    take_srid(cursor, "st_geomfromtext")
    return polygon


def read_geojson(cursor: Cursor, at: int) -> Polygon:
    """`ST_GeomFromGeoJSON('{"type": "Polygon", …}')`, from behind its parenthesis on."""
    text = cursor.string("GeoJSON")
    try:
        polygon = polygon_of_geojson(text, is_plane(cursor), cursor.limits.polygon_points)
    except ExpressionError as error:
        raise cursor.with_position(error, at + 2) from None
    take(cursor, ")", "st_geomfromgeojson")
    return polygon


def to_text(region: Polygon, name: str) -> str:
    """The text, of the attribute written as *name*."""
    return f"ST_Within({name}, ST_GeomFromText({quote(write_polygon(region))}))"


def read_polygon(text: str, plane: bool, limit: int) -> Polygon:
    """The checked polygon that *text* describes, of at most *limit* points.

    >>> read_polygon("POLYGON((0 0, 4 0, 4 3, 0 0))", plane=True, limit=100).rings[0][1]
    Point(x=4.0, y=0.0)
    """
    opening = _OPENING.match(text)
    inner = text.rstrip(_SPACES)
    if opening is None or not inner.endswith(")", opening.end()):
        raise ExpressionError(
            "expected a polygon as well-known text",
            hint="write POLYGON((0 0, 4 0, 4 3, 0 0)); holes follow as further rings",
        )
    if opening[1] is not None:
        check_srid(int(opening[1]), plane)
    more = len(opening[3] or "")
    body = inner[opening.end() : -1]
    points = body.count(",") + 1
    if points > limit:
        raise LimitError(f"the polygon has {points:,} points; the limit is {limit:,}")
    if opening[2] is None:
        return checked_polygon(_rings(body, more), plane, limit)
    return checked_parts([_rings(part, more) for part in _bodies(body)], plane, limit)


def polygon_of_geojson(text: str, plane: bool, limit: int) -> Polygon:
    """The checked polygon of a GeoJSON Polygon or MultiPolygon, or of a Feature of one.

    >>> polygon_of_geojson(
    ...     '{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 3], [0, 0]]]}', True, 100
    ... ).rings[0][2]
    Point(x=4.0, y=3.0)
    """
    try:
        shape = json.loads(text)
    except (ValueError, RecursionError):
        raise ExpressionError("this is no GeoJSON: no JSON at all") from None
    if isinstance(shape, dict) and shape.get("type") == "Feature":
        shape = shape.get("geometry")
    kind = shape.get("type") if isinstance(shape, dict) else None
    if kind not in ("Polygon", "MultiPolygon"):
        raise ExpressionError("expected a GeoJSON Polygon or MultiPolygon")
    coordinates = shape.get("coordinates")
    try:
        parts = [coordinates] if kind == "Polygon" else coordinates
        rings = [[[_position(one) for one in ring] for ring in part] for part in parts]
    except TypeError:
        raise ExpressionError("the coordinates of a GeoJSON polygon are lists of rings") from None
    return checked_parts(rings, plane, limit)


def _position(given: Any) -> tuple[float, float]:
    is_list = isinstance(given, list) and 2 <= len(given) <= 4
    if is_list and all(type(one) in (int, float) for one in given):
        return float(given[0]) + 0.0, float(given[1]) + 0.0
    raise ExpressionError(f"{str(given)[:60]!r} is not a position: expected [longitude, latitude]")


def _bodies(body: str) -> list[str]:
    """What is between the parentheses of each part."""
    bodies = []
    start, more = 0, True
    while more:
        part = _PART.match(body, start)
        if part is None:
            raise ExpressionError(
                "the parts of the polygon are not well formed",
                hint="each part stands in its own parentheses: MULTIPOLYGON(((…), (…)), ((…)))",
            )
        bodies.append(part[1])
        start, more = part.end(), part[2] == ","
    return bodies


def _rings(body: str, others: int) -> list[list[tuple[float, float]]]:
    """The rings of *body*, whose points have so many numbers behind x and y: heights, measures."""
    rings = []
    start, more = 0, True
    while more:
        ring = _RING.match(body, start)
        if ring is None:
            raise ExpressionError(
                "the polygon's rings are not well formed",
                hint="each ring stands in its own parentheses: POLYGON((…), (…))",
            )
        rings.append([_pair(pair, others) for pair in ring[1].split(",")])
        start, more = ring.end(), ring[2] == ","
    return rings


def _pair(text: str, others: int) -> tuple[float, float]:
    point = _POINT.fullmatch(text)
    if point is None or len(point[3].split()) != others:
        shown = text.strip()
        raise ExpressionError(
            f"{shown[:60]!r} is not a point of a polygon: expected two numbers, x and y"
            + f", and {others} more" * (others > 0)
        )
    return float(point[1]) + 0.0, float(point[2]) + 0.0  # turns -0.0 into 0.0


def write_polygon(polygon: Polygon) -> str:
    """The well-known text that `read_polygon` reads as *polygon*."""
    parts = [_part_text(rings) for rings in polygon.parts]
    return f"MULTIPOLYGON({', '.join(parts)})" if len(parts) > 1 else f"POLYGON{parts[0]}"


def _part_text(rings: tuple[Ring, ...]) -> str:
    texts = (", ".join(f"{write_number(x)} {write_number(y)}" for x, y in ring) for ring in rings)
    return f"({', '.join(f'({text})' for text in texts)})"


def checked_polygon(rings: list[list[tuple[float, float]]], plane: bool, limit: int) -> Polygon:
    """The polygon of an outer ring and its holes, each closed and of four points or more."""
    if not rings:
        raise ExpressionError("a polygon needs an outer ring")
    points = sum(map(len, rings))
    if points > limit:
        raise LimitError(f"the polygon has {points:,} points; the limit is {limit:,}")
    return Polygon(tuple(_checked_ring(ring, index, plane) for index, ring in enumerate(rings)))


def checked_parts(parts: list[list[list[tuple[float, float]]]], plane: bool, limit: int) -> Polygon:
    """The polygon of several parts, each an outer ring and its holes."""
    if not parts:
        raise ExpressionError("a polygon needs a part")
    points = sum(len(ring) for rings in parts for ring in rings)
    if points > limit:
        raise LimitError(f"the polygon has {points:,} points; the limit is {limit:,}")
    polygons = [checked_polygon(rings, plane, limit) for rings in parts]
    rings = [ring for one in polygons for ring in one.rings]
    outer = accumulate([0, *(len(one.rings) for one in polygons[:-1])])
    return Polygon(tuple(rings), tuple(outer))


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
            f"{name} is not closed: it starts at {_coordinates(checked[0])} "
            f"and ends at {_coordinates(checked[-1])}",
            hint="repeat the first point at the end",
        )
    return checked


def _coordinates(point: Point) -> str:
    return f"{point.x} {point.y}"
