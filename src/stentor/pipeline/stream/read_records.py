"""The first step of a micro-batch, in the workers: canonical records → encoded parts.

Arrow in, files out: what returns to the driver are the names and counts of the files. A record
that cannot be used goes to the table of rejected records and takes no part in the order.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stentor.encoding.columns import EventColumns, Int64, UInt8
from stentor.encoding.template import SubscriptionHeads
from stentor.encoding.texts import TextEncoder
from stentor.engine.ids import StringArrays
from stentor.errors import StentorError
from stentor.model import Schema
from stentor.model.record import EVENT_OPS, Operation
from stentor.model.values.time import BEGINNING, FOR_GOOD, NEVER
from stentor.pipeline.commit.manifests import TableFile
from stentor.pipeline.sources.text_records import TextReader, as_stored
from stentor.pipeline.storage.folder import StreamFolder
from stentor.pipeline.stream.rejected import RejectedWriter, readable
from stentor.pipeline.stream.runner import report_batch
from stentor.pipeline.stream.segments import ChangePart, EventPart, write_changes, write_events
from stentor.pipeline.stream.settings import FrameSettings, lane_name
from stentor.wire.cells.layout import one_array
from stentor.wire.cells.string import not_utf8, string_array
from stentor.wire.cells.time import filled
from stentor.wire.limits import RecordLimits
from stentor.wire.records import (
    check_change,
)
from stentor.wire.rejected import raw_text
from stentor.wire.tables import RecordTable, positions_of, read_event_table, read_table, take_rows

_FIELDS = ("op", "id", "expression", "at", "until", "time")
#: Records that are encoded at a time, and that a part holds.
PART_ROWS = 65_536
#: What is kept of a record besides its encoded form.
_KEPT = ("op", "id", "order", "time", "until", "attributes", "source", "offset", "frame")
#: What makes an event, by its name in a table of events.
_EVENT = ("id", "time", "until", "weights", "attributes")
#: What is reported of a record that is known to be bad.
_REJECTED = ("problem", "raw", "source", "offset")
#: Attributes of records that were read from texts, in the types that tables have.
_STORED = "stored"
_WITHDRAWN_UNTIL = "until: what withdraws an event has an id, and no end"
_BROKEN_NAME = "weights: a name is not UTF-8; save the text as UTF-8"


class ReadPart(msgspec.Struct, frozen=True):
    """A part that was written: its name, whether it holds events, how many records."""

    name: str
    is_events: bool
    rows: int


class ReadReport(msgspec.Struct, frozen=True):
    """What one task of the reading step reports."""

    partition: int
    parts: list[ReadPart]
    rejected: list[TableFile]
    seen: dict[int, int] = {}  # records by frame, bad ones among them
    sources: dict[str, int] = {}  # the frame of each source, where that is wanted
    reached: dict[str, int] = {}  # the largest position in the order, by lane


@dataclass(frozen=True)
class ReadStep:
    """The reading step of one micro-batch: what `mapInArrow` runs on each partition."""

    path: StreamFolder
    work: StreamFolder
    batch: int
    schema: bytes  # JSON
    limits: RecordLimits
    batch_time: int  # the batch's own time
    has_time: bool  # whether records carry their time; else the batch's own serves
    frames: tuple[FrameSettings, ...] = ()
    is_judged: bool = False  # whether the frame of each source is wanted

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Read a partition; one row comes out: its report."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield report_batch(self.read(context.partitionId(), batches))

    def read(self, number: int, batches: Iterator[Any]) -> ReadReport:
        """Read the partition *number*."""
        partition = _Partition(self, number)
        rejections = partition.reader.rejections
        for table in in_parts(batches):
            partition.read(table)
            rejections.flush_if_large(self.path, self.batch, self.batch_time)
        rejected = rejections.write(self.path, self.batch, self.batch_time)
        reader = partition.reader
        return ReadReport(
            number,
            partition.parts,
            rejected,
            dict(reader.seen),
            reader.sources,
            partition.reached,
        )


class PartitionReader:
    """Reads a partition's records; what cannot be used is rejected."""

    def __init__(
        self,
        schema: bytes,
        limits: RecordLimits,
        default_time: int,
        frames: Sequence[FrameSettings] = (),
        *,
        is_judged: bool = False,
    ) -> None:
        """Read records of *schema*; one that does not say its time has the *default_time*.

        Where *is_judged*, the sources of each of the *frames* are kept.
        """
        self._limits = limits
        self._default_time = default_time
        self._readers = readers(schema, limits)
        self._texts = {
            number: TextReader(one.texts, self._readers.schema, limits)
            for number, one in enumerate(frames)
            if one.texts is not None
        }
        self._is_judged = is_judged
        self.seen: Counter[int] = Counter()
        self.sources: dict[str, int] = {}
        self.rejections = RejectedWriter()

    def usable(self, table: Any) -> Iterator[Any]:
        """The records of *table*, in tables, without those that are known to be bad already."""
        if self._is_judged and "frame" in table.column_names:
            named = pa.table({"source": readable(table["source"]), "frame": table["frame"]})
            for one in named.group_by(["source", "frame"]).aggregate([]).to_pylist():
                self.sources[one["source"] or ""] = one["frame"]
        is_text = pc.and_(pc.is_valid(table["raw"]), pc.is_null(table["problem"]))
        if pc.any(is_text).as_py():
            for number, reader in self._texts.items():
                own = table.filter(pc.and_(is_text, pc.equal(table["frame"], number)))
                if own.num_rows:
                    yield self._read(own, reader)
            table = table.filter(pc.invert(is_text))
        self._count(table)
        has_problem = pc.is_valid(table["problem"])
        if pc.any(has_problem).as_py():
            bad = table.select([name for name in _REJECTED if name in table.column_names])
            bad = bad.filter(has_problem)
            self.rejections.add_texts(bad, readable(bad["problem"]).to_pylist())
            table = table.filter(pc.invert(has_problem))
        if table.num_rows:
            yield table

    def _read(self, table: Any, reader: TextReader) -> Any:
        """The records of a *table* of texts."""
        bad: list[tuple[int, str, str]] = []
        sources = readable(table["source"])
        records, rows = reader.read(
            one_array(table["raw"]).cast(pa.binary()),
            sources.to_pylist(),
            lambda row, reason, raw: bad.append((row, reason, raw_text(raw))),
        )
        self._count(take_rows(table, np.concatenate([rows, [row for row, _, _ in bad]])))
        origin = table.select([n for n in ("source", "offset", "frame") if n in table.column_names])
        if bad:
            rejected = take_rows(origin, np.array([row for row, _, _ in bad], np.int64))
            rejected = rejected.append_column(
                "raw", pa.array([raw for _, _, raw in bad], pa.string())
            )
            self.rejections.add_texts(rejected, [reason for _, reason, _ in bad])
        taken = take_rows(origin, rows)
        for name in taken.column_names:
            records = records.append_column(name, taken[name])
        stored = as_stored(one_array(records["attributes"]), table.schema.field("attributes").type)
        return records.append_column(_STORED, stored)

    def _count(self, table: Any) -> None:
        """Count the records of *table*, by frame."""
        if "frame" not in table.column_names:
            self.seen[0] += table.num_rows
            return
        for found in table["frame"].value_counts().to_pylist():
            self.seen[found["values"]] += found["counts"]

    def events(self, table: Any) -> tuple[EventColumns, Any]:
        """The usable events of *table*, and the rows that they are."""
        table = self._without_ends(self._with_readable_weights(table))
        read = read_event_table(
            table.select([name for name in _EVENT if name in table.column_names]),
            self._readers.schema,
            default_time=self._default_time,
            limits=self._limits,
        )
        self._reject(table, {one.row: one.reason for one in read.rejected if one.row is not None})
        kept = table if len(read.rows) == table.num_rows else take_rows(table, read.rows)
        columns = read.columns
        is_update = pc.equal(kept["op"], "update").to_numpy() & (columns.until == NEVER)
        if is_update.any():
            columns = columns._replace(until=np.where(is_update, FOR_GOOD, columns.until))
        if _STORED in kept.column_names:
            position = kept.column_names.index("attributes")
            kept = kept.set_column(position, "attributes", kept[_STORED])
        return columns, kept.select([name for name in _KEPT if name in kept.column_names])

    def changes(self, table: Any) -> tuple[ChangePart, Any]:
        """The usable changes of *table*, and the rows that they are."""
        part, rows, errors = read_changes(
            table, orders(table), self._readers, self._default_time, self._limits
        )
        self._reject(table, errors)
        return part, take_rows(table, rows)

    def _with_readable_weights(self, table: Any) -> Any:
        """*table* without the rows whose weights have names that no attribute can have."""
        rows = _rows_of_broken_names(table)
        if not len(rows):
            return table
        self._reject(table, dict.fromkeys(rows.tolist(), _BROKEN_NAME))
        return take_rows(table, np.delete(np.arange(table.num_rows), rows))

    def _without_ends(self, table: Any) -> Any:
        """*table* without the rows that withdraw an event and say an end."""
        if "until" not in table.column_names:
            return table
        is_bad = pc.and_(pc.equal(table["op"], "withdraw"), pc.is_valid(table["until"]))
        rows = np.flatnonzero(is_bad.to_numpy())
        if not len(rows):
            return table
        self._reject(table, dict.fromkeys(rows.tolist(), _WITHDRAWN_UNTIL))
        return take_rows(table, np.delete(np.arange(table.num_rows), rows))

    def _reject(self, table: Any, reasons: dict[int, str]) -> None:
        if reasons:
            rows = sorted(reasons)
            self.rejections.add_rows(table, np.array(rows), [reasons[row] for row in rows])


