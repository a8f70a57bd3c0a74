"""What follows a commit: Delta tables rolled forward, small files merged, old ones removed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from stentor._files import PARTIAL
from stentor.pipeline.commit.manifests import Commits, Manifest
from stentor.pipeline.storage.folder import StreamFolder, stream_folder
from stentor.pipeline.storage.writers import writer_name
from stentor.pipeline.stream.settings import StreamSettings
from stentor.pipeline.tables.delta import DeltaTables


def remove_orphans(given: str | Path | StreamFolder, commits: Commits, tables: DeltaTables) -> None:
    """Remove what a crash has left in a folder; to be called before anything is written.

    What a later writer has put there stays, in a folder that nobody can lock.
    """
    path = stream_folder(given)
    manifests = list(commits.since(-1))
    tables.remove_orphans(manifests)
    path.store.remove_abandoned()
    for kind, names in _unnamed(path, manifests[-1] if manifests else None):
        (path / kind).remove(names)
    (path / "work").remove(name for name in (path / "work").entries() if path.is_mine(name))


def remove_unused(path: str | Path | StreamFolder, last: Manifest) -> None:
    """Remove what the *last* manifest no longer names, between two batches.

    Not while bases are built, which read and write beside the batches; folders that are not
    complete yet stay anyway.
    """
    folder = stream_folder(path)
    for kind, names in _unnamed(folder, last):
        (folder / kind).remove(name for name in names if not name.endswith(PARTIAL))


def _unnamed(path: StreamFolder, last: Manifest | None) -> Iterator[tuple[str, list[str]]]:
    named = {
        "bases": last.bases if last else [],
        "segments": [segment.name for segment in last.segments] if last else [],
        "live": [name for one in last.live for name in (one.name, one.ended)] if last else [],
        "recent": [last.recent] if last else [],
        "waiting": [name for part in last.waiting for name in part.files] if last else [],
    }
    for kind, names in named.items():
        folder = path / kind
        yield kind, [one for one in folder.entries() if one not in names and folder.is_mine(one)]


_LOG = logging.getLogger(__name__)


class Housekeeping:
    """Keeps the folder of a pipeline in order for the one process that writes it."""

    def __init__(
        self, path: str | Path | StreamFolder, tables: DeltaTables, settings: StreamSettings
    ) -> None:
        self.path = stream_folder(path)
        self._tables = tables
        self._settings = settings
        self.commits = Commits(self.path)
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="stentor-compaction")
        self._compaction: Future[None] | None = None
        self._is_looked_after = True  # since the last batch

    def recover(self) -> None:
        """Bring the folder to what its manifests say, whatever a crash has left.

        Where nobody can lock it, whoever was writing it before is shut out first, and `path` is the
        folder as this writer names files in it.
        """
        if not self.path.is_local:
            self.path = replace(self.path, epoch=self.commits.take_over(writer_name()))
            self._tables.shut_out(self.path.epoch)
        self._tables.roll_forward(self.commits.since(-1))
        remove_orphans(self.path, self.commits, self._tables)

    def after(self, manifest: Manifest, *, is_building: bool) -> None:
        """See to what *manifest*, just committed, allows; while bases are built nothing goes."""
        self._tables.roll_forward([manifest])
        self._is_looked_after = manifest.batch % self._settings.compact_after == 0
        if self._is_looked_after:
            self._compact()
        if not is_building:
            self.tidy(manifest)

    def tidy(self, manifest: Manifest) -> None:
        """Remove what *manifest*, the last one, has made useless."""
        self.commits.prune(self._settings.keep_manifests, through=manifest.batch)
        remove_unused(self.path, manifest)

    def close(self, *, is_over: bool = False) -> None:
        """Wait for what still runs; where the run *is_over* the tables are looked at once more.

        Runs of one batch each would not come to it otherwise for as long as 32 of them.
        """
        if is_over and not self._is_looked_after:
            self._compact()
        self._beside.shutdown(wait=True)
        self._log_failure()

    def _compact(self) -> None:
        """Merge small files beside the next batches; a failure is logged, and tried again later."""
        if self._compaction is not None:
            if not self._compaction.done():
                return
            self._log_failure()
        limit = self._settings.compact_after  # as many as come between two looks, at least
        self._compaction = self._beside.submit(self._tables.compact, limit=limit)

    def _log_failure(self) -> None:
        error = None if self._compaction is None else self._compaction.exception()
        if error is not None:
            _LOG.warning("small files could not be merged; trying again later: %s", error)
