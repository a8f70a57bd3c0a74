"""A folder replaced as a whole: whoever looks finds the old one or the new one, complete.

A folder that has files in it cannot be replaced by one system call, so it takes two renames:

1. the new content is written beside the folder, as `.NAME.RANDOM.partial`, and synced to disk;
2. the old folder becomes `.NAME.previous`;
3. the partial one becomes the folder, and both renames are synced;
4. `.NAME.previous`, and what crashes have left of other `.partial` folders, is removed.

A crash before 2 leaves the old folder; between 2 and 3 there is only `.NAME.previous`, which
`current` finds; after 3 the new folder is there. The next writer tidies up in each case. One
writer at a time: a second one fails, but neither can damage what is in place.
"""

from __future__ import annotations

import glob
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_PARTIAL = re.compile(r"\..+\.[0-9a-f]{16}\.partial")


@contextmanager
def replacing(folder: Path, *, may_replace: Callable[[Path], None]) -> Iterator[Path]:
    """A new folder to be filled in the `with` block; it takes the place of *folder* at its end.

    Where the block raises, *folder* stays as it was. *may_replace* is called with a folder that
    exists already and raises where it must not go. Within another such block there is nothing to
    replace yet: *folder* is filled where it is.
    """
    folder = folder.resolve()
    if any(_PARTIAL.fullmatch(part) for part in folder.parts):
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    if current(folder).exists():
        may_replace(current(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.partial")
    partial.mkdir()
    try:
        yield partial
        _sync_tree(partial)
        _put_in_place(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def current(folder: Path) -> Path:
    """Where the content of *folder* stands.

    Elsewhere only where a writer was cut off between two renames of it or of a folder around it.
    """
    folder = folder.resolve()
    for whole in (folder, *folder.parents):
        if whole.exists():
            break
        if _previous(whole).exists():
            return _previous(whole) / folder.relative_to(whole)
    return folder


def sync(path: Path) -> None:
    """Have the system bring a file, or the entries of a folder, to disk."""
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":
        return  # Windows cannot open one
    descriptor = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _put_in_place(partial: Path, folder: Path) -> None:
    previous = _previous(folder)
    if folder.exists():
        shutil.rmtree(previous, ignore_errors=True)
        folder.rename(previous)
    partial.rename(folder)
    sync(folder.parent)
    for leftover in [previous, *folder.parent.glob(f".{glob.escape(folder.name)}.*.partial")]:
        shutil.rmtree(leftover, ignore_errors=True)


def _sync_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)


def _previous(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.previous")
