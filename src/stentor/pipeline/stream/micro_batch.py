"""A micro-batch from records to files: the four steps that come before its commit."""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from stentor.model.values.time import LATEST
from stentor.pipeline.commit.failpoints import failpoint
from stentor.pipeline.commit.manifests import Lane, LiveSegment, Segment, TableFile, WaitingPart
from stentor.pipeline.storage.folder import StreamFolder
from stentor.pipeline.stream.deliveries import Inclusion, RankReport, RankStep
from stentor.pipeline.stream.ended import write_ended
from stentor.pipeline.stream.match_events import (
    EventChunk,
    EventSlice,
    MatchReport,
    MatchStep,
    ShortPathStep,
)
from stentor.pipeline.stream.order import (
    REPEAT,
    Order,
    OrderPosition,
    aligned,
    order_records,
    read_recent,
    seen_at,
    set_apart,
    taken_up,
    write_order,
    write_recent,
)
from stentor.pipeline.stream.plan_changes import ChangeReport, PlanChangesStep
from stentor.pipeline.stream.read_records import ReadPart, ReadReport, ReadStep
from stentor.pipeline.stream.runner import PieceStep, Report, Runner, run_pieces
from stentor.pipeline.stream.segments import LiveIdIndex
from stentor.pipeline.stream.settings import FrameSettings, StreamSettings
from stentor.pipeline.stream.shards import ShardState

Result = TypeVar("Result")

#: Fewer events than this are not worth a task of their own.
CHUNK_EVENTS = 250


@dataclass(frozen=True)
class BatchStart:
    """What a micro-batch starts from."""

    position: OrderPosition
    shards: tuple[ShardState, ...]
    live: tuple[LiveSegment, ...]
    lanes: dict[str, Lane] = field(default_factory=dict)
    waiting: tuple[WaitingPart, ...] = ()
    recent: str = ""


