"""Whatever table a user has → an Arrow table; a row of it as text."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import Int64
from stentor.errors import RecordError
from stentor.wire.cells.arrays import one_array
from stentor.wire.rejected import Rejected, raw_text


def as_table(frame: Any) -> Any:
    """*frame* as an Arrow table; a pandas index counts as columns where it has names.

    Takes Arrow tables and record batches, pandas DataFrames, and everything else with Arrow's
    PyCapsule interface (Polars, DuckDB, …).
    """
    if isinstance(frame, pa.Table):
        table = frame
    elif isinstance(frame, pa.RecordBatch):
        table = pa.Table.from_batches([frame])
    elif any(base.__module__.startswith("pandas.") for base in type(frame).__mro__):
        table = _from_pandas(frame)
    elif hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__"):
        table = pa.table(frame)
    else:
        raise RecordError(
            f"expected an Arrow table or a DataFrame, got {type(frame).__name__}; "
            "a list of dicts becomes one by pyarrow.Table.from_pylist"
        )
    _check_names(table.column_names)
    return table


def columns_of(table: Any) -> dict[str, Any]:
    """The columns of *table* by name, each as one array."""
    return {
        name: one_array(column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def take_rows(table: Any, rows: Int64) -> Any:
    """The given *rows* of *table*, in ascending order."""
    try:
        return table.take(pa.array(rows))
    except pa.ArrowNotImplementedError:  # Arrow cannot take from string views, for one
        if not len(rows):
            return table.slice(0, 0)
        gaps = np.flatnonzero(np.diff(rows) != 1) + 1
        runs = np.split(rows, gaps)
        return pa.concat_tables([table.slice(int(run[0]), len(run)) for run in runs])


def rejected_row(table: Any, row: int, reason: str) -> Rejected:
    """The row of *table* that is rejected for this *reason*."""
    return Rejected(reason, raw_text(row_text(table, row)), row=row)


def row_text(table: Any, row: int) -> str:
    """One row of *table* as JSON, for people; what has no JSON form is shown as Arrow shows it."""
    cells = {
        name: _cell(column.slice(row, 1))
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return json.dumps(cells, ensure_ascii=False, default=str)


def _cell(column: Any) -> Any:
    try:
        return column[0].as_py()
    except (ValueError, OverflowError):  # broken UTF-8, years that no datetime has, …
        return " ".join(column.to_string().split())


def _from_pandas(frame: Any) -> Any:
    if not hasattr(frame, "columns"):
        raise RecordError(f"expected a DataFrame, got a {type(frame).__name__}; try .to_frame()")
    has_named_index = any(name is not None for name in frame.index.names)
    try:
        return pa.Table.from_pandas(frame, preserve_index=has_named_index)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        # pandas adds the column's name as the last argument.
        raise RecordError(
            f"a DataFrame's column holds what has no one type: {'; '.join(map(str, error.args))}"
        ) from None


def _check_names(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise RecordError("the table has two columns of this name", field=name)
        seen.add(name)
