"""A micro-batch from records to files: the four steps that come before its commit."""

from __future__ import annotations

import secrets
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from stentor.model.time import LATEST
from stentor.pipeline.commit.failpoints import failpoint
from stentor.pipeline.commit.manifests import LiveSegment, Segment, TableFile
from stentor.pipeline.commit.new_files import explaining
from stentor.pipeline.stream.live import LiveIds
from stentor.pipeline.stream.matching import Chunk, Matching, MatchReport, Slice
from stentor.pipeline.stream.ordering import Marks, Order, put_in_order, write_order
from stentor.pipeline.stream.publishing import Publishing
from stentor.pipeline.stream.ranking import Ranking, RankReport
from stentor.pipeline.stream.reading import Reading, ReadPart, ReadReport
from stentor.pipeline.stream.replicas import ShardVersion
from stentor.pipeline.stream.runner import Runner
from stentor.pipeline.stream.settings import StreamSettings
from stentor.pipeline.stream.settling import SettleReport, Settling

Result = TypeVar("Result")

#: Fewer events than this are not worth a task of their own.
CHUNK_EVENTS = 250


@dataclass(frozen=True)
class Before:
    """What a micro-batch starts from."""

    marks: Marks
    shards: tuple[ShardVersion, ...]
    live: tuple[LiveSegment, ...]


@dataclass
class Outcome:
    """What a micro-batch led to; nothing of it counts until a manifest names it."""

    batch: int
    order: Order
    began: int  # the batch's own time
    segments: list[Segment] = field(default_factory=list)
    live: list[LiveSegment] = field(default_factory=list)
    files: dict[str, list[TableFile]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)

    def add_files(self, files: dict[str, list[TableFile]]) -> None:
        """Take in files of tables."""
        for table, new in files.items():
            self.files.setdefault(table, []).extend(new)


