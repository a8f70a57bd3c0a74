"""Ranges with their owners, sorted, and what the owners' filters say: the leaves of the index.

    kinds   │ lengths of 1 │ 2 … 3 │ 4 … 7 │ …       ranges of about one length stand together,
    low     │ ascending    │ asc.  │ asc.  │         by their low ends: all that can hold a number
    high    │              │       │       │         begin in a short stretch before it, and about
    owner   │              │       │       │         half of those do hold it
    word    in granules of 64 ranges, a byte for each: row by row their first cells of a filter,
            their last cells, …, then bits of signatures; eight ranges in two subtractions

The paper's leaves are merged ranges with a list of owners each; where subscriptions are many, one
leaf soon owns them all. Here each range stands by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Int32, Int64, UInt8, UInt64
from stentor.encoding.readonly import all_read_only, read_only
from stentor.index.bit_places import NO_BITS, lowest_bit, place_of
from stentor.index.mics.filters import LAST_CELL, SIGN_BITS

#: Ranges that are compared at a time, in so many words: a line of the cache, a vector register.
GRANULE, WORDS = 64, 8
#: Owners of a question are many where there is one for so many words of 64.
MANY: Final = 8
#: The kind of ranges that came one by one and are in no order.
UNSORTED: Final = 64
_TOP_BITS: Final = np.uint64(0x8080_8080_8080_8080)
_LOW_BITS: Final = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
_EACH_BYTE: Final = np.uint64(0x0101_0101_0101_0101)
_ONE: Final = np.uint64(1)

Words = tuple[
    np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64
]


class Leaves(NamedTuple):
    """Ranges of about one length after those of another, each sorted by low ends."""

    kind: UInt8  # (kinds,) the bits of a range's length, or UNSORTED
    kind_start: Int64  # (kinds + 1,)
    low: UInt64  # (ranges,)
    high: UInt64  # (ranges,)
    owner: Int32  # (ranges,)
    stamp: Int32  # (ranges,) which of the owner's ranges these are: earlier ones hold no longer
    word: UInt64  # (granules × rows × WORDS,)

    @property
    def size(self) -> int:
        """How many ranges there are."""
        return len(self.owner)


class Pieces(NamedTuple):
    """Ranges in any order, each with the bytes of its owner."""

    low: UInt64  # (ranges,)
    high: UInt64  # (ranges,)
    owner: Int32  # (ranges,)
    stamp: Int32  # (ranges,)
    byte: UInt8  # (ranges, rows)

    def at(self, places: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Pieces:
        """Those at *places*."""
        arrays: Any = (array[places] for array in self)
        return Pieces(*arrays)


def joined(parts: Sequence[Pieces]) -> Pieces:
    """The ranges of all *parts*."""
    arrays: Any = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Pieces(*arrays)


def sorted_leaves(pieces: Pieces) -> Leaves:
    """*pieces* in the order in which they are searched. Cost: a sort."""
    kind = _bits_of(pieces.high - pieces.low)
    order = np.lexsort((pieces.low, kind))
    kinds, counts = np.unique(kind, return_counts=True)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return _packed(kinds, starts, pieces, order)


def unsorted_leaves(pieces: Pieces) -> Leaves:
    """*pieces* as they are: each is looked at every time."""
    count = len(pieces.owner)
    kinds, starts = np.full(1, UNSORTED, np.uint8), np.array([0, count])
    return _packed(kinds, starts, pieces, np.arange(count))


def pieces_of(leaves: Leaves, rows: int) -> Pieces:
    """The ranges of *leaves* with their bytes."""
    granules = -(-leaves.size // GRANULE)
    by_granule = leaves.word.view(np.uint8).reshape(granules, rows, GRANULE)
    byte = by_granule.transpose(0, 2, 1).reshape(granules * GRANULE, rows)[: leaves.size]
    return Pieces(leaves.low, leaves.high, leaves.owner, leaves.stamp, byte)


def _packed(kinds: UInt8, starts: Int64, pieces: Pieces, order: Int64) -> Leaves:
    rows = pieces.byte.shape[1]
    word = np.zeros(-(-len(order) // GRANULE) * rows * WORDS, np.uint64)
    byte = read_only(np.ascontiguousarray(pieces.byte).reshape(-1))
    _pack(byte, read_only(order), rows, word.view(np.uint8))
    low, high, owner, stamp, _ = pieces.at(order)
    return all_read_only(Leaves(kinds.astype(np.uint8), starts, low, high, owner, stamp, word))


def _bits_of(lengths: UInt64) -> UInt8:
    """How many bits each of *lengths* has."""
    bits = np.zeros(len(lengths), np.uint8)
    left = lengths.copy()
    for step in (32, 16, 8, 4, 2, 1):
        is_long = left >= np.uint64(1 << step)
        bits[is_long] += step
        left[is_long] >>= np.uint64(step)
    return bits + (left > 0).astype(np.uint8)


@kernel
def _pack(given: UInt8, order: Int64, rows: int, byte: UInt8) -> None:
    """Write the bytes of each range to its place in the words."""
    for place in range(len(order)):
        start = place // GRANULE * rows * GRANULE + place % GRANULE
        source = order[place] * rows
        for row in range(rows):
            byte[start + row * GRANULE] = given[source + row]


class Question(NamedTuple):
    """What is looked for: ranges, cells from … to, and what signature there is."""

    start: Int64  # (questions + 1,)
    low: UInt64  # (ranges,)
    high: UInt64  # (ranges,)
    first: UInt8  # (questions × filters,)
    last: UInt8  # (questions × filters,)
    signature: UInt64  # (questions,)


@kernel
def meet(
    leaves: Leaves,
    stamp: Int32,
    asked: Question,
    rows: int,
    spread: UInt64,
    mark: UInt64,
    found: int,
    question: Int64,
    owner: Int64,
    looked: Int64,
) -> int:
    """Add pairs of a question and an owner that may meet from *found* on; how many there are then.

    Those beyond the end of *owner* are only counted. *stamp* says of each owner which ranges hold;
    where it is empty all do. *spread* is scratch for a word of each row, *mark*, all zeros, for a
    bit of each owner, or empty. *looked* counts the ranges looked at. An owner may come several
    times: once for each pair of ranges that meet.
    """
    filters = len(asked.first) // max(1, len(asked.signature))
    for one in range(len(asked.start) - 1):
        before = found
        _spread_out(asked, one, filters, rows, spread)
        for place in range(asked.start[one], asked.start[one + 1]):
            low, high = asked.low[place], asked.high[place]
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
                            slot = granule * GRANULE + word * 8 + (place_of(bit) >> 3)
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
    """Put a slice of *owner* in ascending order, each once; where it ends then.

    Cost: O(owners / 64), which for many is less than comparisons; the verifier likes the order.
    """
    first, last = len(mark), -1
    for place in range(start, stop):
        word = owner[place] >> 6
        mark[word] |= _ONE << np.uint64(owner[place] & 63)
        first, last = min(first, word), max(last, word)
    for word in range(first, last + 1):
        left = mark[word]
        mark[word] = NO_BITS
        while left != NO_BITS:
            bit = lowest_bit(left)
            left ^= bit
            owner[start] = 64 * word + place_of(bit)
            start += 1
    return start


@kernel_inline
def _spread_out(asked: Question, one: int, filters: int, rows: int, spread: UInt64) -> None:
    """Write what *one* asks of each row into all bytes of a word."""
    for number in range(filters):
        last, first = asked.last[one * filters + number], asked.first[one * filters + number]
        spread[2 * number] = np.uint64(last) * _EACH_BYTE | _TOP_BITS
        spread[2 * number + 1] = np.uint64(first) * _EACH_BYTE
    lacking = ~asked.signature[one]
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
    """The first place from *start* on whose low end is *begin* or more."""
    while start < stop:
        middle = (start + stop) >> 1
        if low[middle] < begin:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel_inline
def _first_after(low: UInt64, end: np.uint64, start: int, stop: int) -> int:
    """The first place from *start* on whose low end is more than *end*: found near *start*."""
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
