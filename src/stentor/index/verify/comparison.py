"""Numbers in intervals, strings between strings (bytewise order is the order of code points)."""

from __future__ import annotations

from stentor._jit import inner_kernel
from stentor.encoding.columns import (
    CLOSED,
    UNBOUNDED,
    SubscriptionColumns,
    UInt8,
)


@inner_kernel
def compare_bytes(left: UInt8, right: UInt8) -> int:
    """−1, 0 or 1 where *left* comes before, is, or comes after *right*."""
    for position in range(min(len(left), len(right))):
        if left[position] != right[position]:
            return -1 if left[position] < right[position] else 1
    if len(left) == len(right):
        return 0
    return -1 if len(left) < len(right) else 1


@inner_kernel
def in_string_span(columns: SubscriptionColumns, predicate: int, text: UInt8) -> bool:
    """Whether *text* lies between the predicate's two strings."""
    low = columns.operand_start[predicate]
    for end in range(2):
        mark = columns.string_mark[low + end]
        if mark == UNBOUNDED:
            continue
        start, stop = columns.string_start[low + end], columns.string_start[low + end + 1]
        order = compare_bytes(text, columns.string_bytes[start:stop])
        if end == 1:
            order = -order
        if order < 0 or (order == 0 and mark != CLOSED):
            return False
    return True


@inner_kernel
def in_intervals(columns: SubscriptionColumns, predicate: int, low: float, high: float) -> bool:
    """Whether low … high meets one of the predicate's intervals; cost: O(log n) for n of them."""
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    last = stop
    while start < stop:  # to the first interval that does not end below `low`
        middle = (start + stop) >> 1
        if columns.pair_high[middle] < low:
            start = middle + 1
        else:
            stop = middle
    return bool(start < last and columns.pair_low[start] <= high)