class MicroBatch:
    """One micro-batch on its way."""

    def __init__(
        self,
        runner: Runner,
        path: Path,
        batch: int,
        schema: bytes,
        settings: StreamSettings,
        before: Before,
        live_ids: LiveIds,
    ) -> None:
        self._runner = runner
        self._path = path
        self._batch = batch
        self._schema = schema
        self._settings = settings
        self._before = before
        self._live_ids = live_ids
        self._work = path / "work" / f"{batch}-{secrets.token_hex(8)}"
        self._time = 0  # the batch's own
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def run(self, records: Any) -> Outcome:
        """Take in *records*; what they led to."""
        with explaining(self._work):
            self._work.mkdir(parents=True)
        self._time = self._runner.batch_time(self._batch, records)
        is_plain = self._is_plain
        read = self._runner.only(records, events=False) if is_plain else records
        try:
            reports = self._timed("reading", lambda: self._read(read))
            failpoint("records-read")
            outcome = self._timed("ordering", lambda: self._order(reports))
            failpoint("order-written")
            parts = _parts(reports)
            self._timed("settling", lambda: self._settle(outcome, parts))
            failpoint("changes-settled")
            if is_plain:
                self._timed("publishing", lambda: self._publish(outcome, records))
            else:
                self._timed("matching", lambda: self._match(outcome, parts))
            failpoint("events-matched")
        finally:
            shutil.rmtree(self._work, ignore_errors=True)
        outcome.counts["rejected"] = sum(one.rows for one in outcome.files.get("rejected", ()))
        outcome.counts["delivered"] = sum(one.rows for one in outcome.files.get("deliveries", ()))
        outcome.seconds = dict(self._seconds)
        return outcome

    @property
    def _is_plain(self) -> bool:
        """Whether nothing about an event depends on another one."""
        settings = self._settings
        has_order = settings.has_order or settings.has_time or settings.keeps_events
        return not has_order and not self._before.live and len(self._before.shards) == 1

    def _publish(self, outcome: Outcome, records: Any) -> None:
        """Match the events as they are read: the short way."""
        step = Publishing(
            str(self._path),
            self._batch,
            self._schema,
            self._settings.limits,
            self._with_changes(self._before.shards[0], outcome.segments),
            outcome.order.seq + 1,
            max(outcome.order.time, self._time),
            self._time,
            self._settings.top,
        )
        for report in self._runner.publish(self._runner.only(records, events=True), step):
            outcome.add_files(report.files)
            outcome.counts["events"] += report.events
            outcome.counts["candidates"] += report.candidates
            outcome.counts["records"] += report.events
            outcome.counts["records"] += sum(one.rows for one in report.files["rejected"])
            for what, seconds in report.seconds.items():
                self._seconds[f"tasks {what}"] += seconds
        if outcome.counts["events"]:
            time = max(outcome.order.time, outcome.began)
            outcome.order = replace(outcome.order, seq=outcome.order.seq + 1, time=time)

    def _read(self, records: Any) -> list[ReadReport]:
        step = Reading(
            str(self._path),
            str(self._work),
            self._batch,
            self._schema,
            self._settings.limits,
            self._time,
            self._settings.has_time,
        )
        return self._runner.read(records, step)

    def _order(self, reports: Sequence[ReadReport]) -> Outcome:
        parts = _parts(reports)
        order = put_in_order(
            parts,
            self._work,
            self._before.marks,
            has_order=self._settings.has_order,
            live=self._live_ids,
            latest=self._latest,
        )
        write_order(self._work, order)
        outcome = Outcome(self._batch, order, self._time)
        for report in reports:
            outcome.add_files({"rejected": report.rejected})
        outcome.counts["events"] = sum(part.rows for part in parts if part.is_events)
        outcome.counts["changes"] = sum(part.rows for part in parts if not part.is_events)
        unreadable = sum(one.rows for one in outcome.files.get("rejected", ()))
        outcome.counts["records"] = sum(part.rows for part in parts) + unreadable
        return outcome

    @property
    def _latest(self) -> int:
        """The latest time that a record may have."""
        ahead = self._settings.most_ahead
        if ahead is None:
            return LATEST
        return min(LATEST, self._time + ahead // timedelta(microseconds=1))

    def _settle(self, outcome: Outcome, parts: Sequence[ReadPart]) -> None:
        names = tuple(part.name for part in parts if not part.is_events)
        if not names:
            return
        is_few = outcome.counts["changes"] <= self._settings.few_changes
        shards = self._before.shards
        shares = 1 if is_few else -(-self._runner.slots // len(shards))
        step = Settling(
            str(self._path), str(self._work), self._batch, self._time, names, shards, shares
        )
        tasks = len(shards) * shares
        if is_few:
            reports = [step.task(number) for number in range(tasks)]
        else:
            reports = self._runner.run(step, tasks, SettleReport)
        for report in reports:
            outcome.segments += [report.segment] if report.segment else []
            outcome.add_files(report.files)

    def _match(self, outcome: Outcome, parts: Sequence[ReadPart]) -> None:
        chunks = self._chunks(outcome, [part for part in parts if part.is_events])
        if not chunks:
            return
        shards = tuple(self._with_changes(shard, outcome.segments) for shard in self._before.shards)
        top = self._settings.top
        live = tuple(segment.name for segment in self._before.live)
        step = Matching(
            str(self._path), str(self._work), self._batch, self._time, chunks, live, shards, top
        )
        reports = self._runner.run(step, len(chunks) * len(shards), MatchReport)
        for report in reports:
            outcome.add_files(report.files)
            outcome.live += report.live
            outcome.counts["candidates"] += report.candidates
            for what, seconds in report.seconds.items():
                self._seconds[f"tasks {what}"] += seconds
        if top is not None and len(shards) > 1:
            self._rank(outcome, reports, len(shards), top)

    def _rank(
        self, outcome: Outcome, reports: Sequence[MatchReport], shards: int, top: int
    ) -> None:
        found = tuple(
            tuple(name for report in reports[start : start + shards] for name in report.found)
            for start in range(0, len(reports), shards)
        )
        step = Ranking(str(self._path), str(self._work), self._batch, found, top)
        for report in self._runner.run(step, len(found), RankReport):
            outcome.add_files({"deliveries": report.files})

    def _with_changes(self, shard: ShardVersion, segments: Sequence[Segment]) -> ShardVersion:
        own = tuple(segment for segment in segments if segment.shard == shard.shard)
        return replace(shard, batch=self._batch, segments=shard.segments + own)

    def _chunks(self, outcome: Outcome, parts: Sequence[ReadPart]) -> tuple[Chunk, ...]:
        """The events in about equal chunks; with changes, the live segments shared among them."""
        events = sum(part.rows for part in parts)
        live = self._live() if outcome.segments else ()
        if not events and not live:
            return ()
        most = max(1, self._runner.slots // len(self._before.shards))
        wanted = max(-(-events // CHUNK_EVENTS), len(live))
        count = min(most, max(1, wanted))
        bounds = np.linspace(0, events, count + 1).astype(int).tolist()
        return tuple(
            Chunk(tuple(_slices(parts, start, stop)), tuple(live[number::count]))
            for number, (start, stop) in enumerate(pairwise(bounds))
        )

    def _live(self) -> tuple[str, ...]:
        time = self._before.marks.time
        return tuple(segment.name for segment in self._before.live if segment.until > time)

    def _timed(self, step: str, work: Callable[[], Result]) -> Result:
        started = perf_counter()
        result = work()
        self._seconds[step] += perf_counter() - started
        return result


def _parts(reports: Sequence[ReadReport]) -> list[ReadPart]:
    return [part for report in reports for part in report.parts]


def _slices(parts: Sequence[ReadPart], start: int, stop: int) -> Iterator[Slice]:
    """The events *start* to *stop* of all *parts* together, part by part."""
    first = 0
    for part in parts:
        low, high = max(start, first), min(stop, first + part.rows)
        if low < high:
            yield Slice(part.name, low - first, high - first, low)
        first += part.rows
