"""What follows a commit: Delta tables rolled forward, small files merged, old ones removed."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from stentor._files import PARTIAL, explain_os_errors
from stentor.pipeline.commit.failpoints import failpoint
from stentor.pipeline.commit.manifests import Commits, Manifest
from stentor.pipeline.stream.settings import StreamSettings
from stentor.pipeline.tables.delta import DeltaTables


def remove_orphans(path: Path, commits: Commits, tables: DeltaTables) -> None:
    """Remove what a crash has left in *path*; to be called before anything is written."""
    manifests = list(commits.since(-1))
    tables.remove_orphans(manifests)
    _remove(
        *path.glob(f"manifests/.*{PARTIAL}"),
        *path.glob(f"tables/*/_delta_log/.*{PARTIAL}"),
        *path.glob(f"sent/.*{PARTIAL}"),
        *path.glob("tables/*/_delta_log/*#*"),  # deltalake's own unfinished files
        *_folders(path, manifests[-1] if manifests else None),
        *path.glob("work/*"),
    )


def remove_unused(path: Path, last: Manifest) -> None:
    """Remove what the *last* manifest no longer names, between two batches.

    Not while bases are built, which read and write beside the batches; folders that are not
    complete yet stay anyway.
    """
    folders = _folders(path, last)
    _remove(*(folder for folder in folders if not folder.name.endswith(PARTIAL)))


def _folders(path: Path, last: Manifest | None) -> Iterator[Path]:
    named = {
        "bases": last.bases if last else [],
        "segments": [segment.name for segment in last.segments] if last else [],
        "live": [name for one in last.live for name in (one.name, one.ended)] if last else [],
        "recent": [last.recent] if last else [],
        "waiting": [name for part in last.waiting for name in part.files] if last else [],
    }
    for kind, names in named.items():
        for folder in path.glob(f"{kind}/*"):
            if folder.name not in names:
                yield folder


def _remove(*paths: Path) -> None:
    for path in paths:
        with explain_os_errors(path):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        failpoint("unused-removed")


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
            self.tidy(manifest)

    def tidy(self, manifest: Manifest) -> None:
        """Remove what *manifest*, the last one, has made useless."""
        self._commits.prune(self._settings.keep_manifests, through=manifest.batch)
        remove_unused(self._path, manifest)

    def close(self) -> None:
        """Wait for what still runs."""
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
