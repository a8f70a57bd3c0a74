"""The dimensions that tokens bring: intervals, prefixes of strings, boxes around regions."""

from __future__ import annotations

import math

from stentor._jit import inner_kernel
from stentor.covering.implies.comparison import booleans
from stentor.covering.implies.operands import BOOLEAN, POINT, STRING
from stentor.covering.implies.pattern import is_wild
from stentor.covering.kd_tree.layout import MOST_DIMENSIONS
from stentor.encoding.columns import OPEN, Float64, SubscriptionColumns, UInt8
from stentor.encoding.hashing import prefix
from stentor.encoding.kinds import (
    KIND_MASK,
    NEGATED,
    PATTERN,
    STRING_INTERVAL,
    is_negated,
    is_region,
)

#: Between these are the prefixes of all strings (`encoding/hashing.py`).
_FIRST, _LAST = prefix(b""), prefix(b"", b"\xff")


@inner_kernel
def write_point(
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
    if predicate < 0:
        return at
    attribute = columns.attribute[predicate]
    kind = columns.kind[predicate]
    if is_region(kind) or kinds[attribute] == POINT:
        if at + 4 > MOST_DIMENSIONS:
            return at
        return write_location(columns, plane, alternative, attribute, point, at)
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


@inner_kernel
def loosen(
    columns: SubscriptionColumns, alternative: int, predicate: int, point: Float64, at: int
) -> None:
    """Let the query want nothing where the hull of *predicate* may be wider than its values.

    An open end belongs to the hull, and so does what a negation or a second test leaves out, and
    all that begins like a pattern without wildcards.
    """
    kind = columns.kind[predicate]
    which = kind & KIND_MASK
    if (
        which == STRING_INTERVAL
        and columns.string_mark[columns.operand_start[predicate] + 1] == OPEN
    ):
        point[at + 1] = -math.inf
    tests = 0
    for other in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        tests += columns.attribute[other] == columns.attribute[predicate]
    if (
        tests > 1
        or (which in (STRING_INTERVAL, PATTERN) and kind & NEGATED)
        or is_plain(columns, predicate)
    ):
        point[at], point[at + 1] = -math.inf, -math.inf


@inner_kernel
def is_plain(columns: SubscriptionColumns, predicate: int) -> bool:
    """Whether *predicate* is a LIKE pattern without wildcards."""
    if columns.kind[predicate] != PATTERN:
        return False
    pattern = columns.operand_start[predicate]
    start, stop = columns.string_start[pattern], columns.string_start[pattern + 1]
    return not is_wild(columns.string_bytes[start:stop])


@inner_kernel
def write_location(
    columns: SubscriptionColumns,
    plane: bool,
    alternative: int,
    attribute: int,
    point: Float64,
    at: int,
) -> int:
    """Write the four sides of the box around all locations that satisfy *alternative*."""
    west, south, east, north = -180.0, -90.0, 180.0, 90.0
    if plane:
        west, south, east, north = -math.inf, -math.inf, math.inf, math.inf
    for other in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        kind = columns.kind[other]
        if columns.attribute[other] != attribute or is_negated(kind) or not is_region(kind):
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


@inner_kernel
def boolean_hull(
    columns: SubscriptionColumns, predicate: int, kind: int, low: float, high: float
) -> tuple[float, float]:
    """The least and the largest of 0 and 1 that satisfy *predicate*."""
    has_false, has_true = booleans(columns, predicate, kind, low, high)
    return (0.0 if has_false else 1.0), (1.0 if has_true else 0.0)
