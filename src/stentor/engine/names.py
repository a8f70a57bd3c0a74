"""Ids and texts by row, and rows by id: a memory-mapped part, then what came since."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import Int64, UInt8, UInt64
from stentor.encoding.hashing import BASIS, hash_bytes, hash_slices

#: No row has this id.
NO_ROW = -1


class StringArrays(NamedTuple):
    """Strings as Arrow lays them out."""

    start: Int64  # (strings + 1,)
    data: UInt8  # (bytes,)


class Strings:
    """A growing column of strings of which the first part may be memory-mapped."""

    def __init__(self, base: StringArrays | None = None) -> None:
        self._base = base or StringArrays(np.zeros(1, np.int64), np.zeros(0, np.uint8))
        self._based = len(self._base.start) - 1
        self._added: list[str] = []
        self._chunks: list[Any] = []  # what was added, as far as it was converted
        self._converted = 0

    def __len__(self) -> int:
        return self._based + len(self._added)

    def __getitem__(self, row: int) -> str:
        if row >= self._based:
            return self._added[row - self._based]
        start, stop = self._base.start[row], self._base.start[row + 1]
        return self._base.data[start:stop].tobytes().decode()

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
        taken = self.take(rows)
        if isinstance(taken, pa.ChunkedArray):
            taken = pa.concat_arrays(taken.chunks) if taken.num_chunks else pa.array([], taken.type)
        _, offsets, data = taken.buffers()
        start = np.frombuffer(offsets, np.int64)[: len(taken) + 1] if len(taken) else np.zeros(1)
        used = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        return StringArrays(start.astype(np.int64), used[: int(start[-1])])

    def _arrow(self) -> Any:
        if len(self._added) > self._converted:
            fresh = pa.array(self._added[self._converted :], pa.large_string())
            while self._chunks and len(self._chunks[-1]) <= len(fresh):  # few chunks, ever larger
                fresh = pa.concat_arrays([self._chunks.pop(), fresh])
            self._chunks.append(fresh)
            self._converted = len(self._added)
        base = pa.LargeStringArray.from_buffers(
            self._based, pa.py_buffer(self._base.start), pa.py_buffer(self._base.data)
        )
        return pa.chunked_array([base, *self._chunks])


class IdOrder(NamedTuple):
    """The rows of saved ids in the order of their hashes: a look-up without a dictionary."""

    hash: UInt64  # (ids,) ascending
    row: Int64  # (ids,)

    @classmethod
    def of(cls, ids: StringArrays) -> IdOrder:
        """The order of *ids*."""
        hashes = np.empty(len(ids.start) - 1, np.uint64)
        hash_slices(ids.data, ids.start, np.uint64(BASIS), hashes)
        order = np.argsort(hashes, kind="stable").astype(np.int64)
        return cls(hashes[order], order)


class Register:
    """Ids by row and the current row of each id."""

    def __init__(self, base: StringArrays | None = None, order: IdOrder | None = None) -> None:
        self.ids = Strings(base)
        self._order = order or IdOrder(np.zeros(0, np.uint64), np.zeros(0, np.int64))
        self._rows: dict[str, int] = {}  # what changed since the base; NO_ROW where removed
        self._count = len(self.ids)

    def __len__(self) -> int:
        return self._count

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

    def forget(self, id: str, row: int) -> None:
        """Let *id* have no row any more, if *row* is still its current one."""
        if self.row(id) == row:
            self._rows[id] = NO_ROW
            self._count -= 1

    def _based_row(self, id: str) -> int:
        if not len(self._order.hash):
            return NO_ROW
        wanted = np.uint64(hash_bytes(id.encode()))
        place = int(np.searchsorted(self._order.hash, wanted))
        while place < len(self._order.hash) and self._order.hash[place] == wanted:
            row = int(self._order.row[place])
            if self.ids[row] == id:
                return row
            place += 1
        return NO_ROW
