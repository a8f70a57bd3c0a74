"""Workers: events × shards → files of deliveries.

A chunk of events is matched with a shard, and the shard's changes with the live events. Events that
depend on no other (no order, none stays live) are matched as they are read: the short path.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from time import process_time
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stentor.encoding.columns import EventColumns, Int64, UInt8, event_count, read_only
from stentor.encoding.ragged import concatenate, events_between, take
from stentor.engine.ids import StringArrays, StringStore
from stentor.engine.state import State
from stentor.index.catalog import structure_class
from stentor.index.structure import Structure
from stentor.index.verify.candidates import Tally
from stentor.model.record import Operation
from stentor.model.values.time import NEVER
from stentor.pipeline.commit.manifests import LiveSegment, TableFile
from stentor.pipeline.storage.folder import StreamFolder
from stentor.pipeline.stream.deliveries import (
    MATCHED,
    NOW,
    WAS,
    DeliveryFiles,
    Inclusion,
    answer_changes,
    matched_or_not,
    passed,
    unmatched,
    without_dictionaries,
    write_best,
)
from stentor.pipeline.stream.ended import open_ended, uptos
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

    path: StreamFolder
    work: StreamFolder
    batch: int
    batch_time: int
    chunks: tuple[EventChunk, ...]
    live: tuple[tuple[str, str], ...]  # all segments of live events, and files of what ended
    shards: tuple[ShardState, ...]  # with the changes of this batch
    groups: int
    keep: int  # shards that a process holds
    top: int | None
    has_order: bool
    has_ended: bool  # whether live events were updated or withdrawn
    stayed: bool  # whether deliveries also say who wants an updated event as before
    included: Inclusion | None = None

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


class _KeptEvents(NamedTuple):
    """Events of a batch that stay live for a while."""

    columns: EventColumns
    ids: StringArrays
    rows: Any
    upto: Int64  # at which seq they ended in the same batch, or NEVER


class _Task:
    """One chunk of events and one shard of subscriptions."""

    def __init__(self, step: MatchStep, chunk: EventChunk, shard: ShardState) -> None:
        self._step = step
        self._chunk = chunk
        self._shard = shard
        self._is_first = shard.shard == 0
        self._path, self._work = step.path, step.work
        self._rejections = RejectedWriter()
        self._deliveries = DeliveryFiles(self._path, step.batch)
        self._files: dict[str, list[TableFile]] = {"events": []}
        self._seconds = {"opening": 0.0, "matching": 0.0, "writing": 0.0}
        self._kept: list[_KeptEvents] = []
        self._withdrawn: list[tuple[EventColumns, Any]] = []
        self._found: list[str] = []
        self._events = 0

    def run(self) -> MatchReport:
        started, candidates_before = process_time(), Tally.candidates
        state = replica(self._shard, self._step.keep).state
        keep_open(self._step.path, [name for name, _ in self._step.live])
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
        operation = part.operation[piece.start : piece.stop][admitted]
        if state.index.count:
            self._deliver(state, events, rows, operation, piece.position + admitted)
        self._spend("matching", started)
        kept = np.flatnonzero(events.until != NEVER)
        if len(kept):
            taken = rows.take(pa.array(kept))
            upto = ordered.upto[admitted[kept]]
            ids = StringArrays.of(taken["id"])
            self._kept.append(_KeptEvents(take(events, kept), ids, taken, upto))
        gone = np.flatnonzero(operation == Operation.WITHDRAW)
        if len(gone):
            self._withdrawn.append((take(events, gone), rows.take(pa.array(gone))))

    def _deliver(
        self, state: State, events: EventColumns, rows: Any, operation: UInt8, positions: Int64
    ) -> None:
        """Match *events*, and what those of them replaced or withdrew that are at *positions*."""
        which: Int64 = np.arange(len(operation))
        mark = np.where(operation == Operation.PUBLISH, MATCHED, NOW)
        if (operation != Operation.PUBLISH).any():
            which = np.flatnonzero(operation != Operation.WITHDRAW)
            events, which, mark = self._with_ended(events, which, mark[which], positions)
        taken = pa.array(which)
        order = rows["order"].take(taken) if self._step.has_order else None
        found, failed = matched_or_not(
            state, events, rows["id"].take(taken), self._step.top, order, mark, self._step.included
        )
        if found:
            deliveries = found[0]
            if len(found) > 1:
                deliveries = pa.concat_tables([without_dictionaries(one) for one in found])
            if self._step.top is not None and len(self._step.shards) > 1:
                name = f"found-{secrets.token_hex(8)}"
                write_best(self._work, name, without_dictionaries(deliveries))
                self._found.append(name)
            else:
                is_plain = bool((mark == MATCHED).all())
                self._deliveries.add(
                    deliveries if is_plain else passed(deliveries, stayed=self._step.stayed)
                )
        for position, why in failed:
            row = int(which[position])
            self._rejections.add_row(rows, row, unmatched(rows["id"][row].as_py(), why))

    def _with_ended(
        self, events: EventColumns, new: Int64, mark: Int64, positions: Int64
    ) -> tuple[EventColumns, Int64, Int64]:
        """The *new* ones of *events* and what they or others ended; whose each is, and marks."""
        columns = take(events, new)
        if not self._step.has_ended:
            return columns, new, mark
        ended = open_ended(self._work)
        own = np.flatnonzero(np.isin(ended.position, positions))
        by = np.searchsorted(positions, ended.position[own])
        old = take(ended.columns, own)._replace(
            time=read_only(events.time[by]), seq=read_only(events.seq[by])
        )
        return (
            concatenate([columns, old]),
            np.concatenate([new, by]),
            np.concatenate([mark, np.full(len(by), WAS)]),
        )

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
        if not (self._kept or self._withdrawn) or not self._is_first:
            return []
        started = process_time()
        segments = []
        if lasting := [one for one in self._kept if (one.upto == NEVER).any()]:
            still = [np.flatnonzero(one.upto == NEVER) for one in lasting]
            both = list(zip(lasting, still, strict=True))
            live = concatenate([take(one.columns, own) for one, own in both])
            ids = pa.concat_tables(
                [one.rows.select(["id"]).take(pa.array(own)) for one, own in both]
            )
            segments.append(
                write_live(self._path, self._step.batch, live, StringArrays.of(ids["id"]))
            )
        self._log_events()
        self._spend("writing", started)
        return segments

    def _log_events(self) -> None:
        """Write the live events to their table; what was withdrawn has ended with that."""
        gone = [(columns._replace(until=columns.time), rows) for columns, rows in self._withdrawn]
        both = [*((one.columns, one.rows) for one in self._kept), *gone]
        columns = concatenate([columns for columns, _ in both])
        rows = pa.concat_tables([rows for _, rows in both])
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
        names, has_ended = dict(self._step.live), self._step.has_ended
        for name in self._chunk.live:
            events, ids = live_index(self._step.path, name, structure)
            count = events.live.count
            upto = uptos(self._path, self._work, names, name, count, has_ended=has_ended)
            self._add_differences(queries, events, ids, upto)
        for columns, own_ids, _, upto in self._kept:
            events = structure_class(structure).of_events(columns)
            self._add_differences(queries, events, StringStore(own_ids), upto)

    def _add_differences(
        self, queries: LiveQueries, events: Structure, ids: StringStore, upto: Int64 | None
    ) -> None:
        def attempt(some: Int64) -> Any:
            own = queries if len(some) == len(queries.seq) else queries.take(some)
            return answer_changes(own, events, ids, upto, has_order=self._step.has_order)

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

    path: StreamFolder
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
    included: Inclusion | None = None

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
        files = DeliveryFiles(self.path, self.batch)
        events, matching = 0, 0.0
        for table in (good for part in in_parts(batches) for good in reader.usable(part)):
            columns, rows = reader.events(table)
            reader.rejections.flush_if_large(self.path, self.batch, self.batch_time)
            is_published = pc.all(pc.equal(rows["op"], "publish")).as_py() is not False
            if not is_published or (columns.until != NEVER).any():
                return PublishReport(0, {}, 0, {}, has_live=True)
            count = event_count(columns)
            events += count
            if not count or not state.index.count:
                continue
            started = process_time()
            ordered = columns._replace(
                seq=read_only(np.full(count, self.seq)), time=read_only(np.full(count, self.time))
            )
            found, failed = matched_or_not(
                state, ordered, rows["id"], self.top, included=self.included
            )
            for deliveries in found:
                files.add(deliveries)
            for position, why in failed:
                reader.rejections.add_row(
                    rows, position, unmatched(rows["id"][position].as_py(), why)
                )
            events -= len(failed)
            matching += process_time() - started
        matching -= files.seconds  # what was written in between; the last file is written now
        written = {
            "deliveries": files.close(),
            "rejected": reader.rejections.write(self.path, self.batch, self.batch_time),
        }
        seconds = {
            "opening": opening,
            "matching": matching,
            "writing": files.seconds,
            "reading": process_time() - began - opening - matching - files.seconds,
        }
        candidates = Tally.candidates - candidates_before
        return PublishReport(
            events, written, candidates, seconds, seen=dict(reader.seen), sources=reader.sources
        )
