"""The first step of a micro-batch, in the workers: canonical records → encoded parts.

Arrow in, files out: what returns to the driver are the names and counts of the files. A record
that cannot be used goes to the table of rejected records and takes no part in the order.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stentor.encoding.columns import EventColumns, Int64
from stentor.encoding.texts import TextEncoder
from stentor.engine.names import StringArrays
from stentor.model import Schema
from stentor.model.time import BEGINNING
from stentor.pipeline.commit.manifests import TableFile
from stentor.pipeline.frames.canonical import UNREADABLE, reason_for
from stentor.pipeline.stream.parts import ChangePart, EventPart, write_changes, write_events
from stentor.pipeline.stream.reading_changes import Readers, read_changes
from stentor.pipeline.stream.record_texts import readable
from stentor.pipeline.stream.rejections import Rejections
from stentor.pipeline.stream.runner import reported
from stentor.wire.cells.arrays import one_array
from stentor.wire.cells.strings import not_utf8
from stentor.wire.event_tables import events_from_table
from stentor.wire.frames import take_rows
from stentor.wire.limits import RecordLimits

#: Records that are encoded at a time, and that a part holds.
PART_ROWS = 65_536

#: What is kept of a record besides its encoded form.
_KEPT = ("id", "order", "time", "until", "attributes", "source", "offset")
#: What makes an event, by its name in a table of events.
_EVENT = ("id", "time", "until", "weights", "attributes")
#: What is told of a record that is known to be bad.
_TOLD = ("problem", "raw", "source", "offset")
_BROKEN_NAME = "weights: a name is not UTF-8; save the text as UTF-8"


class ReadPart(msgspec.Struct, frozen=True):
    """A part that was written: its name, whether it holds events, how many records."""

    name: str
    is_events: bool
    rows: int


class ReadReport(msgspec.Struct, frozen=True):
    """What one task of the reading step tells the driver."""

    partition: int
    parts: list[ReadPart]
    rejected: list[TableFile]


@dataclass(frozen=True)
class Reading:
    """The reading step of one micro-batch: what `mapInArrow` runs on each partition."""

    path: str
    work: str
    batch: int
    schema: bytes  # JSON
    limits: RecordLimits
    batch_time: int  # the batch's own time
    has_time: bool  # whether records carry their time; else the batch's own serves

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Read a partition; one row comes out: its report."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield reported(self.read(context.partitionId(), batches))

    def read(self, number: int, batches: Iterator[Any]) -> ReadReport:
        """Read the partition *number*."""
        partition = _Partition(self, number)
        rejections = partition.reader.rejections
        for table in in_parts(batches):
            partition.read(table)
            rejections.relieve(Path(self.path), self.batch, self.batch_time)
        rejected = rejections.write(Path(self.path), self.batch, self.batch_time)
        return ReadReport(number, partition.parts, rejected)


class PartitionReader:
    """Reads a partition's records; what cannot be used is rejected."""

    def __init__(self, schema: bytes, limits: RecordLimits, default_time: int) -> None:
        """Read records of *schema*; one that does not say its time has the *default_time*."""
        self._limits = limits
        self._default_time = default_time
        self._readers = readers(schema, limits)
        self.rejections = Rejections()

    def usable(self, table: Any) -> Any:
        """The records of *table* without those that are known to be bad already."""
        has_problem = pc.is_valid(table["problem"])
        if not pc.any(has_problem).as_py():
            return table
        bad = table.select([name for name in _TOLD if name in table.column_names])
        bad = bad.filter(has_problem)
        self.rejections.add_texts(bad, self._explained(bad))
        return table.filter(pc.invert(has_problem))

    def events(self, table: Any) -> tuple[EventColumns, Any]:
        """The usable events of *table*, and the rows that they are."""
        table = self._with_readable_weights(table)
        read = events_from_table(
            table.select([name for name in _EVENT if name in table.column_names]),
            self._readers.schema,
            default_time=self._default_time,
            limits=self._limits,
        )
        self._reject(table, {one.row: one.reason for one in read.rejected if one.row is not None})
        kept = table if len(read.rows) == table.num_rows else take_rows(table, read.rows)
        return read.columns, kept.select([name for name in _KEPT if name in kept.column_names])

    def changes(self, table: Any) -> tuple[ChangePart, Any]:
        """The usable changes of *table*, and the rows that they are."""
        part, rows, errors = read_changes(
            table, orders(table), self._readers, self._default_time, self._limits
        )
        self._reject(table, errors)
        return part, take_rows(table, rows)

    def _explained(self, bad: Any) -> list[str]:
        """Why the records *bad* are bad, of which sources have found no more than a problem."""
        reasons: list[str] = readable(bad["problem"]).to_pylist()
        is_unread = pc.and_(pc.equal(bad["problem"], UNREADABLE), pc.is_valid(bad["raw"]))
        for row in np.flatnonzero(is_unread.to_numpy()).tolist():
            raw = bad["raw"][row].as_buffer().to_pybytes().decode("utf-8", "replace")
            reasons[row] = reason_for(raw, self._readers.schema)
        return reasons

    def _with_readable_weights(self, table: Any) -> Any:
        """*table* without the rows whose weights have names that no attribute can have."""
        rows = _rows_of_broken_names(table)
        if not len(rows):
            return table
        self._reject(table, dict.fromkeys(rows.tolist(), _BROKEN_NAME))
        return take_rows(table, np.delete(np.arange(table.num_rows), rows))

    def _reject(self, table: Any, reasons: dict[int, str]) -> None:
        if reasons:
            rows = sorted(reasons)
            self.rejections.add_rows(table, np.array(rows), [reasons[row] for row in rows])


