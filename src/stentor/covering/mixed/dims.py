"""The dimensions that tokens bring: intervals, prefixes of strings, boxes around places."""

from __future__ import annotations

import math

from stentor._jit import kernel_part
from stentor.covering.dominance.forest import MOST_DIMENSIONS
from stentor.covering.mixed.decode import is_wild
from stentor.covering.mixed.tokens import BOOLEAN, NO_PREDICATE, POINT, STRING
from stentor.encoding.columns import (
    BOX,
    KIND_MASK,
    LIKE,
    NEGATED,
    OPEN,
    SPANS,
    STRING_SPAN,
    Float64,
    SubscriptionColumns,
    UInt8,
)
from stentor.encoding.prefix import prefix

#: Between these are the prefixes of all strings (`encoding/prefix.py`).
_FIRST, _LAST = prefix(b""), prefix(b"", b"\xff")


@kernel_part
def write_dims(
    columns: SubscriptionColumns,
    kinds: UInt8,
    plane: bool,
    alternative: int,
    predicate: int,
    is_query: bool,
    point: Float64,
    at: int,
) -> int:
    """Write the dimensions that *predicate* brings to *point* from *at* on; where they end.

    Beyond MOST_DIMENSIONS there are none: the token alone must do.
    """
    if predicate == NO_PREDICATE:
        return at
    attribute = columns.attribute[predicate]
    kind = columns.kind[predicate]
    if (kind & KIND_MASK) >= BOX or kinds[attribute] == POINT:
        if at + 4 > MOST_DIMENSIONS:
            return at
        return write_place(columns, plane, alternative, attribute, point, at)
    if at + 2 > MOST_DIMENSIONS:
        return at
    low, high = columns.low[predicate], columns.high[predicate]  # of IS NOT NULL: everything
    if kinds[attribute] == STRING:
        low, high = max(low, _FIRST), min(high, _LAST)
        point[at], point[at + 1] = -low, high
        if is_query:
            loosen(columns, alternative, predicate, point, at)
        return at + 2
    if kinds[attribute] == BOOLEAN:
        low, high = boolean_hull(columns, predicate, kind, low, high)
    point[at], point[at + 1] = -low, high
    return at + 2


@kernel_part
def loosen(
    columns: SubscriptionColumns, alternative: int, predicate: int, point: Float64, at: int
) -> None:
    """Ask for nothing where the hull of *predicate* may be wider than what it asks for.

    An open end belongs to the hull, and so does what a negation or a second test leaves out, and
    all that begins like a pattern without wildcards.
    """
    kind = columns.kind[predicate]
    which = kind & KIND_MASK
    if which == STRING_SPAN and columns.string_mark[columns.operand_start[predicate] + 1] == OPEN:
        point[at + 1] = -math.inf
    tests = 0
    for other in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        tests += columns.attribute[other] == columns.attribute[predicate]
    if (
        tests > 1
        or (which in (STRING_SPAN, LIKE) and kind & NEGATED)
        or is_plain(columns, predicate)
    ):
        point[at], point[at + 1] = -math.inf, -math.inf


@kernel_part
def is_plain(columns: SubscriptionColumns, predicate: int) -> bool:
    """Whether *predicate* is a LIKE pattern without wildcards."""
    if columns.kind[predicate] != LIKE:
        return False
    pattern = columns.operand_start[predicate]
    start, stop = columns.string_start[pattern], columns.string_start[pattern + 1]
    return not is_wild(columns.string_bytes[start:stop])


@kernel_part
def write_place(
    columns: SubscriptionColumns,
    plane: bool,
    alternative: int,
    attribute: int,
    point: Float64,
    at: int,
) -> int:
    """Write the four sides of the box around all places that *alternative* asks for."""
    west, south, east, north = -180.0, -90.0, 180.0, 90.0
    if plane:
        west, south, east, north = -math.inf, -math.inf, math.inf, math.inf
    for other in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        if columns.attribute[other] != attribute or columns.kind[other] < BOX:
            continue
        if columns.kind[other] & NEGATED:
            continue
        first = columns.operand_start[other]
        if columns.pair_low[first] <= columns.pair_high[first]:  # else it crosses 180°
            west = max(west, columns.pair_low[first])
            east = min(east, columns.pair_high[first])
        south = max(south, columns.pair_low[first + 1])
        north = min(north, columns.pair_high[first + 1])
    point[at], point[at + 1] = -west, east
    point[at + 2], point[at + 3] = -south, north
    return at + 4


@kernel_part
def boolean_hull(
    columns: SubscriptionColumns, predicate: int, kind: int, low: float, high: float
) -> tuple[float, float]:
    """The least and the largest of 0 and 1 that satisfy *predicate*."""
    has_false, has_true = booleans(columns, predicate, kind, low, high)
    return (0.0 if has_false else 1.0), (1.0 if has_true else 0.0)


@kernel_part
def booleans(
    columns: SubscriptionColumns, predicate: int, kind: int, low: float, high: float
) -> tuple[bool, bool]:
    """Whether FALSE and whether TRUE satisfy *predicate*."""
    if kind != SPANS:
        return low <= 0.0 <= high, low <= 1.0 <= high
    has_false, has_true = False, False
    for pair in range(columns.operand_start[predicate], columns.operand_stop[predicate]):
        has_false = has_false or columns.pair_low[pair] <= 0.0 <= columns.pair_high[pair]
        has_true = has_true or columns.pair_low[pair] <= 1.0 <= columns.pair_high[pair]
    return has_false, has_true
