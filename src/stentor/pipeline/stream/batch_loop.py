"""The loop of a stream: micro-batch after micro-batch, each committed as a whole or not at all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from threading import Lock, Timer
from time import perf_counter
from typing import Any

import msgspec

from stentor.errors import FolderError, RecordError
from stentor.index.catalog import AUTO
from stentor.model import Schema
from stentor.model.values.time import BEGINNING
from stentor.pipeline.commit.failpoints import failpoint
from stentor.pipeline.commit.housekeeping import Housekeeping
from stentor.pipeline.commit.manifests import LiveSegment, Manifest, Segment
from stentor.pipeline.storage.folder import StreamFolder, stream_folder
from stentor.pipeline.stream.bases import (
    BackgroundBuilder,
    BaseReport,
    BuildBasesStep,
    BuiltBases,
    built,
    fold,
    is_as_chosen,
    join_live,
)
from stentor.pipeline.stream.isolating import may_be_of_a_record
from stentor.pipeline.stream.micro_batch import BatchStart, MicroBatch, MicroBatchResult
from stentor.pipeline.stream.order import OrderPosition
from stentor.pipeline.stream.progress import BatchProgress
from stentor.pipeline.stream.rejected import FirstRecords, rejected_rows
from stentor.pipeline.stream.runner import Runner
from stentor.pipeline.stream.segments import LiveIdIndex
from stentor.pipeline.stream.settings import FrameSettings, StreamSettings
from stentor.pipeline.stream.shards import ShardState

_LOG = logging.getLogger(__name__)

#: The share of rejected records is looked at once so many have come.
LEAST_JUDGED = 100
#: So many reasons of a batch are reported.
MOST_REASONS = 5


@dataclass(frozen=True)
class StreamState:
    """The subscriptions and live events of a stream: which files hold them."""

    index: str  # as the manifest says it
    shards: int
    why: str = ""
    bases: tuple[str, ...] = ()
    base_batch: int = -1
    segments: tuple[Segment, ...] = ()
    live: tuple[LiveSegment, ...] = ()
    subscriptions: int = 0

    @classmethod
    def after(cls, manifest: Manifest) -> StreamState:
        """What *manifest* names."""
        return cls(
            manifest.index,
            manifest.shards,
            manifest.why,
            tuple(manifest.bases),
            manifest.base_batch,
            tuple(manifest.segments),
            tuple(manifest.live),
            manifest.counts["subscriptions"],
        )

    def versions(self, path: StreamFolder, batch: int, cache: str | None) -> tuple[ShardState, ...]:
        """The shards as they are after *batch*."""
        return tuple(
            ShardState(
                path,
                shard,
                self.index,
                self.bases[shard] if self.bases else "",
                self.base_batch,
                batch,
                tuple(one for one in self.segments if one.shard == shard),
                cache,
            )
            for shard in range(self.shards)
        )

    def adopt(self, bases: BuiltBases) -> StreamState:
        """The same on new *bases*, and the segments that these do not hold."""
        later = tuple(one for one in self.segments if one.first > bases.batch)
        return replace(
            self,
            index=bases.index,
            why=bases.why,
            shards=len(bases.names),
            bases=tuple(bases.names),
            base_batch=bases.batch,
            segments=later,
            subscriptions=bases.subscriptions + sum(one.growth for one in later),
        )


class BatchLoop:
    """What `foreachBatch` calls; one per running stream."""

    def __init__(
        self,
        runner: Runner,
        path: str | Path | StreamFolder,
        schema: Schema,
        settings: StreamSettings,
        housekeeping: Housekeeping,
        fixed: dict[str, Any],
        listeners: Sequence[Callable[[BatchProgress], None]] = (),
        frames: tuple[FrameSettings, ...] = (),
        expand: Callable[[Any], Any] | None = None,
    ) -> None:
        self._runner = runner
        self._path = stream_folder(path)
        self._schema = schema.to_dict()
        self._schema_json = msgspec.json.encode(self._schema)
        self._settings = settings
        self._housekeeping = housekeeping
        self._fixed = fixed  # what must be the same at every start
        self._listeners = listeners
        self._frames = frames or (FrameSettings(),)
        self._expand = expand  # replaces names of files by records
        self._commits = housekeeping.commits
        self._last = self._commits.last()
        self._state = self._first_state()
        self._has_other_index = settings.is_auto and not is_as_chosen(self._path, self._state.bases)
        self._live_ids = LiveIdIndex(self._path)
        self._builder = BackgroundBuilder(self._build_beside)
        self._records = self._rejected = 0
        self._lock = Lock()  # Spark may have given up a batch that still runs here
        self._timer: Timer | None = None
        self._is_closed = False
        self._first = FirstRecords(self._frames, {} if self._last is None else self._last.sources)
        self._watch()

    def __call__(self, records: Any, batch: int) -> None:
        """Take in one micro-batch, unless it is committed already."""
        with self._lock:
            if self._is_closed:
                raise FolderError(f"the stream into {self._path} has ended; start it again")
            query = self._checked_query(batch)
            plan = self._runner.plan_of(batch)
            if self._last is not None and batch == self._last.spark_batch:
                self._check_replayed(self._last, plan)
                return
            self._begin_bases()  # a run that ended early may have left many changes
            if self._expand is not None:
                records = self._expand(records)
            try:
                self._take_in(records, batch, query, plan)
            except Exception:
                self._commits.check_not_shut_out()  # the next writer removes what this one misses
                raise
        self._watch()

    def flush(self) -> None:
        """Take in what waits for slower sources, whatever they have reached."""
        with self._lock:
            last = self._last
            if last is not None and last.waiting and not self._is_closed:
                self._take_in(None, last.spark_batch, last.query, last.plan)

    def close(self, patience: timedelta | None = None) -> None:
        """Let the next start find the bases that are being built; *patience* is how long to wait.

        By default as long as the settings say. What is not ready by then is given up.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            if self._timer is not None:
                self._timer.cancel()
            if not self._builder.wait(
                self._settings.finish_within if patience is None else patience
            ):
                self._runner.cancel_beside()
                return
            try:
                bases = self._builder.take()
                if bases is not None:
                    self._commit_again(self._state.adopt(bases))
            except Exception as error:  # noqa: BLE001 - all is committed; the next run builds them
                _LOG.warning("new bases could not be adopted; the next run goes without: %s", error)

    def _watch(self) -> None:
        """See to it that what waits is taken in once all sources are idle."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._last is not None and self._last.waiting:
            self._timer = Timer(self._settings.idle.total_seconds(), self._flush_idle)
            self._timer.daemon = True
            self._timer.start()

    def _flush_idle(self) -> None:
        try:
            self.flush()
        except Exception as error:  # noqa: BLE001 - the next batch takes it in, or fails likewise
            _LOG.warning("records that wait for other sources could not be taken in: %s", error)

    def _take_in(self, records: Any, source_batch: int, query: str, plan: str) -> None:
        """Take in *records*, or, where there are none, those that wait."""
        started = perf_counter()
        batch = source_batch if self._last is None else self._last.batch + 1
        state = self._renewed(self._state)
        position = self._position
        self._live_ids.keep(state.live)
        before = BatchStart(
            position,
            state.versions(self._path, batch - 1, self._settings.local_cache),
            state.live,
            {} if self._last is None else dict(self._last.lanes),
            () if self._last is None else tuple(self._last.waiting),
            "" if self._last is None else self._last.recent,
        )
        result = self._result(records, batch, source_batch, before)
        if result.live:
            self._settings = replace(self._settings, keeps_events=True)
        state = replace(
            state,
            segments=(*state.segments, *result.segments),
            live=result.live_after(state.live),
            subscriptions=state.subscriptions + sum(one.growth for one in result.segments),
        )
        if result.files.get("rejected"):
            rejected = rejected_rows(self._path, result.files["rejected"])
            result.reasons = {one.words: one.records for one in rejected.reasons[:MOST_REASONS]}
        self._first.judge(self._path, result)
        self._commit(result, state, query, plan, source_batch)
        self._begin_bases()
        self._report(result, perf_counter() - started)
        self._judge(result)

    def _result(
        self, records: Any, batch: int, source_batch: int, before: BatchStart
    ) -> MicroBatchResult:
        """What *records* lead to; where that fails, once more without what fails by itself."""

        def run(*, on_trial: bool) -> MicroBatchResult:
            return MicroBatch(
                self._runner,
                self._path,
                batch,
                self._schema_json,
                self._settings,
                before,
                self._live_ids,
                self._frames,
                is_judged=self._first.is_open,
                source_batch=source_batch,
                on_trial=on_trial,
            ).run(records)

        try:
            return run(on_trial=False)
        except Exception as error:
            if not may_be_of_a_record(error):
                raise
            reason = str(error).partition("\n")[0]
            _LOG.warning("batch %s failed, and is tried again, change by change: %s", batch, reason)
            return run(on_trial=True)

    # Before a batch.

    def _checked_query(self, batch: int) -> str:
        """The id of the query in Spark's checkpoint, if it is the one that this folder knows."""
        query = self._runner.query
        expected = 0 if self._last is None else self._last.spark_batch + 1
        if self._last is not None and query != self._last.query:
            raise FolderError(
                f"{self._path} belongs to another checkpoint (query {self._last.query}, this one "
                f"is {query}): records would be lost or doubled; start with the checkpoint that it "
                "was written with, or choose another folder"
            )
        if not expected - 1 <= batch <= expected:
            raise FolderError(
                f"Spark's checkpoint is at batch {batch}, {self._path} at {expected}: one of them "
                "is of another pipeline or of another time; restore both from the same time, or "
                "start afresh in another folder"
            )
        return query

    def _check_replayed(self, last: Manifest, plan: str) -> None:
        """Refuse to take another batch for the one that is committed under its number."""
        if plan and last.plan and plan != last.plan:
            raise FolderError(
                f"batch {last.batch} of {self._path} is committed, and Spark's checkpoint has "
                "other records under that number: it was lost or restored from another time; "
                "restore both from the same time, or start afresh in another folder"
            )

    @property
    def _position(self) -> OrderPosition:
        if self._last is None:
            return OrderPosition(0, BEGINNING, None)
        return OrderPosition(self._last.seq, self._last.time, self._last.order)

    def _first_state(self) -> StreamState:
        if self._last is None:
            shards = self._settings.shard_count(0, self._runner.slots)
            return StreamState(self._settings.structure, shards)
        state = StreamState.after(self._last)
        shards = self._settings.shard_count(state.subscriptions, self._runner.slots, state.shards)
        is_named = self._settings.is_auto or state.index == self._settings.structure
        if is_named and state.shards == shards:
            return state
        # Another structure or plan than before: new bases of the same subscriptions come first.
        building = self._building(state, self._last, shards)
        reports = self._runner.run(building, building.shards, BaseReport)
        return self._commit_again(state.adopt(built(building, reports)))

    def _renewed(self, state: StreamState) -> StreamState:
        """*state* with new bases where they are ready, and with fewer, larger segments."""
        bases = self._builder.take()
        if bases is not None:
            state = state.adopt(bases)
        building = self._builder.batch
        fixed = tuple(one for one in state.segments if one.first <= building)
        later = [one for one in state.segments if one.first > building]
        after = self._settings.fold_after
        batch = -1 if self._last is None else self._last.batch
        return replace(
            state,
            segments=(*fixed, *fold(self._path, later, after)),
            live=tuple(join_live(self._path, batch, state.live, self._position.time, after)),
        )

    # After its steps.

    def _commit(
        self, result: MicroBatchResult, state: StreamState, query: str, plan: str, source_batch: int
    ) -> None:
        counts = dict(result.counts) | {
            "subscriptions": state.subscriptions,
            "live": sum(one.events - one.ended_events for one in state.live),
        }
        manifest = Manifest(
            batch=result.batch,
            query=query,
            plan=plan,
            seq=result.order.seq,
            time=result.order.time,
            began=result.began,
            order=result.order.order,
            schema=self._schema,
            index=state.index,
            why=state.why,
            shards=state.shards,
            bases=list(state.bases),
            base_batch=state.base_batch,
            segments=list(state.segments),
            live=list(state.live),
            files={table: files for table, files in result.files.items() if files},
            counts=counts,
            settings=self._fixed,
            sources=self._first.counts,
            source_batch=None if source_batch == result.batch else source_batch,
            lanes=result.lanes,
            waiting=result.waiting,
            recent=result.recent,
        )
        self._commits.commit(manifest)
        self._last, self._state = manifest, state
        self._housekeeping.after(manifest, is_building=self._builder.is_busy)

    def _commit_again(self, state: StreamState) -> StreamState:
        """Make *state*, the state after the last batch on new bases, the committed one."""
        assert self._last is not None
        manifest = msgspec.structs.replace(
            self._last,
            revision=self._last.revision + 1,
            index=state.index,
            why=state.why,
            shards=state.shards,
            bases=list(state.bases),
            base_batch=state.base_batch,
            segments=list(state.segments),
            files={},
            counts=self._last.counts | {"subscriptions": state.subscriptions},
        )
        self._commits.commit(manifest)
        failpoint("bases-adopted")
        self._last, self._state = manifest, state
        self._housekeeping.tidy(manifest)
        return state

    # The next bases.

    def _begin_bases(self) -> None:
        if self._last is None:
            return
        changed = sum(one.applied for one in self._state.segments)
        share = self._settings.merge_share * self._state.subscriptions
        is_due = self._has_other_index or changed > max(share, self._settings.merge_least)
        if self._builder.is_busy or not is_due:
            return
        self._has_other_index = False
        state = self._state
        shards = self._settings.shard_count(state.subscriptions, self._runner.slots, state.shards)
        self._builder.begin(self._building(state, self._last, shards))

    def _building(self, state: StreamState, last: Manifest, shards: int) -> BuildBasesStep:
        return BuildBasesStep(
            self._path,
            last.batch,
            last.time,
            self._schema_json,
            AUTO if self._settings.is_auto else self._settings.structure,
            shards,
            state.versions(self._path, last.batch, None),
        )

    def _build_beside(self, building: BuildBasesStep) -> list[BaseReport]:
        return self._runner.run_beside(building, building.shards, BaseReport)

    # For people.

    def _report(self, result: MicroBatchResult, seconds: float) -> None:
        assert self._last is not None
        progress = BatchProgress.of(result, self._last, seconds)
        for listener in self._listeners:
            listener(progress)

    def _judge(self, result: MicroBatchResult) -> None:
        """Stop the stream where more records are bad than the user allows."""
        most = self._settings.most_rejected
        self._records += result.counts["records"]
        self._rejected += result.counts["rejected"]
        if most is None or self._records < LEAST_JUDGED:
            return
        share = self._rejected / self._records
        if share > most:
            raise RecordError(
                f"{self._rejected:,} of {self._records:,} records since the start were rejected "
                f"({share:.1%}), more than the limit of {most:.1%}; the table 'rejected' says why. "
                "Everything up to here is committed: correct the source or the limit, and start "
                "again"
            )