class _Partition:
    """A partition that becomes parts."""

    def __init__(self, step: ReadStep, number: int) -> None:
        self._number = number
        self._folder = step.work
        default_time = BEGINNING if step.has_time else step.batch_time
        self.reader = PartitionReader(
            step.schema, step.limits, default_time, step.frames, is_judged=step.is_judged
        )
        self._frames = [one.name for one in step.frames]
        self.parts: list[ReadPart] = []
        self.reached: dict[str, int] = {}

    def read(self, table: Any) -> None:
        """Write the events and the changes of *table* to parts."""
        for good in self.reader.usable(table):
            is_event = pc.is_in(good["op"], pa.array(EVENT_OPS))
            self._read_events(good.filter(is_event))
            self._read_changes(good.filter(pc.invert(is_event)))

    def _read_events(self, table: Any) -> None:
        if not table.num_rows:
            return
        columns, rows = self.reader.events(table)
        if rows.num_rows:
            self._reach(rows)
            hashes = StringArrays.of(rows["id"]).hashes()
            part = EventPart(columns, orders(rows), hashes, operations(rows["op"]))
            write_events(self._folder, self._part(is_events=True, rows=rows.num_rows), part, rows)

    def _read_changes(self, table: Any) -> None:
        if not table.num_rows:
            return
        part, rows = self.reader.changes(table)
        if rows.num_rows:
            self._reach(rows)
            name = self._part(is_events=False, rows=rows.num_rows)
            write_changes(self._folder, name, part, rows)

    def _reach(self, rows: Any) -> None:
        """Keep how far the records of each lane have come."""
        if "order" not in rows.column_names or len(self._frames) == 0:
            return
        frame = rows["frame"] if "frame" in rows.column_names else pa.repeat(0, len(rows))
        source = readable(rows["source"])
        given = pa.table({"frame": frame, "source": source, "order": rows["order"]})
        for one in given.group_by(["frame", "source"]).aggregate([("order", "max")]).to_pylist():
            if one["order_max"] is not None:
                lane = lane_name(self._frames[one["frame"]], one["source"])
                self.reached[lane] = max(one["order_max"], self.reached.get(lane, one["order_max"]))

    def _part(self, *, is_events: bool, rows: int) -> str:
        # The token keeps a second attempt of a task apart from the first.
        name = f"{self._number}-{len(self.parts)}-{secrets.token_hex(4)}"
        self.parts.append(ReadPart(name, is_events, rows))
        return name


