"""Ranges with their owners, sorted, and what the owners' filters say: the leaves of the index.

    kinds   │ lengths of 1 │ 2 … 3 │ 4 … 7 │ …       ranges of about one length stand together,
    low     │ ascending    │ asc.  │ asc.  │         by their low ends: all that can hold a number
    high    │              │       │       │         begin in a short stretch before it, and about
    owner   │              │       │       │         half of those do hold it
    word    filter by filter eight first cells, eight last cells: eight ranges in two subtractions

The paper's leaves are merged ranges with a list of owners each; where subscriptions are many, one
leaf soon owns them all. Here each range stands by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Int32, Int64, UInt8, UInt64
from stentor.encoding.readonly import all_read_only, read_only
from stentor.index.bit_places import NO_BITS, lowest_bit, place_of

#: Ranges whose cells are compared in one word.
GRANULE: Final = 8
#: The kind of ranges that came one by one and are in no order.
UNSORTED: Final = 64
_TOP_BITS: Final = np.uint64(0x8080_8080_8080_8080)
_EACH_BYTE: Final = np.uint64(0x0101_0101_0101_0101)
_ONE: Final = np.uint64(1)


class Leaves(NamedTuple):
    """Ranges of about one length after those of another, each sorted by low ends."""

    kind: UInt8  # (kinds,) the bits of a range's length, or UNSORTED
    kind_start: Int64  # (kinds + 1,)
    low: UInt64  # (ranges,)
    high: UInt64  # (ranges,)
    owner: Int32  # (ranges,)
    stamp: Int32  # (ranges,) which of the owner's ranges these are: earlier ones hold no longer
    word: UInt64  # (granules × filters × 2,) first cells, last cells; a byte for each range

    @property
    def count(self) -> int:
        """How many ranges there are."""
        return len(self.owner)


class Pieces(NamedTuple):
    """Ranges in any order, each with the cells of its owner."""

    low: UInt64  # (ranges,)
    high: UInt64  # (ranges,)
    owner: Int32  # (ranges,)
    stamp: Int32  # (ranges,)
    first: UInt8  # (ranges, filters) first cells
    last: UInt8  # (ranges, filters) last cells

    def at(self, places: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Pieces:
        """Those at *places*."""
        return Pieces(*(array[places] for array in self))


def joined(parts: Sequence[Pieces]) -> Pieces:
    """The ranges of all *parts*."""
    return Pieces(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


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


def pieces_of(leaves: Leaves, filters: int) -> Pieces:
    """The ranges of *leaves* with their cells."""
    granules = -(-leaves.count // GRANULE)
    cells = leaves.word.view(np.uint8).reshape(granules, filters, 2, GRANULE)
    by_range = cells.transpose(2, 0, 3, 1).reshape(2, granules * GRANULE, filters)
    first, last = by_range[:, : leaves.count]
    return Pieces(leaves.low, leaves.high, leaves.owner, leaves.stamp, first, last)


def _packed(kinds: UInt8, starts: Int64, pieces: Pieces, order: Int64) -> Leaves:
    filters = pieces.first.shape[1]
    word = np.zeros(-(-len(order) // GRANULE) * filters * 2, np.uint64)
    cells = (read_only(np.ascontiguousarray(end).reshape(-1)) for end in pieces[4:])
    _pack(*cells, read_only(order), filters, word.view(np.uint8))
    return all_read_only(
        Leaves(kinds.astype(np.uint8), starts, *(array[order] for array in pieces[:4]), word)
    )


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
def _pack(first: UInt8, last: UInt8, order: Int64, filters: int, byte: UInt8) -> None:
    """Write the cells of each range to its *byte* of the words."""
    for place in range(len(order)):
        start = place // GRANULE * filters * 2 * GRANULE + place % GRANULE
        source = order[place] * filters
        for one in range(filters):
            byte[start + 2 * one * GRANULE] = first[source + one]
            byte[start + (2 * one + 1) * GRANULE] = last[source + one]


class Question(NamedTuple):
    """What is looked for: ranges and cells, and what signature there is."""

    start: Int64  # (questions + 1,)
    low: UInt64  # (ranges,)
    high: UInt64  # (ranges,)
    first: UInt8  # (questions × filters,)
    last: UInt8  # (questions × filters,)
    signature: UInt64  # (questions,)


class Owners(NamedTuple):
    """What is known of owners."""

    stamp: Int32  # (owners,) of the ranges that hold; (0,): all do
    signature: UInt64  # (owners,) the bits that each cannot do without; (0,): none


@kernel
def meet(
    leaves: Leaves,
    owners: Owners,
    asked: Question,
    filters: int,
    found: int,
    question: Int64,
    owner: Int64,
    looked: Int64,
) -> int:
    """Add pairs of a question and an owner that may meet from *found* on; how many there are then.

    Those beyond the end of *owner* are only counted. *looked* counts the ranges looked at. An owner
    comes once for each pair of ranges that meet.
    """
    for one in range(len(asked.start) - 1):
        lacking = ~asked.signature[one]
        first = asked.first[one * filters : (one + 1) * filters]
        last = asked.last[one * filters : (one + 1) * filters]
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
                    left = _suiting(leaves.word, granule, first, last)
                    while left != NO_BITS:
                        bit = lowest_bit(left)
                        left ^= bit
                        slot = granule * GRANULE + (place_of(bit) >> 3)
                        if slot < start or slot >= stop:
                            continue
                        if leaves.low[slot] > high or leaves.high[slot] < low:
                            continue
                        mine = leaves.owner[slot]
                        if len(owners.stamp) > 0 and owners.stamp[mine] != leaves.stamp[slot]:
                            continue
                        if len(owners.signature) > 0 and owners.signature[mine] & lacking:
                            continue
                        if found < len(owner):
                            question[found], owner[found] = one, mine
                        found += 1
    return found


@kernel_inline
def _suiting(word: UInt64, granule: int, first: UInt8, last: UInt8) -> np.uint64:
    """The top bits of the ranges of *granule* whose cells meet those from *first* to *last*.

    Cells have seven bits, so a subtraction from a byte whose top bit is set leaves that bit where
    the comparison holds.
    """
    left = _TOP_BITS
    width = 2 * len(first)
    words = word[granule * width : (granule + 1) * width]
    for one in range(len(first)):
        most = np.uint64(last[one]) * _EACH_BYTE
        least = np.uint64(first[one]) * _EACH_BYTE
        left &= ((most | _TOP_BITS) - words[2 * one]) & ((words[2 * one + 1] | _TOP_BITS) - least)
        if left == NO_BITS:
            break
    return left


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
    step = GRANULE
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
