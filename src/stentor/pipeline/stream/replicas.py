"""A process's own copy of a shard: the mapped base, and the segments since then in a layer above.

Kept from task to task and from batch to batch: a process applies only what it has not met yet.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stentor.engine.names import NO_ROW, Strings
from stentor.engine.state import State
from stentor.index.catalog import structure_class
from stentor.index.layered import layered
from stentor.model.time import NEVER
from stentor.pipeline.commit.manifests import Segment
from stentor.pipeline.snapshots import open_index
from stentor.pipeline.stream.local_copies import local_copy
from stentor.pipeline.stream.segments import open_versions

BASES = "bases"
#: Shards that a process keeps open.
MOST_OPEN = 8  # and never fewer than the shards of the pipeline that is running


@dataclass(frozen=True)
class ShardVersion:
    """Which state of a shard a task needs: its base and all segments after it, in order."""

    path: str
    shard: int
    index: str  # name of the structure
    base: str  # folder in bases/, empty where there is none yet
    base_batch: int
    batch: int  # the last one whose changes it has
    segments: tuple[Segment, ...]
    shards: int = 1  # how many there are
    cache: str | None = None  # folder on the worker's own disk for copies of bases


class Replica:
    """The state of a shard after some batch.

    Invariant: rows that a segment closed stay until the next segment comes, so that events of the
    closing batch still meet them.
    """

    def __init__(self, version: ShardVersion) -> None:
        structure = structure_class(version.index)
        if version.base:
            base = Path(version.path) / BASES / version.base
            if version.cache is not None:
                base = local_copy(base, Path(version.cache))
            self.state = open_index(base).state
        else:
            self.state = State(layered(structure)())
        self.batch = version.base_batch
        self._base = version.base
        self._last: set[str] = set()  # what was applied last: segments of one batch
        self._closed: list[int] = []

    def leads_to(self, version: ShardVersion) -> bool:
        """Whether applying further segments brings this replica to *version*.

        It does not where the base is another one, where this replica is ahead (of a batch that
        was not committed), and where what it applied last is not, or no longer, part of it.
        """
        if self._base != version.base or self.batch > version.batch:
            return False
        if any(s.first <= self.batch < s.last for s in version.segments):
            return False
        if any(s.tier and s.last == self.batch for s in version.segments):
            return any(s.origin in self._last for s in version.segments if s.last == self.batch)
        return self._last <= {s.name for s in version.segments}

    def advance(self, version: ShardVersion) -> None:
        """Apply the segments that are new."""
        for segment in version.segments:
            if segment.first > self.batch or (segment.last == self.batch and self._is_new(segment)):
                self._apply(Path(version.path), segment)

    def settle(self) -> State:
        """The state for what comes next: rows that were closed are gone."""
        self.state.remove(self._closed)
        self._closed = []
        return self.state

    def _is_new(self, segment: Segment) -> bool:
        """Whether it is another share of the batch that was applied last, not its folded form."""
        return not segment.tier and segment.name not in self._last

    def _apply(self, path: Path, segment: Segment) -> None:
        if segment.last > self.batch:
            self.settle()
            self._last = set()
            self.batch = segment.last
        self._last.add(segment.origin or segment.name)
        versions = open_versions(path, segment.name)
        register, index = self.state.subscribers, self.state.index
        ended = [register.row(id) for id in Strings(versions.ended)]
        known = np.array([row for row in ended if row != NO_ROW], np.int64)
        upto = versions.ended_upto[[row != NO_ROW for row in ended]]
        if len(known):
            index.close(known, upto)
        self._closed += known.tolist()
        rows = self.state.insert(
            versions.columns,
            list(Strings(versions.ids)),
            list(Strings(versions.texts)),
            versions.since,
        )
        closing = versions.upto != NEVER
        if closing.any():
            index.close(rows[closing], versions.upto[closing])
            self._closed += rows[closing].tolist()


_OPEN: OrderedDict[tuple[str, int], Replica] = OrderedDict()


def forget() -> None:
    """Close all replicas of this process."""
    _OPEN.clear()


def replica(version: ShardVersion) -> Replica:
    """This process's replica, brought to *version*.

    Cost: the segments that it has not met; where the base is another one, opening that.
    """
    key = version.path, version.shard
    found = _OPEN.pop(key, None)
    if found is None or not found.leads_to(version):
        found = Replica(version)
    found.advance(version)
    _OPEN[key] = found  # the last one used is the last to go
    while len(_OPEN) > max(MOST_OPEN, version.shards):
        _OPEN.popitem(last=False)
    return found
