"""What a stream asks of the place where its files are: eight verbs, and nothing is ever changed.

A file is put once, whole, and read or removed later. Nothing is renamed, linked, appended to or
locked. `put_if_absent` is what every commit consists of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol


class FileStore(Protocol):
    """A place for files, by name; names have slashes, and are below the store's own address."""

    def put_if_absent(self, name: str, content: bytes, reached: Callable[[str], None]) -> bool:
        """Put *content*, for good when this returns; False where somebody was first.

        A reader finds nothing or everything. *reached* is called when it is `written`, and when it
        is `linked`: there, but perhaps not for good.
        """

    def put(self, name: str, file: Path, *, durable: bool = True) -> None:
        """Put a *file* of this machine under *name*; for good where it is *durable*."""

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """The bytes of a file, or some of them; a FileNotFoundError where there is none."""

    def fetch(self, name: str, file: Path) -> None:
        """Put a copy of a file into *file* of this machine; FileNotFoundError likewise."""

    def has(self, name: str) -> bool:
        """Whether there is such a file."""

    def names(self, prefix: str) -> list[str]:
        """The files of the folder *prefix* and of those in it, sorted."""

    def delete(self, names: Iterable[str]) -> None:
        """Remove files; one that is not there is no mistake."""

    def remove_abandoned(self) -> None:
        """Remove what puts have left that were killed; `names` does not tell it."""
