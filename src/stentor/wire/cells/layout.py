"""What one column of a table holds, as arrays: values, which are there, which are in doubt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from stentor.encoding.columns import Float64
from stentor.encoding.events import StringColumn
from stentor.model import Kind, OneOf

Booleans = npt.NDArray[np.bool_]


class Cells(NamedTuple):
    """The cells of a column; either `low` and `high` or `strings` hold the values.

    Where the cells are neither points nor ranges, `high` is the very array `low`. A refused row's
    cell may hold anything.
    """

    kind: Kind | None  # None: no cell is there
    valid: Booleans  # (rows,) whether the cell is there
    low: Float64  # (rows,) or (0,)
    high: Float64  # (rows,) or (0,)
    strings: StringColumn | None = None
    doubtful: Booleans | None = None  # (rows,) what the reader of single values must look at
    reasons: Mapping[int, str] = {}  # row → why its cell is refused
    one_of: Mapping[int, OneOf] = {}  # row → its cell, where that is one of several values


def missing(rows: int) -> Cells:
    """A column in which no cell is there."""
    nothing = np.zeros(rows)
    return Cells(None, np.zeros(rows, np.bool_), nothing, nothing)


def unread(valid: Booleans) -> Cells:
    """A column of which every cell that is there is in doubt."""
    nothing = np.zeros(len(valid))
    return Cells(None, valid, nothing, nothing, doubtful=valid)


def either(*doubts: Booleans | None) -> Booleans | None:
    """Where one of the *doubts* is; None where there is none."""
    given = [one for one in doubts if one is not None]
    return np.logical_or.reduce(given) if given else None


def validity(array: Any) -> Booleans:
    """Which cells of the Arrow *array* are not null."""
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def fixed_width(array: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The values of the Arrow *array*, not copied; under a null may be anything."""
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * np.dtype(dtype).itemsize)


def plain_array(array: Any) -> Any:
    """*array* as the plain values that an extension type, a dictionary or runs represent."""
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        else:
            return array


def one_array(column: Any) -> Any:
    """The chunks of a table's *column* as one array; not copied where there is one."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if types.is_dictionary(column.type):  # each chunk may have a dictionary of its own
        column = column.cast(column.type.value_type)
    if types.is_string(column.type):  # 32-bit offsets end at 2 GB
        column = column.cast(pa.large_string())
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
