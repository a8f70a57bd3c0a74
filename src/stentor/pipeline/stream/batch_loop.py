"""The loop of a stream: micro-batch after micro-batch, each committed as a whole or not at all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec

from stentor.errors import FolderError, RecordError
from stentor.model import Schema
from stentor.model.time import BEGINNING
from stentor.pipeline.commit.housekeeping import Housekeeping
from stentor.pipeline.commit.manifests import Commits, LiveSegment, Manifest, Segment
from stentor.pipeline.stream.bases import BaseBuilding, BaseReport
from stentor.pipeline.stream.live import LiveIds
from stentor.pipeline.stream.micro_batch import Before, MicroBatch, Outcome
from stentor.pipeline.stream.ordering import Marks
from stentor.pipeline.stream.progress import BatchProgress
from stentor.pipeline.stream.rejections import first_reason
from stentor.pipeline.stream.replicas import ShardVersion
from stentor.pipeline.stream.runner import Runner
from stentor.pipeline.stream.settings import StreamSettings
from stentor.pipeline.stream.upkeep import BaseBuilder, NextBases, built, fold, join_live

#: The share of rejected records is looked at once so many have come.
LEAST_JUDGED = 100

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Held:
    """The subscriptions and live events of a stream: which files hold them."""

    index: str
    shards: int
    bases: tuple[str, ...] = ()
    base_batch: int = -1
    segments: tuple[Segment, ...] = ()
    live: tuple[LiveSegment, ...] = ()
    subscriptions: int = 0

    @classmethod
    def after(cls, manifest: Manifest) -> Held:
        """What *manifest* names."""
        return cls(
            manifest.index,
            manifest.shards,
            tuple(manifest.bases),
            manifest.base_batch,
            tuple(manifest.segments),
            tuple(manifest.live),
            manifest.counts["subscriptions"],
        )

    def versions(self, path: Path, batch: int, cache: str | None) -> tuple[ShardVersion, ...]:
        """The shards as they are after *batch*."""
        return tuple(
            ShardVersion(
                str(path),
                shard,
                self.index,
                self.bases[shard] if self.bases else "",
                self.base_batch,
                batch,
                tuple(one for one in self.segments if one.shard == shard),
                self.shards,
                cache,
            )
            for shard in range(self.shards)
        )

    def adopt(self, bases: NextBases) -> Held:
        """The same on new *bases*, and the segments that these do not hold."""
        later = tuple(one for one in self.segments if one.first > bases.batch)
        return replace(
            self,
            index=bases.index,
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
        path: Path,
        schema: Schema,
        settings: StreamSettings,
        housekeeping: Housekeeping,
        fixed: dict[str, Any],
        listeners: Sequence[Callable[[BatchProgress], None]] = (),
    ) -> None:
        self._runner = runner
        self._path = path
        self._schema = schema.to_dict()
        self._schema_json = msgspec.json.encode(self._schema)
        self._settings = settings
        self._housekeeping = housekeeping
        self._fixed = fixed  # what must be the same at every start
        self._listeners = listeners
        self._commits = Commits(path)
        self._last = self._commits.last()
        self._held = self._first_held()
        self._live_ids = LiveIds(path)
        self._builder = BaseBuilder(self._build)
        self._records = self._rejected = 0

    def __call__(self, records: Any, batch: int) -> None:
        """Take in one micro-batch, unless it is committed already."""
        started = perf_counter()
        query = self._checked_query(batch)
        plan = self._runner.plan_of(batch)
        if self._last is not None and batch == self._last.batch:
            self._check_replayed(self._last, plan)
            return
        held = self._renewed(self._held)
        marks = self._marks
        self._live_ids.keep([segment.name for segment in held.live])
        before = Before(
            marks, held.versions(self._path, batch - 1, self._settings.local_cache), held.live
        )
        outcome = MicroBatch(
            self._runner,
            self._path,
            batch,
            self._schema_json,
            self._settings,
            before,
            self._live_ids,
        ).run(records)
        held = replace(
            held,
            segments=(*held.segments, *outcome.segments),
            live=tuple(
                one for one in (*held.live, *outcome.live) if one.until > outcome.order.time
            ),
            subscriptions=held.subscriptions + sum(one.growth for one in outcome.segments),
        )
        self._commit(outcome, held, query, plan)
        self._begin_bases()
        self._tell(outcome, perf_counter() - started)
        self._judge(outcome)

    def close(self) -> None:
        """Wait for what is being built."""
        self._builder.wait()

    # Before a batch.

    def _checked_query(self, batch: int) -> str:
        """The id of the query in Spark's checkpoint, if it is the one that this folder knows."""
        query = self._runner.query
        expected = 0 if self._last is None else self._last.batch + 1
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
    def _marks(self) -> Marks:
        if self._last is None:
            return Marks(0, BEGINNING, None)
        return Marks(self._last.seq, self._last.time, self._last.order)

    def _first_held(self) -> Held:
        if self._last is None:
            shards = self._settings.shard_count(0, self._runner.slots)
            return Held(self._settings.structure, shards)
        held = Held.after(self._last)
        shards = self._settings.shard_count(held.subscriptions, self._runner.slots, held.shards)
        if (held.index, held.shards) == (self._settings.structure, shards):
            return held
        # Another structure or plan than before: the same subscriptions are filed anew first.
        building = self._building(held, self._last, shards)
        return held.adopt(built(building, self._build(building)))

    def _renewed(self, held: Held) -> Held:
        """*held* with new bases where they are ready, and with fewer, larger segments."""
        bases = self._builder.take()
        if bases is not None:
            held = held.adopt(bases)
        building = self._builder.batch
        fixed = tuple(one for one in held.segments if one.first <= building)
        later = [one for one in held.segments if one.first > building]
        after = self._settings.fold_after
        batch = -1 if self._last is None else self._last.batch
        return replace(
            held,
            segments=(*fixed, *fold(self._path, later, after)),
            live=tuple(join_live(self._path, batch, held.live, self._marks.time, after)),
        )

    # After its steps.

    def _commit(self, outcome: Outcome, held: Held, query: str, plan: str) -> None:
        counts = dict(outcome.counts) | {
            "subscriptions": held.subscriptions,
            "live": sum(one.events for one in held.live),
        }
        manifest = Manifest(
            batch=outcome.batch,
            query=query,
            plan=plan,
            seq=outcome.order.seq,
            time=outcome.order.time,
            order=outcome.order.order,
            schema=self._schema,
            index=held.index,
            shards=held.shards,
            bases=list(held.bases),
            base_batch=held.base_batch,
            segments=list(held.segments),
            live=list(held.live),
            files={table: files for table, files in outcome.files.items() if files},
            counts=counts,
            settings=self._fixed,
        )
        self._commits.commit(manifest)
        self._last, self._held = manifest, held
        self._housekeeping.after(manifest, is_building=self._builder.is_busy)

    # The next bases.

    def _begin_bases(self) -> None:
        assert self._last is not None
        changed = sum(one.applied for one in self._held.segments)
        share = self._settings.merge_share * self._held.subscriptions
        if self._builder.is_busy or changed <= max(share, self._settings.merge_least):
            return
        held = self._held
        shards = self._settings.shard_count(held.subscriptions, self._runner.slots, held.shards)
        self._builder.begin(self._building(held, self._last, shards))

    def _building(self, held: Held, last: Manifest, shards: int) -> BaseBuilding:
        return BaseBuilding(
            str(self._path),
            last.batch,
            last.time,
            self._schema_json,
            self._settings.structure,
            shards,
            held.versions(self._path, last.batch, None),
        )

    def _build(self, building: BaseBuilding) -> list[BaseReport]:
        return self._runner.run(building, building.shards, BaseReport)

    # For people.

    def _tell(self, outcome: Outcome, seconds: float) -> None:
        assert self._last is not None
        progress = BatchProgress.of(outcome, self._last, seconds)
        for listener in self._listeners:
            listener(progress)

    def _judge(self, outcome: Outcome) -> None:
        """Stop the stream where more records are bad than the user allows.

        Where not one is good a setting may be to blame, a misspelt column say: that is told.
        """
        most = self._settings.most_rejected
        self._records += outcome.counts["records"]
        self._rejected += outcome.counts["rejected"]
        if outcome.batch == 0 and self._rejected == self._records > 0:
            _LOG.warning(
                "every record of the first batch was rejected, the first because: %s\n"
                "Where a setting is to blame, start again in another folder: these are taken",
                first_reason(self._path, outcome.files["rejected"]),
            )
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
