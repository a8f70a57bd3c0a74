"""What keeps a stream small while it runs: segments folded, live events joined, bases renewed.

All of it is prepared beside the batches and takes effect with the manifest of the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from threading import Thread

from stentor.pipeline.commit.failpoints import failpoint
from stentor.pipeline.commit.manifests import LiveSegment, Segment
from stentor.pipeline.stream.bases import BaseBuilding, BaseReport
from stentor.pipeline.stream.live import joined
from stentor.pipeline.stream.segments import folded

_LOG = logging.getLogger(__name__)

#: So often in a row bases may fail to be built.
MOST_FAILURES = 3
#: Live segments above this size are not joined any more.
LARGE_LIVE = 200_000


def fold(path: Path, segments: Sequence[Segment], after: int) -> list[Segment]:
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
    path: Path, batch: int, live: Sequence[LiveSegment], time: int, after: int
) -> list[LiveSegment]:
    """*live* without segments that are over; many small ones, and what is half over, written anew.

    So what is kept is at most twice what is live, in few segments.
    """
    kept = [segment for segment in live if segment.until > time]
    large = [one for one in kept if one.events > LARGE_LIVE and one.half > time]
    others = [one for one in kept if one not in large]
    if len(others) < after and all(one.events <= LARGE_LIVE for one in others):
        return kept
    one = joined(path, batch, others, time)
    failpoint("live-joined")
    return large if one is None else [*large, one]


@dataclass(frozen=True)
class NextBases:
    """Bases that are ready to be adopted: they hold all changes up to *batch*."""

    batch: int
    index: str
    names: list[str]
    subscriptions: int


@dataclass
class BaseBuilder:
    """Builds the next bases beside the batches, one set at a time."""

    run: Callable[[BaseBuilding], list[BaseReport]]
    batch: int = -1  # bases are being built from the state after this one
    _ready: list[NextBases] = field(default_factory=list)
    _failed: list[BaseException] = field(default_factory=list)
    _thread: Thread | None = None

    @property
    def is_busy(self) -> bool:
        """Whether bases are being built, or wait to be adopted."""
        return self._thread is not None

    def begin(self, building: BaseBuilding) -> None:
        """Start to build the next bases, from a committed state."""
        self.batch = building.batch

        def build() -> None:
            try:
                self._ready.append(built(building, self.run(building)))
                failpoint("bases-built")
            except Exception as error:  # noqa: BLE001 - told by `take` in the batch's own thread
                self._failed.append(error)

        self._thread = Thread(target=build, name="stentor-bases", daemon=True)
        self._thread.start()

    def take(self) -> NextBases | None:
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
        _LOG.warning("new bases could not be built; trying again later: %s", self._failed[-1])
        return None

    def wait(self) -> None:
        """Let what is being built come to its end."""
        if self._thread is not None:
            self._thread.join()


def built(building: BaseBuilding, reports: Sequence[BaseReport]) -> NextBases:
    """What *building* has led to."""
    names = [report.name for report in sorted(reports, key=lambda report: report.shard)]
    count = sum(report.subscriptions for report in reports)
    return NextBases(building.batch, building.index, names, count)
