"""The manifests of a pipeline: one file per micro-batch, and together the truth about it.

A batch is committed at the moment its manifest appears. Whatever else stands in the folder counts
only if the last manifest names it, or a Delta table that was rolled forward from manifests.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from stentor.errors import FolderError
from stentor.pipeline.commit.failpoints import failpoint
from stentor.pipeline.commit.new_files import create_file, explaining

FORMAT = "stentor pipeline"
VERSION = 1

_NAME = re.compile(r"(\d{20})\.json")

#: How to bring the JSON of an older version to the next version.
_UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


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


class TableFile(msgspec.Struct, frozen=True):
    """One Parquet file of a table."""

    name: str
    rows: int
    bytes: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a pipeline after *batch*, and what that batch added to the tables."""

    batch: int
    query: str  # the id in Spark's checkpoint
    plan: str = ""  # the sum of what Spark's checkpoint says of the batch, where it can be read
    seq: int
    time: int
    order: int | None = None  # the highest value of the user's own order
    schema: dict[str, Any]
    index: str
    shards: int
    bases: list[str] = []  # a name per shard, in bases/; none yet where empty
    base_batch: int = -1  # the bases hold all changes up to this batch
    segments: list[Segment] = []
    live: list[LiveSegment] = []
    files: dict[str, list[TableFile]] = {}  # by table
    counts: dict[str, int] = {}
    settings: dict[str, Any] = {}  # what may not change between restarts


class Commits:
    """The manifests in the folder of a pipeline."""

    def __init__(self, path: Path) -> None:
        """The manifests of the pipeline *path*; there may be none yet."""
        self._folder = path / "manifests"

    def last(self) -> Manifest | None:
        """The manifest of the last committed batch; None before the first."""
        batches = self._batches()
        return self._read(batches[-1]) if batches else None

    def since(self, batch: int) -> Iterator[Manifest]:
        """The manifests of the batches after *batch* that are still kept, in order."""
        return (self._read(later) for later in self._batches() if later > batch)

    def commit(self, manifest: Manifest) -> None:
        """Make *manifest* the last one: when this returns, its batch has happened, for good.

        Raises `FolderError` where that batch, or one after it, is committed already.
        """
        failpoint("manifest-started")
        with explaining(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        batches = self._batches()
        if batches and batches[-1] >= manifest.batch:
            raise self._another_writer(manifest.batch)
        try:
            create_file(self._file(manifest.batch), _encode(manifest), step="manifest")
        except FileExistsError:
            raise self._another_writer(manifest.batch) from None
        failpoint("manifest-committed")

    def prune(self, keep: int, *, through: int) -> None:
        """Remove the oldest manifests until *keep* are left; the last one always stays.

        Those after the batch *through* stay too: the Delta tables still need them.
        """
        batches = self._batches()
        for batch in batches[: max(0, len(batches) - max(1, keep))]:
            if batch <= through:
                self._file(batch).unlink()
                failpoint("manifest-pruned")

    def _batches(self) -> list[int]:
        if not self._folder.is_dir():
            return []
        names = (_NAME.fullmatch(file.name) for file in self._folder.iterdir())
        return sorted(int(name[1]) for name in names if name)

    def _file(self, batch: int) -> Path:
        return self._folder / f"{batch:020d}.json"

    def _read(self, batch: int) -> Manifest:
        return _decode(self._file(batch))

    def _another_writer(self, batch: int) -> FolderError:
        return FolderError(
            f"batch {batch} of {self._folder.parent} is committed already, by another writer or "
            "under another checkpoint; stop the other one, and start again to resume after it"
        )


def _encode(manifest: Manifest) -> bytes:
    content = {"format": FORMAT, "version": VERSION, **msgspec.to_builtins(manifest)}
    return msgspec.json.format(msgspec.json.encode(content | {"sum": _sum(content)}))


def _decode(file: Path) -> Manifest:
    """The manifest in *file*, brought to this version."""
    try:
        content = msgspec.json.decode(file.read_bytes())
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


def _damaged(file: Path, what: str) -> FolderError:
    return FolderError(f"{file} is damaged: {what}; restore it from a backup")
