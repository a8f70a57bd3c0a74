"""The ranges of all owners, in a few sorted runs, the largest first.

New ranges wait in an unsorted tail. A full tail becomes a run, merged with those runs that are not
much larger: so a range is sorted a few times, and a query meets few runs. Removed ranges are only
marked; they are left out when their run is sorted again.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self

import numpy as np

from stentor.encoding.columns import Int64, UInt8, all_read_only, read_only
from stentor.encoding.hilbert.ranges import Ranges
from stentor.index.arena import GrowingArray
from stentor.index.mics.layout import (
    OwnedRanges,
    RangeQuery,
    SortedRanges,
    joined,
    pieces_of,
    sorted_leaves,
    unsorted_leaves,
)
from stentor.index.mics.match import MANY, match_ranges

#: Ranges that wait in the tail at most.
TAIL: Final = 512
#: A run is merged with those that are up to so many times larger.
GROWTH: Final = 4
#: Pairs that fit at least; and how many times as many as a query gave before.
LEAST_CAPACITY, MORE = 1 << 10, 1.25
#: The stamps where nothing was removed.
ALL_HOLD: Final = read_only(np.zeros(0, np.int32))


class RangeMatches(NamedTuple):
    """Pairs of a query and an owner, and how many ranges were looked at."""

    question: Int64
    owner: Int64
    looked: int
    is_cut_short: bool  # there were too many: match fewer queries at a time


class Runs:
    """The ranges of numbered owners."""

    def __init__(self, rows: int) -> None:
        self.rows = rows  # bytes beside each range
        self._runs: list[SortedRanges] = []
        self._tail: OwnedRanges | None = None
        self._tail_leaves: list[SortedRanges] = []
        self._stamp = GrowingArray(np.int32)  # by owner
        self._count = GrowingArray(np.int32)  # by owner: how many ranges hold
        self._owners = 0  # one more than the last
        self._dead = 0
        self._found_each = 0.0  # pairs of a query: for the capacity

    @classmethod
    def over(cls, leaves: SortedRanges, rows: int) -> Self:
        """Read-only runs of *leaves*, of which nothing is copied."""
        runs = cls(rows)
        runs._runs = [all_read_only(leaves)]
        runs._owners = int(leaves.owner.max(initial=-1)) + 1
        return runs

    def add(self, owners: Int64, ranges: Ranges, byte: UInt8) -> None:
        """Add the *ranges* of each of *owners*, which have none that hold; its *byte* (× rows).

        Cost: amortised O(log) a range.
        """
        beyond = int(owners.max(initial=-1)) + 1 - len(self._stamp)
        if beyond > 0:
            for array in (self._stamp, self._count):
                array.extend(0, beyond)
            self._owners += beyond
        counts = np.diff(ranges.starts)
        self._count.writable[owners] = counts
        fresh = OwnedRanges(
            ranges.low,
            ranges.high,
            np.repeat(owners.astype(np.int32), counts),
            np.repeat(self._stamp.view[owners], counts),
            np.repeat(byte, counts, axis=0),
        )
        waiting = fresh if self._tail is None else joined([self._tail, fresh])
        if len(waiting.owner) > TAIL:
            self._merge_runs(waiting)
        else:
            self._tail, self._tail_leaves = waiting, [unsorted_leaves(waiting)]

    def remove(self, owners: Int64) -> None:
        """Remove the ranges of *owners*, each once. Cost: O(1) each.

        Those that have none, and those that never had one, are passed over.
        """
        owners = owners[owners < len(self._stamp)]
        self._stamp.writable[owners] += 1
        self._dead += int(self._count.view[owners].sum())
        self._count.writable[owners] = 0
        if self._dead > max(TAIL, self.count // 2):
            self.sort_all()

    def sort_all(self) -> None:
        """Merge everything into one run."""
        if self.leaves:
            waiting = joined([pieces_of(leaves, self.rows) for leaves in self.leaves])
            self._runs = []
            self._merge_runs(waiting)

    def meeting(self, query: RangeQuery, most: int) -> RangeMatches:
        """Pairs of a query and an owner that may meet; none where several give more than *most*.

        A pair may come several times.
        """
        questions = len(query.signature)
        capacity, found = 0, LEAST_CAPACITY + int(min(most, self._found_each * questions))
        stamp = self._stamp.view if self._dead else ALL_HOLD
        words = self._owners // 64 + 1
        mark = np.zeros(words if self._found_each > words / MANY else 0, np.uint64)
        while found > capacity:
            capacity, found = found, 0
            question, owner = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
            spread, looked = np.empty(self.rows, np.uint64), np.zeros(1, np.int64)
            for leaves in self.leaves:
                found = match_ranges(
                    leaves, stamp, query, self.rows, spread, mark, found, question, owner, looked
                )
            if found > most and questions > 1:
                return RangeMatches(question[:0], owner[:0], int(looked[0]), is_cut_short=True)
        self._found_each = max(self._found_each, MORE * found / max(1, questions))
        return RangeMatches(question[:found], owner[:found], int(looked[0]), is_cut_short=False)

    @property
    def leaves(self) -> list[SortedRanges]:
        """All runs, and the tail."""
        return self._runs + self._tail_leaves

    @property
    def count(self) -> int:
        """How many ranges hold."""
        return sum(leaves.size for leaves in self.leaves) - self._dead

    @property
    def nbytes(self) -> int:
        by_owner = sum(one.nbytes for one in (self._stamp, self._count))
        return by_owner + sum(array.nbytes for leaves in self.leaves for array in leaves)

    @property
    def only(self) -> SortedRanges:
        """The one run, after `sort_all`; of no range where there is none."""
        return self._runs[0] if self._runs else sorted_leaves(_no_pieces(self.rows))

    def owners(self) -> Int64:
        """The owners whose ranges hold, ascending."""
        return np.flatnonzero(self._count.view)

    def check(self, ranges: Ranges, byte: UInt8) -> None:
        """Assert that *ranges* and *byte* are those of all owners, and that runs are sorted."""
        none = _no_pieces(self.rows)
        all_pieces = joined([none, *(pieces_of(leaves, self.rows) for leaves in self.leaves)])
        live = self._live(all_pieces)
        assert len(all_pieces.owner) - len(live.owner) == self._dead
        live = live.at(np.lexsort((live.low, live.owner)))
        owners, counts = self.owners(), np.diff(ranges.starts)
        assert np.array_equal(self._count.view[owners], counts)
        assert np.array_equal(live.owner, np.repeat(owners, counts))
        assert np.array_equal(live.low, ranges.low)
        assert np.array_equal(live.high, ranges.high)
        assert np.array_equal(live.byte, np.repeat(byte, counts, axis=0))
        for leaves in self._runs:
            for kind, start, stop in zip(
                leaves.kind.tolist(), leaves.kind_start[:-1], leaves.kind_start[1:], strict=True
            ):
                low, length = leaves.low[start:stop], (leaves.high - leaves.low)[start:stop]
                assert (low[:-1] <= low[1:]).all()
                assert all(int(one).bit_length() == kind for one in length.tolist())

    def _merge_runs(self, waiting: OwnedRanges) -> None:
        """Merge *waiting*, and runs that are not much larger, into one run."""
        size = len(waiting.owner)
        taken = [waiting]
        while self._runs and self._runs[-1].size <= GROWTH * size:
            taken.append(pieces_of(self._runs.pop(), self.rows))
            size += len(taken[-1].owner)
        together = joined(taken)
        live = self._live(together)
        self._dead -= len(together.owner) - len(live.owner)
        self._runs.append(sorted_leaves(live))
        self._tail, self._tail_leaves = None, []

    def _live(self, pieces: OwnedRanges) -> OwnedRanges:
        if not len(self._stamp):
            return pieces
        return pieces.at(self._stamp.view[pieces.owner] == pieces.stamp)


def _no_pieces(rows: int) -> OwnedRanges:
    ends, number = np.zeros(0, np.uint64), np.zeros(0, np.int32)
    return OwnedRanges(ends, ends, number, number, np.zeros((0, rows), np.uint8))
