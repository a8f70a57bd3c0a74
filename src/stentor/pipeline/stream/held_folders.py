"""The folders that streams of this process hold, each given back once its query has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

from stentor.pipeline.commit.lock import FolderLock

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

#: The queries that run, or have ended and are tidying up, and who waits for them.
HELD: Final[dict[Path, tuple[StreamingQuery, Thread]]] = {}


def let_the_last_one_end(path: Path) -> None:
    """Wait until a query of this process that has ended in *path* has tidied up after itself."""
    held = HELD.get(path)
    if held is not None:
        query, guard = held
        if not query.isActive:
            guard.join()


def release_at_the_end(
    query: StreamingQuery, path: Path, lock: FolderLock, close: Sequence[Callable[[], None]]
) -> None:
    """Let the next writer in once *query* has ended, however it ends, and *close* is done."""

    def wait() -> None:
        try:
            query.awaitTermination()
        except Exception:  # noqa: BLE001 - whoever waits for the query is told
            return
        finally:
            try:
                with lock:
                    for one in close:
                        one()
            finally:
                if HELD.get(path) is held:  # the next one may have begun already
                    del HELD[path]

    guard = Thread(target=wait, name="stentor-lock", daemon=True)
    held = HELD[path] = query, guard
    guard.start()
