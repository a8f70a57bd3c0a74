"""Columns of strings → Arrow's own offsets and bytes, not copied where they serve as they are."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from stentor.encoding.columns import Int64
from stentor.encoding.events import StringColumn
from stentor.errors import RecordError
from stentor.model import Kind
from stentor.wire.cells.layout import Booleans, Cells, validity

_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


def is_string(kind: Any) -> bool:
    """Whether *kind* is one of Arrow's types of strings."""
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def string_cells(array: Any, most_bytes: int) -> Cells:
    """The cells of an Arrow array of strings; one that is not UTF-8 or too long is in doubt."""
    broken = not_utf8(array)
    strings = string_column(array)
    doubt = broken | (np.diff(strings.offsets) > most_bytes)
    nothing = np.zeros(0)
    return Cells(Kind.STRING, validity(array), nothing, nothing, strings, doubt)


def string_column(array: Any) -> StringColumn:
    """The strings of an Arrow array: its buffers, whatever slice of them it is; null is empty."""
    if types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    offsets = _offsets(array)
    if array.null_count and np.any(np.diff(offsets)[~validity(array)]):
        array = pc.fill_null(array, "")
        offsets = _offsets(array)
    data = array.buffers()[2]
    whole = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    start = int(offsets[0])
    return StringColumn(offsets - start if start else offsets, whole[start : int(offsets[-1])])


def string_array(cells: Cells) -> Any:
    """The strings of *cells* as an Arrow array of large strings; a missing one is empty."""
    if cells.strings is None:
        return pa.array([""] * len(cells.valid), pa.large_string())
    buffers = [None, pa.py_buffer(cells.strings.offsets), pa.py_buffer(cells.strings.data)]
    return pa.Array.from_buffers(pa.large_string(), len(cells.valid), buffers)


def distinct_strings(cells: Cells, left_out: Collection[int]) -> list[str]:
    """The different strings of *cells*, those of the rows *left_out* not counted."""
    rows = np.flatnonzero(cells.valid)
    rows = rows[~np.isin(rows, list(left_out))] if left_out else rows
    found: list[str] = string_array(cells).take(pa.array(rows)).unique().to_pylist()
    return found


def lengths(cells: Cells) -> Int64:
    """The bytes of each string of *cells*, 0 where there is none."""
    if cells.strings is None:
        return np.zeros(len(cells.valid), np.int64)
    return np.diff(cells.strings.offsets)


def not_utf8(array: Any) -> Booleans:
    """Which strings of *array* are not UTF-8; a RecordError where its offsets are damaged.

    Cost: 5 to 10 ns for a row; all rows one by one in Python where one is bad.
    """
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        as_bytes = array.view(_BYTES[array.type])
        try:
            as_bytes.validate(full=True)
        except pa.ArrowInvalid as error:
            raise RecordError(f"the Arrow array is damaged: {error}") from None
        return np.array([_is_broken(one) for one in as_bytes.to_pylist()], np.bool_)
    return np.zeros(len(array), np.bool_)


def _is_broken(data: bytes | None) -> bool:
    try:
        (data or b"").decode()
    except UnicodeDecodeError:
        return True
    return False


def _offsets(array: Any) -> Int64:
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(len(array) + 1, np.int64)
    dtype = np.dtype(np.int64 if types.is_large_string(array.type) else np.int32)
    offsets = np.frombuffer(data, dtype, len(array) + 1, array.offset * dtype.itemsize)
    return offsets.astype(np.int64, copy=False)