def operations(ops: Any) -> UInt8:
    """The `Operation` of each of *ops*."""
    found = np.zeros(len(ops), np.uint8)
    for op in pc.unique(ops).to_pylist():
        found[pc.equal(ops, op).to_numpy()] = Operation.of(op)
    return found


class ProcessReader(NamedTuple):
    """What a process reads records with."""

    schema: Schema
    texts: TextEncoder


@lru_cache(maxsize=4)
def readers(schema: bytes, limits: RecordLimits) -> ProcessReader:
    """What this process reads records of *schema* with: shapes of texts stay remembered."""
    known = Schema.from_dict(msgspec.json.decode(schema))
    return ProcessReader(known, TextEncoder(known, limits.expression))


def read_changes(
    table: Any, order: Int64, readers: ProcessReader, default_time: int, limits: RecordLimits
) -> tuple[ChangePart, Int64, dict[int, str]]:
    """The usable changes of *table*, the rows that they are, and why the others are not usable."""
    named = table.select([name for name in _FIELDS if name in table.column_names])
    rows = np.arange(table.num_rows)
    fields = _fields(named, readers, limits)
    errors = dict(fields.rejected)
    if errors:  # what is in a bad row may have no form in Python
        rows = np.delete(rows, list(errors))
        named = take_rows(named, rows)
        fields = _fields(named, readers, limits)
    ops = string_array(fields.op).to_pylist()
    ids = string_array(fields.ids).to_pylist()
    texts = named["expression"].to_pylist()
    at = positions_of(fields.others.get("at"), len(rows))
    until = filled(fields.until, NEVER)
    wrong: dict[int, str] = {}  # by position among *rows*
    for position, op in enumerate(ops):
        try:
            check_change(
                op,
                texts[position],
                has_at=not np.isnan(at[position, 0]),
                has_until=until[position] != NEVER,
            )
        except StentorError as error:
            wrong[position] = str(error)
    new = np.array(
        [
            position
            for position, op in enumerate(ops)
            if op == "subscribe" and position not in wrong
        ],
        np.int64,
    )
    heads = SubscriptionHeads([ids[position] for position in new], at[new], until[new])
    encoded = readers.texts.encode([texts[position] for position in new], heads)
    wrong |= {int(new[position]): str(error) for position, error in encoded.errors.items()}
    column = np.full(len(rows), -1, np.int64)
    column[new[encoded.rows]] = np.arange(len(encoded.rows))
    kept = np.array([position for position in range(len(rows)) if position not in wrong], np.int64)
    errors |= {int(rows[position]): reason for position, reason in wrong.items()}
    part = ChangePart(
        operation=np.array([Operation.of(ops[position]) for position in kept], np.uint8),
        ids=StringArrays.of([ids[position] for position in kept]),
        texts=StringArrays.of([texts[position] or "" for position in kept]),
        order=order[rows[kept]],
        time=filled(fields.time, default_time)[kept],
        until=until[kept],
        position=at[kept],
        place=column[kept],
        columns=encoded.columns,
    )
    return part, rows[kept], errors


def _fields(named: Any, readers: ProcessReader, limits: RecordLimits) -> RecordTable:
    return read_table(named, readers.schema, limits, others=("expression", "at"))


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


def orders(table: Any) -> Int64:
    """The positions of the records in the user's order; 0 where there is none."""
    if "order" not in table.column_names:
        return np.zeros(table.num_rows, np.int64)
    filled: Int64 = pc.fill_null(table["order"], 0).to_numpy()
    return np.ascontiguousarray(filled, np.int64)


def _rows_of_broken_names(table: Any) -> Int64:
    """The rows in whose weights a name is not UTF-8."""
    weights = one_array(table["weights"]) if "weights" in table.column_names else None
    if weights is None or weights.null_count == len(weights):
        return np.zeros(0, np.int64)
    starts = weights.offsets.to_numpy()
    is_broken = not_utf8(weights.keys[int(starts[0]) : int(starts[-1])])
    rows = np.repeat(np.arange(len(weights)), np.diff(starts))
    return np.unique(rows[is_broken])
