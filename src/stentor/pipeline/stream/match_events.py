"""Workers: events × shards → files of deliveries.

A chunk of events is matched with a shard, and the shard's changes with the live events. Events that
depend on no other (no order, none stays live) are matched as they are read: the short path.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from time import process_time
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from stentor.encoding.columns import EventColumns, Int64, event_count, read_only
from stentor.encoding.ragged import concatenate, events_between, take
from stentor.engine.ids import StringArrays, StringStore
from stentor.engine.state import State
from stentor.index.catalog import structure_class
from stentor.index.structure import Structure
from stentor.index.verify.candidates import Tally
from stentor.model.values.time import NEVER
from stentor.pipeline.commit.manifests import LiveSegment, TableFile
from stentor.pipeline.stream.deliveries import (
    DeliveryFiles,
    answer_changes,
    matched_or_not,
    unmatched,
    without_dictionaries,
    write_best,
)
from stentor.pipeline.stream.isolating import isolated
from stentor.pipeline.stream.order import (
    ADMITTED,
    OrderedRecords,
    open_order,
    refusal_text,
    refused_rows,
)
from stentor.pipeline.stream.read_records import PartitionReader, in_parts
from stentor.pipeline.stream.rejected import BLOCK_ROWS, RejectedWriter
from stentor.pipeline.stream.runner import report_batch
from stentor.pipeline.stream.segments import (
    LiveQueries,
    keep_open,
    live_index,
    open_events,
    open_live_queries,
    open_rows,
    write_live,
)
from stentor.pipeline.stream.settings import FrameSettings
from stentor.pipeline.stream.shards import ShardState, replica
from stentor.pipeline.tables.files import moments, write_files
from stentor.wire.limits import RecordLimits


class EventSlice(msgspec.Struct, frozen=True):
    """Events *start* to *stop* of a part; the first is at *position* among those of the batch."""

    part: str
    start: int
    stop: int
    position: int


class EventChunk(msgspec.Struct, frozen=True):
    """What the tasks of one chunk look at: new events, and segments of events that were live."""

    slices: tuple[EventSlice, ...]
    live: tuple[str, ...]


class MatchReport(msgspec.Struct, frozen=True):
    """What one task of the matching step reports."""

    files: dict[str, list[TableFile]]
    live: list[LiveSegment]
    found: list[str]  # where several shards are ranked together: files of this one's best
    events: int
    candidates: int  # pairs that had to be compared exactly
    seconds: dict[str, float]


@dataclass(frozen=True)
class MatchStep:
    """The matching step of one micro-batch.

    Task number n is chunk n // groups and group n % groups of the shards. The first shard's tasks
    also see to what concerns the events alone.
    """

    path: str
    work: str
    batch: int
    batch_time: int
    chunks: tuple[EventChunk, ...]
    live: tuple[str, ...]  # all segments of live events that there are
    shards: tuple[ShardState, ...]  # with the changes of this batch
    groups: int
    keep: int  # shards that a process holds
    top: int | None
    has_order: bool

    def shards_of(self, piece: int) -> tuple[ShardState, ...]:
        """The shards that the task number *piece* matches with."""
        return self.shards[piece % self.groups :: self.groups]

    def task(self, number: int) -> MatchReport:
        """Match one chunk with one group of shards."""
        chunk = self.chunks[number // self.groups]
        first, *others = (_Task(self, chunk, shard).run() for shard in self.shards_of(number))
        return reduce(joined, others, first)


def joined(one: MatchReport, other: MatchReport) -> MatchReport:
    """What two tasks of one chunk report, together."""
    tables = one.files.keys() | other.files.keys()
    return MatchReport(
        {name: [*one.files.get(name, ()), *other.files.get(name, ())] for name in tables},
        one.live + other.live,
        one.found + other.found,
        one.events,
        one.candidates + other.candidates,
        {what: seconds + other.seconds[what] for what, seconds in one.seconds.items()},
    )


class _Task:
    """One chunk of events and one shard of subscriptions."""

    def __init__(self, step: MatchStep, chunk: EventChunk, shard: ShardState) -> None:
        self._step = step
        self._chunk = chunk
        self._shard = shard
        self._is_first = shard.shard == 0
        self._path, self._work = Path(step.path), Path(step.work)
        self._rejections = RejectedWriter()
        self._deliveries = DeliveryFiles(self._path, step.batch)
        self._files: dict[str, list[TableFile]] = {"events": []}
        self._seconds = {"opening": 0.0, "matching": 0.0, "writing": 0.0}
        self._kept: list[tuple[EventColumns, StringArrays, Any]] = []
        self._found: list[str] = []
        self._events = 0

    def run(self) -> MatchReport:
        started, candidates_before = process_time(), Tally.candidates
        state = replica(self._shard, self._step.keep).state
        keep_open(self._step.path, self._step.live)
        self._spend("opening", started)
        for piece in self._chunk.slices:
            self._match(state, piece)
        live = self._hold()
        self._match_back()
        self._files["deliveries"] = self._deliveries.close()
        self._files["rejected"] = self._rejections.write(
            self._path, self._step.batch, self._step.batch_time
        )
        self._seconds["writing"] += self._deliveries.seconds
        return MatchReport(
            self._files,
            live,
            self._found,
            self._events,
            Tally.candidates - candidates_before,
            self._seconds,
        )

    def _match(self, state: State, piece: EventSlice) -> None:
        started = process_time()
        part = open_events(self._work, piece.part)
        rows = open_rows(self._work, piece.part).slice(piece.start, piece.stop - piece.start)
        stop = piece.position + piece.stop - piece.start
        ordered = open_order(self._work, "events").part(piece.position, stop)
        admitted = np.flatnonzero(ordered.refused == ADMITTED)
        if self._is_first and len(admitted) < len(ordered.refused):
            self._refuse(rows, ordered, part.columns.until[piece.start : piece.stop])
        columns = part.columns
        if len(ordered.refused) < len(part.order):
            columns = events_between(columns, piece.start, piece.stop)
        if len(admitted) < len(ordered.refused):
            columns = take(columns, admitted)
            rows = rows.take(pa.array(admitted))
        events = columns._replace(
            time=read_only(ordered.time[admitted]), seq=read_only(ordered.seq[admitted])
        )
        self._events += len(admitted)
        if state.index.count:
            self._deliver(state, events, rows)
        self._spend("matching", started)
        kept = np.flatnonzero(events.until != NEVER)
        if len(kept):
            taken = rows.take(pa.array(kept))
            self._kept.append((take(events, kept), StringArrays.of(taken["id"]), taken))

    def _deliver(self, state: State, events: EventColumns, rows: Any) -> None:
        order = rows["order"] if self._step.has_order else None
        found, failed = matched_or_not(state, events, rows["id"], self._step.top, order)
        for deliveries in found:
            if self._step.top is not None and len(self._step.shards) > 1:
                name = f"found-{secrets.token_hex(8)}"
                write_best(self._work, name, without_dictionaries(deliveries))
                self._found.append(name)
            else:
                self._deliveries.add(deliveries)
        for position, why in failed:
            self._rejections.add_row(rows, position, unmatched(rows["id"][position].as_py(), why))

    def _refuse(self, rows: Any, ordered: OrderedRecords, until: Int64) -> None:
        refused = refused_rows(ordered.refused)
        for start in range(0, len(refused), BLOCK_ROWS):
            some = refused[start : start + BLOCK_ROWS]
            ids = rows["id"].take(pa.array(some)).to_pylist()
            refusals = zip(
                ordered.refused[some].tolist(),
                ids,
                until[some].tolist(),
                ordered.time[some].tolist(),
                strict=True,
            )
            self._rejections.add_rows(rows, some, [refusal_text(*one) for one in refusals])
            self._rejections.flush_if_large(self._path, self._step.batch, self._step.batch_time)

    def _hold(self) -> list[LiveSegment]:
        """Keep the events that stay live; the first shard's task writes them."""
        if not self._kept or not self._is_first:
            return []
        started = process_time()
        columns = concatenate([columns for columns, _, _ in self._kept])
        rows = pa.concat_tables([rows for _, _, rows in self._kept])
        segment = write_live(self._path, self._step.batch, columns, StringArrays.of(rows["id"]))
        table = {"id": rows["id"]}
        if rows["attributes"].type.num_fields:
            table["attributes"] = rows["attributes"]
        table |= {
            "until": moments(columns.until),
            "seq": pa.array(columns.seq),
            "time": moments(columns.time),
        }
        if self._step.has_order:
            table["order"] = rows["order"]
        self._files["events"] += write_files(
            self._path, "events", pa.table(table), self._step.batch
        )
        self._spend("writing", started)
        return [segment]

    def _match_back(self) -> None:
        """Match this batch's changes of the shard with live events, new and old."""
        started = process_time()
        for segment in self._shard.segments:
            if segment.first != self._step.batch:
                continue
            queries = open_live_queries(self._path, segment.name)
            if len(queries.seq):
                self._match_live(queries)
        self._spend("matching", started)

    def _match_live(self, queries: LiveQueries) -> None:
        # Where shards have chosen different structures, that of the first will do.
        structure = self._shard.index.partition(",")[0]
        for name in self._chunk.live:
            self._add_differences(queries, *live_index(self._step.path, name, structure))
        for columns, ids, _ in self._kept:
            events = structure_class(structure).of_events(columns)
            self._add_differences(queries, events, StringStore(ids))

    def _add_differences(self, queries: LiveQueries, events: Structure, ids: StringStore) -> None:
        def attempt(some: Int64) -> Any:
            own = queries if len(some) == len(queries.seq) else queries.take(some)
            return answer_changes(own, events, ids, has_order=self._step.has_order)

        done, failed = isolated(len(queries.seq), attempt)
        for _, deliveries in done:
            self._deliveries.add(deliveries)
        if failed:
            changed = queries.ids.arrow.take(
                pa.array([position for position, _ in failed])
            ).to_pylist()
            raw = [msgspec.json.encode({"id": id}).decode() for id in changed]
            changes = pa.table({"raw": raw, "source": pa.nulls(len(raw), pa.string())})
            self._rejections.add_texts(
                changes,
                [
                    f"the change of {id!r} took effect, and cannot be matched with live events "
                    f"({why}); report this, with the subscription"
                    for id, (_, why) in zip(changed, failed, strict=True)
                ],
            )

    def _spend(self, what: str, started: float) -> None:
        self._seconds[what] += process_time() - started


