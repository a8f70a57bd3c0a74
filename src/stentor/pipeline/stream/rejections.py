"""Bad records on their way to the table of rejected ones: reason, raw text, where from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from stentor.pipeline.commit.manifests import TableFile
from stentor.pipeline.tables.files import TIME, write_file
from stentor.wire.frames import row_text
from stentor.wire.rejected import raw_text


class Rejections:
    """Rejected records of one task."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, str | None, int | None]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, reason: str, record: str, source: str | None, offset: int | None) -> None:
        """Take in one record."""
        self._rows.append((reason, raw_text(record), source, offset))

    def add_row(self, table: Any, row: int, reason: str) -> None:
        """Take in one row of a *table* of canonical records, as the text of its fields."""
        one = table.slice(row, 1)
        names = [name for name in ("source", "offset") if name in table.column_names]
        where = one.select(names).to_pylist()[0]
        self.add(reason, _text(one), where["source"], where.get("offset"))

    def write(self, path: Path, batch: int, time: int) -> list[TableFile]:
        """Write what was taken in; no file where there is nothing."""
        if not self._rows:
            return []
        reasons, records, sources, offsets = zip(*self._rows, strict=True)
        table = pa.table(
            {
                "reason": pa.array(reasons, pa.string()),
                "record": pa.array(records, pa.string()),
                "source": pa.array(sources, pa.string()),
                "offset": pa.array(offsets, pa.int64()),
                "time": pa.repeat(pa.scalar(time, pa.int64()), len(reasons)).cast(TIME),
            }
        )
        return [write_file(path, "rejected", table, batch)]


_NOT_SHOWN = ("batch_time", "source", "offset", "problem", "raw")


def _text(row: Any) -> str:
    """The fields of one row that are there, as JSON."""
    names = [
        name
        for name in row.column_names
        if name not in _NOT_SHOWN and row[name].null_count < row.num_rows
    ]
    if "attributes" in names:
        names.remove("attributes")
        inner = row["attributes"].combine_chunks()
        table = row.select(names)
        for field, column in zip(inner.type, inner.flatten(), strict=True):
            if column.null_count < len(column) and field.name not in names:
                table = table.append_column(field.name, column)
        return row_text(table, 0)
    return row_text(row.select(names), 0)
