"""A point is in a circle, a subscriber's own too."""

from __future__ import annotations

import math

from stentor._jit import inner_kernel, kernel_inline
from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.kinds import OWN_CIRCLE
from stentor.model.geometry import in_circle

circle_contains = inner_kernel(in_circle)


@kernel_inline
def in_own_circle(columns: SubscriptionColumns, predicate: int, x: float, y: float) -> bool:
    """Whether (x, y) is in the circle that the predicate is."""
    first = columns.operand_start[predicate]
    return circle_contains(
        x,
        y,
        columns.pair_low[first + 2],
        columns.pair_high[first + 2],
        columns.pair_low[first + 3],
        columns.pair_high[first + 3],
    )


@kernel_inline
def is_around_nobody(columns: SubscriptionColumns, predicate: int, kind: int) -> bool:
    """Whether *predicate* is a circle around a subscriber whose location is unknown."""
    return bool(
        kind == OWN_CIRCLE and math.isnan(columns.pair_low[columns.operand_start[predicate] + 2])
    )
