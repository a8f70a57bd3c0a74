"""A point is in a box; every region has one around it."""

from __future__ import annotations

from stentor._jit import inner_kernel, kernel_inline
from stentor.encoding.columns import SubscriptionColumns
from stentor.model.geometry import in_box

box_contains = inner_kernel(in_box)


@kernel_inline
def in_own_box(columns: SubscriptionColumns, predicate: int, x: float, y: float) -> bool:
    """Whether (x, y) is in the box that the predicate is, or that is around its region."""
    first = columns.operand_start[predicate]
    west, east = columns.pair_low[first], columns.pair_high[first]
    south, north = columns.pair_low[first + 1], columns.pair_high[first + 1]
    return box_contains(x, y, west, south, east, north)
