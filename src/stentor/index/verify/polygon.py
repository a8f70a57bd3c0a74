"""A point is in the rings of a polygon."""

from __future__ import annotations

import math
from collections.abc import Callable

from stentor._jit import inner_kernel
from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.kinds import PART
from stentor.model.geometry import BORDER, INSIDE, in_ring

side_of_ring: Callable[..., int] = inner_kernel(in_ring)  # an array is no Sequence


@inner_kernel
def in_polygon(columns: SubscriptionColumns, predicate: int, x: float, y: float) -> bool:
    """Whether (x, y) is in the outer ring of a part and in no hole; borders are inside."""
    start = columns.operand_start[predicate] + 2
    outer, is_inside = True, True
    for position in range(start, columns.operand_stop[predicate]):
        if math.isnan(columns.pair_low[position]):
            if is_inside:
                side = side_of_ring(x, y, columns.pair_low, columns.pair_high, start, position)
                if side == BORDER:
                    return True
                is_inside = (side == INSIDE) == outer
            start = position + 1
            outer = False
            if columns.pair_high[position] == PART:
                if is_inside:
                    return True
                outer, is_inside = True, True
    return is_inside
