"""One cell of an Arrow array as the plain Python value that `read_value` takes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from stentor.encoding.parameters import UNREADABLE
from stentor.errors import RecordError
from stentor.model.values.point import COORDINATE_NAMES
from stentor.model.values.range import ENDS
from stentor.model.values.string import not_utf8_error
from stentor.wire.cells.layout import plain_array

#: The fields of structs that are points or ranges, whole or not.
VALUES: Final = (*(frozenset(names) for names in COORDINATE_NAMES), frozenset(ENDS))


def raw_cell(array: Any, row: int, field: str | None = None) -> Any:
    """The cell at *row*; a RecordError where Python has no value for it.

    An instant that `datetime` cannot hold is NumPy's. Of a struct that mixes forms only the fields
    count that are given; one whose fields are all null is missing, as it is itself where it is
    null: Spark and others build structs from columns without looking.
    """
    array = plain_array(array.slice(row, 1))
    of = array.type
    if not array[0].is_valid:
        return None
    if types.is_struct(of):
        cells = tuple(raw_cell(one, 0, field) for one in array.flatten())
        return _struct([one.name for one in of], cells)
    if types.is_map(of):
        pairs = [
            (raw_cell(array.keys, one, field), raw_cell(array.items, one, field))
            for one in range(array.offsets[0].as_py(), array.offsets[1].as_py())
        ]
        return _object(pairs, field)
    try:
        if types.is_timestamp(of) or types.is_date(of):
            return _instant(array)
        if types.is_duration(of):  # not as pandas has it
            array = array.cast(pa.duration("us"), safe=False)
        return array[0].as_py()
    except UnicodeDecodeError as error:
        raise not_utf8_error(error, field) from None
    except UNREADABLE as error:
        raise RecordError(
            f"the cell has no value that Python knows: {error}", field=field
        ) from None


def raw_cells(array: Any, field: str, rows: Any = None) -> list[Any]:
    """The cells of *array*, or of these *rows*; for one that has no value its error."""
    array = plain_array(array)
    if rows is not None:
        try:
            array = array.take(pa.array(rows))
        except pa.ArrowNotImplementedError:  # of string views, for one
            return [_raw_or_error(array, row, field) for row in rows.tolist()]
    of = array.type
    if types.is_duration(of):  # not as pandas has it
        array = array.cast(pa.duration("us"), safe=False)
    try:
        if types.is_struct(of):
            inner = [raw_cells(one, field) for one in array.flatten()]
            return [_struct([one.name for one in of], cells) for cells in zip(*inner, strict=True)]
        if not types.is_map(of):
            whole: list[Any] = array.to_pylist()
            return whole
    except UNREADABLE:
        pass
    return [_raw_or_error(array, row, field) for row in range(len(array))]


def _raw_or_error(array: Any, row: int, field: str) -> Any:
    try:
        return raw_cell(array, row, field)
    except RecordError as error:
        return error


def _struct(names: list[str], cells: tuple[Any, ...]) -> Any:
    """The object of a struct's *cells*; None where there is nothing in it."""
    given = {name: cell for name, cell in zip(names, cells, strict=True) if cell is not None}
    if not given:
        return None
    wrong = next((one for one in cells if isinstance(one, RecordError)), None)
    if wrong is not None:
        return wrong
    return dict(zip(names, cells, strict=True)) if frozenset(names) in VALUES else given


def _object(pairs: list[tuple[Any, Any]], field: str | None) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for name, cell in pairs:
        if name in found:
            raise RecordError(
                f"the key {str(name)[:100]!r} stands twice in one object; keep one of them",
                field=field,
            )
        found[name] = cell
    return found


def _instant(array: Any) -> Any:
    """Python's instant, or NumPy's where Python has none."""
    of = array.type
    unit: Any = "D" if types.is_date32(of) else "ms" if types.is_date64(of) else of.unit
    number = array.cast(pa.int32() if types.is_date32(of) else pa.int64())[0].as_py()
    moment = np.datetime64(number, unit)
    year = str(moment).partition("-")[0]
    is_plain = len(year) == 4 and year != "0000" and (unit != "ns" or number % 1_000 == 0)
    return array[0].as_py() if is_plain else moment
