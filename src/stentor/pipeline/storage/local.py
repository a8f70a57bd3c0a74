"""A pipeline in a folder: files that are put there once, and one writer at a time.

The lock is one that the system gives back when its holder ends, however it ends. The file `lock`
also says who holds it, for the message that a second writer gets. It is never removed: two writers
could each hold a file of that name.
"""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec

from stentor import _files
from stentor._files import explain_os_errors
from stentor.errors import FolderError
from stentor.index.storage.folders import lock_file
from stentor.pipeline.commit.failpoints import failpoint

LOCK = "lock"


def put_if_absent(path: Path, content: bytes, *, step: str) -> bool:
    """Put *content* at *path*, on disk when this returns; False where somebody was first.

    What every commit consists of. *step* names its failpoints.
    """
    return _files.put_if_absent(path, content, reached=lambda at: failpoint(f"{step}-{at}"))


class _Holder(msgspec.Struct):
    """What the file says of who holds it."""

    pid: int
    host: str
    since: datetime


class FolderLock:
    """A pipeline's folder locked by this process, until `release` or the end of a `with` block."""

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


def lock_folder(path: Path) -> FolderLock:
    """The folder *path*, made where missing and locked by this process alone.

    Raises `FolderError` where another writer holds it; the message says which one.
    """
    if path.exists() and not path.is_dir():
        raise FolderError(f"{path} is a file; give a folder, or a path where one can be made")
    with explain_os_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    lock = FolderLock(descriptor)
    try:
        lock_file(descriptor)
        holder = _Holder(os.getpid(), socket.gethostname(), datetime.now(UTC))
        with explain_os_errors(path / LOCK):
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, msgspec.json.encode(holder))
    except OSError as error:
        lock.release()
        if isinstance(error, BlockingIOError):
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
