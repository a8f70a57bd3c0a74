"""Ranks sorted without allocating."""

from __future__ import annotations

from stentor._jit import kernel_part
from stentor.encoding.columns import Int32, Int64
from stentor.index.sorting import sort_slice

_FEW = 256
_BITS = 8
DIGITS = 1 << _BITS


@kernel_part
def sort_many(ranks: Int32, count: int, other: Int32, tally: Int64) -> None:
    """Sort the first *count* of *ranks*, which are not negative, digit by digit from the lowest.

    *other* (as long) and *tally* (DIGITS) are scratch; few are sorted by comparing.
    """
    if count <= _FEW:
        sort_slice(ranks, 0, count)
        return
    highest = 0
    for place in range(count):
        highest = max(highest, ranks[place])
    source, target = ranks, other
    shift = passes = 0
    while highest >> shift > 0:
        for digit in range(DIGITS):
            tally[digit] = 0
        for place in range(count):
            tally[source[place] >> shift & (DIGITS - 1)] += 1
        start = 0
        for digit in range(DIGITS):
            size = tally[digit]
            tally[digit] = start
            start += size
        for place in range(count):
            digit = source[place] >> shift & (DIGITS - 1)
            target[tally[digit]] = source[place]
            tally[digit] += 1
        source, target = target, source
        shift += _BITS
        passes += 1
    if passes % 2 == 1:
        for place in range(count):
            ranks[place] = other[place]
