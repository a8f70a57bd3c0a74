"""What one column of a table holds, as arrays: values, which of them are there, which are bad."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from stentor.encoding.columns import Float64
from stentor.encoding.event_batches import StringColumn
from stentor.model import Kind

Booleans = npt.NDArray[np.bool_]


class Problem(NamedTuple):
    """Rows that cannot be used, and why."""

    bad: Booleans  # (rows,)
    reason: str


#: A problem and the field that it is in.
FieldProblem = tuple[str, Problem]


class Cells(NamedTuple):
    """The cells of a column; either `low` and `high` or `strings` hold the values.

    Where the cells are neither points nor ranges, `high` is the very array `low`. A bad row's cell
    may hold anything.
    """

    kind: Kind | None  # None: no cell is there
    valid: Booleans  # (rows,) whether the cell is there
    low: Float64  # (rows,) or (0,)
    high: Float64  # (rows,) or (0,)
    strings: StringColumn | None = None
    problems: Sequence[Problem] = ()


def missing(rows: int) -> Cells:
    """A column in which no cell is there."""
    nothing = np.zeros(rows)
    return Cells(None, np.zeros(rows, np.bool_), nothing, nothing)


def problems(*found: tuple[Booleans, str]) -> list[Problem]:
    """Those of *found* that concern any row."""
    return [Problem(bad, reason) for bad, reason in found if bad.any()]


def reasons_by_row(found: Iterable[FieldProblem]) -> dict[int, str]:
    """Each bad row, and the first reason for which it is bad."""
    reasons: dict[int, str] = {}
    for field, problem in found:
        for row in np.flatnonzero(problem.bad).tolist():
            reasons.setdefault(row, f"{field}: {problem.reason}")
    return reasons


def within(rows: Booleans, found: Sequence[Problem]) -> list[Problem]:
    """The problems *found*, as far as they are in *rows*."""
    return problems(*((bad & rows, reason) for bad, reason in found))


def validity(array: Any) -> Booleans:
    """Which cells of the Arrow *array* are not null."""
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def fixed_width(array: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The values of the Arrow *array*, not copied; under a null stands anything."""
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * np.dtype(dtype).itemsize)


def unwrapped(array: Any) -> Any:
    """*array* as the plain values that an extension type, a dictionary or runs stand for."""
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        else:
            return array