class _Partition:
    """A partition on its way into parts."""

    def __init__(self, step: Reading, number: int) -> None:
        self._number = number
        self._folder = Path(step.work)
        default_time = BEGINNING if step.has_time else step.batch_time
        self.reader = PartitionReader(step.schema, step.limits, default_time)
        self.parts: list[ReadPart] = []

    def read(self, table: Any) -> None:
        """Write the events and the changes of *table* to a part each."""
        good = self.reader.usable(table)
        is_event = pc.fill_null(pc.equal(good["op"], "publish"), False)
        self._read_events(good.filter(is_event))
        self._read_changes(good.filter(pc.invert(is_event)))

    def _read_events(self, table: Any) -> None:
        if not table.num_rows:
            return
        columns, rows = self.reader.events(table)
        if rows.num_rows:
            part = EventPart(columns, orders(rows), StringArrays.of(rows["id"]).hashes())
            write_events(self._folder, self._part(is_events=True, rows=rows.num_rows), part, rows)

    def _read_changes(self, table: Any) -> None:
        if not table.num_rows:
            return
        part, rows = self.reader.changes(table)
        if rows.num_rows:
            name = self._part(is_events=False, rows=rows.num_rows)
            write_changes(self._folder, name, part, rows)

    def _part(self, *, is_events: bool, rows: int) -> str:
        # The token keeps a second attempt of a task apart from the first.
        name = f"{self._number}-{len(self.parts)}-{secrets.token_hex(4)}"
        self.parts.append(ReadPart(name, is_events, rows))
        return name


@lru_cache(maxsize=4)
def readers(schema: bytes, limits: RecordLimits) -> Readers:
    """What this process reads records of *schema* with: shapes of texts stay remembered."""
    known = Schema.from_dict(msgspec.json.decode(schema))
    return Readers(known, TextEncoder(known, limits.expression))


def in_parts(batches: Iterator[Any]) -> Iterator[Any]:
    """Arrow batches joined to tables of about `PART_ROWS` rows."""
    gathered: list[Any] = []
    rows = 0
    for batch in batches:
        if batch.num_rows:
            gathered.append(batch)
            rows += batch.num_rows
        if rows >= PART_ROWS:
            yield pa.Table.from_batches(gathered)
            gathered, rows = [], 0
    if gathered:
        yield pa.Table.from_batches(gathered)


def _rows_of_broken_names(table: Any) -> Int64:
    """The rows in whose weights a name is not UTF-8."""
    weights = one_array(table["weights"]) if "weights" in table.column_names else None
    if weights is None or weights.null_count == len(weights):
        return np.zeros(0, np.int64)
    starts = weights.offsets.to_numpy()
    is_broken = not_utf8(weights.keys[int(starts[0]) : int(starts[-1])])
    rows = np.repeat(np.arange(len(weights)), np.diff(starts))
    return np.unique(rows[is_broken])


def orders(table: Any) -> Int64:
    """The places of the records in the user's order; 0 where there is none."""
    if "order" not in table.column_names:
        return np.zeros(table.num_rows, np.int64)
    filled: Int64 = pc.fill_null(table["order"], 0).to_numpy()
    return np.ascontiguousarray(filled, np.int64)
