"""Expressions by row: as text, or as one shape and a table of constants, written out when read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import Int64
from stentor.encoding.parameters import ParameterEncoder, plain_constants
from stentor.engine.ids import StringArrays, StringStore

#: So many texts that were added are packed together.
MANY_ADDED = 1 << 15


class ShapedTexts:
    """One expression with `:name` markers, and for each row their values."""

    def __init__(self, shape: ParameterEncoder, values: Mapping[str, Any], rows: Int64) -> None:
        """*rows* are those of *values*, Arrow arrays by name, that could be used."""
        self._shape = shape
        chosen = pa.array(rows)
        # Copies: an array of the user's may be over memory that is written to later.
        self._values = {name: plain_constants(values[name]).take(chosen) for name in shape.names}
        self._count = len(rows)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> str:
        return self.of(np.array([row], np.int64))[0]

    def of(self, rows: Int64) -> list[str]:
        """The texts of *rows*, written out."""
        return self._shape.texts(self._values, rows)

    def kept(self, rows: Int64) -> ShapedTexts:
        """Those of *rows* alone."""
        return ShapedTexts(self._shape, self._values, rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the constants."""
        return sum(array.nbytes for array in self._values.values())


class ExpressionTexts:
    """A growing column of expressions.

    Invariant: what a row holds never changes.
    """

    def __init__(self, base: StringArrays | None = None) -> None:
        first = StringStore(base)
        # The row of each part's first text, and the part; replaced as a whole.
        self._parts: list[tuple[int, StringStore | ShapedTexts]] = [(0, first)]
        self._count = len(first)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> str:
        start, part = self._parts[bisect_right(self._parts, row, key=_start) - 1]
        return part[row - start]

    @property
    def nbytes(self) -> int:
        """Bytes in memory, or in mapped files."""
        return sum(part.nbytes for _, part in self._parts)

    def extend(self, texts: Iterable[str] | ShapedTexts) -> None:
        """Append *texts*."""
        start, last = self._parts[-1]
        if isinstance(texts, ShapedTexts):
            self._append(texts)
        elif isinstance(last, StringStore) and len(last) == last.added_count:
            last.extend(texts)
            self._count = start + len(last)
        else:
            added = StringStore()
            added.extend(texts)
            self._append(added)
        self._pack()

    def _pack(self) -> None:
        """Where many texts are strings of Python's, let them be bytes: a third of the memory.

        Parts of like size are joined, so that there are few: each text is copied O(log n) times.
        """
        start, last = self._parts[-1]
        if not isinstance(last, StringStore) or last.added_count < MANY_ADDED:
            return
        parts, joined = self._parts[:-1], [last]
        while (
            parts
            and isinstance(parts[-1][1], StringStore)
            and len(parts[-1][1]) <= sum(map(len, joined))
        ):
            start, before = parts.pop()
            assert isinstance(before, StringStore)
            joined.insert(0, before)
        arrow = pa.concat_arrays([one.take(np.arange(len(one))) for one in joined])
        packed = StringStore(StringArrays.of(arrow))
        self._parts = [*parts, (start, packed), (self._count, StringStore())]

    def take(self, rows: Int64) -> Any:
        """The texts of *rows* as an Arrow array. Cost: O(rows); those of shapes are written out."""
        _, first = self._parts[0]
        if len(self._parts) == 1 and isinstance(first, StringStore):
            return first.take(rows)
        starts = np.array([start for start, _ in self._parts])
        part_of = np.searchsorted(starts, rows, side="right") - 1
        taken = np.empty(len(rows), object)
        for number in np.unique(part_of).tolist():
            chosen, (start, part) = part_of == number, self._parts[number]
            local = rows[chosen] - start
            taken[chosen] = (
                part.of(local) if isinstance(part, ShapedTexts) else part.take(local).to_pylist()
            )
        return pa.array(taken, pa.large_string())

    def arrays(self, rows: Int64) -> StringArrays:
        """The texts of *rows*, to be saved."""
        return StringArrays.of(self.take(rows))

    def kept(self, rows: Int64) -> ExpressionTexts:
        """The texts of *rows*, which ascend, alone; those of shapes are not written out."""
        fresh = ExpressionTexts()
        starts = [start for start, _ in self._parts]
        bounds = np.searchsorted(rows, [*starts, self._count]).tolist()
        for number, (start, part) in enumerate(self._parts):
            local = rows[bounds[number] : bounds[number + 1]] - start
            if len(local):
                fresh.extend(
                    part.kept(local)
                    if isinstance(part, ShapedTexts)
                    else part.take(local).to_pylist()
                )
        return fresh

    def _append(self, part: StringStore | ShapedTexts) -> None:
        """Let *part* follow; an empty first one is replaced."""
        kept = [(start, one) for start, one in self._parts if len(one)]
        self._parts = [*kept, (self._count, part)]
        self._count += len(part)


def _start(part: tuple[int, StringStore | ShapedTexts]) -> int:
    return part[0]
