"""New bases, built beside the batches and adopted between two; segments folded and joined."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from threading import Thread
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from stentor.encoding.columns import SubscriptionColumns, empty
from stentor.encoding.ragged import concatenate
from stentor.engine.ids import StringArrays
from stentor.index.catalog import AUTO, Choice, choice, structure_class
from stentor.pipeline.commit.failpoints import failpoint
from stentor.pipeline.commit.manifests import LiveSegment, Segment
from stentor.pipeline.snapshots import open_shard, shard_of, write_shard
from stentor.pipeline.storage.folder import StreamFolder
from stentor.pipeline.stream.isolating import OF_THE_WORLD
from stentor.pipeline.stream.segments import folded, merge_live
from stentor.pipeline.stream.shards import BASES, ShardReplica, ShardState, base_folder

SCAN = "scan"  # what holds anything

_LOG = logging.getLogger(__name__)


class BaseReport(msgspec.Struct, frozen=True):
    """A base that was built: its folder's name, how many subscriptions it holds, in what."""

    shard: int
    name: str
    subscriptions: int
    index: str
    why: str  # `auto` chose it; empty where it was named


@dataclass(frozen=True)
class BuildBasesStep:
    """The building of bases: task number n builds shard n."""

    path: StreamFolder
    batch: int
    time: int  # what is over at this time is left behind
    schema: bytes  # JSON
    index: str  # a structure, or `auto`: each shard chooses its own
    shards: int
    old: tuple[ShardState, ...]

    def task(self, number: int) -> BaseReport:
        """Build one shard."""
        columns: list[SubscriptionColumns] = [empty(SubscriptionColumns)]
        ids: list[Any] = [pa.array([], pa.large_string())]
        texts: list[Any] = [pa.array([], pa.large_string())]
        # An id is in the shard of its number wherever the count stays the same.
        old = self.old if len(self.old) != self.shards else (self.old[number],)
        for version in old:
            if not version.base and not version.segments:
                continue
            # One of its own: what the process keeps for matching is ahead of this one.
            replica = ShardReplica(version)
            replica.advance(version)
            state = replica.remove_closed()
            rows = state.index.current_rows()
            rows = rows[state.index.until(rows) > self.time]
            names = StringArrays.of(state.subscribers.ids.take(rows))
            mine = np.flatnonzero(shard_of(names, self.shards) == number)
            columns.append(state.index.columns_of(rows[mine]))
            ids.append(names.arrow.take(pa.array(mine)))
            texts.append(StringArrays.of(state.texts.take(rows[mine])).arrow)
        name = self.path.fresh(self.batch, number)
        every = concatenate(columns)
        chosen = choice(every) if self.index == AUTO else Choice(self.index, "")

        def build(index: str) -> None:
            write_shard(
                every,
                StringArrays.of(pa.concat_arrays(ids)),
                StringArrays.of(pa.concat_arrays(texts)),
                structure_class(index),
                (self.path / BASES).new(name),
                {"schema": msgspec.json.decode(self.schema)},
            )

        try:
            build(chosen.name)
        except OF_THE_WORLD:
            raise
        except Exception as error:
            if self.index != AUTO or chosen.name == SCAN:
                raise
            _LOG.warning(
                "%s cannot hold these subscriptions; the scan does: %r", chosen.name, error
            )
            chosen = Choice(SCAN, f"{chosen.name} could not be built ({type(error).__name__})")
            build(SCAN)
        (self.path / BASES / name).keep_whole()
        return BaseReport(number, name, sum(len(one) for one in ids), *chosen)


def is_as_chosen(path: StreamFolder, names: Sequence[str]) -> bool:
    """Whether `auto` chooses for the bases *names* the structures that they have.

    It may not where the structure was named before, and after a release with other rules.
    Cost: a pass over the predicates.
    """
    bases = (open_shard(base_folder(path, name)) for name in names)
    return all(choice(base.columns).name == base.meta["index"] for base in bases)


_UPKEEP_LOG = logging.getLogger(__name__)


#: So often in a row bases may fail to be built.
MOST_FAILURES = 3


#: Live segments above this size are not joined any more.
LARGE_LIVE = 200_000


