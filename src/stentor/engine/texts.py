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
        self._parts: list[StringStore | ShapedTexts] = [StringStore(base)]
        self._starts = [0]
        self._count = len(self._parts[0])

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> str:
        part = bisect_right(self._starts, row) - 1
        return self._parts[part][row - self._starts[part]]

    @property
    def nbytes(self) -> int:
        """Bytes in memory, or in mapped files."""
        return sum(part.nbytes for part in self._parts)

    def extend(self, texts: Iterable[str] | ShapedTexts) -> None:
        """Append *texts*."""
        last = self._parts[-1]
        if isinstance(texts, ShapedTexts):
            self._append(texts)
        elif isinstance(last, StringStore):
            last.extend(texts)
            self._count = self._starts[-1] + len(last)
        else:
            added = StringStore()
            added.extend(texts)
            self._append(added)

    def take(self, rows: Int64) -> Any:
        """The texts of *rows* as an Arrow array. Cost: O(rows); those of shapes are written out."""
        first = self._parts[0]
        if len(self._parts) == 1 and isinstance(first, StringStore):
            return first.take(rows)
        part_of = np.searchsorted(np.array(self._starts), rows, side="right") - 1
        taken = np.empty(len(rows), object)
        for number in np.unique(part_of).tolist():
            chosen, part = part_of == number, self._parts[number]
            local = rows[chosen] - self._starts[number]
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
        bounds = np.searchsorted(rows, [*self._starts, self._count]).tolist()
        for number, part in enumerate(self._parts):
            local = rows[bounds[number] : bounds[number + 1]] - self._starts[number]
            if len(local):
                fresh.extend(
                    part.kept(local)
                    if isinstance(part, ShapedTexts)
                    else part.take(local).to_pylist()
                )
        return fresh

    def _append(self, part: StringStore | ShapedTexts) -> None:
        """Let *part* follow; an empty first one is replaced."""
        if not self._count:
            self._parts, self._starts = [], []
        self._starts.append(self._count)
        self._parts.append(part)
        self._count += len(part)
