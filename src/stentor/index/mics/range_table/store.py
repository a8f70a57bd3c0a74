"""The ranges of numbered owners, and their union: the arrays behind the table and the index."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import Int64, UInt8, UInt64, all_read_only
from stentor.encoding.hilbert.ranges import Ranges
from stentor.index.arena import GrowingArray
from stentor.index.mics.range_table.insert import (
    ANNOUNCED,
    GONE,
    GivenRanges,
    add_entries,
    contains,
    overlaps_union,
)
from stentor.index.mics.range_table.layout import (
    BLOCK,
    ORDERED,
    RANGES,
    RangeBlocks,
    grow,
    new_ordered,
)
from stentor.index.mics.range_table.remove import remove_entries

#: Entries that are gone are removed when there are more of them than of others, and than this.
FEW: Final = 1 << 10
#: Free blocks that each ordered set has at least.
SPARE: Final = 4


class RangeStore:
    """Ranges, each with an owner; which of them are announced, and the union of those.

    An owner is a number that the caller gives; `add` may not name one that has ranges here. *gap*
    is how many numbers between two ranges are filled when they are merged (0: perfect merging).
    """

    def __init__(self, gap: int = 0) -> None:
        self.gap = np.uint64(gap)
        self.union, self.announced, self.passive = new_ordered(), new_ordered(), new_ordered()
        self._given = [GrowingArray(dtype) for dtype in (*[np.uint64] * 4, np.uint8)]
        self._owner = GrowingArray(np.int64)
        self._first = GrowingArray(np.int64)  # (owners,) its entries
        self._count = GrowingArray(np.int64)  # (owners,)
        self._gone = 0

    # Changes.

    def add(self, owners: Int64, ranges: Ranges) -> Int64:
        """Add the *ranges* of each of *owners*; the entries that were announced, ascending.

        Cost: a look-up for each range, and O(1) for each range that it covers.
        """
        self._sweep()
        first, added = len(self._owner), len(ranges.low)
        counts = np.diff(ranges.starts)
        known = len(self._first)
        beyond = int(owners.max(initial=-1)) + 1
        if beyond > known:
            self._first.extend(0, beyond - known)
            self._count.extend(0, beyond - known)
        self._first.writable[owners] = first + ranges.starts[:-1]
        self._count.writable[owners] = counts
        self._owner.extend(np.repeat(owners, counts), added)
        given: tuple[UInt64 | int, ...] = (ranges.low, ranges.high, 0, 0, GONE)
        for array, values in zip(self._given, given, strict=True):
            array.extend(values, added)
        entries, done = self.entries, first
        while done < first + added:
            self._reserve()
            done = add_entries(
                self.union,
                self.announced,
                self.passive,
                entries,
                done,
                first + added,
                self.gap,
            )
        return first + np.flatnonzero(entries.state[first:] == ANNOUNCED)

    def remove(self, owners: Int64) -> Int64:
        """Remove the ranges of *owners*; the passive entries that are announced now.

        Cost: a look-up for each range, and what else is announced around each announced one.
        """
        leaving = self.entries_of(owners)
        entries = self.entries
        leaving = leaving[entries.state[leaving] != GONE]
        hull = np.zeros(len(leaving), np.uint64)
        progress, promoted = np.zeros(3, np.int64), np.empty(BLOCK, np.int64)
        while not remove_entries(
            self.union,
            self.announced,
            self.passive,
            entries,
            leaving,
            hull,
            self.gap,
            promoted,
            progress,
        ):
            self._reserve(int(progress[2]))
            if progress[1] == len(promoted):
                promoted = np.concatenate([promoted, np.empty_like(promoted)])
        self._count.writable[owners] = 0
        self._gone += len(leaving)
        return promoted[: progress[1]]

    # Look-ups.

    @property
    def entries(self) -> GivenRanges:
        """All ranges, to be changed in place."""
        return GivenRanges(*(array.writable for array in self._given))

    def owner_of(self, entries: Int64) -> Int64:
        """Whose each of *entries* is."""
        owners: Int64 = self._owner.view[entries]
        return owners

    def entries_of(self, owners: Int64) -> Int64:
        """The entries of *owners*, of each in the order of its ranges."""
        first, count = self._first.view[owners], self._count.view[owners]
        before = np.cumsum(count) - count
        return np.repeat(first - before, count) + np.arange(int(count.sum()))

    def holds(self, numbers: UInt64) -> UInt8:
        """1 where one of *numbers* is in the union. Cost: O(log ranges) each (Algorithm 2)."""
        found = np.zeros(len(numbers), np.uint8)
        contains(self.union, np.ascontiguousarray(numbers, np.uint64), found)
        return found

    def meets(self, query: Ranges) -> UInt8:
        """1 where a range of *query* shares a number with the union."""
        found = np.zeros(len(query.starts) - 1, np.uint8)
        overlaps_union(self.union, *all_read_only(query), found)
        return found

    @property
    def range_count(self) -> int:
        """How many ranges the union has: the paper's stored ranges."""
        return int(self.union.used[RANGES])

    @property
    def nbytes(self) -> int:
        kept = sum(array.nbytes for array in (self._owner, self._first, self._count, *self._given))
        return kept + sum(array.nbytes for array in (*self.union, *self.announced, *self.passive))

    # Capacity.

    def _reserve(self, blocks: int = 0) -> None:
        """Grow where few blocks are free; in the union *blocks* are needed."""
        self.union = grow(self.union, max(SPARE, blocks))
        self.announced = grow(self.announced, SPARE)
        self.passive = grow(self.passive, SPARE)

    def _sweep(self) -> None:
        """Renumber the entries without those that are gone, where that pays."""
        if self._gone <= max(FEW, len(self._owner) // 2):
            return
        kept = self.entries.state != GONE
        number = np.cumsum(kept) - 1
        for ordered in (self.announced, self.passive):
            _renumber(ordered, number)
        holding = self._count.view > 0
        self._first.writable[holding] = number[self._first.view[holding]]
        self._owner = _those(self._owner, kept)
        self._given = [_those(array, kept) for array in self._given]
        self._gone = 0


def _those(array: GrowingArray, kept: npt.NDArray[np.bool_]) -> GrowingArray:
    """What is *kept* of *array*."""
    values = array.view[kept]
    fewer = GrowingArray(values.dtype)
    fewer.extend(values, len(values))
    return fewer


def _renumber(ordered: RangeBlocks, number: Int64) -> None:
    """Replace each entry e of *ordered* by number[e]."""
    for block in ordered.order[: ordered.used[ORDERED]]:
        part = slice(block * BLOCK, block * BLOCK + ordered.filled[block])
        ordered.entry[part] = number[ordered.entry[part]]
