"""Whether one test of a place implies another, over columns."""

from __future__ import annotations

import math

from stentor._jit import kernel_part
from stentor.covering.meaning.geometry import (
    box_apart_from_circle,
    box_in_box,
    box_in_circle,
    boxes_apart,
    circle_in_circle,
    circles_apart,
)
from stentor.covering.mixed.verdicts import ASK, NO, YES
from stentor.encoding.columns import (
    BOX,
    CIRCLE,
    HERE,
    KIND_MASK,
    NEGATED,
    POLYGON,
    PRESENT,
    SubscriptionColumns,
)


@kernel_part
def place_implies(columns: SubscriptionColumns, plane: bool, narrow: int, wide: int) -> int:
    """Whether the place that *narrow* asks for satisfies *wide*."""
    refused = (columns.kind[wide] & NEGATED) != 0
    kind = columns.kind[narrow]
    if refused:
        if kind == PRESENT:
            return NO
        if kind & NEGATED:
            return inside(columns, wide, narrow)
        return YES if apart(columns, narrow, wide) else NO
    if kind != PRESENT and not kind & NEGATED:
        return inside(columns, narrow, wide)
    # Anywhere: only the whole world will do.
    west, south, east, north = -180.0, -90.0, 180.0, 90.0
    if plane:
        west, south, east, north = -math.inf, -math.inf, math.inf, math.inf
    return box_inside(columns, west, south, east, north, wide)


@kernel_part
def inside(columns: SubscriptionColumns, inner: int, outer: int) -> int:
    """Whether the region of *inner* is in that of *outer*."""
    kind, around = columns.kind[inner] & KIND_MASK, columns.kind[outer] & KIND_MASK
    first, other = columns.operand_start[inner], columns.operand_start[outer]
    low, high = columns.pair_low, columns.pair_high
    if kind in (CIRCLE, HERE) and around in (CIRCLE, HERE):
        held = circle_in_circle(
            low[first + 2],
            high[first + 2],
            low[first + 3],
            high[first + 3],
            low[other + 2],
            high[other + 2],
            low[other + 3],
            high[other + 3],
        )
        return YES if held else NO
    return box_inside(columns, low[first], low[first + 1], high[first], high[first + 1], outer)


@kernel_part
def box_inside(
    columns: SubscriptionColumns, west: float, south: float, east: float, north: float, outer: int
) -> int:
    """Whether the box is in the region of *outer*."""
    around = columns.kind[outer] & KIND_MASK
    first = columns.operand_start[outer]
    low, high = columns.pair_low, columns.pair_high
    if around == POLYGON:
        return ASK
    if around == BOX:
        held = box_in_box(
            west, south, east, north, low[first], low[first + 1], high[first], high[first + 1]
        )
    else:
        held = box_in_circle(
            west,
            south,
            east,
            north,
            low[first + 2],
            high[first + 2],
            low[first + 3],
            high[first + 3],
        )
    return YES if held else NO


@kernel_part
def apart(columns: SubscriptionColumns, one: int, other: int) -> bool:
    """Whether the regions of two predicates share no point."""
    kind, asked = columns.kind[one] & KIND_MASK, columns.kind[other] & KIND_MASK
    if kind not in (CIRCLE, HERE):
        one, other = other, one
        kind, asked = asked, kind
    first, second = columns.operand_start[one], columns.operand_start[other]
    low, high = columns.pair_low, columns.pair_high
    if kind not in (CIRCLE, HERE):
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
    if asked in (CIRCLE, HERE):
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
