"""Ranges by owner, found by number: the first phase of subscription indexing (section 5).

The paper's leaves are merged ranges with a list of owners each; where subscriptions are many, one
leaf soon owns them all. Here each range is by itself, among those of about its own length:

    key   class │ low        class: the bits of its length, so that all of a class that can hold a
          ──────┼─────       number begin within 2^class before it, and half of those do hold it

A query looks into each class that has ranges, once.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import Int64, UInt64, all_read_only
from stentor.encoding.hilbert.ranges import Ranges
from stentor.index.arena import GrowingArray
from stentor.index.mics.range_table.layout import (
    NONE,
    RANGES,
    RangeBlocks,
    after,
    capacity_of,
    first_from,
    grow,
    insert,
    new_ordered,
    remove,
    slot_of,
)

#: A number has this many bits at most: the others are the class.
MOST_KEY_BITS: Final = 58
CLASSES: Final = MOST_KEY_BITS + 1
#: Pairs that fit at first.
FIRST_CAPACITY: Final = 1 << 14
_SHIFT: Final = np.uint64(MOST_KEY_BITS)
_ONE: Final = np.uint64(1)


class Postings:
    """The ranges of numbered owners."""

    def __init__(self) -> None:
        self.pieces = new_ordered()
        self.classes = np.zeros(CLASSES, np.int64)  # how many ranges each has
        self._keys = GrowingArray(np.uint64)
        self._first = GrowingArray(np.int64)
        self._count = GrowingArray(np.int64)
        self.gone = 0

    def add(self, owners: Int64, ranges: Ranges) -> None:
        """Add the *ranges* of each of *owners*, which have none here. Cost: O(log) each."""
        counts = np.diff(ranges.starts)
        first, added = len(self._keys), len(ranges.low)
        beyond = int(owners.max(initial=-1)) + 1 - len(self._first)
        if beyond > 0:
            self._first.extend(0, beyond)
            self._count.extend(0, beyond)
        self._first.writable[owners] = first + ranges.starts[:-1]
        self._count.writable[owners] = counts
        of = np.repeat(owners, counts)
        self._keys.extend(0, added)
        keys, done = self._keys.writable[first:], 0
        while done < added:
            self.pieces = grow(self.pieces, 2 + added // 16)
            done = _insert(self.pieces, ranges.low, ranges.high, of, keys, self.classes, done)

    def remove(self, owners: Int64) -> None:
        """Remove the ranges of *owners*; those that have none are passed over."""
        first, count = self._first.view[owners], self._count.view[owners]
        before = np.cumsum(count) - count
        positions = np.repeat(first - before, count) + np.arange(int(count.sum()))
        _remove(self.pieces, self._keys.view[positions], np.repeat(owners, count), self.classes)
        self._count.writable[owners] = 0
        self.gone += len(positions)

    def owners_of(self, query: Ranges) -> tuple[Int64, Int64]:
        """Pairs of a query and an owner that share a number; a pair may come several times."""
        return owners_in(all_read_only(self.pieces), self.classes, query)

    @property
    def is_wasteful(self) -> bool:
        """Whether most of what is kept belongs to nobody any more."""
        return self.gone > max(1024, len(self._keys) // 2)

    @property
    def count(self) -> int:
        """How many ranges there are."""
        return int(self.pieces.used[RANGES])

    @property
    def nbytes(self) -> int:
        kept = self._keys.nbytes + self._first.nbytes + self._count.nbytes
        return kept + sum(array.nbytes for array in self.pieces)


def owners_in(pieces: RangeBlocks, classes: Int64, query: Ranges) -> tuple[Int64, Int64]:
    """Pairs of a query and an owner, of read-only *pieces*."""
    present = np.flatnonzero(classes).astype(np.uint64)
    capacity, found = 0, FIRST_CAPACITY
    while found > capacity:
        capacity = found
        question, owner = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        found = _match(pieces, present, *all_read_only(query), question, owner)
    return question[:found], owner[:found]


@kernel
def _insert(
    pieces: RangeBlocks,
    low: UInt64,
    high: UInt64,
    owners: Int64,
    keys: UInt64,
    classes: Int64,
    first: int,
) -> int:
    """Add ranges from *first* on, and write their *keys*; where it stopped, if blocks ran out."""
    for position in range(first, len(low)):
        if capacity_of(pieces) < 2:
            return position
        length, kind = high[position] - low[position], 0
        while length:
            length >>= _ONE
            kind += 1
        base = np.uint64(kind) << _SHIFT
        keys[position] = base | low[position]
        insert(pieces, base | low[position], base | high[position], owners[position])
        classes[kind] += 1
    return len(low)


@kernel
def _remove(pieces: RangeBlocks, keys: UInt64, owners: Int64, classes: Int64) -> None:
    """Remove the ranges with *keys* of *owners*."""
    for piece in range(len(keys)):
        position = first_from(pieces, keys[piece])
        while pieces.entry[slot_of(pieces, position)] != owners[piece]:
            position = after(pieces, position)
        remove(pieces, position)
        classes[keys[piece] >> _SHIFT] -= 1


@kernel
def _match(
    pieces: RangeBlocks,
    present: UInt64,
    starts: Int64,
    low: UInt64,
    high: UInt64,
    question: Int64,
    owner: Int64,
) -> int:
    """Write the pairs that fit; how many there are."""
    found = 0
    for one in range(len(starts) - 1):
        for query in range(starts[one], starts[one + 1]):
            for kind in present:
                base, reach = kind << _SHIFT, (_ONE << kind) - _ONE
                begin = low[query] - reach if low[query] > reach else np.uint64(0)
                position = first_from(pieces, base | begin)
                while position != NONE:
                    slot = slot_of(pieces, position)
                    if pieces.low[slot] > (base | high[query]):
                        break
                    if pieces.high[slot] >= (base | low[query]):
                        if found < len(owner):
                            question[found], owner[found] = one, pieces.entry[slot]
                        found += 1
                    position = after(pieces, position)
    return found
