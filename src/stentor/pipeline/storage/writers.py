"""One writer at a time.

A folder of a disk is locked by its writer; the system gives the lock back when its holder ends,
however it ends. The file `lock` also says who holds it, for the message that a second writer gets.
It is never removed: two writers could each hold a file of that name.

Elsewhere nobody can lock. There a writer that starts takes the place of the next manifest
(`commit/manifests.py`), so that the commit of one that was away, and thinks that it is alone, is
refused.
"""

from __future__ import annotations

import os
import secrets
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec

from stentor._files import explain_os_errors
from stentor.errors import FolderError
from stentor.index.storage.folders import lock_file
from stentor.pipeline.storage.folder import StreamFolder, stream_folder

LOCK = "lock"


class _Holder(msgspec.Struct):
    """What the file says of who holds it."""

    pid: int
    host: str
    since: datetime


class FolderLock:
    """A pipeline's folder locked by this process, until `release` or the end of a `with` block."""

    def __init__(self, descriptor: int = -1) -> None:
        """The lock that an open file has; none where the folder is not of this machine."""
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


def lock_folder(given: str | Path | StreamFolder) -> FolderLock:
    """The folder *given*, made where missing and locked by this process alone.

    Raises `FolderError` where another writer holds it; the message says which one. A store is tried
    instead: one that lets two writers put the same object is refused.
    """
    folder = stream_folder(given)
    if not folder.is_local:
        check_conditional_puts(folder)
        return FolderLock()
    path = folder.local
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


def check_conditional_puts(folder: StreamFolder) -> None:
    """Refuse a store that takes a second object of one name: there every commit could be lost."""
    name = f"probe-{secrets.token_hex(8)}"
    trial = folder / "probes"
    try:
        first = trial.claim(name)
        second = trial.put_if_absent(name, b"second")
    finally:
        trial.remove([name])
    if not first or second:
        raise FolderError(
            f"the store of {folder} took a second object of the same name, where it was asked to "
            "refuse it (If-None-Match: *); two writers could overwrite each other's commits there: "
            "choose a store that has conditional puts, or switch them on"
        )


def writer_name() -> str:
    """What a writer calls itself in what it commits: nobody else does."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(8)}"
