"""What stands in a pipeline's folder and nothing can read any more, and its removal.

Only the writer of a pipeline removes, and only what no manifest names: a crash in the middle
leaves less to remove, never a hole.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from stentor.pipeline.commit.failpoints import failpoint
from stentor.pipeline.commit.manifests import Commits, Manifest
from stentor.pipeline.commit.new_files import PARTIAL, explaining
from stentor.pipeline.tables.delta import DeltaTables


def remove_orphans(path: Path, commits: Commits, tables: DeltaTables) -> None:
    """Remove what a crash has left in *path*; to be called before anything is written."""
    manifests = list(commits.since(-1))
    tables.remove_orphans(manifests)
    _remove(
        *path.glob(f"manifests/.*{PARTIAL}"),
        *path.glob(f"tables/*/_delta_log/.*{PARTIAL}"),
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
        "live": [segment.name for segment in last.live] if last else [],
    }
    for kind, names in named.items():
        for folder in path.glob(f"{kind}/*"):
            if folder.name not in names:
                yield folder


def _remove(*paths: Path) -> None:
    for path in paths:
        with explaining(path):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        failpoint("unused-removed")
