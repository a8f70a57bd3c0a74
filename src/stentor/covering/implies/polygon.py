"""Polygons: what is proved to lie inside one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from stentor._jit import inner_kernel
from stentor.encoding.columns import SubscriptionColumns
from stentor.index.verify.polygon import in_polygon
from stentor.model import Box, Point, Polygon
from stentor.model.geometry import INSIDE, in_ring
from stentor.model.region import Ring

#: How far from a box a polygon's edge must be, as a share of the coordinates.
EDGE_MARGIN = 1e-9


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
    return any(_has_inside(rings, x, y) for rings in polygon.parts)


@inner_kernel
def polygon_holds(
    columns: SubscriptionColumns,
    predicate: int,
    west: float,
    south: float,
    east: float,
    north: float,
) -> bool:
    """`_polygon_holds` over columns; what is not in the box around the polygon costs no more."""
    first, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    low, high = columns.pair_low, columns.pair_high
    if not (low[first] <= west <= east <= high[first]):
        return False
    if not (low[first + 1] <= south <= north <= high[first + 1]):
        return False
    slack = EDGE_MARGIN * max(1.0, abs(west), abs(south), abs(east), abs(north))
    for at in range(first + 2, stop - 1):
        if math.isnan(low[at]) or math.isnan(low[at + 1]):
            continue  # between two rings
        if not edge_is_clear(
            low[at],
            high[at],
            low[at + 1],
            high[at + 1],
            west - slack,
            south - slack,
            east + slack,
            north + slack,
        ):
            return False
    return in_polygon(columns, predicate, (west + east) / 2.0, (south + north) / 2.0)


@inner_kernel
def edge_is_clear(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    west: float,
    south: float,
    east: float,
    north: float,
) -> bool:
    """`_clear`, as numbers."""
    if max(x1, x2) < west or min(x1, x2) > east or max(y1, y2) < south or min(y1, y2) > north:
        return True
    dx, dy = x2 - x1, y2 - y1
    one = dx * (south - y1) - (west - x1) * dy
    two = dx * (north - y1) - (west - x1) * dy
    three = dx * (south - y1) - (east - x1) * dy
    four = dx * (north - y1) - (east - x1) * dy
    return min(one, two, three, four) > 0.0 or max(one, two, three, four) < 0.0


def _has_inside(rings: tuple[Ring, ...], x: float, y: float) -> bool:
    for number, ring in enumerate(rings):
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
