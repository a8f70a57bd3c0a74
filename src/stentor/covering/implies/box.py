"""Boxes inside and apart from one another."""

from __future__ import annotations

from stentor._jit import inner_kernel, kernel
from stentor.covering.implies.circle import (
    box_in_circle,
)
from stentor.covering.implies.operands import COVERED, NOT_COVERED
from stentor.covering.implies.polygon import polygon_holds
from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.kinds import BOX, KIND_MASK, POLYGON, is_circle


@kernel
def box_in_box(
    west: float,
    south: float,
    east: float,
    north: float,
    outer_west: float,
    outer_south: float,
    outer_east: float,
    outer_north: float,
) -> bool:
    """Whether the first box is inside the other; either may cross 180°. Exact."""
    if not (outer_south <= south and north <= outer_north):
        return False
    if west <= east:
        if outer_west <= outer_east:
            return outer_west <= west and east <= outer_east
        return outer_west <= west or east <= outer_east
    if outer_west <= outer_east:
        return outer_west <= -180.0 and outer_east >= 180.0
    return outer_west <= west and east <= outer_east


@kernel
def boxes_apart(
    west: float,
    south: float,
    east: float,
    north: float,
    other_west: float,
    other_south: float,
    other_east: float,
    other_north: float,
) -> bool:
    """Whether no point is in both boxes; either may cross 180°. Exact."""
    if south > other_north or other_south > north:
        return True
    crossing = (west > east) + (other_west > other_east)
    if crossing == 2:
        return False
    if crossing == 1:
        return west > other_east and other_west > east
    return west > other_east or other_west > east


@inner_kernel
def box_inside(
    columns: SubscriptionColumns, west: float, south: float, east: float, north: float, outer: int
) -> int:
    """Whether the box is in the region of *outer*."""
    around = columns.kind[outer] & KIND_MASK
    first = columns.operand_start[outer]
    low, high = columns.pair_low, columns.pair_high
    is_inside = False
    if around == POLYGON:
        is_inside = polygon_holds(columns, outer, west, south, east, north)
    if around == BOX:
        is_inside = box_in_box(
            west, south, east, north, low[first], low[first + 1], high[first], high[first + 1]
        )
    elif is_circle(around):
        is_inside = box_in_circle(
            west,
            south,
            east,
            north,
            low[first + 2],
            high[first + 2],
            low[first + 3],
            high[first + 3],
        )
    return COVERED if is_inside else NOT_COVERED
