"""A folder of a disk that all who use it see: the files are where they are put."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from stentor import _files
from stentor._files import PARTIAL, explain_os_errors, sync


class LocalStore:
    """The folder *root*."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put_if_absent(self, name: str, content: bytes, reached: Callable[[str], None]) -> bool:
        file = self._root / name
        with explain_os_errors(file):
            file.parent.mkdir(parents=True, exist_ok=True)
        return _files.put_if_absent(file, content, reached=reached)

    def put(self, name: str, file: Path, *, durable: bool = True) -> None:
        """Bring *file* to disk, which is there already."""
        if durable:
            with explain_os_errors(file):
                sync(file)
                sync(file.parent)
                if "/" in name:  # its folder may be new
                    sync(file.parent.parent)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        with (self._root / name).open("rb") as file:
            file.seek(start)
            return file.read() if stop is None else file.read(stop - start)

    def fetch(self, name: str, file: Path) -> None:
        shutil.copyfile(self._root / name, file)

    def has(self, name: str) -> bool:
        return (self._root / name).exists()

    def names(self, prefix: str) -> list[str]:
        folder = self._root / prefix
        found = (one for one in folder.rglob("*") if one.is_file() or one.is_symlink())
        return sorted(
            one.relative_to(self._root).as_posix()
            for one in found
            if not one.name.endswith(PARTIAL)
        )

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            with explain_os_errors(self._root / name):
                (self._root / name).unlink(missing_ok=True)

    def remove_abandoned(self) -> None:
        for kind in ("manifests", "sent", "tables/*/_delta_log"):
            # Those with # are deltalake's own.
            for partial in [
                *self._root.glob(f"{kind}/.*{PARTIAL}"),
                *self._root.glob(f"{kind}/*#*"),
            ]:
                with explain_os_errors(partial):
                    partial.unlink(missing_ok=True)
