"""Regions inside and apart from one another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from stentor.covering.meaning import geometry
from stentor.model import Box, Circle, Point, Polygon
from stentor.model.geometry import INSIDE, circle_box, circle_terms, in_ring
from stentor.model.region import surrounding_box

#: How far from a box a polygon's edge must be, as a share of the coordinates.
EDGE_MARGIN = 1e-9


class Disc(NamedTuple):
    """A circle as matching measures it: around a known place, with the box that surely holds it."""

    x: float
    y: float
    cosine: float
    limit: float
    box: Box


Area = Box | Disc | Polygon


def disc(centre: Point, radius: float, plane: bool) -> Disc:
    """The circle around *centre*."""
    box = Box(*circle_box(centre.x, centre.y, radius, plane))
    return Disc(centre.x, centre.y, *circle_terms(centre.y, radius, plane), box)


def area_of(region: Box | Circle | Polygon, at: Point | None, plane: bool) -> Area | None:
    """*region* for a subscriber at *at*; None where it is around nobody knows where."""
    if not isinstance(region, Circle):
        return region
    centre = region.centre or at
    return None if centre is None else disc(centre, region.radius, plane)


def everywhere(plane: bool) -> Box:
    """The box of every place that an event can have."""
    if plane:
        return Box(-math.inf, -math.inf, math.inf, math.inf)
    return Box(-180.0, -90.0, 180.0, 90.0)


def box_of(area: Area) -> Box:
    """A box that surely holds *area*."""
    if isinstance(area, Box):
        return area
    return area.box if isinstance(area, Disc) else surrounding_box(area)


def area_inside(inner: Area, outer: Area) -> bool:
    """Whether every place in *inner* is surely in *outer*.

    Exact for boxes in boxes, polygons in boxes and circles around one centre; by a margin for other
    circles (`geometry.py`); a polygon holds itself, and what keeps clear of its edges.
    """
    if inner == outer:
        return True
    match outer:
        case Box():
            return geometry.box_in_box(*_sides(box_of(inner)), *_sides(outer))
        case Disc():
            if isinstance(inner, Disc):
                return geometry.circle_in_circle(*inner[:4], *outer[:4])
            return geometry.box_in_circle(*_sides(box_of(inner)), *outer[:4])
        case Polygon():
            return _polygon_holds(outer, box_of(inner))


def areas_apart(one: Area, other: Area) -> bool:
    """Whether surely no place is in both."""
    if isinstance(one, Disc) and isinstance(other, Disc):
        return geometry.circles_apart(*one[:4], *other[:4])
    if isinstance(other, Disc):
        one, other = other, one
    if isinstance(one, Disc):
        return geometry.box_apart_from_circle(*_sides(box_of(other)), *one[:4])
    return geometry.boxes_apart(*_sides(box_of(one)), *_sides(box_of(other)))


def _sides(box: Box) -> tuple[float, float, float, float]:
    return box.west, box.south, box.east, box.north


def _polygon_holds(polygon: Polygon, box: Box) -> bool:
    """Whether the box keeps clear of every edge and its middle is inside: then all of it is."""
    if box.west > box.east or not all(map(math.isfinite, _sides(box))):
        return False
    slack = EDGE_MARGIN * max(1.0, *map(abs, _sides(box)))
    wider = Box(box.west - slack, box.south - slack, box.east + slack, box.north + slack)
    if not all(_clear(one, other, wider) for one, other in _edges(polygon)):
        return False
    x, y = (box.west + box.east) / 2.0, (box.south + box.north) / 2.0
    for number, ring in enumerate(polygon.rings):
        xs, ys = [p.x for p in ring], [p.y for p in ring]
        if (in_ring(x, y, xs, ys, 0, len(ring)) == INSIDE) != (number == 0):
            return False
    return True


def _edges(polygon: Polygon) -> Iterator[tuple[Point, Point]]:
    for ring in polygon.rings:
        yield from pairwise(ring)


def _clear(one: Point, other: Point, box: Box) -> bool:
    """Whether the edge passes the box at one side, or all corners of the box at one of its own."""
    if max(one.x, other.x) < box.west or min(one.x, other.x) > box.east:
        return True
    if max(one.y, other.y) < box.south or min(one.y, other.y) > box.north:
        return True
    corners = [(x, y) for x in (box.west, box.east) for y in (box.south, box.north)]
    sides = [(other.x - one.x) * (y - one.y) - (x - one.x) * (other.y - one.y) for x, y in corners]
    return min(sides) > 0.0 or max(sides) < 0.0
