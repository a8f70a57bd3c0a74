"""The manifests of a pipeline: one file per micro-batch, and together the truth about it.

A batch is committed at the moment its manifest appears. Between two batches the state may be put
into other files: that is a further revision of the last manifest, which adds nothing to the tables.
Where nobody can lock the folder, a writer that starts puts such a revision behind the last one,
with a larger epoch: whoever was writing before finds that place taken, whatever it wants to commit.
What it removes is of its own epoch, or of those before, and not named by its own last manifest: of
such files a later manifest names none either.
Whatever else is in the folder counts only if the last manifest names it, or a Delta table that
was rolled forward from manifests.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from stentor.errors import FolderError
from stentor.pipeline.commit.failpoints import failpoint
from stentor.pipeline.storage.folder import StreamFolder, stream_folder

FORMAT = "stentor pipeline"
VERSION = 2

_NAME = re.compile(r"(\d{20})(?:\.(\d+))?\.json")

#: How to bring the JSON of an older version to the next version.
_UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    1: lambda content: content,  # what is new may be missing
}


class Segment(msgspec.Struct, frozen=True):
    """Changes of subscriptions in the batches *first* to *last*, in `segments/NAME`."""

    name: str
    first: int
    last: int
    versions: int
    bytes: int
    shard: int = 0
    tier: int = 0  # how often it was folded
    growth: int = 0  # by how many the subscriptions became more
    applied: int = 0  # changes that a worker applies, or has applied before they were folded
    origin: str = ""  # the name of the last segment that was folded into it


class LiveSegment(msgspec.Struct, frozen=True):
    """Live events in `live/NAME`; at *until* the last of them is over, at *half* half of them."""

    name: str
    events: int
    until: int
    half: int = 0
    ended: str = ""  # the file of `live` that says which of them were updated or withdrawn
    ended_events: int = 0  # how many


class Lane(msgspec.Struct, frozen=True):
    """How far a source has come in the order, and when it was last heard of."""

    reached: int | None
    seen: int


class WaitingPart(msgspec.Struct, frozen=True):
    """Records that wait for slower sources, in two files of the folder `waiting`."""

    name: str
    is_events: bool
    rows: int

    @property
    def files(self) -> tuple[str, str]:
        """The names of its files, as `stream/segments.py` has them."""
        return f"{self.name}.{'events' if self.is_events else 'changes'}", f"{self.name}.rows"


class TableFile(msgspec.Struct, frozen=True):
    """One Parquet file of a table."""

    name: str
    rows: int
    bytes: int
    stats: dict[str, dict[str, Any]] = {}  # as Delta has them: smallest, largest, how many nulls
    partition: dict[str, str | None] = {}  # values by column, where the table has partitions


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a pipeline after *batch*, and what that batch added to the tables."""

    batch: int
    revision: int = 0  # the same state in other files, where it is not the first
    query: str  # the id in Spark's checkpoint
    plan: str = ""  # the sum of what Spark's checkpoint says of the batch, where it can be read
    seq: int
    time: int
    began: int = 0  # the batch's own time
    order: int | None = None  # the highest value of the user's own order
    schema: dict[str, Any]
    index: str  # the structure of the bases; where shards differ, each name once
    why: str = ""  # why `auto` chose it; empty where it was named, or there is no base yet
    shards: int
    bases: list[str] = []  # a name per shard, in bases/; none yet where empty
    base_batch: int = -1  # the bases hold all changes up to this batch
    segments: list[Segment] = []
    live: list[LiveSegment] = []
    files: dict[str, list[TableFile]] = {}  # by table
    counts: dict[str, int] = {}
    settings: dict[str, Any] = {}  # what may not change between restarts
    sources: dict[str, tuple[int, int]] = {}  # of each one's first records: read, rejected
    source_batch: int | None = None  # Spark's number of the batch, where it is another
    lanes: dict[str, Lane] = {}  # by frame, or partition of a topic
    waiting: list[WaitingPart] = []
    recent: str = ""  # hashes of the last records, in recent/; empty where no order is named
    writer: str = ""  # who committed it, where the folder cannot be locked
    epoch: int = 0  # its writer's, which is larger than those of all before it; likewise

    @property
    def spark_batch(self) -> int:
        """Spark's number of the batch."""
        return self.batch if self.source_batch is None else self.source_batch


