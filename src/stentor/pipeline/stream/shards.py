"""A process's own copy of a shard: the mapped base (or a local copy) and the segments since."""

from __future__ import annotations

import hashlib
import shutil
from collections import OrderedDict
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stentor.engine.ids import NO_ROW, StringStore
from stentor.engine.state import State
from stentor.index.catalog import structure_class
from stentor.index.layered import layered
from stentor.model.values.time import NEVER
from stentor.pipeline.commit.manifests import Segment
from stentor.pipeline.snapshots import open_shard
from stentor.pipeline.storage.copies import discard, making, remove_abandoned
from stentor.pipeline.storage.folder import StreamFolder
from stentor.pipeline.stream.segments import open_versions

#: Copies of one pipeline that are kept: the one in use, and the one before it.
KEPT = 2


def local_copy(base: Path, cache: Path) -> Path:
    """The copy of the folder *base* in the folder *cache*, made now where there is none."""
    own = cache / f"{base.parent.parent.name}-{_token(base)}"
    copy = own / base.name
    if not copy.is_dir():
        remove_abandoned(own)
        with making(copy) as partial:
            shutil.copytree(base, partial)
            _verify(partial)
        _remove_old(copy)
    return copy


def _token(base: Path) -> str:
    """What distinguishes pipelines of one name: their paths."""
    return hashlib.blake2b(str(base.parent).encode(), digest_size=6).hexdigest()


def _verify(copy: Path) -> None:
    open_shard(copy, verify=True)


def _remove_old(copy: Path) -> None:
    """Remove all but the newest copies of each shard; mapped files stay readable until closed."""
    _, shard, _ = copy.name.split("-")
    same = [one for one in copy.parent.glob(f"[0-9]*-{shard}-*") if one != copy]
    same.sort(key=lambda one: one.stat().st_mtime, reverse=True)
    for old in same[KEPT - 1 :]:
        discard(old)


BASES = "bases"


#: Shards of all pipelines that a process keeps open.
MOST_OPEN = 8  # and never fewer than the caller keeps


@dataclass(frozen=True)
class ShardState:
    """Which state of a shard a task needs: its base and all segments after it, in order."""

    path: StreamFolder
    shard: int
    index: str  # name of the structure, of all of them where shards differ
    base: str  # folder in bases/, empty where there is none yet
    base_batch: int
    batch: int  # the last one whose changes it has
    segments: tuple[Segment, ...]
    cache: str | None = None  # folder on the worker's own disk for copies of bases


def base_folder(path: StreamFolder, name: str, cache: str | None = None) -> Path:
    """Where this process maps the base *name* from: a copy is checked when it is made."""
    base = path / BASES / name
    if base.is_local:
        return local_copy(base.local, Path(cache)) if cache else base.local
    is_new = not base.local.is_dir()
    folder = base.whole(_verify)
    if is_new:
        _remove_old(folder)
    return folder


class ShardReplica:
    """The state of a shard after some batch.

    Invariant: rows that a segment closed stay until the next segment comes, so that events of the
    closing batch still meet them.
    """

    def __init__(self, version: ShardState) -> None:
        if version.base:
            self.state = open_shard(base_folder(version.path, version.base, version.cache)).state
        else:
            self.state = State(layered(structure_class(version.index))())
        self.batch = version.base_batch
        self._base = version.base
        self._last: set[str] = set()  # what was applied last: segments of one batch
        self._closed: list[int] = []

    def can_advance_to(self, version: ShardState) -> bool:
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

    def advance(self, version: ShardState) -> None:
        """Apply the segments that are new."""
        for segment in version.segments:
            if segment.first > self.batch or (segment.last == self.batch and self._is_new(segment)):
                self._apply(version.path, segment)

    def remove_closed(self) -> State:
        """The state for what comes next: rows that were closed are gone."""
        self.state.remove(self._closed)
        self._closed = []
        return self.state

    def _is_new(self, segment: Segment) -> bool:
        """Whether it is another share of the batch that was applied last, not its folded form."""
        return not segment.tier and segment.name not in self._last

    def _apply(self, path: StreamFolder, segment: Segment) -> None:
        if segment.last > self.batch:
            self.remove_closed()
            self._last = set()
            self.batch = segment.last
        self._last.add(segment.origin or segment.name)
        versions = open_versions(path, segment.name)
        register, index = self.state.subscribers, self.state.index
        ended = [register.row(id) for id in StringStore(versions.ended)]
        known = np.array([row for row in ended if row != NO_ROW], np.int64)
        upto = versions.ended_upto[[row != NO_ROW for row in ended]]
        if len(known):
            index.close(known, upto)
        self._closed += known.tolist()
        rows = self.state.insert(
            versions.columns,
            list(StringStore(versions.ids)),
            list(StringStore(versions.texts)),
            versions.since,
        )
        closing = versions.upto != NEVER
        if closing.any():
            index.close(rows[closing], versions.upto[closing])
            self._closed += rows[closing].tolist()


_OPEN: OrderedDict[tuple[StreamFolder, int], ShardReplica] = OrderedDict()


def forget() -> None:
    """Close all replicas of this process."""
    _OPEN.clear()


def open_shards() -> Set[tuple[StreamFolder, int]]:
    """The shards that this process has open: their pipelines' paths, and numbers."""
    return _OPEN.keys()


def replica(version: ShardState, keep: int) -> ShardReplica:
    """This process's replica, brought to *version*; of its pipeline it keeps *keep* shards open.

    Cost: the segments that it has not met; where the base is another one, opening that.
    """
    key = version.path, version.shard
    found = _OPEN.pop(key, None)
    if found is not None and not found.can_advance_to(version):
        found = None
    # Those that go are closed before another one is opened.
    others = [one for one in _OPEN if one[0] == version.path]
    gone = others[: max(0, len(others) + 1 - keep)]
    gone += [one for one in _OPEN if one not in gone][: len(_OPEN) + 1 - max(MOST_OPEN, keep)]
    for one in gone:
        _OPEN.pop(one, None)
    if found is None:
        found = ShardReplica(version)
    found.advance(version)
    _OPEN[key] = found  # the last one used is the last to go
    return found
