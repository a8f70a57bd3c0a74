"""A folder replaced as a whole: whoever looks finds the old one or the new one, complete.

A new folder is written beside the old one under a name of its own, synced, and replaces it by
renames; what a killed process left is removed by the next writer. One writer at a time: a lock that
the system releases when its holder ends, however it ends.

Which addresses name a folder of this machine: engine and pipeline write to no other.

What Spark itself reads may lie anywhere that the session can reach.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from stentor._files import explain_os_errors, partial_path, sync
from stentor.errors import FolderError, SettingsError

# One letter before the colon is a drive of Windows.
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def has_scheme(address: str | os.PathLike[str]) -> bool:
    """Whether *address* names another file system, or this one by a scheme.

    >>> has_scheme("s3a://bucket/out"), has_scheme("file:/out"), has_scheme("./a:b")
    (True, True, False)
    """
    return _SCHEME.match(os.fspath(address)) is not None


def scheme_mistake(address: str | os.PathLike[str]) -> str:
    """What is wrong with an *address* that has a scheme, where a folder is needed."""
    scheme, _, rest = os.fspath(address).partition(":")
    if scheme.lower() == "file":
        advice = f"write the path alone, {'/' + rest.lstrip('/')}"
    else:
        advice = (
            "choose a folder of a disk that all who use it see, mounted where need be; where a "
            "folder is called so, write ./ before its name"
        )
    return f"{os.fspath(address)} is an address of the scheme {scheme!r}, not a folder; {advice}"


def local_folder(given: str | os.PathLike[str], what: str) -> Path:
    """The folder *given*, which is *what*; a SettingsError where it is an address elsewhere.

    >>> local_folder("s3a://bucket/out", "path")
    Traceback (most recent call last):
    stentor.errors.SettingsError: path: s3a://bucket/out is an address of the scheme 's3a', not a \
folder; choose a folder of a disk that all who use it see, mounted where need be; where a folder \
is called so, write ./ before its name
    """
    if has_scheme(given):
        raise SettingsError(f"{what}: {scheme_mistake(given)}")
    return Path(given)


if sys.platform == "win32":
    import msvcrt

    def lock_file(descriptor: int) -> None:
        """Lock an open file, or raise a BlockingIOError where another holds it."""
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # beyond the text: locked bytes are unreadable
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(errno.EAGAIN, "it is locked") from error
else:
    import fcntl

    def lock_file(descriptor: int) -> None:
        """Lock an open file, or raise a BlockingIOError where another holds it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


_PARTIAL = re.compile(r"\.(.+)\.[0-9a-f]{16}\.partial")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """A block that holds the lock *path*, a file that is there only so long.

    Raises a BlockingIOError where another process or thread is in such a block.
    """
    descriptor = _lock(path)
    while not _is_at(descriptor, path):  # the holder before removed it when we had opened it
        os.close(descriptor)
        descriptor = _lock(path)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # before it is released: who opened it meanwhile looks again
        os.close(descriptor)


def _lock(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, 0o666)
    try:
        lock_file(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the file that is open is the one at *path*."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


@contextmanager
def replacing(folder: Path, *, may_replace: Callable[[Path], None]) -> Iterator[Path]:
    """A new folder to be filled in the `with` block; it replaces *folder* at its end.

    Where the block raises, *folder* stays as it was. *may_replace* is called with a folder that
    exists already and raises where it must not go. Within another such block there is nothing to
    replace yet: *folder* is filled where it is. Raises `FolderError` where another process or
    thread is writing it, and where the system cannot write (a full disk).
    """
    folder = _resolved(folder)
    if any(_PARTIAL.fullmatch(part) for part in folder.parts):
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with explain_os_errors(folder), _only_writer(folder):
        if current(folder).exists():
            may_replace(current(folder))
        _sweep(folder)
        partial = partial_path(folder)
        partial.mkdir()
        try:
            yield partial
            _sync_tree(partial)
            _swap_in(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """A block in which nobody else writes *folder*; its parents are made where missing."""
    if folder.parent == folder:
        raise FolderError(f"{folder} cannot be replaced; give a folder in it")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise FolderError(f"{folder.parent} is a file, so no folder can be made in it") from None
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder.with_name(f".{folder.name}.lock")))
        except BlockingIOError:
            raise FolderError(
                f"{folder} is being written by another process or thread, and stays as it is; "
                "let one at a time save there, or choose another folder"
            ) from None
        yield


def current(folder: Path) -> Path:
    """Where the content of *folder* is.

    Elsewhere only where a writer was killed between two renames of it or of a folder around it.
    """
    folder = _resolved(folder)
    for whole in (folder, *folder.parents):
        if whole.exists():
            break
        if _previous(whole).exists():
            return _previous(whole) / folder.relative_to(whole)
    return folder


def _swap_in(partial: Path, folder: Path) -> None:
    previous = _previous(folder)
    if folder.exists():
        shutil.rmtree(previous, ignore_errors=True)
        folder.rename(previous)
    partial.rename(folder)
    sync(folder.parent)
    shutil.rmtree(previous, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove what killed writers of *folder* left."""
    for path in folder.parent.iterdir():
        found = _PARTIAL.fullmatch(path.name)
        if found and found[1] == folder.name:
            shutil.rmtree(path, ignore_errors=True)


def _resolved(folder: Path) -> Path:
    try:
        resolved = folder.resolve()
        resolved.exists()
    except (OSError, RuntimeError, ValueError) as error:  # no rights, a loop of links, a NUL
        raise FolderError(f"{str(folder)!r} cannot be used as a folder: {error}") from None
    return resolved


def _sync_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)


def _previous(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.previous")