@dataclass
class MicroBatchResult:
    """What a micro-batch led to; nothing of it counts until a manifest names it."""

    batch: int
    order: Order
    began: int  # the batch's own time
    segments: list[Segment] = field(default_factory=list)
    live: list[LiveSegment] = field(default_factory=list)
    ended: dict[str, LiveSegment] = field(default_factory=dict)  # those that lost events, by name
    files: dict[str, list[TableFile]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    seen: Counter[int] = field(default_factory=Counter)  # records by frame, bad ones among them
    sources: dict[str, int] = field(default_factory=dict)  # the frame of each, where it is wanted
    reasons: dict[str, int] = field(default_factory=dict)  # why most were rejected
    lanes: dict[str, Lane] = field(default_factory=dict)
    waiting: list[WaitingPart] = field(default_factory=list)
    recent: str = ""

    def live_after(self, before: Sequence[LiveSegment]) -> tuple[LiveSegment, ...]:
        """The segments of live events after this batch."""
        every = (*(self.ended.get(one.name, one) for one in before), *self.live)
        return tuple(one for one in every if one.until > self.order.time)

    def add_files(self, files: dict[str, list[TableFile]]) -> None:
        """Take in files of tables."""
        for table, new in files.items():
            self.files.setdefault(table, []).extend(new)


class MicroBatch:
    """One micro-batch while it runs."""

    def __init__(
        self,
        runner: Runner,
        path: StreamFolder,
        batch: int,
        schema: bytes,
        settings: StreamSettings,
        before: BatchStart,
        live_ids: LiveIdIndex,
        frames: tuple[FrameSettings, ...] = (),
        *,
        is_judged: bool = False,
        source_batch: int | None = None,
        on_trial: bool = False,
    ) -> None:
        """Take in *batch* after *before*.

        *on_trial* inserts new subscriptions into an index before they count: the batch has failed.
        """
        self._runner = runner
        self._path = path
        self._batch = batch
        self._schema = schema
        self._settings = settings
        self._before = before
        self._live_ids = live_ids
        self._on_trial = on_trial
        self._frames = frames
        self._is_judged = is_judged
        self._source_batch = batch if source_batch is None else source_batch
        self._work = path / "work" / path.fresh(batch)
        self._time = 0  # the batch's own
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def run(self, records: Any) -> MicroBatchResult:
        """Take in *records*; what they led to. None are there where only those that wait count."""
        if records is None:
            self._time = self._runner.clock()
        else:
            self._time = self._runner.batch_time(self._source_batch, records)
        result = self._taken_in(records, is_plain=True) if self._is_plain else None
        # Where an event turns out to stay live, what the short path has done counts for nothing.
        if result is None:
            result = self._taken_in(records, is_plain=False)
            assert result is not None
        return result

    def _taken_in(self, records: Any, *, is_plain: bool) -> MicroBatchResult | None:
        """What *records* led to; None where the short path, *is_plain*, is not for them."""
        self._work.make()
        read = self._runner.only(records, events=False) if is_plain else records
        try:
            reports = [] if records is None else self._timed("reading", lambda: self._read(read))
            failpoint("records-read")
            parts, waiting, lanes = self._timed("aligning", lambda: self._aligned(reports))
            if is_plain and any(part.is_events for part in parts):
                return None  # they update or withdraw
            result = self._timed("ordering", lambda: self._order(reports, parts))
            result.waiting, result.lanes = waiting, lanes
            failpoint("order-written")
            self._timed("settling", lambda: self._plan_changes(result, parts))
            failpoint("changes-settled")
            if is_plain:
                if not self._timed("publishing", lambda: self._publish(result, records)):
                    return None
            else:
                self._timed("matching", lambda: self._match(result, parts))
            failpoint("events-matched")
        finally:
            self._work.remove_all()
        result.counts["rejected"] = sum(one.rows for one in result.files.get("rejected", ()))
        result.counts["delivered"] = sum(one.rows for one in result.files.get("deliveries", ()))
        result.seconds = dict(self._seconds)
        return result

    @property
    def _is_plain(self) -> bool:
        """Whether nothing about an event depends on another one."""
        settings = self._settings
        has_order = settings.has_order or settings.has_time or settings.keeps_events
        return not has_order and not self._before.live and len(self._before.shards) == 1

    def _publish(self, result: MicroBatchResult, records: Any) -> bool:
        """Match the events as they are read, by the short path; whether none of them stays live."""
        step = ShortPathStep(
            self._path,
            self._batch,
            self._schema,
            self._settings.limits,
            self._with_changes(self._before.shards[0], result.segments),
            result.order.seq + 1,
            max(result.order.time, self._time),
            self._time,
            self._settings.top,
            self._frames,
            self._is_judged,
            Inclusion.of(self._settings.include, self._schema),
        )
        reports = self._runner.publish(self._runner.only(records, events=True), step)
        if any(report.has_live for report in reports):
            return False
        for report in reports:
            result.add_files(report.files)
            result.seen.update(report.seen)
            result.sources |= report.sources
            result.counts["events"] += report.events
            result.counts["candidates"] += report.candidates
            result.counts["records"] += report.events
            result.counts["records"] += sum(one.rows for one in report.files["rejected"])
            for what, seconds in report.seconds.items():
                self._seconds[f"tasks {what}"] += seconds
        if result.counts["events"]:
            time = max(result.order.time, result.began)
            result.order = replace(result.order, seq=result.order.seq + 1, time=time)
        return True

    def _read(self, records: Any) -> list[ReadReport]:
        step = ReadStep(
            self._path,
            self._work,
            self._batch,
            self._schema,
            self._settings.limits,
            self._time,
            self._settings.has_time,
            self._frames,
            self._is_judged,
        )
        return self._runner.read(records, step)

    def _aligned(
        self, reports: Sequence[ReadReport]
    ) -> tuple[list[ReadPart], list[WaitingPart], dict[str, Lane]]:
        """The parts of this batch, those that wait for slower sources, and how far all are."""
        settings, before = self._settings, self._before
        parts = [*taken_up(self._path, self._work, before.waiting), *_parts(reports)]
        if not settings.has_order or not self._frames:
            return parts, [], before.lanes
        reached: dict[str, int] = {}
        for report in reports:
            for lane, position in report.reached.items():
                reached[lane] = max(position, reached.get(lane, position))
        if not reports:  # nobody is waited for
            return parts, [], before.lanes
        lanes, frontier = aligned(
            before.lanes,
            [frame.name for frame in self._frames],
            reached,
            now=self._time,
            idle=settings.idle // timedelta(microseconds=1),
            lateness=settings.lateness_units,
        )
        if len(lanes) == 1 and not settings.lateness_units:
            return parts, [], lanes
        ready, waiting = set_apart(self._path, self._work, parts, frontier, before.waiting)
        return ready, waiting, seen_at(lanes, reached, self._runner.clock())

    def _order(self, reports: Sequence[ReadReport], parts: Sequence[ReadPart]) -> MicroBatchResult:
        recent = read_recent(self._path, self._before.recent)
        order = order_records(
            parts,
            self._work,
            self._before.position,
            has_order=self._settings.has_order,
            live=self._live_ids,
            latest=self._latest,
            recent=recent,
        )
        write_order(self._work, order)
        ended: dict[str, LiveSegment] = {}
        if order.ended:
            events = [part for part in parts if part.is_events]
            ended = write_ended(self._work, self._path, order.ended, events, self._before.live)
        result = MicroBatchResult(
            self._batch, order, self._time, ended=ended, recent=self._before.recent
        )
        if order.taken is not None and len(order.taken):
            result.recent = write_recent(self._path, recent, order.taken)
        result.counts["repeats"] = sum(
            int((one.refused == REPEAT).sum()) for one in (order.changes, order.events)
        )
        for report in reports:
            result.add_files({"rejected": report.rejected})
            result.seen.update(report.seen)
            result.sources |= report.sources
        result.counts["events"] = sum(part.rows for part in parts if part.is_events)
        result.counts["changes"] = sum(part.rows for part in parts if not part.is_events)
        unreadable = sum(one.rows for one in result.files.get("rejected", ()))
        result.counts["records"] = sum(part.rows for part in parts) + unreadable
        return result

    @property
    def _latest(self) -> int:
        """The latest time that a record may have."""
        ahead = self._settings.most_ahead
        if ahead is None:
            return LATEST
        return min(LATEST, self._time + ahead // timedelta(microseconds=1))

    def _plan_changes(self, result: MicroBatchResult, parts: Sequence[ReadPart]) -> None:
        names = tuple(part.name for part in parts if not part.is_events)
        if not names:
            return
        is_few = result.counts["changes"] <= self._settings.few_changes
        shards = self._before.shards
        groups = len(shards) if is_few else self._groups
        shares = 1 if is_few else -(-self._runner.slots // groups)
        step = PlanChangesStep(
            self._path,
            self._work,
            self._batch,
            self._time,
            names,
            shards,
            groups,
            shares,
            len(shards) if is_few else self._shards_kept,
            self._settings.has_order,
            self._on_trial,
        )
        if is_few:
            reports = [step.task(number) for number in range(groups)]
        else:
            reports = self._run(step, groups * shares, ChangeReport)
        for report in reports:
            result.segments += report.segments
            result.add_files(report.files)

    def _match(self, result: MicroBatchResult, parts: Sequence[ReadPart]) -> None:
        chunks = self._chunks(result, [part for part in parts if part.is_events])
        if not chunks:
            return
        shards = tuple(self._with_changes(shard, result.segments) for shard in self._before.shards)
        top = self._settings.top
        live = tuple((segment.name, segment.ended) for segment in self._before.live)
        step = MatchStep(
            self._path,
            self._work,
            self._batch,
            self._time,
            chunks,
            live,
            shards,
            self._groups,
            self._shards_kept,
            top,
            self._settings.has_order,
            bool(result.order.ended),
            self._settings.stayed,
            Inclusion.of(self._settings.include, self._schema),
        )
        reports = self._run(step, len(chunks) * self._groups, MatchReport)
        for report in reports:
            result.add_files(report.files)
            result.live += report.live
            result.counts["candidates"] += report.candidates
            for what, seconds in report.seconds.items():
                self._seconds[f"tasks {what}"] += seconds
        if top is not None and len(shards) > 1:
            self._rank(result, reports, top)

    @property
    def _groups(self) -> int:
        """How many tasks share the shards: where these are more, a task takes several."""
        return min(len(self._before.shards), self._runner.slots)

    @property
    def _shards_kept(self) -> int:
        """How many shards a worker holds."""
        return -(-len(self._before.shards) // self._groups)

    def _run(self, step: PieceStep, pieces: int, report: type[Report]) -> list[Report]:
        if self._groups == 1:
            return self._runner.run(step, pieces, report)
        folder = self._work / f"claims-{secrets.token_hex(4)}"
        return run_pieces(self._runner, step, pieces, report, folder)

    def _rank(self, result: MicroBatchResult, reports: Sequence[MatchReport], top: int) -> None:
        groups = self._groups
        found = tuple(
            tuple(name for report in reports[start : start + groups] for name in report.found)
            for start in range(0, len(reports), groups)
        )
        settings = self._settings
        step = RankStep(self._path, self._work, self._batch, found, top, settings.stayed)
        for report in self._runner.run(step, len(found), RankReport):
            result.add_files({"deliveries": report.files})

    def _with_changes(self, shard: ShardState, segments: Sequence[Segment]) -> ShardState:
        own = tuple(segment for segment in segments if segment.shard == shard.shard)
        return replace(shard, batch=self._batch, segments=shard.segments + own)

    def _chunks(
        self, result: MicroBatchResult, parts: Sequence[ReadPart]
    ) -> tuple[EventChunk, ...]:
        """The events in about equal chunks; with changes, the live segments shared among them."""
        events = sum(part.rows for part in parts)
        live = self._live() if result.segments else ()
        if not events and not live:
            return ()
        most = max(1, self._runner.slots // len(self._before.shards))
        wanted = max(-(-events // CHUNK_EVENTS), len(live))
        count = min(most, max(1, wanted))
        bounds = np.linspace(0, events, count + 1).astype(int).tolist()
        return tuple(
            EventChunk(tuple(_slices(parts, start, stop)), tuple(live[number::count]))
            for number, (start, stop) in enumerate(pairwise(bounds))
        )

    def _live(self) -> tuple[str, ...]:
        time = self._before.position.time
        return tuple(segment.name for segment in self._before.live if segment.until > time)

    def _timed(self, step: str, work: Callable[[], Result]) -> Result:
        started = perf_counter()
        result = work()
        self._seconds[step] += perf_counter() - started
        return result


def _parts(reports: Sequence[ReadReport]) -> list[ReadPart]:
    return [part for report in reports for part in report.parts]


def _slices(parts: Sequence[ReadPart], start: int, stop: int) -> Iterator[EventSlice]:
    """The events *start* to *stop* of all *parts* together, part by part."""
    first = 0
    for part in parts:
        low, high = max(start, first), min(stop, first + part.rows)
        if low < high:
            yield EventSlice(part.name, low - first, high - first, low)
        first += part.rows
