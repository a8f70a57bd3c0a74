"""Folders for compiled code, which is made once per user and machine.

Their files are executed, so only their user may write to them.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path


def private_folder(name: str) -> Path | None:
    """The folder *name* among the user's caches, else among temporary files; None if unsafe."""
    in_home = user_cache()
    if in_home is not None and is_private(in_home / "stentor" / name):
        return in_home / "stentor" / name
    return shared_folder(name)


def shared_folder(name: str) -> Path | None:
    """This user's own folder *name* among everybody's temporary files; None if unsafe."""
    try:
        shared = tempfile.gettempdir()
    except OSError:
        return None
    in_shared = Path(shared, f"stentor-{_user_id()}-{name}")
    return in_shared if is_private(in_shared) else None


def user_cache() -> Path | None:
    """The folder in which this system expects a user's caches, if the user has a home."""
    named = Path(
        os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    )
    if named.is_absolute():  # the XDG specification says to ignore a relative one
        return named
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache")


def _user_id() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def is_private(folder: Path) -> bool:
    """Whether *folder* can be written by this user and by nobody else: its files are executed."""
    if not is_writable(folder):
        return False
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and (
        not hasattr(os, "getuid")  # Windows keeps both folders inside the user's profile
        or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
    )


def is_writable(folder: Path) -> bool:
    """Whether *folder* exists, or could be made, and can be written to."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
