"""Sets of numbers: disjoint closed intervals of doubles, as objects and over columns."""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import inner_kernel
from stentor.covering.implies.operands import BOOLEAN, COVERED, NOT_COVERED
from stentor.encoding.columns import SubscriptionColumns, UInt8
from stentor.encoding.kinds import (
    INTERVAL,
    INTERVALS,
)
from stentor.language.normal_predicates import Interval
from stentor.language.predicates.comparison import intersection, points

DisjointIntervals = tuple[Interval, ...]

BOOLEANS = points([0.0, 1.0])


def joined(intervals: DisjointIntervals) -> DisjointIntervals:
    """The same doubles in as few intervals as can be: neighbours become one.

    >>> joined(((1.0, 1.0), (1.0000000000000002, 2.0)))
    ((1.0, 2.0),)
    """
    found: list[Interval] = []
    for low, high in intervals:
        if found and math.nextafter(found[-1][1], math.inf) >= low:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return tuple(found)


def number_set(intervals: DisjointIntervals, *, boolean: bool) -> DisjointIntervals:
    """*intervals* in their one shortest form; of a boolean only 0 and 1 count."""
    return joined(intersection(intervals, BOOLEANS) if boolean else intervals)


def is_subset(inner: DisjointIntervals, outer: DisjointIntervals) -> bool:
    """Whether every double of *inner* is in *outer*, both in their shortest form."""
    return intersection(inner, outer) == inner


@inner_kernel
def booleans(
    columns: SubscriptionColumns, predicate: int, kind: int, low: float, high: float
) -> tuple[bool, bool]:
    """Whether FALSE and whether TRUE satisfy *predicate*."""
    if kind != INTERVALS:
        return low <= 0.0 <= high, low <= 1.0 <= high
    has_false, has_true = False, False
    for pair in range(columns.operand_start[predicate], columns.operand_stop[predicate]):
        has_false = has_false or columns.pair_low[pair] <= 0.0 <= columns.pair_high[pair]
        has_true = has_true or columns.pair_low[pair] <= 1.0 <= columns.pair_high[pair]
    return has_false, has_true


@inner_kernel
def numbers_imply(columns: SubscriptionColumns, kinds: UInt8, narrow: int, wide: int) -> int:
    """Whether every number that satisfies *narrow* satisfies *wide*."""
    kind, wanted = columns.kind[narrow], columns.kind[wide]
    low, high = columns.low[narrow], columns.high[narrow]  # of IS NOT NULL: everything
    if kinds[columns.attribute[narrow]] == BOOLEAN:
        has_false, has_true = booleans(columns, narrow, kind, low, high)
        wants_false, wants_true = booleans(
            columns, wide, wanted, columns.low[wide], columns.high[wide]
        )
        return (
            COVERED
            if (wants_false or not has_false) and (wants_true or not has_true)
            else NOT_COVERED
        )
    if wanted == INTERVAL:  # a hull inside an interval: all of it is
        return COVERED if columns.low[wide] <= low and high <= columns.high[wide] else NOT_COVERED
    if kind != INTERVALS:
        return COVERED if in_spans(columns, wide, low, high) else NOT_COVERED
    for pair in range(columns.operand_start[narrow], columns.operand_stop[narrow]):
        if not in_spans(columns, wide, columns.pair_low[pair], columns.pair_high[pair]):
            return NOT_COVERED
    return COVERED


@inner_kernel
def in_spans(columns: SubscriptionColumns, predicate: int, low: float, high: float) -> bool:
    """Whether low … high lies in the predicate's intervals, neighbours taken as one."""
    for pair in range(columns.operand_start[predicate], columns.operand_stop[predicate]):
        start, stop = columns.pair_low[pair], columns.pair_high[pair]
        if start <= low <= stop:
            if high <= stop:
                return True
            low = np.nextafter(stop, math.inf)
    return False
