"""A column of weights, map<string, double> or struct of doubles → weights by attribute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types

from stentor.encoding.columns import Float64, Int32, Int64
from stentor.encoding.events import EventWeights
from stentor.errors import RecordError
from stentor.model import Schema
from stentor.model.scoring import MOST_WEIGHT
from stentor.model.values.number import read_weights
from stentor.model.values.string import read_attribute_name
from stentor.wire.cells.layout import Booleans, fixed_width, missing, plain_array, validity
from stentor.wire.cells.number import decimal_cells, float_cells, integer_cells
from stentor.wire.cells.raw import raw_cell
from stentor.wire.cells.string import is_string

FIELD = "weights"


class WeightCells(NamedTuple):
    """The weights of a batch, one after another, by ascending row."""

    names: Sequence[str]
    row: Int64  # (weights,)
    name: Int32  # (weights,) a position in `names`
    weight: Float64  # (weights,)
    reasons: dict[int, str]


def weight_cells(array: Any, most: int) -> WeightCells:
    """The weights of the column *array*, at most *most* in a row; a null weight is left out."""
    of = array.type
    if types.is_map(of):
        entries = _map_entries(array)
    elif types.is_struct(of):
        entries = _struct_entries(array)
    else:
        raise RecordError(
            f"expected map<string, double> or a struct of doubles, got {of}", field=FIELD
        )
    positions = np.flatnonzero(entries.given)
    positions = positions[np.argsort(entries.row[positions], kind="stable")]
    row, name = entries.row[positions], entries.name[positions]
    is_bad_name = np.array([_is_bad(one) for one in entries.names], np.bool_)[name]
    doubt = _rows(row[entries.wrong[positions] | is_bad_name], len(array))
    doubt |= _repeating(row, name, len(array))
    doubt |= np.bincount(row, minlength=len(array)) > most
    reasons = {}
    for one in np.flatnonzero(doubt).tolist():
        try:
            read_weights(raw_cell(array, one, FIELD), most)
        except RecordError as error:
            reasons[one] = str(error)
    return WeightCells(entries.names, row, name, entries.weight[positions], reasons)


def encode_weights(cells: WeightCells, rows: int, schema: Schema) -> EventWeights:
    """The weights of attributes that *schema* knows, by their codes."""
    codes = np.array([schema.code(name) for name in cells.names], np.int32)[cells.name]
    known = codes >= 0
    start = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(cells.row[known], minlength=rows), out=start[1:])
    return EventWeights(start, codes[known], cells.weight[known])


class _Entries(NamedTuple):
    """What is in a map or a struct, one after another, whether it counts or not."""

    names: list[str]
    row: Int64
    name: Int32
    weight: Float64
    given: Booleans
    wrong: Booleans


def _map_entries(array: Any) -> _Entries:
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    entries = slice(int(offsets[0]), int(offsets[-1]))
    keys = plain_array(array.keys[entries])
    if not is_string(keys.type):
        raise RecordError(f"expected names of attributes as keys, got {keys.type}", field=FIELD)
    encoded = keys.cast(pa.large_string()).view(pa.large_binary()).dictionary_encode()
    row = np.repeat(np.arange(len(array)), np.diff(offsets))
    weight, given, wrong = _weights(array.items[entries])
    return _Entries(
        [one.decode("utf-8", "surrogateescape") for one in encoded.dictionary.to_pylist()],
        row,
        fixed_width(encoded.indices, np.int32),
        weight,
        given & validity(array)[row],  # a null map has no entries, whatever its offsets say
        wrong,
    )


def _struct_entries(array: Any) -> _Entries:
    names = [field.name for field in array.type]
    parts = [_weights(field) for field in array.flatten()]
    nothing = np.zeros(0), np.zeros(0, np.bool_), np.zeros(0, np.bool_)
    weight, given, wrong = (np.concatenate(one) for one in zip(nothing, *parts, strict=True))
    return _Entries(
        names,
        np.tile(np.arange(len(array)), len(names)),
        np.repeat(np.arange(len(names), dtype=np.int32), len(array)),
        weight,
        given,
        wrong,
    )


def _weights(values: Any) -> tuple[Float64, Booleans, Booleans]:
    """The weights, which of them are given, which of those are wrong."""
    values = plain_array(values)
    given = validity(values)
    if types.is_integer(values.type):
        cells = integer_cells(values)
    elif types.is_floating(values.type):
        cells = float_cells(values)
    elif types.is_decimal(values.type):
        cells = decimal_cells(values)
    elif given.any():
        raise RecordError(f"expected numbers, got {values.type}", field=FIELD)
    else:
        cells = missing(len(values))
    wrong = given & ~(cells.valid & (cells.low >= 0.0) & (cells.low <= MOST_WEIGHT))
    return cells.low, given, wrong if cells.doubtful is None else wrong | cells.doubtful


def _rows(rows: Int64, count: int) -> Booleans:
    marked = np.zeros(count, np.bool_)
    marked[rows] = True
    return marked


def _repeating(row: Int64, name: Int32, count: int) -> Booleans:
    pairs = row * (int(name.max(initial=0)) + 1) + name
    order = np.argsort(pairs, kind="stable")
    again = pairs[order][1:] == pairs[order][:-1]
    return _rows(row[order][1:][again], count)


def _is_bad(name: str) -> bool:
    try:
        read_attribute_name(name)
    except RecordError:
        return True
    return False