class PublishReport(msgspec.Struct, frozen=True):
    """What one task of the publishing step reports."""

    events: int
    files: dict[str, list[TableFile]]
    candidates: int
    seconds: dict[str, float]
    has_live: bool = False  # an event stays live, so that nothing of this counts
    seen: dict[int, int] = {}  # as in a ReadReport
    sources: dict[str, int] = {}


@dataclass(frozen=True)
class ShortPathStep:
    """The publishing step of one micro-batch: what `mapInArrow` runs on each partition."""

    path: str
    batch: int
    schema: bytes  # JSON
    limits: RecordLimits
    shard: ShardState  # with the changes of this batch
    seq: int  # the position of all events in the order
    time: int  # that the order has come to, or the batch's own time if that is later
    batch_time: int
    top: int | None
    frames: tuple[FrameSettings, ...] = ()
    is_judged: bool = False

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Publish a partition; one row comes out: its report."""
        yield report_batch(self.publish(batches))

    def publish(self, batches: Iterator[Any]) -> PublishReport:
        """Publish the events of a partition."""
        began, candidates_before = process_time(), Tally.candidates
        state = replica(self.shard, keep=1).state
        opening = process_time() - began
        reader = PartitionReader(
            self.schema, self.limits, self.batch_time, self.frames, is_judged=self.is_judged
        )
        files = DeliveryFiles(Path(self.path), self.batch)
        events, matching = 0, 0.0
        for table in (good for part in in_parts(batches) for good in reader.usable(part)):
            columns, rows = reader.events(table)
            reader.rejections.flush_if_large(Path(self.path), self.batch, self.batch_time)
            if (columns.until != NEVER).any():
                return PublishReport(0, {}, 0, {}, has_live=True)
            count = event_count(columns)
            events += count
            if not count or not state.index.count:
                continue
            started = process_time()
            ordered = columns._replace(
                seq=read_only(np.full(count, self.seq)), time=read_only(np.full(count, self.time))
            )
            found, failed = matched_or_not(state, ordered, rows["id"], self.top)
            for deliveries in found:
                files.add(deliveries)
            for position, why in failed:
                reader.rejections.add_row(
                    rows, position, unmatched(rows["id"][position].as_py(), why)
                )
            events -= len(failed)
            matching += process_time() - started
        written = {
            "deliveries": files.close(),
            "rejected": reader.rejections.write(Path(self.path), self.batch, self.batch_time),
        }
        seconds = {
            "opening": opening,
            "matching": matching - files.seconds,
            "writing": files.seconds,
            "reading": process_time() - began - opening - matching,
        }
        candidates = Tally.candidates - candidates_before
        return PublishReport(
            events, written, candidates, seconds, seen=dict(reader.seen), sources=reader.sources
        )
