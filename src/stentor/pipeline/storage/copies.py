"""Copies of a stream's files on a machine's own disk: fetched once, mapped, and gone when old.

A copy gets its name as a whole, so a process that is killed, or a second one that copies at the
same time, does no harm. Copies that nobody has asked for in a week go, and the oldest of the others
where all of them take more than they may; mapped ones stay readable until they are closed.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from stentor._files import PARTIAL, explain_os_errors

#: Seconds after which a copy that has not grown is not being made any more.
ABANDONED: Final = 3600.0
#: Seconds after which a copy that nobody asked for goes.
UNUSED: Final = 7 * 86_400.0
#: Folders in which a machine's own tasks write what is no copy.
OWN: Final = ("tables", "work")
#: What the copies of all streams may take on a machine, unless it is told otherwise.
MOST_BYTES: Final = 64 << 30


@contextmanager
def making(copy: Path) -> Iterator[Path]:
    """A name under which a *copy* is made, a file or a folder; it gets its own after the block.

    Where another process is faster, its copy stays.
    """
    partial = copy.with_name(f".{copy.name}.{secrets.token_hex(8)}{PARTIAL}")
    with explain_os_errors(copy):
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield partial
            partial.rename(copy)
        except OSError:
            if not copy.exists():
                raise
        finally:
            if partial.is_dir():
                shutil.rmtree(partial, ignore_errors=True)
            else:
                partial.unlink(missing_ok=True)


def copied(copy: Path, fetch: Callable[[Path], None]) -> Path:
    """The file *copy*, made by *fetch* where it is not there yet."""
    try:
        os.utime(copy)  # it is in use
    except FileNotFoundError:
        with making(copy) as partial:
            fetch(partial)
    return copy


def remove_abandoned(folder: Path) -> None:
    """Remove the copies in *folder* that processes had begun when they were killed."""
    for partial in folder.glob(f".*{PARTIAL}"):
        with suppress(FileNotFoundError):  # it was not abandoned: it gets its name just now
            # Not the time of the content, which is the original's own once a copy is complete.
            changed = max(one.stat().st_ctime for one in (partial, *partial.rglob("*")))
            if time.time() - changed > ABANDONED:
                discard(partial)


def evict(folder: Path, most_bytes: int = MOST_BYTES, unused: float = UNUSED) -> None:
    """Remove the oldest copies in *folder* until the others take at most *most_bytes*.

    A copy is a file, or a folder as a whole: STREAM/KIND/COPY. What was written or asked for within
    the hour stays, and what tasks write (`OWN`) for as long as *unused*: no store may have it yet.
    """
    now, total, found = time.time(), 0, []
    for copy in folder.glob("*/*/*"):
        with suppress(OSError):  # another process removes too
            about = [one.lstat() for one in (copy, *copy.rglob("*"))]
            size, used = sum(one.st_size for one in about), max(one.st_mtime for one in about)
            total += size
            found.append((used, size, copy))
    for used, size, copy in sorted(found):
        patience = unused if total <= most_bytes or copy.parent.name in OWN else ABANDONED
        if now - used > patience:
            discard(copy)
            total -= size


def discard(copy: Path) -> None:
    """Remove a *copy*, a file or a folder, as a whole; mapped ones stay readable."""
    with suppress(OSError):  # another process removes too
        if copy.is_dir() and not copy.is_symlink():
            gone = copy.with_name(f".{copy.name}.{secrets.token_hex(8)}{PARTIAL}")
            copy.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
        else:
            copy.unlink(missing_ok=True)