def fold(path: StreamFolder, segments: Sequence[Segment], after: int) -> list[Segment]:
    """*segments* with every run of *after* neighbours of one tier made into one."""
    kept: list[Segment] = []
    by_shard = sorted(segments, key=lambda segment: (segment.shard, segment.last, segment.first))
    for shard, own in groupby(by_shard, key=lambda segment: segment.shard):
        run = list(own)
        while (neighbours := _foldable(run, after)) is not None:
            start, stop = neighbours
            run[start:stop] = [folded(path, shard, run[start:stop])]
            failpoint("segments-folded")
        kept += run
    return kept


def _foldable(run: Sequence[Segment], after: int) -> tuple[int, int] | None:
    """The first *after* neighbours of one tier, whole batches of them."""
    start = 0
    for _, same in groupby(run, key=lambda segment: segment.tier):
        count = len(list(same))
        if count >= after:
            return start, start + count
        start += count
    return None


def join_live(
    path: StreamFolder, batch: int, live: Sequence[LiveSegment], time: int, after: int
) -> list[LiveSegment]:
    """*live* without segments that are over; many small ones, and what is half over, written anew.

    So what is kept is at most twice what is live, in few segments.
    """
    kept = [one for one in live if one.until > time and one.ended_events < one.events]
    large = [
        one
        for one in kept
        if one.events > LARGE_LIVE and one.half > time and 2 * one.ended_events < one.events
    ]
    others = [one for one in kept if one not in large]
    if len(others) < after and all(one.events <= LARGE_LIVE for one in others):
        return kept
    one = merge_live(path, batch, others, time)
    failpoint("live-joined")
    return large if one is None else [*large, one]


@dataclass(frozen=True)
class BuiltBases:
    """Bases that are ready to be adopted: they hold all changes up to *batch*."""

    batch: int
    index: str
    why: str
    names: list[str]
    subscriptions: int


@dataclass
class BackgroundBuilder:
    """Builds the next bases beside the batches, one set at a time."""

    run: Callable[[BuildBasesStep], list[BaseReport]]
    batch: int = -1  # bases are being built from the state after this one
    _ready: list[BuiltBases] = field(default_factory=list)
    _failed: list[BaseException] = field(default_factory=list)
    _thread: Thread | None = None

    @property
    def is_busy(self) -> bool:
        """Whether bases are being built, or wait to be adopted."""
        return self._thread is not None

    def begin(self, building: BuildBasesStep) -> None:
        """Start to build the next bases, from a committed state."""
        self.batch = building.batch

        def build() -> None:
            try:
                self._ready.append(built(building, self.run(building)))
                failpoint("bases-built")
            except Exception as error:  # noqa: BLE001 - raised by `take` in the batch's own thread
                self._failed.append(error)

        self._thread = Thread(target=build, name="stentor-bases", daemon=True)
        self._thread.start()

    def take(self) -> BuiltBases | None:
        """The bases that have become ready.

        The stream does without new bases for a while: what went wrong while they were built is
        logged, and raised where it goes wrong again and again.
        """
        if self._thread is None or self._thread.is_alive():
            return None
        self._thread, self.batch = None, -1
        if self._ready:
            self._failed.clear()
            return self._ready.pop()
        if len(self._failed) >= MOST_FAILURES:
            raise self._failed[-1]
        reason = str(self._failed[-1]).partition("\n")[0]  # Java has pages to say
        _UPKEEP_LOG.warning("new bases could not be built; trying again later: %s", reason)
        return None

    def wait(self, most: timedelta) -> bool:
        """Let what is being built come to its end; whether it has, after this long at the most."""
        if self._thread is None:
            return True
        self._thread.join(most / timedelta(seconds=1))
        return not self._thread.is_alive()


def built(building: BuildBasesStep, reports: Sequence[BaseReport]) -> BuiltBases:
    """What *building* has led to."""
    by_shard = sorted(reports, key=lambda report: report.shard)
    index = ", ".join(dict.fromkeys(report.index for report in by_shard))
    why = "; ".join({report.index: report.why for report in by_shard}.values())
    count = sum(report.subscriptions for report in by_shard)
    return BuiltBases(building.batch, index, why, [report.name for report in by_shard], count)
