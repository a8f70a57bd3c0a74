"""A file system so small that a test can fill it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """An empty file system of this size in *folder*; the test is skipped where none can be made."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        pytest.skip(f"NOT TESTED: a full disk, because there is no mount ({error})")
    if done.returncode:
        pytest.skip(f"NOT TESTED: a full disk, because a tmpfs needs root ({done.stderr.strip()})")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def filled(disk: Path, *, left: int) -> Iterator[None]:
    """*disk* with only so many bytes *left*, until the end of the block."""
    ballast = disk / "ballast"
    free = os.statvfs(disk)
    ballast.write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - left)))
    try:
        yield
    finally:
        ballast.unlink()
