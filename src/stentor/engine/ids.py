"""Ids and texts by row, and rows by id: a memory-mapped part, then what came since."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from stentor.encoding.check import are_offsets, is_plain
from stentor.encoding.columns import Int64, UInt8, UInt64, read_only
from stentor.encoding.hashing import BASIS, hash_bytes, hash_slices

#: No row has this id.
NO_ROW = -1


class StringArrays(NamedTuple):
    """Strings as Arrow lays them out."""

    start: Int64  # (strings + 1,)
    data: UInt8  # (bytes,)

    @classmethod
    def of(cls, strings: Any) -> StringArrays:
        """Those of a list, or of an Arrow array without nulls; copied only if they must be."""
        if isinstance(strings, list):
            strings = pa.array(strings, pa.large_string())
        strings = strings.cast(pa.large_string())
        if isinstance(strings, pa.ChunkedArray):
            chunks = strings.chunks or [pa.array([], pa.large_string())]
            strings = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
        if not len(strings):
            return cls(np.zeros(1, np.int64), np.zeros(0, np.uint8))
        _, offsets, data = strings.buffers()
        first = strings.offset
        start = np.frombuffer(offsets, np.int64)[first : first + len(strings) + 1]
        used = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        return cls(start - start[0], used[start[0] : start[-1]])

    @property
    def arrow(self) -> Any:
        """The same as an Arrow array, not copied."""
        count = len(self.start) - 1
        buffers = pa.py_buffer(self.start), pa.py_buffer(self.data)
        return pa.LargeStringArray.from_buffers(count, *buffers)

    def fault(self, count: int) -> str | None:
        """What is wrong with these as *count* strings; None where nothing is."""
        if not (is_plain(self.start, np.int64) and is_plain(self.data, np.uint8)):
            return "strings are no plain arrays"
        if not are_offsets(self.start, count, len(self.data)):
            return "the offsets of strings"
        try:
            self.arrow.validate(full=True)
        except pa.ArrowInvalid as error:
            return str(error)
        return None

    def hashes(self) -> UInt64:
        """The stable hash of each string."""
        found = np.empty(len(self.start) - 1, np.uint64)
        hash_slices(read_only(self.data), read_only(self.start), np.uint64(BASIS), found)
        return found


class StringStore:
    """A growing column of strings of which the first part may be memory-mapped.

    Invariant: what a row holds never changes, so that threads may read rows while one adds others.
    """

    def __init__(self, base: StringArrays | None = None) -> None:
        self._base = base or StringArrays(np.zeros(1, np.int64), np.zeros(0, np.uint8))
        self._based = len(self._base.start) - 1
        self._added: list[str] = []
        # What was added, as far as it was converted, and how much that is. It is replaced as a
        # whole: threads read and convert while another adds.
        self._converted: tuple[tuple[Any, ...], int] = (), 0

    def __len__(self) -> int:
        return self._based + len(self._added)

    def __getitem__(self, row: int) -> str:
        if row >= self._based:
            return self._added[row - self._based]
        start, stop = self._base.start[row], self._base.start[row + 1]
        return self._base.data[start:stop].tobytes().decode()

    def of(self, rows: list[int]) -> list[str]:
        """The strings of *rows*: for a few."""
        if not self._based:
            added = self._added
            return [added[row] for row in rows]
        return [self[row] for row in rows]

    def __iter__(self) -> Iterator[str]:
        return iter(self.take(np.arange(len(self))).to_pylist())

    @property
    def added_count(self) -> int:
        """How many strings are held as Python's; the others are bytes."""
        return len(self._added)

    @property
    def nbytes(self) -> int:
        """Bytes in memory, or in mapped files; about, of what was added."""
        chunks, _ = self._converted
        added = sum(map(sys.getsizeof, self._added)) + sys.getsizeof(self._added)
        return sum(int(array.nbytes) for array in (*self._base, *chunks)) + added

    def extend(self, strings: Iterable[str]) -> None:
        """Append *strings*."""
        self._added.extend(strings)

    def take(self, rows: Int64) -> Any:
        """The strings of *rows* as an Arrow array.

        Cost: O(rows), and O(log n) for each string that was added, once.
        """
        return self._arrow().take(pa.array(rows)).combine_chunks()

    def arrays(self, rows: Int64) -> StringArrays:
        """The strings of *rows*, to be saved."""
        return StringArrays.of(self.take(rows))

    def _arrow(self) -> Any:
        chunks, count = self._converted
        if len(self._added) > count:
            added = self._added[count:]
            count += len(added)
            fresh = pa.array(added, pa.large_string())
            while chunks and len(chunks[-1]) <= len(fresh):  # few chunks, ever larger
                fresh = pa.concat_arrays([chunks[-1], fresh])
                chunks = chunks[:-1]
            chunks = (*chunks, fresh)
            self._converted = chunks, count
        return pa.chunked_array([self._base.arrow, *chunks])


