"""Any Arrow array → cells, by its type.

Readers of whole columns only prove that a cell is surely fine. What is in doubt goes to
`read_value`, the reader of single values, for its value or for its sentence: so a table says what a
dict says.

    number.py   integers, floats, booleans, decimals      string.py   strings
    time.py     timestamps, dates, their texts            point.py    pairs, structs, GeoJSON
    weights.py  maps and structs of weights               here       ranges: structs of low and high
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from stentor.errors import RecordError
from stentor.model import Constant, Kind, OneOf, Point, Set
from stentor.model.values import kind_of, read_value
from stentor.model.values.members import members_length, set_text
from stentor.model.values.one_of import check_choices, length_of
from stentor.model.values.point import COORDINATE_NAMES
from stentor.model.values.range import ENDS
from stentor.model.values.string import check_string_bytes, utf8_length
from stentor.wire.cells.layout import (
    Booleans,
    Cells,
    either,
    missing,
    plain_array,
    unread,
    validity,
)
from stentor.wire.cells.number import boolean_cells, decimal_cells, float_cells, integer_cells
from stentor.wire.cells.point import geojson_cells, is_list, is_pair, list_cells, point_cells
from stentor.wire.cells.raw import raw_cells
from stentor.wire.cells.string import is_string, string_cells, string_column
from stentor.wire.cells.time import timestamp_cells, timestamp_text_cells
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits


def range_cells(low: Cells, high: Cells, valid: Booleans) -> Cells:
    """The ranges between the cells of both ends."""
    kinds = {low.kind, high.kind} - {None}
    if not (kinds <= {Kind.NUMBER} or kinds <= {Kind.TIMESTAMP}):
        return unread(valid)
    lows = np.where(low.valid, low.low, -np.inf)
    highs = np.where(high.valid, high.low, np.inf)
    in_order = (low.valid | high.valid) & (lows <= highs)
    doubt = either(valid & ~in_order, low.doubtful, high.doubtful)
    return Cells(low.kind or high.kind, valid, lows, highs, doubtful=doubt)


def read_cells(
    array: Any,
    *,
    field: str,
    kind: Kind | None = None,
    plane: bool = False,
    limits: RecordLimits = DEFAULT_RECORD_LIMITS,
) -> Cells:
    """The cells of the column *field*; `reasons` has a sentence for each that is refused.

    *kind* is what the schema already knows of it: it turns strings into timestamps where these are
    expected.

    Cost: one pass, without a Python object for a cell; decimals and timestamps' texts go
    through texts, and what is in doubt costs a few µs a cell.
    """
    array = plain_array(array)
    try:
        cells = _prove(array, field, kind, plane, limits)
    except RecordError as error:  # a damaged array
        raise RecordError(str(error), field=f"column {field!r}") from None
    return resolve(cells, array, field=field, kind=kind, plane=plane, limits=limits)


def resolve(
    cells: Cells, array: Any, *, field: str, kind: Kind | None, plane: bool, limits: RecordLimits
) -> Cells:
    """*cells* of which none is in doubt any more: `read_value` says what each of those is."""
    if cells.doubtful is None or not cells.doubtful.any():
        return cells._replace(doubtful=None)
    reasons = dict(cells.reasons)
    texts: dict[int, str] = {}
    one_of: dict[int, OneOf] = {}
    found, valid = cells.kind, cells.valid.copy()
    low = cells.low.copy()
    # Single values have one array for both ends.
    high = low if cells.high is cells.low and found is not None else cells.high.copy()
    rows = np.flatnonzero(cells.doubtful)
    for row, raw in zip(rows.tolist(), raw_cells(array, field, rows), strict=True):
        try:
            if isinstance(raw, RecordError):
                raise raw
            if isinstance(raw, str | list | dict):
                size = (
                    utf8_length(raw)
                    if isinstance(raw, str)
                    else members_length(raw)
                    if isinstance(raw, list)
                    else length_of(raw)
                )
                check_string_bytes(size, limits.string_bytes, field)
            value = read_value(raw, kind, plane=plane, field=field)
            if value is None:
                valid[row] = False
                continue
            found = found or kind_of(value)
            if kind_of(value) is not found or (found is Kind.STRING and not isinstance(raw, dict)):
                raise RecordError(f"a {kind_of(value)} in a column of {found}s", field=field)
            if isinstance(value, Set):
                texts[row] = set_text(value)
                continue
            if isinstance(value, OneOf):
                check_choices([value], limits.choices)
                one_of[row] = value
                continue
            if found is Kind.STRING:
                texts[row] = str(value[1])
                continue
        except RecordError as error:
            reasons[row] = str(error)
            continue
        if isinstance(value, Constant):
            low[row] = high[row] = value.value
        else:
            low[row], high[row] = (value.x, value.y) if isinstance(value, Point) else value[1:]
    if found is None:  # nothing but refused cells
        valid[list(reasons)] = False
    if found in (Kind.SET, Kind.STRING):
        return _text_cells(found, texts, valid, reasons)._replace(one_of=one_of)
    return cells._replace(
        kind=found, valid=valid, low=low, high=high, doubtful=None, reasons=reasons, one_of=one_of
    )


def _text_cells(
    kind: Kind, texts: Mapping[int, str], valid: Booleans, reasons: Mapping[int, str]
) -> Cells:
    """The cells of sets, or of strings in objects: their *texts* by row."""
    strings = string_column(
        pa.array([texts.get(row, "") for row in range(len(valid))], pa.large_string())
    )
    nothing = np.zeros(0)
    return Cells(kind, valid, nothing, nothing, strings, reasons=reasons)


def is_odd(of: Any) -> bool:
    """Whether no cell of an Arrow type can be a value or hold one, whatever is in it."""
    return not (
        types.is_null(of)
        or types.is_struct(of)
        or types.is_map(of)
        or types.is_dictionary(of)
        or types.is_run_end_encoded(of)
        or types.is_integer(of)
        or types.is_floating(of)
        or is_string(of)
        or types.is_boolean(of)
        or types.is_timestamp(of)
        or types.is_date(of)
        or types.is_decimal(of)
        or (is_list(of) and (is_pair(of) or is_string(of.value_type)))
        or hasattr(of, "storage_type")
    )


def _are_pairs(array: Any) -> bool:
    """Whether all lists of a column are pairs of numbers: points, where the schema says nothing."""
    return is_pair(array.type) and bool(pc.all(pc.equal(pc.list_value_length(array), 2)).as_py())


def _prove(
    array: Any, field: str | None, kind: Kind | None, plane: bool, limits: RecordLimits
) -> Cells:
    of = array.type
    if array.null_count == len(array):
        return missing(len(array))
    if kind is Kind.SET or (is_list(of) and kind is None and not _are_pairs(array)):
        return unread(validity(array))
    if types.is_integer(of):
        return integer_cells(array)
    if types.is_floating(of):
        return float_cells(array)
    if is_string(of):
        if kind is Kind.TIMESTAMP:
            return timestamp_text_cells(array, field)
        if kind is Kind.POINT:
            return unread(validity(array))
        return string_cells(array, limits.string_bytes)
    if types.is_boolean(of):
        return boolean_cells(array)
    if types.is_timestamp(of) or types.is_date(of):
        return timestamp_cells(array)
    if types.is_decimal(of):
        return decimal_cells(array)

    def read(inner: Any) -> Cells:
        inner = plain_array(inner)
        if types.is_nested(inner.type):
            return unread(validity(inner))
        cells = _prove(inner, field, kind, plane, limits)
        if cells.reasons:  # the whole struct has the word
            doubt = np.zeros(len(inner), np.bool_)
            doubt[list(cells.reasons)] = True
            return cells._replace(doubtful=doubt, reasons={})
        return cells

    valid = validity(array)
    if types.is_struct(of):
        # `flatten` applies the struct's own nulls and its slice to the fields.
        fields = {one.name: cells for one, cells in zip(of, array.flatten(), strict=True)}
        if fields:
            valid &= np.logical_or.reduce([validity(one) for one in fields.values()])
        if set(fields) == set(ENDS):
            return range_cells(read(fields["low"]), read(fields["high"]), valid)
        for x, y in COORDINATE_NAMES:
            if set(fields) == {x, y}:
                return point_cells(read(fields[x]), read(fields[y]), valid, plane)
        if set(fields) == {"type", "coordinates"}:
            return geojson_cells(fields["type"], fields["coordinates"], valid, read, plane)
    elif is_pair(of):
        return list_cells(array, read, plane=plane)
    return unread(valid)
