"""A column of weights, map<string, double> or struct of doubles → weights by attribute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types

from stentor.encoding.columns import Float64, Int32, Int64
from stentor.encoding.event_batches import EventWeights
from stentor.errors import RecordError
from stentor.model import Kind, Schema
from stentor.wire.cells.arrays import cells_of
from stentor.wire.cells.layout import Booleans, Problem, fixed_width, problems, unwrapped, validity
from stentor.wire.cells.strings import is_string, not_utf8
from stentor.wire.fields import name_of

FIELD = "weights"


class WeightCells(NamedTuple):
    """The weights of a batch, one after another, by ascending row."""

    names: Sequence[str]
    row: Int64  # (weights,)
    name: Int32  # (weights,) a place in `names`
    weight: Float64  # (weights,)
    problems: list[Problem]


def weight_cells(array: Any) -> WeightCells:
    """The weights of the column *array*; a null weight is left out."""
    of = array.type
    if types.is_map(of):
        entries = _map_entries(array)
    elif types.is_struct(of):
        entries = _struct_entries(array)
    else:
        raise RecordError(
            f"expected map<string, double> or a struct of doubles, got {of}", field=FIELD
        )
    places = np.flatnonzero(entries.given)
    places = places[np.argsort(entries.row[places], kind="stable")]
    row, name = entries.row[places], entries.name[places]
    is_bad_name = np.array([_is_bad(one) for one in entries.names], np.bool_)[name]
    return WeightCells(
        entries.names,
        row,
        name,
        entries.weight[places],
        problems(
            (
                _rows(row[entries.wrong[places]], len(array)),
                "a weight is a finite number of at least 0",
            ),
            (_rows(row[is_bad_name], len(array)), "an attribute's name has 1 to 512 bytes"),
            (_repeating(row, name, len(array)), "an attribute has two weights"),
        ),
    )


def encode_weights(cells: WeightCells, rows: int, schema: Schema) -> EventWeights:
    """The weights of attributes that *schema* knows, by their codes."""
    codes = np.array([schema.code(name) for name in cells.names], np.int32)[cells.name]
    known = codes >= 0
    start = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(cells.row[known], minlength=rows), out=start[1:])
    return EventWeights(start, codes[known], cells.weight[known])


def weights_by_row(cells: WeightCells, rows: int) -> list[dict[str, float]]:
    """The weights of each of *rows* rows, as a dict."""
    found: list[dict[str, float]] = [{} for _ in range(rows)]
    for row, name, weight in zip(
        cells.row.tolist(), cells.name.tolist(), cells.weight.tolist(), strict=True
    ):
        found[row][cells.names[name]] = weight
    return found


class _Entries(NamedTuple):
    """What stands in a map or a struct, one after another, whether it counts or not."""

    names: list[str]
    row: Int64
    name: Int32
    weight: Float64
    given: Booleans
    wrong: Booleans


def _map_entries(array: Any) -> _Entries:
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    entries = slice(int(offsets[0]), int(offsets[-1]))
    keys = unwrapped(array.keys[entries])
    if not is_string(keys.type) or not_utf8(keys).any():
        raise RecordError(f"expected names of attributes as keys, got {keys.type}", field=FIELD)
    encoded = keys.cast(pa.large_string()).dictionary_encode()
    row = np.repeat(np.arange(len(array)), np.diff(offsets))
    weight, given, wrong = _weights(array.items[entries])
    return _Entries(
        encoded.dictionary.to_pylist(),
        row,
        fixed_width(encoded.indices, np.int32),
        weight,
        given & validity(array)[row],  # a null map has no entries, whatever its offsets say
        wrong,
    )


def _struct_entries(array: Any) -> _Entries:
    names = [field.name for field in array.type]
    parts = [_weights(unwrapped(field)) for field in array.flatten()]
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
    cells = cells_of(values, field=FIELD)
    if cells.kind not in (Kind.NUMBER, None):
        raise RecordError(f"expected numbers, got {values.type}", field=FIELD)
    given = validity(values)
    wrong = given & ~(cells.valid & np.isfinite(cells.low) & (cells.low >= 0.0))
    for problem in cells.problems:
        wrong |= problem.bad
    return cells.low, given, wrong


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
        name_of(name)
    except RecordError:
        return True
    return False
