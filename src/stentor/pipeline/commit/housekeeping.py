"""What follows a commit: Delta tables rolled forward, small files merged, old ones removed."""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from stentor.pipeline.commit.manifests import Commits, Manifest
from stentor.pipeline.commit.removal import remove_orphans, remove_unused
from stentor.pipeline.stream.settings import StreamSettings
from stentor.pipeline.tables.delta import DeltaTables

_LOG = logging.getLogger(__name__)


class Housekeeping:
    """Keeps the folder of a pipeline in order for the one process that writes it."""

    def __init__(self, path: Path, tables: DeltaTables, settings: StreamSettings) -> None:
        self._path = path
        self._tables = tables
        self._settings = settings
        self._commits = Commits(path)
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="stentor-compaction")
        self._compaction: Future[None] | None = None

    def recover(self) -> None:
        """Bring the folder to what its manifests say, whatever a crash has left."""
        self._tables.roll_forward(self._commits.since(-1))
        remove_orphans(self._path, self._commits, self._tables)

    def after(self, manifest: Manifest, *, is_building: bool) -> None:
        """See to what *manifest*, just committed, allows; while bases are built nothing goes."""
        self._tables.roll_forward([manifest])
        if manifest.batch % self._settings.compact_after == 0:
            self._compact()
        if not is_building:
            self._commits.prune(self._settings.keep_manifests, through=manifest.batch)
            remove_unused(self._path, manifest)

    def close(self) -> None:
        """Wait for what still runs."""
        self._beside.shutdown(wait=True)

    def _compact(self) -> None:
        """Merge small files beside the next batches; a failure is logged, and tried again later."""
        if self._compaction is not None:
            if not self._compaction.done():
                return
            error = self._compaction.exception()
            if error is not None:
                _LOG.warning("small files could not be merged; trying again later: %s", error)
        limit = self._settings.compact_after  # as many as come between two looks, at least
        self._compaction = self._beside.submit(self._tables.compact, limit=limit)
