"""Any Arrow array → cells, by its type."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import types

from stentor.errors import RecordError
from stentor.model import Kind
from stentor.wire.cells.layout import Cells, missing, unwrapped
from stentor.wire.cells.numbers import boolean_cells, decimal_cells, float_cells, integer_cells
from stentor.wire.cells.places import is_list, list_cells, struct_cells
from stentor.wire.cells.strings import is_string, string_cells
from stentor.wire.cells.times import timestamp_cells, timestamp_text_cells
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits


def cells_of(
    array: Any,
    *,
    field: str,
    kind: Kind | None = None,
    plane: bool = False,
    limits: RecordLimits = DEFAULT_RECORD_LIMITS,
) -> Cells:
    """The cells of the column *field*, or a RecordError that names it.

    *kind* is what the schema already knows of it: it turns strings into timestamps where these are
    expected.

    Cost: one pass, without a Python object for a cell; decimals and timestamps' texts go by way
    of texts.
    """
    try:
        return _cells(unwrapped(array), kind, plane, limits)
    except RecordError as error:
        raise RecordError(str(error), field=f"column {field!r}") from None


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


def _cells(array: Any, kind: Kind | None, plane: bool, limits: RecordLimits) -> Cells:
    of = array.type
    if array.null_count == len(array):
        return missing(len(array))
    if types.is_integer(of):
        return integer_cells(array)
    if types.is_floating(of):
        return float_cells(array)
    if is_string(of):
        if kind is Kind.TIMESTAMP:
            return timestamp_text_cells(array)
        return string_cells(array, limits.string_bytes)
    if types.is_boolean(of):
        return boolean_cells(array)
    if types.is_timestamp(of) or types.is_date(of):
        return timestamp_cells(array)
    if types.is_decimal(of):
        return decimal_cells(array)

    def read(inner: Any) -> Cells:
        return _cells(unwrapped(inner), kind, plane, limits)

    if types.is_struct(of):
        return struct_cells(array, read, plane=plane)
    if is_list(of):
        return list_cells(array, read, plane=plane)
    raise RecordError(
        f"the Arrow type {of} is not supported; expected numbers, strings, booleans, timestamps, "
        "points or ranges: cast the column, or leave it out"
    )
