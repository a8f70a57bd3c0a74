"""Bad records on their way to the table of rejected ones: reason, raw text, where from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stentor.encoding.columns import Int64
from stentor.pipeline.commit.manifests import TableFile
from stentor.pipeline.stream.record_texts import readable, record_texts
from stentor.pipeline.tables.files import TIME, table_folder, write_file
from stentor.wire.frames import take_rows
from stentor.wire.rejected import raw_text

#: Records that become texts at a time.
BLOCK_ROWS = 4_096

#: Bytes of texts that are held before `relieve` writes a file.
HELD_BYTES = 32_000_000


class _Waiting(NamedTuple):
    """Rows of one table that came one by one."""

    table: Any
    rows: list[int]
    reasons: list[str]


class Rejections:
    """Rejected records of one task: texts in Arrow's memory until they are in a file.

    Cost: 2 µs for a record of five fields, in blocks of `BLOCK_ROWS`.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, _Waiting] = {}  # by the identity of the table
        self._waiting_rows = 0
        self._held: list[Any] = []
        self._held_bytes = 0
        self._files: list[TableFile] = []

    def add_texts(self, table: Any, reasons: Sequence[str]) -> None:
        """Take in all rows of *table*, which has the records' own texts in the column `raw`."""
        for start in range(0, table.num_rows, BLOCK_ROWS):
            block = table.slice(start, BLOCK_ROWS)
            raw = readable(block["raw"]).to_pylist()
            texts = pa.array([raw_text(one or "") for one in raw], pa.string())
            self._hold(block, texts, reasons[start : start + BLOCK_ROWS])

    def add_rows(self, table: Any, rows: Int64, reasons: Sequence[str]) -> None:
        """Take in *rows*, in ascending order, of a *table* of canonical records."""
        taken = take_rows(table, rows)
        for start in range(0, len(rows), BLOCK_ROWS):
            block = taken.slice(start, BLOCK_ROWS)
            self._hold(block, record_texts(block), reasons[start : start + BLOCK_ROWS])

    def add_row(self, table: Any, row: int, reason: str) -> None:
        """Take in one row, together with others of the same *table* that come before and after."""
        waiting = self._waiting.get(id(table))
        if waiting is None:
            waiting = self._waiting[id(table)] = _Waiting(table, [], [])
        waiting.rows.append(row)
        waiting.reasons.append(reason)
        self._waiting_rows += 1
        if self._waiting_rows >= BLOCK_ROWS:
            self._add_waiting()

    def relieve(self, path: Path, batch: int, time: int) -> None:
        """Write a file if much is held: to be called every few thousand records."""
        if self._held_bytes >= HELD_BYTES:
            self._write(path, batch, time)

    def write(self, path: Path, batch: int, time: int) -> list[TableFile]:
        """Write what is left; all files, none where nothing was rejected."""
        self._add_waiting()
        self._write(path, batch, time)
        return self._files

    def _add_waiting(self) -> None:
        waiting, self._waiting, self._waiting_rows = self._waiting, {}, 0
        for table, rows, reasons in waiting.values():
            order = np.argsort(rows, kind="stable")
            ascending = np.array(rows, np.int64)[order]
            self.add_rows(table, ascending, [reasons[place] for place in order.tolist()])

    def _hold(self, block: Any, texts: Any, reasons: Sequence[str]) -> None:
        has_offset = "offset" in block.column_names
        held = pa.table(
            {
                "reason": pa.array(map(raw_text, reasons), pa.string()),
                "record": texts,
                "source": readable(block["source"]),
                "offset": block["offset"] if has_offset else pa.nulls(len(texts), pa.int64()),
            }
        )
        self._held.append(held)
        self._held_bytes += held.nbytes

    def _write(self, path: Path, batch: int, time: int) -> None:
        if not self._held:
            return
        table = pa.concat_tables(self._held)
        times = pa.repeat(pa.scalar(time, pa.int64()), table.num_rows).cast(TIME)
        self._files.append(write_file(path, "rejected", table.append_column("time", times), batch))
        self._held, self._held_bytes = [], 0


def first_reason(path: Path, files: Sequence[TableFile]) -> str:
    """Why the first record in *files* of the table was rejected."""
    rows = pq.read_table(table_folder(path, "rejected") / files[0].name, columns=["reason"])
    return str(rows["reason"][0])
