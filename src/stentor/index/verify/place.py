"""Exact tests of places: the functions of `model/geometry.py`, compiled as they stand."""

from __future__ import annotations

import math
from collections.abc import Callable

from stentor._jit import kernel_inline, kernel_part
from stentor.encoding.columns import BOX, KIND_MASK, POLYGON, SubscriptionColumns
from stentor.model.geometry import BORDER, INSIDE, in_box, in_circle, in_ring

box_contains = kernel_part(in_box)
circle_contains = kernel_part(in_circle)
side_of_ring: Callable[..., int] = kernel_part(in_ring)  # an array is no Sequence


@kernel_inline
def in_region(columns: SubscriptionColumns, predicate: int, x: float, y: float) -> bool:
    """Whether (x, y) is in the predicate's region; its surrounding box is tried first."""
    kind = columns.kind[predicate] & KIND_MASK
    first = columns.operand_start[predicate]
    west, east = columns.pair_low[first], columns.pair_high[first]
    south, north = columns.pair_low[first + 1], columns.pair_high[first + 1]
    if not box_contains(x, y, west, south, east, north):
        return False
    if kind == BOX:
        return True
    if kind == POLYGON:
        return in_polygon(columns, predicate, x, y)
    return circle_contains(
        x,
        y,
        columns.pair_low[first + 2],
        columns.pair_high[first + 2],
        columns.pair_low[first + 3],
        columns.pair_high[first + 3],
    )


@kernel_part
def in_polygon(columns: SubscriptionColumns, predicate: int, x: float, y: float) -> bool:
    """Whether (x, y) is in the outer ring and in no hole; borders are inside."""
    start = columns.operand_start[predicate] + 2
    outer = True
    for place in range(start, columns.operand_stop[predicate]):
        if math.isnan(columns.pair_low[place]):
            side = side_of_ring(x, y, columns.pair_low, columns.pair_high, start, place)
            if side == BORDER:
                return True
            if (side == INSIDE) != outer:
                return False
            start = place + 1
            outer = False
    return True
