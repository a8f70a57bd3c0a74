"""Region by region: which test of a location implies which, as objects and over columns."""

from __future__ import annotations

import math
from typing import NamedTuple

from stentor._jit import inner_kernel
from stentor.covering.implies import circle
from stentor.covering.implies.box import box_in_box, box_inside, boxes_apart
from stentor.covering.implies.circle import (
    box_apart_from_circle,
    circle_in_circle,
    circles_apart,
)
from stentor.covering.implies.operands import COVERED, NOT_COVERED
from stentor.covering.implies.polygon import _polygon_holds, _sides
from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.kinds import KIND_MASK, NEGATED, PRESENT, is_circle
from stentor.model import Box, Circle, Point, Polygon
from stentor.model.geometry import circle_box, circle_terms
from stentor.model.region import surrounding_box


class KnownCircle(NamedTuple):
    """A circle as matching measures it: around a known location, with a box around it."""

    x: float
    y: float
    cosine: float
    limit: float
    box: Box


Area = Box | KnownCircle | Polygon


def disc(centre: Point, radius: float, plane: bool) -> KnownCircle:
    """The circle around *centre*."""
    box = Box(*circle_box(centre.x, centre.y, radius, plane))
    return KnownCircle(centre.x, centre.y, *circle_terms(centre.y, radius, plane), box)


def area_of(region: Box | Circle | Polygon, at: Point | None, plane: bool) -> Area | None:
    """*region* for a subscriber at *at*; None where it is around nobody knows where."""
    if not isinstance(region, Circle):
        return region
    centre = region.centre or at
    return None if centre is None else disc(centre, region.radius, plane)


def everywhere(plane: bool) -> Box:
    """The box of every location that an event can have."""
    if plane:
        return Box(-math.inf, -math.inf, math.inf, math.inf)
    return Box(-180.0, -90.0, 180.0, 90.0)


def box_of(area: Area) -> Box:
    """A box around *area*."""
    if isinstance(area, Box):
        return area
    return area.box if isinstance(area, KnownCircle) else surrounding_box(area)


def area_inside(inner: Area, outer: Area) -> bool:
    """Whether every location in *inner* is proved to be in *outer*.

    Exact for boxes in boxes, polygons in boxes and circles around one centre; by a margin for other
    circles (`circle.py`); a polygon holds itself, and what keeps clear of its edges.
    """
    if inner == outer:
        return True
    match outer:
        case Box():
            return box_in_box(*_sides(box_of(inner)), *_sides(outer))
        case KnownCircle():
            if isinstance(inner, KnownCircle):
                return circle.circle_in_circle(*inner[:4], *outer[:4])
            return circle.box_in_circle(*_sides(box_of(inner)), *outer[:4])
        case Polygon():
            return _polygon_holds(outer, box_of(inner))


def areas_apart(one: Area, other: Area) -> bool:
    """Whether it is proved that no location is in both."""
    if isinstance(one, KnownCircle) and isinstance(other, KnownCircle):
        return circle.circles_apart(*one[:4], *other[:4])
    if isinstance(other, KnownCircle):
        one, other = other, one
    if isinstance(one, KnownCircle):
        return circle.box_apart_from_circle(*_sides(box_of(other)), *one[:4])
    return boxes_apart(*_sides(box_of(one)), *_sides(box_of(other)))


@inner_kernel
def region_implies(columns: SubscriptionColumns, plane: bool, narrow: int, wide: int) -> int:
    """Whether every location that satisfies *narrow* satisfies *wide*."""
    refused = (columns.kind[wide] & NEGATED) != 0
    kind = columns.kind[narrow]
    if refused:
        if kind == PRESENT:
            return NOT_COVERED
        if kind & NEGATED:
            return inside(columns, wide, narrow)
        return COVERED if apart(columns, narrow, wide) else NOT_COVERED
    if kind != PRESENT and not kind & NEGATED:
        return inside(columns, narrow, wide)
    # Anywhere: only the whole world will do.
    west, south, east, north = -180.0, -90.0, 180.0, 90.0
    if plane:
        west, south, east, north = -math.inf, -math.inf, math.inf, math.inf
    return box_inside(columns, west, south, east, north, wide)


@inner_kernel
def inside(columns: SubscriptionColumns, inner: int, outer: int) -> int:
    """Whether the region of *inner* is in that of *outer*."""
    kind, around = columns.kind[inner] & KIND_MASK, columns.kind[outer] & KIND_MASK
    first, other = columns.operand_start[inner], columns.operand_start[outer]
    low, high = columns.pair_low, columns.pair_high
    if is_circle(kind) and is_circle(around):
        is_inside = circle_in_circle(
            low[first + 2],
            high[first + 2],
            low[first + 3],
            high[first + 3],
            low[other + 2],
            high[other + 2],
            low[other + 3],
            high[other + 3],
        )
        return COVERED if is_inside else NOT_COVERED
    return box_inside(columns, low[first], low[first + 1], high[first], high[first + 1], outer)


@inner_kernel
def apart(columns: SubscriptionColumns, one: int, other: int) -> bool:
    """Whether the regions of two predicates share no point."""
    kind, wanted = columns.kind[one] & KIND_MASK, columns.kind[other] & KIND_MASK
    if not is_circle(kind):
        one, other = other, one
        kind, wanted = wanted, kind
    first, second = columns.operand_start[one], columns.operand_start[other]
    low, high = columns.pair_low, columns.pair_high
    if not is_circle(kind):
        return boxes_apart(
            low[first],
            low[first + 1],
            high[first],
            high[first + 1],
            low[second],
            low[second + 1],
            high[second],
            high[second + 1],
        )
    x, y, cosine, limit = low[first + 2], high[first + 2], low[first + 3], high[first + 3]
    if is_circle(wanted):
        return circles_apart(
            x,
            y,
            cosine,
            limit,
            low[second + 2],
            high[second + 2],
            low[second + 3],
            high[second + 3],
        )
    return box_apart_from_circle(
        low[second],
        low[second + 1],
        high[second],
        high[second + 1],
        x,
        y,
        cosine,
        limit,
    )
