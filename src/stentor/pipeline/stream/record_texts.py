"""Rows of canonical records as JSON, for people: whatever bytes and times they hold.

Nobody has checked these rows. Spark's strings are bytes that need not be UTF-8, and its timestamps
reach far beyond the years of Python's; neither becomes a Python object here before it is known to
have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from stentor.wire.cells.arrays import one_array
from stentor.wire.cells.layout import unwrapped, validity
from stentor.wire.cells.places import is_list
from stentor.wire.cells.strings import is_string, not_utf8
from stentor.wire.events import NESTED
from stentor.wire.rejected import MOST_RAW, raw_text

#: Of a longer string no more than this is ever shown: a character has at most four bytes.
_MOST_BYTES = 4 * (MOST_RAW + 1)
#: What is told of a record in other columns, or is not its own.
_NOT_SHOWN = ("source", "offset", "problem", "raw", "batch_time")


def record_texts(table: Any) -> Any:
    """Each row of *table* as JSON, cut like all rejected records: an Arrow array of strings.

    What is null is left out. Attributes stand beside the fields, where no name is taken twice.

    Cost: 1.5 µs for a row of five fields, and a Python object for each of its cells: give it some
    thousand rows at a time.
    """
    shown = {name: one_array(table[name]) for name in table.column_names if name not in _NOT_SHOWN}
    nested = shown.get(NESTED)
    if nested is not None and types.is_struct(nested.type):
        names = [field.name for field in nested.type]
        if shown.keys().isdisjoint(names):
            del shown[NESTED]
            shown |= dict(zip(names, nested.flatten(), strict=True))
    encode = msgspec.json.Encoder().encode
    texts = [raw_text(encode(row)) for row in _objects(shown, table.num_rows)]
    return pa.array(texts, pa.string())


def readable(strings: Any) -> Any:
    """*strings* as far as they are ever shown, with U+FFFD for what is not UTF-8."""
    array = one_array(strings)
    is_long = (pc.max(pc.binary_length(array)).as_py() or 0) > _MOST_BYTES
    if not is_long and not not_utf8(array).any():
        return array.cast(pa.string())
    cut = pc.binary_slice(array.cast(pa.large_binary()), 0, _MOST_BYTES)
    texts = [None if one is None else one.decode("utf-8", "replace") for one in cut.to_pylist()]
    return pa.array(texts, pa.string())


def _objects(columns: dict[str, Any], rows: int) -> list[dict[str, Any]]:
    """The cells of each row by name, without those that are null."""
    given = {name: one for name, one in columns.items() if one.null_count < len(one)}
    if not given:
        return [{} for _ in range(rows)]
    names = list(given)
    return [
        {name: cell for name, cell in zip(names, cells, strict=True) if cell is not None}
        for cells in zip(*map(_cells, given.values()), strict=True)
    ]


def _cells(array: Any) -> Sequence[Any]:
    """The cells of *array* as JSON has them."""
    array = unwrapped(array)
    of = array.type
    if is_string(of):
        return _list(readable(array))
    if types.is_timestamp(of) or types.is_date(of):
        return _moments(array)
    if types.is_floating(of):
        return _numbers(array)
    if types.is_map(of):
        return _maps(array)
    if types.is_struct(of):
        fields = [field.name for field in of]
        found = _objects(dict(zip(fields, array.flatten(), strict=True)), len(array))
        return _where(validity(array), found)
    if is_list(of):
        items = iter(_cells(array.flatten()))
        sizes = _list(pc.list_value_length(array))
        return [None if size is None else list(islice(items, size)) for size in sizes]
    return _list(array)


def _moments(array: Any) -> Sequence[Any]:
    """Instants in the form that records have them in, whatever the year."""
    of = array.type
    if types.is_date32(of):
        days = np.asarray(array.cast(pa.int32()).fill_null(0)).astype("datetime64[D]")
        return _where(validity(array), np.datetime_as_string(days).tolist())
    unit = "ms" if types.is_date64(of) else of.unit
    moments = np.asarray(array.cast(pa.int64()).fill_null(0)).astype(f"datetime64[{unit}]")
    seconds = moments.astype("datetime64[s]")
    shown = seconds if np.array_equal(seconds, moments) else moments
    return _where(validity(array), np.datetime_as_string(shown, timezone="UTC").tolist())


def _numbers(array: Any) -> Sequence[Any]:
    """Numbers; JSON has no form for some, and they may be what is wrong with the record."""
    numbers = _list(array)
    if pc.all(pc.is_finite(array)).as_py():
        return numbers
    return [one if one is None or np.isfinite(one) else str(one) for one in numbers]


def _maps(array: Any) -> Sequence[Any]:
    starts = array.offsets.to_numpy()
    entries = slice(int(starts[0]), int(starts[-1]))
    pairs = list(zip(_cells(array.keys[entries]), _cells(array.items[entries]), strict=True))
    starts = (starts - starts[0]).tolist()
    found = [dict(pairs[start:stop]) for start, stop in pairwise(starts)]
    return _where(validity(array), found)


def _where(is_there: Any, cells: Sequence[Any]) -> Sequence[Any]:
    if is_there.all():
        return cells
    return [cell if there else None for cell, there in zip(cells, is_there, strict=True)]


def _list(array: Any) -> list[Any]:
    cells: list[Any] = array.to_pylist()
    return cells
