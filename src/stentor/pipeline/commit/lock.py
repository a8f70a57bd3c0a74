"""One writer per pipeline: a lock that the system gives back when its holder ends, however it ends.

The file `lock` also says who holds it, for the message that a second writer gets. It is never
removed: two writers could each hold a file of that name.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec

from stentor.errors import FolderError
from stentor.pipeline.commit.new_files import explaining

LOCK = "lock"

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # beyond the text: locked bytes are unreadable
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class _Holder(msgspec.Struct):
    """What the file says of who holds it."""

    pid: int
    host: str
    since: datetime


class FolderLock:
    """A pipeline's folder held by this process, until `release` or the end of a `with` block."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Let the next writer in; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def hold(path: Path) -> FolderLock:
    """The folder *path*, made where missing and held by this process alone.

    Raises `FolderError` where another writer holds it; the message says which one.
    """
    if path.exists() and not path.is_dir():
        raise FolderError(f"{path} is a file; give a folder, or a path where one can be made")
    with explaining(path):
        path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    lock = FolderLock(descriptor)
    try:
        _lock(descriptor)
        holder = _Holder(os.getpid(), socket.gethostname(), datetime.now(UTC))
        with explaining(path / LOCK):
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, msgspec.json.encode(holder))
    except OSError as error:
        lock.release()
        if error.errno in {errno.EAGAIN, errno.EACCES}:
            raise FolderError(_refusal(path)) from None
        raise
    return lock


def _refusal(path: Path) -> str:
    try:
        holder = msgspec.json.decode((path / LOCK).read_bytes(), type=_Holder)
        who = f"process {holder.pid} on {holder.host} since {holder.since:%Y-%m-%d %H:%M:%S} UTC"
    except (OSError, msgspec.DecodeError):  # it is just writing its name
        who = "another process"
    return (
        f"{path} is being written by {who}; a pipeline has one writer: "
        "stop that one first, or choose another folder"
    )