class HashOrder(NamedTuple):
    """The rows of saved ids in the order of their hashes: a look-up without a dictionary."""

    hash: UInt64  # (ids,) ascending
    row: Int64  # (ids,)

    @classmethod
    def of(cls, ids: StringArrays) -> HashOrder:
        """The order of *ids*."""
        hashes = ids.hashes()
        order = np.argsort(hashes, kind="stable").astype(np.int64)
        return cls(hashes[order], order)

    def fault(self, count: int) -> str | None:
        """What is wrong with this as the order of *count* ids; None where nothing is."""
        if not (is_plain(self.hash, np.uint64) and is_plain(self.row, np.int64)):
            return "the order of ids is no plain array"
        is_whole = len(self.hash) == len(self.row) == count
        if not is_whole or not ((self.row >= 0) & (self.row < count)).all():
            return "the order of ids"
        return None

    def rows(self, id: str, ids: StringStore) -> list[int]:
        """The rows of *id* among *ids*, whose order this is, ascending."""
        wanted = np.uint64(hash_bytes(id.encode()))
        start, stop = (np.searchsorted(self.hash, wanted, side) for side in ("left", "right"))
        return [row for row in self.row[start:stop].tolist() if ids[row] == id]


#: In a slot of `RowsById`: nothing, the row, and whether the id has that row no more.
_EMPTY, _ROW, _GONE = -1, 0x7FFF_FFFF, 0x8000_0000
#: Slots of an empty table; how many of three are taken before there are twice as many.
_FIRST_SLOTS, _TAKEN = 16, 2


class RowsById:
    """The last row of each id that was added to *ids*, by open addressing.

    A slot holds half of an id's hash above its row: 8 bytes, where a dictionary of Python's takes
    60. A look-up takes half a microsecond.

    Invariant: the slots from an id's own to its entry are taken.
    """

    def __init__(self, ids: StringStore) -> None:
        self._ids = ids
        self._slots = array("q", [_EMPTY]) * _FIRST_SLOTS
        self._used = 0

    def __len__(self) -> int:
        return self._used

    @property
    def nbytes(self) -> int:
        return len(self._slots) * self._slots.itemsize

    def get(self, id: str) -> int | None:
        """The last row of *id*; NO_ROW where it has that no more, None where it never had one."""
        if not self._used:
            return None
        slots = self._slots
        held = slots[self._slot(slots, id)]
        return None if held == _EMPTY else NO_ROW if held & _GONE else held & _ROW

    def put(self, id: str, row: int, *, is_gone: bool = False) -> None:
        """Let *row*, which *ids* hold already, be the last of *id*."""
        self._reserve(1)
        slots = self._slots
        slot = self._slot(slots, id)
        self._used += slots[slot] == _EMPTY
        slots[slot] = hash(id) >> 32 << 32 | row | (_GONE if is_gone else 0)

    def knows_any(self, ids: list[str]) -> bool:
        """Whether one of *ids* has, or had, a row."""
        if not self._used:
            return False
        slots, left = np.frombuffer(self._slots, np.int64), np.arange(len(ids))
        hashed = _upper_hashes(ids)
        slot = hashed & (len(slots) - 1)
        while len(left):
            held = slots[slot]
            for one in np.flatnonzero((held >> 32 == hashed) & (held != _EMPTY)).tolist():
                if self._ids[held[one] & _ROW] == ids[left[one]]:
                    return True
            taken = held != _EMPTY
            slot = slot[taken] + 1 & len(slots) - 1
            left, hashed = left[taken], hashed[taken]
        return False

    def put_new(self, ids: list[str], first: int) -> None:
        """`put` for ids of which none is known, or comes twice: their rows begin with *first*."""
        self._reserve(len(ids))
        rows = np.arange(first, first + len(ids))
        _enter(np.frombuffer(self._slots, np.int64), _upper_hashes(ids) << 32 | rows)
        self._used += len(ids)

    def _slot(self, slots: array[int], id: str) -> int:
        """Where *id* is in *slots*, or would be."""
        hashed, mask, ids = hash(id) >> 32, len(slots) - 1, self._ids
        slot = hashed & mask
        while (held := slots[slot]) != _EMPTY:
            if held >> 32 == hashed and ids[held & _ROW] == id:
                break
            slot = slot + 1 & mask
        return slot

    def _reserve(self, more: int) -> None:
        size = len(self._slots)
        while (self._used + more) * 3 > size * _TAKEN:
            size *= 2
        if size > len(self._slots):
            slots, old = array("q", [_EMPTY]) * size, np.frombuffer(self._slots, np.int64)
            _enter(np.frombuffer(slots, np.int64), old[old != _EMPTY])
            self._slots = slots  # as a whole: threads look rows up meanwhile