class Commits:
    """The manifests in the folder of a pipeline."""

    def __init__(self, path: str | Path | StreamFolder) -> None:
        """The manifests of the pipeline *path*; there may be none yet."""
        self._path = stream_folder(path)
        self._folder = self._path / "manifests"
        # Of the last manifest, which is this writer's, and where it is; where nobody can lock.
        self._fence: Manifest | None = None
        self._slot = (-1, 0)

    def last(self) -> Manifest | None:
        """The manifest of the last committed batch; None before the first."""
        entries = self._entries()
        found = self._decode(*entries[-1]) if entries else None
        return None if found is None or found.batch < 0 else found

    def since(self, batch: int) -> Iterator[Manifest]:
        """The manifests of the batches after *batch* that are still kept, in order."""
        for entry in self._entries():
            with suppress(FileNotFoundError):  # pruned meanwhile, so the tables have it
                if entry[0] > batch and (found := self._decode(*entry)).batch > batch:
                    yield found

    def take_over(self, writer: str) -> int:
        """Let nobody but *writer*, this process, commit from here on; its epoch.

        Where nobody can lock: a manifest that says nothing new is put behind the last one.
        """
        entries = self._entries()
        slot = entries[-1] if entries else (-1, 0)
        last = self._decode(*slot) if entries else _BEFORE_THE_FIRST
        changes = {"revision": last.revision + 1, "epoch": last.epoch + 1}
        fence = msgspec.structs.replace(last, **changes, files={}, writer=writer)
        slot = _next_slot(slot, last.batch)
        if not self._folder.put_if_absent(_name(*slot), _encode(fence), step="manifest"):
            raise self._another_writer(last.batch + 1)
        self._fence, self._slot = fence, slot
        return fence.epoch

    def check_not_shut_out(self) -> None:
        """Raise `FolderError` where another writer has taken over."""
        if self._fence is not None and any(there > self._slot for there in self._entries()):
            raise self._another_writer(self._fence.batch + 1)

    def commit(self, manifest: Manifest) -> None:
        """Make *manifest* the last one: when this returns, its batch has happened, for good.

        Raises `FolderError` where that batch, or one after it, is committed already.
        """
        failpoint("manifest-started")
        slot, fence = (manifest.batch, manifest.revision), self._fence
        if fence is not None:
            own = {"writer": fence.writer, "epoch": fence.epoch}
            manifest = msgspec.structs.replace(manifest, **own)
            slot = _next_slot(self._slot, fence.batch)
        if any(there >= slot for there in self._entries()):
            raise self._another_writer(manifest.batch)
        if not self._folder.put_if_absent(_name(*slot), _encode(manifest), step="manifest"):
            raise self._another_writer(manifest.batch)
        if fence is not None:
            self._fence, self._slot = manifest, slot
        failpoint("manifest-committed")

    def prune(self, keep: int, *, through: int) -> None:
        """Remove the oldest manifests until those of *keep* batches are left, of one at least.

        Those after the batch *through* stay too: the Delta tables still need them.
        """
        entries = self._entries()
        kept = sorted({batch for batch, _ in entries})[-max(1, keep) :]
        for batch, revision in entries:
            if batch not in kept and batch <= through:
                self._folder.store.delete([f"{self._folder.name}/{_name(batch, revision)}"])
                failpoint("manifest-pruned")

    def _entries(self) -> list[tuple[int, int]]:
        """Batch and revision of each manifest, in order."""
        names = (_NAME.fullmatch(name) for name in self._folder.entries())
        return sorted((int(name[1]), int(name[2] or 0)) for name in names if name)

    def _decode(self, batch: int, revision: int) -> Manifest:
        name = _name(batch, revision)
        return _decode(f"{self._folder}/{name}", self._folder.read(name))

    def _another_writer(self, batch: int) -> FolderError:
        return FolderError(
            f"batch {batch} of {self._path} is committed already, by another writer or "
            "under another checkpoint; stop the other one, and start again to resume after it"
        )


def _next_slot(slot: tuple[int, int], batch: int) -> tuple[int, int]:
    """Where whatever comes next is put, after the manifest of *batch* in *slot*.

    There is one such place only, so of two writers one finds it taken.
    """
    number, revision = slot
    return (number, revision + 1) if batch < number else (number + 1, 0)


def _name(batch: int, revision: int) -> str:
    suffix = f".{revision}" if revision else ""
    return f"{batch:020d}{suffix}.json"


#: What the first writer of a store that cannot be locked takes over.
_BEFORE_THE_FIRST = Manifest(
    batch=-1, query="", seq=0, time=0, schema={}, index="", shards=0, revision=-1
)


def _encode(manifest: Manifest) -> bytes:
    content = {"format": FORMAT, "version": VERSION, **msgspec.to_builtins(manifest)}
    return msgspec.json.format(msgspec.json.encode(content | {"sum": _sum(content)}))


def _decode(file: str, raw: bytes) -> Manifest:
    """The manifest in *file*, which holds *raw*, brought to this version."""
    try:
        content = msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise _damaged(file, f"it cannot be read ({error})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FolderError(f"{file} is another program's; check the path of the pipeline")
    version = content.get("version")
    if not isinstance(version, int):
        raise _damaged(file, f"its version is {version!r}")
    if version > VERSION:
        raise FolderError(
            f"{file} has format version {version}, this Stentor reads up to {VERSION}; "
            "upgrade Stentor to go on with this pipeline"
        )
    if content.pop("sum", None) != _sum(content):
        raise _damaged(file, "it is not as it was written")
    for older in range(version, VERSION):
        if older not in _UPGRADES:
            raise FolderError(
                f"{file} has format version {version}, which this Stentor cannot upgrade; "
                "run a batch with the release that wrote it and each one after"
            )
        content = _UPGRADES[older](content)
    try:
        return msgspec.convert(content, Manifest)
    except msgspec.ValidationError as error:
        raise _damaged(file, str(error)) from None


def _sum(content: dict[str, Any]) -> str:
    return hashlib.blake2b(msgspec.json.encode(content), digest_size=16).hexdigest()


def _damaged(file: str, what: str) -> FolderError:
    return FolderError(f"{file} is damaged: {what}; restore it from a backup")
