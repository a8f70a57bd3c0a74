"""Ids and texts by row, and rows by id: a memory-mapped part, then what came since."""

from __future__ import annotations

import sys
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


class IdTable:
    """Ids by row and the current row of each id."""

    def __init__(self, base: StringArrays | None = None, order: HashOrder | None = None) -> None:
        self.ids = StringStore(base)
        self._order = order or HashOrder(np.zeros(0, np.uint64), np.zeros(0, np.int64))
        self._rows: dict[str, int] = {}  # what changed since the base; NO_ROW where removed
        self._count = len(self.ids)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes in memory, or in mapped files: the ids, and how their rows are found."""
        numbers = len(self._rows) * sys.getsizeof(1 << 20)  # each row is an int of Python's
        order = sum(array.nbytes for array in self._order)
        return self.ids.nbytes + sys.getsizeof(self._rows) + numbers + order

    def row(self, id: str) -> int:
        """The current row of *id*, or NO_ROW."""
        known = self._rows.get(id)
        return self._based_row(id) if known is None else known

    def add(self, ids: Iterable[str]) -> None:
        """Append a row for each of *ids*, which becomes the id's current row."""
        ids = list(ids)
        first = len(self.ids)
        self.ids.extend(ids)
        for row, id in enumerate(ids, start=first):
            if self.row(id) == NO_ROW:
                self._count += 1
            self._rows[id] = row

    def are_new(self, ids: list[str]) -> bool:
        """Whether no id of *ids* has had a row, nor is twice among them."""
        if len(self._order.hash) or len(set(ids)) < len(ids):
            return False
        return self._rows.keys().isdisjoint(ids)

    def add_new(self, ids: list[str]) -> None:
        """`add` for ids of which `are_new` is true."""
        first = len(self.ids)
        self.ids.extend(ids)
        self._rows.update(zip(ids, range(first, first + len(ids)), strict=True))
        self._count += len(ids)

    def sorted_ids(self, rows: Int64) -> list[str]:
        """The ids of *rows*, in their own order."""
        return sorted(self.ids.of(rows.tolist()))

    def kept(self, rows: Int64) -> IdTable:
        """A register of the ids of *rows* alone, in that order."""
        fresh = IdTable()
        fresh.ids.extend(self.ids.take(rows).to_pylist())
        fresh._rows = {id: row for row, id in enumerate(fresh.ids._added)}
        fresh._count = len(fresh._rows)
        return fresh

    def forget(self, id: str, row: int) -> None:
        """Let *id* have no row any more, if *row* is still its current one."""
        if self.row(id) == row:
            self._rows[id] = NO_ROW
            self._count -= 1

    def _based_row(self, id: str) -> int:
        rows = self._order.rows(id, self.ids) if len(self._order.hash) else []
        return rows[0] if rows else NO_ROW
