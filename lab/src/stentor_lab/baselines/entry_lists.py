"""Lists of entries by a 64-bit key: the posting lists of rivals.

An entry has what rules most of them out beside it, in 32 bytes: the signature of what is needed and
a box, rounded outwards. Entries of a list are contiguous; a full list moves to twice the room.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Float64, Int64, UInt64

Float32 = npt.NDArray[np.float32]

NOT_THERE: Final = -1
#: Entries that a new list has room for.
FIRST_ROOM: Final = 2
_LISTS, _ENTRIES = 0, 1  # of `counts`
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(32)
_EMPTY: Final = np.uint64(0)


class ListArrays(NamedTuple):
    """The memory of lists, for kernels."""

    key: UInt64  # (slots,) a power of two of them; 0: empty
    number: Int64  # (slots,) of the list
    start: Int64  # (lists,)
    used: Int64  # (lists,)
    size: Int64  # (lists,)
    item: Int64  # (entries,)
    sign: UInt64  # (entries,)
    box: Float32  # (4 × entries,) west, south, east, north
    counts: Int64  # (2,) lists, entries


class Entries(NamedTuple):
    """Entries to be added or removed."""

    key: UInt64  # (entries,) none is 0
    item: Int64  # (entries,)
    sign: UInt64  # (entries,)
    box: Float32  # (4 × entries,)


class EntryLists:
    """Lists that grow; *bare* ones have items alone."""

    def __init__(self, *, bare: bool = False) -> None:
        entries = 0 if bare else 64
        self.arrays = ListArrays(
            key=np.zeros(64, np.uint64),
            number=np.zeros(64, np.int64),
            start=np.zeros(16, np.int64),
            used=np.zeros(16, np.int64),
            size=np.zeros(16, np.int64),
            item=np.zeros(64, np.int64),
            sign=np.zeros(entries, np.uint64),
            box=np.zeros(4 * entries, np.float32),
            counts=np.zeros(2, np.int64),
        )

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    @property
    def entry_count(self) -> int:
        """Entries in all lists."""
        return int(self.arrays.used[: self.arrays.counts[_LISTS]].sum())

    def add(self, entries: Entries) -> None:
        """Add *entries*. Cost: constant each, on average."""
        done, count = 0, len(entries.key)
        while done < count:
            done = add_entries(self.arrays, entries, done)
            if done < count:
                self._grow()

    def remove(self, entries: Entries) -> None:
        """Remove those of *entries* that are there. Cost: the length of a list each."""
        remove_entries(self.arrays, entries.key, entries.item)

    def _grow(self) -> None:
        """Double what is nearly full."""
        old = self.arrays
        lists, entries = (int(count) for count in old.counts)
        if 2 * lists >= len(old.key):
            slots = 2 * len(old.key)
            key, number = np.zeros(slots, np.uint64), np.zeros(slots, np.int64)
            rehash(old.key, old.number, key, number)
            old = old._replace(key=key, number=number)
        if lists + 1 >= len(old.start):
            wide = {name: np.resize(getattr(old, name), 2 * len(old.start)) for name in _OF_LISTS}
            old = old._replace(**wide)
        most = int(old.size[:lists].max(initial=FIRST_ROOM))
        if entries + 2 * most + FIRST_ROOM > len(old.item):
            room = 2 * len(old.item) + 2 * most
            old = old._replace(item=np.resize(old.item, room))
            if len(old.box):
                sign, box = np.resize(old.sign, room), np.resize(old.box, 4 * room)
                old = old._replace(sign=sign, box=box)
        self.arrays = old


_OF_LISTS: Final = ("start", "used", "size")


@kernel_inline
def mixed(first: np.uint64, second: np.uint64) -> np.uint64:
    """One key of two; never 0."""
    spread = (first ^ (second * _GOLDEN)) * _GOLDEN
    return (spread ^ (spread >> _HALF)) | np.uint64(1)


@kernel_inline
def slot_of(arrays: ListArrays, key: np.uint64) -> int:
    """Where *key* is, or would be."""
    last = len(arrays.key) - 1
    slot = np.int64((key * _GOLDEN) >> _HALF) & last
    while arrays.key[slot] != _EMPTY and arrays.key[slot] != key:
        slot = (slot + 1) & last
    return int(slot)


@kernel_inline
def find_list(arrays: ListArrays, key: np.uint64) -> int:
    """The list of *key*, or NOT_THERE."""
    slot = slot_of(arrays, key)
    return arrays.number[slot] if arrays.key[slot] == key else NOT_THERE


@kernel
def rehash(old_key: UInt64, old_number: Int64, key: UInt64, number: Int64) -> None:
    """Put all keys into a larger table."""
    last = len(key) - 1
    for position in range(len(old_key)):
        if old_key[position] != _EMPTY:
            slot = np.int64((old_key[position] * _GOLDEN) >> _HALF) & last
            while key[slot] != _EMPTY:
                slot = (slot + 1) & last
            key[slot], number[slot] = old_key[position], old_number[position]


@kernel
def add_entries(arrays: ListArrays, entries: Entries, done: int) -> int:
    """Add entries from *done* on; how many are done when memory is full."""
    for position in range(done, len(entries.key)):
        counts = arrays.counts
        key = entries.key[position]
        slot = slot_of(arrays, key)
        if arrays.key[slot] != key:
            full = 2 * (counts[_LISTS] + 1) > len(arrays.key) or (
                counts[_LISTS] + 1 >= len(arrays.start)
            )
            if full or counts[_ENTRIES] + FIRST_ROOM > len(arrays.item):
                return position
            one = counts[_LISTS]
            arrays.key[slot], arrays.number[slot] = key, one
            arrays.start[one], arrays.used[one] = counts[_ENTRIES], 0
            arrays.size[one] = FIRST_ROOM
            counts[_LISTS] += 1
            counts[_ENTRIES] += FIRST_ROOM
        one = arrays.number[slot]
        used, start = arrays.used[one], arrays.start[one]
        if used == arrays.size[one]:
            if counts[_ENTRIES] + 2 * used > len(arrays.item):
                return position
            fresh = counts[_ENTRIES]
            for offset in range(used):
                arrays.item[fresh + offset] = arrays.item[start + offset]
            if len(arrays.box) > 0:
                for offset in range(used):
                    arrays.sign[fresh + offset] = arrays.sign[start + offset]
                for offset in range(4 * used):
                    arrays.box[4 * fresh + offset] = arrays.box[4 * start + offset]
            counts[_ENTRIES] += 2 * used
            arrays.size[one], arrays.start[one], start = 2 * used, fresh, fresh
        at = start + used
        arrays.item[at] = entries.item[position]
        if len(arrays.box) > 0:
            arrays.sign[at] = entries.sign[position]
            for side in range(4):
                arrays.box[4 * at + side] = entries.box[4 * position + side]
        arrays.used[one] += 1
    return len(entries.key)


@kernel
def remove_entries(arrays: ListArrays, key: UInt64, item: Int64) -> None:
    """Remove the entry of each item from the list of its key; the last one takes its slot."""
    for position in range(len(key)):
        one = find_list(arrays, key[position])
        if one == NOT_THERE:
            continue
        start, used = arrays.start[one], arrays.used[one]
        for at in range(start, start + used):
            if arrays.item[at] == item[position]:
                last = start + used - 1
                arrays.item[at] = arrays.item[last]
                if len(arrays.box) > 0:
                    arrays.sign[at] = arrays.sign[last]
                    for side in range(4):
                        arrays.box[4 * at + side] = arrays.box[4 * last + side]
                arrays.used[one] -= 1
                break


@kernel_inline
def is_ruled_out(arrays: ListArrays, at: int, lacking: np.uint64, x: float, y: float) -> bool:
    """Whether the entry *at* needs a bit that is *lacking*, or its box does not hold (x, y)."""
    box = 4 * at
    return bool(
        arrays.sign[at] & lacking != np.uint64(0)
        or x < arrays.box[box]
        or y < arrays.box[box + 1]
        or x > arrays.box[box + 2]
        or y > arrays.box[box + 3]
    )


def outwards(low: Float64, high: Float64) -> tuple[Float32, Float32]:
    """Bounds in single precision, none inside what it was."""
    with np.errstate(over="ignore"):
        least, most = low.astype(np.float32), high.astype(np.float32)
    least = np.where(least > low, np.nextafter(least, np.float32(-np.inf)), least)
    most = np.where(most < high, np.nextafter(most, np.float32(np.inf)), most)
    return least.astype(np.float32), most.astype(np.float32)
