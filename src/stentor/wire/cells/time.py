"""Columns of timestamps, dates and timestamps' texts → microseconds since 1970 UTC.

A timestamp without a zone is UTC; Arrow keeps one with a zone in UTC. What may be too fine, or in
no year that has a text, is in doubt; texts are read one by one, each distinct one once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types

from stentor.encoding.columns import Int64
from stentor.errors import RecordError
from stentor.model import Kind
from stentor.model.values.string import not_utf8_error
from stentor.model.values.time import EARLIEST, LATEST, read_time, read_timestamp
from stentor.wire.cells.layout import Booleans, Cells, fixed_width, validity
from stentor.wire.cells.number import are_exact, rounded
from stentor.wire.cells.raw import raw_cell
from stentor.wire.cells.string import is_string

_MICROS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_DAY: Final = 86_400 * 1_000_000


class Instants(NamedTuple):
    """The instants of a column, the rows that have one, and why others are refused."""

    micros: Int64  # (rows,)
    valid: Booleans  # (rows,)
    reasons: dict[int, str]


class _Found(NamedTuple):
    """Instants, and which of them are in doubt."""

    micros: Int64
    valid: Booleans
    doubtful: Booleans


def timestamp_cells(array: Any) -> Cells:
    """The cells of an Arrow array of timestamps or dates."""
    found = _timestamps(array)
    doubles = found.micros.astype(np.float64)
    doubt = found.doubtful
    if not are_exact(found.micros):
        doubt = doubt | (rounded(found.micros, doubles) & found.valid)
    return Cells(Kind.TIMESTAMP, found.valid, doubles, doubles, doubtful=doubt)


def timestamp_text_cells(array: Any, field: str | None) -> Cells:
    """The cells of an Arrow array of strings, where the schema expects timestamps."""
    found = _texts(array, lambda text: int(read_timestamp(text, field)), field)
    doubles = found.micros.astype(np.float64)
    return Cells(Kind.TIMESTAMP, found.valid, doubles, doubles, reasons=found.reasons)


def read_instants(array: Any, field: str) -> Instants:
    """A column `time` or `until`: timestamps, dates, their texts, or seconds since 1970."""
    kind = array.type
    if types.is_null(kind):
        return no_instants(len(array))
    if is_string(kind):
        return _texts(array, lambda text: read_time(text, field) or 0, field)
    if types.is_timestamp(kind) or types.is_date(kind):
        found = _timestamps(array)
    elif types.is_integer(kind):
        found = _whole_seconds(array)
    elif types.is_floating(kind):
        found = _seconds(array)
    else:
        raise RecordError(
            f"expected a column of timestamps, of their texts or of seconds since 1970, got {kind}",
            field=field,
        )
    reasons = {}
    micros = found.micros
    for row in np.flatnonzero(found.doubtful).tolist():
        try:
            read = read_time(raw_cell(array, row, field), field)
        except RecordError as error:
            reasons[row] = str(error)
        else:
            micros = micros if micros.flags.writeable else micros.copy()
            micros[row] = read or 0  # never None: a null is not in doubt
    return Instants(micros, found.valid, reasons)


def no_instants(rows: int) -> Instants:
    """A column that says nothing."""
    return Instants(np.zeros(rows, np.int64), np.zeros(rows, np.bool_), {})


def filled(found: Instants, default: int) -> Int64:
    """The instants, *default* where there is none."""
    return found.micros if found.valid.all() else np.where(found.valid, found.micros, default)


def _timestamps(array: Any) -> _Found:
    kind = array.type
    valid = validity(array)
    if types.is_date32(kind):
        return _scaled(fixed_width(array, np.int32).astype(np.int64), _DAY, valid)
    values = fixed_width(array, np.int64)
    unit = "ms" if types.is_date64(kind) else kind.unit
    if unit in _MICROS:
        return _scaled(values, _MICROS[unit], valid)
    return _Found(values // 1_000, valid, (values % 1_000 != 0) & valid)


def _whole_seconds(array: Any) -> _Found:
    values = fixed_width(array, array.type.to_pandas_dtype())
    if values.dtype == np.uint64:
        values = np.minimum(values, np.uint64(np.iinfo(np.int64).max))
    return _scaled(values.astype(np.int64), 1_000_000, validity(array))


def _scaled(values: Int64, factor: int, valid: Booleans) -> _Found:
    """*values* times *factor*, as far as they are in the years that have a text."""
    outside = ((values < EARLIEST // factor) | (values > LATEST // factor)) & valid
    if valid.all() and not outside.any():
        return _Found(values if factor == 1 else values * factor, valid, outside)
    return _Found(np.where(valid & ~outside, values, 0) * factor, valid, outside)


def _seconds(array: Any) -> _Found:
    micros = np.rint(fixed_width(array, array.type.to_pandas_dtype()).astype(np.float64) * 1e6)
    valid = validity(array)
    usable = (micros >= EARLIEST) & (micros <= LATEST)  # not so NaN
    return _Found(np.where(usable, micros, 0).astype(np.int64), valid, ~usable & valid)


def _texts(array: Any, read: Callable[[str], int], field: str | None) -> Instants:
    """*read* of every distinct text of *array*: most columns repeat theirs."""
    encoded = array.cast(pa.large_string()).view(pa.large_binary()).dictionary_encode()
    micros_by_code, reason_by_code = [], {}
    for code, data in enumerate(encoded.dictionary.to_pylist()):
        micros = 0
        try:
            micros = read(data.decode())
        except UnicodeDecodeError as error:
            reason_by_code[code] = str(not_utf8_error(error, field))
        except RecordError as error:
            reason_by_code[code] = str(error)
        micros_by_code.append(micros)
    valid = validity(array)
    codes = np.where(valid, fixed_width(encoded.indices, np.int32), -1)
    reasons = {}
    if reason_by_code:
        for row in np.flatnonzero(np.isin(codes, list(reason_by_code))).tolist():
            reasons[row] = reason_by_code[int(codes[row])]
    return Instants(np.array([*micros_by_code, 0], np.int64)[codes], valid, reasons)
