"""Ranges by owner, found by number: the first phase of subscription indexing (section 5).

The paper's leaves are merged ranges with a list of owners each; where subscriptions are many, one
leaf soon owns them all. Here each range stands by itself, among those of about its own length:

    key   class │ low        class: the bits of its length, so that all of a class that can hold a
          ──────┼─────       number begin within 2^class before it, and half of those do hold it

A question looks into each class that has ranges, once.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import Int64, UInt64
from stentor.encoding.hilbert import Ranges
from stentor.encoding.readonly import all_read_only
from stentor.index.growing import GrowingArray
from stentor.index.mics.ordered import (
    NOWHERE,
    RANGES,
    Ordered,
    after,
    first_from,
    new_ordered,
    put,
    room_of,
    slot_of,
    take_away,
    with_room,
)

#: A number has this many bits at most: the others say the class.
MOST_KEY_BITS: Final = 58
CLASSES: Final = MOST_KEY_BITS + 1
#: Pairs that there is room for at first.
ROOM: Final = 1 << 14
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
            self.pieces = with_room(self.pieces, 2 + added // 16)
            done = _file(self.pieces, ranges.low, ranges.high, of, keys, self.classes, done)

    def remove(self, owners: Int64) -> None:
        """Let the ranges of *owners* go; those that have none are passed over."""
        first, count = self._first.view[owners], self._count.view[owners]
        before = np.cumsum(count) - count
        places = np.repeat(first - before, count) + np.arange(int(count.sum()))
        _unfile(self.pieces, self._keys.view[places], np.repeat(owners, count), self.classes)
        self._count.writable[owners] = 0
        self.gone += len(places)

    def owners_of(self, asked: Ranges) -> tuple[Int64, Int64]:
        """Pairs of a question and an owner that share a number; a pair may come several times."""
        return owners_in(all_read_only(self.pieces), self.classes, asked)

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


def owners_in(pieces: Ordered, classes: Int64, asked: Ranges) -> tuple[Int64, Int64]:
    """Pairs of a question and an owner, of *pieces* that can only be read."""
    present = np.flatnonzero(classes).astype(np.uint64)
    room, found = 0, ROOM
    while found > room:
        room = found
        question, owner = np.empty(room, np.int64), np.empty(room, np.int64)
        found = _meet(pieces, present, *all_read_only(asked), question, owner)
    return question[:found], owner[:found]


@kernel
def _file(
    pieces: Ordered,
    low: UInt64,
    high: UInt64,
    owners: Int64,
    keys: UInt64,
    classes: Int64,
    first: int,
) -> int:
    """Add ranges from *first* on, and write their *keys*; where it stopped for want of room."""
    for place in range(first, len(low)):
        if room_of(pieces) < 2:
            return place
        length, kind = high[place] - low[place], 0
        while length:
            length >>= _ONE
            kind += 1
        base = np.uint64(kind) << _SHIFT
        keys[place] = base | low[place]
        put(pieces, base | low[place], base | high[place], owners[place])
        classes[kind] += 1
    return len(low)


@kernel
def _unfile(pieces: Ordered, keys: UInt64, owners: Int64, classes: Int64) -> None:
    """Take the ranges with *keys* away from *owners*."""
    for place in range(len(keys)):
        position = first_from(pieces, keys[place])
        while pieces.entry[slot_of(pieces, position)] != owners[place]:
            position = after(pieces, position)
        take_away(pieces, position)
        classes[keys[place] >> _SHIFT] -= 1


@kernel
def _meet(
    pieces: Ordered,
    present: UInt64,
    starts: Int64,
    low: UInt64,
    high: UInt64,
    question: Int64,
    owner: Int64,
) -> int:
    """Fill what there is room for of the pairs; how many there are."""
    found = 0
    for one in range(len(starts) - 1):
        for asked in range(starts[one], starts[one + 1]):
            for kind in present:
                base, reach = kind << _SHIFT, (_ONE << kind) - _ONE
                begin = low[asked] - reach if low[asked] > reach else np.uint64(0)
                position = first_from(pieces, base | begin)
                while position != NOWHERE:
                    slot = slot_of(pieces, position)
                    if pieces.low[slot] > (base | high[asked]):
                        break
                    if pieces.high[slot] >= (base | low[asked]):
                        if found < len(owner):
                            question[found], owner[found] = one, pieces.entry[slot]
                        found += 1
                    position = after(pieces, position)
    return found