def _upper_hashes(ids: list[str]) -> Int64:
    return np.fromiter(map(hash, ids), np.int64, len(ids)) >> 32


def _enter(slots: Int64, entries: Int64) -> None:
    """Write *entries*, of different ids, into *slots*, whose number is a power of two."""
    slot = (entries >> 32) & (len(slots) - 1)
    while len(entries):
        free = slots[slot] == _EMPTY
        slots[slot[free]] = entries[free]  # of several for one slot the last
        left = slots[slot] != entries
        slot, entries = slot[left] + 1 & len(slots) - 1, entries[left]


class IdTable:
    """Ids by row and the current row of each id."""

    def __init__(self, base: StringArrays | None = None, order: HashOrder | None = None) -> None:
        self.ids = StringStore(base)
        self._order = order or HashOrder(np.zeros(0, np.uint64), np.zeros(0, np.int64))
        self._rows = RowsById(self.ids)  # what changed since the base
        self._is_based = len(self._order.hash) > 0
        self._count = len(self.ids)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes in memory, or in mapped files: the ids, and how their rows are found."""
        return self.ids.nbytes + self._rows.nbytes + sum(one.nbytes for one in self._order)

    def row(self, id: str) -> int:
        """The current row of *id*, or NO_ROW."""
        known = self._rows.get(id)
        if known is not None:
            return known
        return self._based_row(id) if self._is_based else NO_ROW

    def add(self, ids: Iterable[str]) -> None:
        """Append a row for each of *ids*, which becomes the id's current row."""
        ids = list(ids)
        if len(ids) > 1 and self.are_new(ids):
            self.add_new(ids)
            return
        first = len(self.ids)
        self.ids.extend(ids)
        for row, id in enumerate(ids, start=first):
            if self.row(id) == NO_ROW:
                self._count += 1
            self._rows.put(id, row)

    def are_new(self, ids: list[str]) -> bool:
        """Whether no id of *ids* has had a row, nor is twice among them."""
        if len(set(ids)) < len(ids) or self._rows.knows_any(ids):
            return False
        based = self._order.hash
        if not self._is_based:
            return True
        hashes = StringArrays.of(ids).hashes()
        found = np.minimum(np.searchsorted(based, hashes), len(based) - 1)
        return not bool((based[found] == hashes).any())

    def add_new(self, ids: list[str]) -> None:
        """`add` for ids of which `are_new` is true."""
        first = len(self.ids)
        self.ids.extend(ids)
        self._rows.put_new(ids, first)
        self._count += len(ids)

    def sorted_ids(self, rows: Int64) -> list[str]:
        """The ids of *rows*, in their own order."""
        return sorted(self.ids.of(rows.tolist()))

    def kept(self, rows: Int64) -> IdTable:
        """A register of the ids of *rows* alone, in that order."""
        fresh = IdTable()
        fresh.add(self.ids.take(rows).to_pylist())
        return fresh

    def forget(self, id: str, row: int) -> None:
        """Let *id* have no row any more, if *row* is still its current one."""
        if self.row(id) == row:
            self._rows.put(id, row, is_gone=True)
            self._count -= 1

    def _based_row(self, id: str) -> int:
        rows = self._order.rows(id, self.ids)
        return rows[0] if rows else NO_ROW
