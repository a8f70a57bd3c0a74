"""Columns of timestamps, dates and timestamps' texts → microseconds since 1970 UTC.

A timestamp without a zone is UTC; Arrow keeps one with a zone in UTC.
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
from stentor.model.time import EARLIEST, LATEST, instant
from stentor.model.value import timestamp
from stentor.wire.cells.layout import Booleans, Cells, Problem, fixed_width, problems, validity
from stentor.wire.cells.numbers import rounded
from stentor.wire.cells.strings import is_string

_MICROS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_DAY: Final = 86_400 * 1_000_000
_NOT_IN_RANGE: Final = "not in the years 1 to 9999"


class Instants(NamedTuple):
    """The instants of a column, and the rows in which there is none or a bad one."""

    micros: Int64  # (rows,)
    valid: Booleans  # (rows,)
    problems: list[Problem]


def timestamp_cells(array: Any) -> Cells:
    """The cells of an Arrow array of timestamps or dates."""
    found = _instants_of_timestamps(array)
    doubles = found.micros.astype(np.float64)
    too_fine = rounded(found.micros, doubles) & found.valid
    reason = "finer than a double can hold so far from 1970; round it to seconds"
    return Cells(
        Kind.TIMESTAMP,
        found.valid,
        doubles,
        doubles,
        problems=[*found.problems, *problems((too_fine, reason))],
    )


def timestamp_text_cells(array: Any) -> Cells:
    """The cells of an Arrow array of strings, where the schema expects timestamps."""
    found = _instants_of_values(array, lambda text: int(timestamp(text)))
    doubles = found.micros.astype(np.float64)
    return Cells(Kind.TIMESTAMP, found.valid, doubles, doubles, problems=found.problems)


def instants(array: Any, field: str) -> Instants:
    """A column `time` or `until`: timestamps, dates, their texts, or seconds since 1970."""
    kind = array.type
    if types.is_null(kind):
        return no_instants(len(array))
    if types.is_timestamp(kind) or types.is_date(kind):
        return _instants_of_timestamps(array)
    if types.is_integer(kind):
        return _whole_seconds(array)
    if types.is_floating(kind):
        return _seconds(array)
    if is_string(kind):
        return _instants_of_values(array, lambda text: instant(text, field) or 0)
    raise RecordError(
        f"expected a column of timestamps, of their texts or of seconds since 1970, got {kind}",
        field=field,
    )


def no_instants(rows: int) -> Instants:
    """A column that says nothing."""
    return Instants(np.zeros(rows, np.int64), np.zeros(rows, np.bool_), [])


def filled(found: Instants, default: int) -> Int64:
    """The instants, *default* where there is none."""
    return found.micros if found.valid.all() else np.where(found.valid, found.micros, default)


def _instants_of_timestamps(array: Any) -> Instants:
    kind = array.type
    if types.is_date32(kind):
        return _scaled(fixed_width(array, np.int32).astype(np.int64), _DAY, validity(array))
    values = fixed_width(array, np.int64)
    unit = "ms" if types.is_date64(kind) else kind.unit
    if unit in _MICROS:
        return _scaled(values, _MICROS[unit], validity(array))
    valid = validity(array)
    too_fine = (values % 1_000 != 0) & valid
    found = problems((too_fine, "finer than a microsecond; round it"))
    return Instants(values // 1_000, valid, found)


def _whole_seconds(array: Any) -> Instants:
    values = fixed_width(array, array.type.to_pandas_dtype())
    if values.dtype == np.uint64:
        values = np.minimum(values, np.uint64(np.iinfo(np.int64).max))
    return _scaled(values.astype(np.int64), 1_000_000, validity(array))


def _scaled(values: Int64, factor: int, valid: Booleans) -> Instants:
    """*values* times *factor*, as far as they are in the years that have a text."""
    outside = ((values < EARLIEST // factor) | (values > LATEST // factor)) & valid
    if valid.all() and not outside.any():
        return Instants(values if factor == 1 else values * factor, valid, [])
    micros = np.where(valid & ~outside, values, 0) * factor
    return Instants(micros, valid, problems((outside, _NOT_IN_RANGE)))


def _seconds(array: Any) -> Instants:
    micros = np.rint(fixed_width(array, array.type.to_pandas_dtype()).astype(np.float64) * 1e6)
    valid = validity(array)
    usable = (micros >= EARLIEST) & (micros <= LATEST)  # not so NaN
    whole = np.where(usable, micros, 0).astype(np.int64)
    return Instants(whole, valid, problems((~usable & valid, _NOT_IN_RANGE)))


def _instants_of_values(array: Any, read: Callable[[str], int]) -> Instants:
    """*read* of every distinct text of *array*: most columns repeat theirs."""
    encoded = array.cast(pa.large_string()).view(pa.large_binary()).dictionary_encode()
    micros_by_code, bad_by_code = [], []
    for data in encoded.dictionary.to_pylist():
        try:
            micros_by_code.append(read(data.decode()))
            bad_by_code.append(False)
        except (RecordError, UnicodeDecodeError):
            micros_by_code.append(0)
            bad_by_code.append(True)
    valid = validity(array)
    codes = np.where(valid, fixed_width(encoded.indices, np.int32), -1)
    micros = np.array([*micros_by_code, 0], np.int64)[codes]
    bad = np.array([*bad_by_code, False])[codes]
    reason = "not a timestamp; write it as 2026-11-15T12:00:00+01:00"
    return Instants(micros, valid, problems((bad, reason)))
