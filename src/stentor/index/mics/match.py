"""Queries → the owners whose ranges and filters they meet."""

from __future__ import annotations

from typing import Final

import numpy as np

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Int32, Int64, UInt64
from stentor.index.mics.filters import LAST_CELL, SIGN_BITS
from stentor.index.mics.layout import GRANULE, UNSORTED, WORDS, RangeQuery, SortedRanges
from stentor.index.row_set import NO_BITS, lowest_bit, trailing_zeros

#: Owners of a query are many where there is one for so many words of 64.
MANY: Final = 8

_TOP_BITS: Final = np.uint64(0x8080_8080_8080_8080)

_LOW_BITS: Final = np.uint64(0x7F7F_7F7F_7F7F_7F7F)

_EACH_BYTE: Final = np.uint64(0x0101_0101_0101_0101)

_ONE: Final = np.uint64(1)

Words = tuple[
    np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64
]


@kernel
def match_ranges(
    leaves: SortedRanges,
    stamp: Int32,
    query: RangeQuery,
    rows: int,
    spread: UInt64,
    mark: UInt64,
    found: int,
    question: Int64,
    owner: Int64,
    looked: Int64,
) -> int:
    """Write pairs of a query and an owner that may meet from *found* on; how many there are then.

    Those beyond the end of *owner* are only counted. *stamp* says of each owner which ranges hold;
    where it is empty all do. *spread* is scratch for a word of each row, *mark*, all zeros, for a
    bit of each owner, or empty. *looked* counts the ranges looked at. An owner may come several
    times: once for each pair of ranges that meet.
    """
    filters = len(query.first) // max(1, len(query.signature))
    for one in range(len(query.start) - 1):
        before = found
        _pack_query(query, one, filters, rows, spread)
        for position in range(query.start[one], query.start[one + 1]):
            low, high = query.low[position], query.high[position]
            for number in range(len(leaves.kind)):
                start, stop = leaves.kind_start[number], leaves.kind_start[number + 1]
                if leaves.kind[number] != UNSORTED:
                    reach = (_ONE << np.uint64(leaves.kind[number])) - _ONE
                    begin = low - reach if low > reach else np.uint64(0)
                    start = _first_from(leaves.low, begin, start, stop)
                    stop = _first_after(leaves.low, high, start, stop)
                looked[0] += stop - start
                for granule in range(start // GRANULE, (stop + GRANULE - 1) // GRANULE):
                    suiting = _suiting(leaves.word, granule, filters, rows, spread)
                    if _is_empty(suiting):
                        continue
                    for word in range(WORDS):
                        left = suiting[word]
                        while left != NO_BITS:
                            bit = lowest_bit(left)
                            left ^= bit
                            slot = granule * GRANULE + word * 8 + (trailing_zeros(bit) >> 3)
                            if slot < start or slot >= stop:
                                continue
                            if leaves.high[slot] < low:
                                continue
                            if leaves.kind[number] == UNSORTED and leaves.low[slot] > high:
                                continue
                            mine = leaves.owner[slot]
                            if len(stamp) > 0 and stamp[mine] != leaves.stamp[slot]:
                                continue
                            if found < len(owner):
                                question[found], owner[found] = one, mine
                            found += 1
        if len(mark) > 0 and before + len(mark) // MANY < found <= len(owner):
            found = _in_order(owner, before, found, mark)
            question[before:found] = one
    return found


@kernel_inline
def _in_order(owner: Int64, start: int, stop: int, mark: UInt64) -> int:
    """Sort a slice of *owner*, each once; where it ends then.

    Cost: O(owners / 64), for many less than comparisons; the verifier is faster in order.
    """
    first, last = len(mark), -1
    for position in range(start, stop):
        word = owner[position] >> 6
        mark[word] |= _ONE << np.uint64(owner[position] & 63)
        first, last = min(first, word), max(last, word)
    for word in range(first, last + 1):
        left = mark[word]
        mark[word] = NO_BITS
        while left != NO_BITS:
            bit = lowest_bit(left)
            left ^= bit
            owner[start] = 64 * word + trailing_zeros(bit)
            start += 1
    return start


@kernel_inline
def _pack_query(query: RangeQuery, one: int, filters: int, rows: int, spread: UInt64) -> None:
    """Write what query *one* has in each row into all bytes of a word."""
    for number in range(filters):
        last, first = query.last[one * filters + number], query.first[one * filters + number]
        spread[2 * number] = np.uint64(last) * _EACH_BYTE | _TOP_BITS
        spread[2 * number + 1] = np.uint64(first) * _EACH_BYTE
    lacking = ~query.signature[one]
    for row in range(2 * filters, rows):
        spread[row] = (lacking & np.uint64(LAST_CELL)) * _EACH_BYTE
        lacking >>= np.uint64(SIGN_BITS)


@kernel_inline
def _suiting(word: UInt64, granule: int, filters: int, rows: int, spread: UInt64) -> Words:
    """The top bits of the ranges of *granule* that suit what is *spread* out.

    Cells have seven bits, so a subtraction from a byte whose top bit is set leaves that bit where
    the comparison holds; last cells are kept with it.
    """
    left = (_TOP_BITS, _TOP_BITS, _TOP_BITS, _TOP_BITS, _TOP_BITS, _TOP_BITS, _TOP_BITS, _TOP_BITS)
    width = rows * WORDS
    words = word[granule * width : (granule + 1) * width]
    for row in range(0, 2 * filters, 2):
        most, least = spread[row], spread[row + 1]
        w = words[row * WORDS : (row + 2) * WORDS]
        left = (
            left[0] & (most - w[0]) & (w[8] - least),
            left[1] & (most - w[1]) & (w[9] - least),
            left[2] & (most - w[2]) & (w[10] - least),
            left[3] & (most - w[3]) & (w[11] - least),
            left[4] & (most - w[4]) & (w[12] - least),
            left[5] & (most - w[5]) & (w[13] - least),
            left[6] & (most - w[6]) & (w[14] - least),
            left[7] & (most - w[7]) & (w[15] - least),
        )
        if _is_empty(left):
            return left
    for row in range(2 * filters, rows):
        lacking = spread[row]
        w = words[row * WORDS : (row + 1) * WORDS]
        left = (
            left[0] & ~((w[0] & lacking) + _LOW_BITS),
            left[1] & ~((w[1] & lacking) + _LOW_BITS),
            left[2] & ~((w[2] & lacking) + _LOW_BITS),
            left[3] & ~((w[3] & lacking) + _LOW_BITS),
            left[4] & ~((w[4] & lacking) + _LOW_BITS),
            left[5] & ~((w[5] & lacking) + _LOW_BITS),
            left[6] & ~((w[6] & lacking) + _LOW_BITS),
            left[7] & ~((w[7] & lacking) + _LOW_BITS),
        )
    return left


@kernel_inline
def _is_empty(left: Words) -> bool:
    """Whether no bit is set."""
    some = left[0] | left[1] | left[2] | left[3] | left[4] | left[5] | left[6] | left[7]
    return bool(some == NO_BITS)


@kernel_inline
def _first_from(low: UInt64, begin: np.uint64, start: int, stop: int) -> int:
    """The first position from *start* on whose low end is *begin* or more."""
    while start < stop:
        middle = (start + stop) >> 1
        if low[middle] < begin:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel_inline
def _first_after(low: UInt64, end: np.uint64, start: int, stop: int) -> int:
    """The first position from *start* on whose low end is more than *end*: found near *start*."""
    step = 8
    while start + step < stop and low[start + step] <= end:
        start += step
        step += step
    stop = min(stop, start + step)
    while start < stop:
        middle = (start + stop) >> 1
        if low[middle] <= end:
            start = middle + 1
        else:
            stop = middle
    return start
