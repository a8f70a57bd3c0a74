"""The fourth step of a micro-batch, in the workers: events × subscriptions → files of deliveries.

A task takes a chunk of the events and a shard of the subscriptions: it matches the events with
them, and the changes of that shard backwards with the live events of the chunk.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from stentor.encoding.columns import EventColumns, Int64
from stentor.encoding.ragged import concatenate, events_between, take
from stentor.encoding.readonly import read_only
from stentor.engine.names import StringArrays, Strings
from stentor.engine.state import State
from stentor.index.catalog import structure_class
from stentor.index.verify.candidates import Tally
from stentor.model.time import NEVER
from stentor.pipeline.commit.manifests import LiveSegment, TableFile
from stentor.pipeline.stream.backwards import differences
from stentor.pipeline.stream.deliveries import DeliveryFiles, matched, plain
from stentor.pipeline.stream.live import keep_open, live_index, write_live
from stentor.pipeline.stream.ordering import ADMITTED, Ordered, open_order, reason
from stentor.pipeline.stream.parts import open_events, open_rows
from stentor.pipeline.stream.ranking import write_found
from stentor.pipeline.stream.rejections import BLOCK_ROWS, Rejections
from stentor.pipeline.stream.replicas import ShardVersion, replica
from stentor.pipeline.stream.segments import Asked, open_asked
from stentor.pipeline.tables.files import moments, write_file


class Slice(msgspec.Struct, frozen=True):
    """Events *start* to *stop* of a part; the first of them is at *place* in the batch's order."""

    part: str
    start: int
    stop: int
    place: int


class Chunk(msgspec.Struct, frozen=True):
    """What the tasks of one chunk look at: new events, and segments of events that were live."""

    slices: tuple[Slice, ...]
    live: tuple[str, ...]


class MatchReport(msgspec.Struct, frozen=True):
    """What one task of the matching step tells the driver."""

    files: dict[str, list[TableFile]]
    live: list[LiveSegment]
    found: list[str]  # where several shards are ranked together: files of this one's best
    events: int
    candidates: int  # pairs that had to be compared exactly
    seconds: dict[str, float]


@dataclass(frozen=True)
class Matching:
    """The matching step of one micro-batch.

    Task number n is chunk n // shards and shard n % shards. The first shard's tasks also see to
    what concerns the events alone.
    """

    path: str
    work: str
    batch: int
    batch_time: int
    chunks: tuple[Chunk, ...]
    live: tuple[str, ...]  # all segments of live events that there are
    shards: tuple[ShardVersion, ...]  # with the changes of this batch
    top: int | None

    def task(self, number: int) -> MatchReport:
        """Match one chunk with one shard."""
        chunk, shard = divmod(number, len(self.shards))
        return _Task(self, self.chunks[chunk], self.shards[shard], is_first=shard == 0).run()


class _Task:
    """One chunk of events and one shard of subscriptions."""

    def __init__(
        self, step: Matching, chunk: Chunk, shard: ShardVersion, *, is_first: bool
    ) -> None:
        self._step = step
        self._chunk = chunk
        self._shard = shard
        self._is_first = is_first
        self._path, self._work = Path(step.path), Path(step.work)
        self._rejections = Rejections()
        self._deliveries = DeliveryFiles(self._path, step.batch)
        self._files: dict[str, list[TableFile]] = {"events": []}
        self._seconds = {"opening": 0.0, "matching": 0.0, "writing": 0.0}
        self._kept: list[tuple[EventColumns, StringArrays, Any]] = []
        self._found: list[str] = []
        self._events = 0

    def run(self) -> MatchReport:
        started, settled = process_time(), Tally.candidates
        state = replica(self._shard).state
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
            Tally.candidates - settled,
            self._seconds,
        )

    def _match(self, state: State, piece: Slice) -> None:
        started = process_time()
        part = open_events(self._work, piece.part)
        rows = open_rows(self._work, piece.part).slice(piece.start, piece.stop - piece.start)
        stop = piece.place + piece.stop - piece.start
        ordered = open_order(self._work, "events").part(piece.place, stop)
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
            self._deliver(state, events, rows["id"])
        self._spend("matching", started)
        kept = np.flatnonzero(events.until != NEVER)
        if len(kept):
            taken = rows.take(pa.array(kept))
            self._kept.append((take(events, kept), StringArrays.of(taken["id"]), taken))

    def _deliver(self, state: State, events: EventColumns, ids: Any) -> None:
        deliveries = matched(state, events, ids, self._step.top)
        if self._step.top is not None and len(self._step.shards) > 1:
            name = f"found-{secrets.token_hex(8)}"
            write_found(self._work, name, plain(deliveries))
            self._found.append(name)
        else:
            self._deliveries.add(deliveries)

    def _refuse(self, rows: Any, ordered: Ordered, until: Int64) -> None:
        refused = np.flatnonzero(ordered.refused != ADMITTED)
        for start in range(0, len(refused), BLOCK_ROWS):
            some = refused[start : start + BLOCK_ROWS]
            ids = rows["id"].take(pa.array(some)).to_pylist()
            told = zip(
                ordered.refused[some].tolist(),
                ids,
                until[some].tolist(),
                ordered.time[some].tolist(),
                strict=True,
            )
            self._rejections.add_rows(rows, some, [reason(*one) for one in told])
            self._rejections.relieve(self._path, self._step.batch, self._step.batch_time)

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
        self._files["events"].append(
            write_file(self._path, "events", pa.table(table), self._step.batch)
        )
        self._spend("writing", started)
        return [segment]

    def _match_back(self) -> None:
        """Match this batch's changes of the shard with live events, new and old."""
        started = process_time()
        for segment in self._shard.segments:
            if segment.first != self._step.batch:
                continue
            asked = open_asked(self._path, segment.name)
            if len(asked.seq):
                self._ask(asked)
        self._spend("matching", started)

    def _ask(self, asked: Asked) -> None:
        for name in self._chunk.live:
            self._deliveries.add(
                differences(asked, *live_index(self._step.path, name, self._shard.index))
            )
        for columns, ids, _ in self._kept:
            events = structure_class(self._shard.index).over_events(columns)
            self._deliveries.add(differences(asked, events, Strings(ids)))

    def _spend(self, what: str, started: float) -> None:
        self._seconds[what] += process_time() - started
