"""Hadoop's file system through hdfs-native, which needs no Java.

Its own create refuses what exists, but a file that is being written can be seen: so a commit is
written under a name of its own first, and gets its name by a rename that refuses likewise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from secrets import token_hex
from typing import Any, Final

from stentor._files import PARTIAL
from stentor.errors import FolderError
from stentor.pipeline.storage.copies import ABANDONED
from stentor.pipeline.storage.objects import first_line

_CHUNK: Final = 8 << 20


class HdfsStore:
    """The files below an *address* such as `hdfs://host:port/folder`, without Java."""

    def __init__(self, address: str, options: Mapping[str, str]) -> None:
        """Files are asked for with *options* of Hadoop's configuration, such as `dfs.…`."""
        try:
            from hdfs_native import Client, WriteOptions
        except ModuleNotFoundError:
            raise FolderError(
                f"{address} needs the package hdfs-native: pip install 'stentor[hdfs]'"
            ) from None

        server, _, folder = address.removeprefix("hdfs://").partition("/")
        self._address = address
        self._root = f"/{folder}".rstrip("/")
        self._fresh: Any = WriteOptions
        with self._explained(""):
            self._client: Any = Client(f"hdfs://{server}", dict(options) or None)

    def put_if_absent(self, name: str, content: bytes, reached: Callable[[str], None]) -> bool:
        file = self._path(name)
        folder, _, own = file.rpartition("/")
        partial = f"{folder}/.{own}.{token_hex(8)}{PARTIAL}"
        with self._explained(name):
            self._write(partial, (content,))
            reached("written")
            try:
                # It refuses what exists, unlike a local one.
                self._client.rename(partial, file, overwrite=False)
            except Exception:
                with suppress(FileNotFoundError):
                    self._client.delete(partial)
                if not self._is_there(file):
                    raise
                # The answer to a rename that happened may have been lost on its way.
                return self.read(name) == content
            reached("linked")
        return True

    def put(self, name: str, file: Path, *, durable: bool = True) -> None:
        with self._explained(name), file.open("rb") as source:
            self._write(self._path(name), iter(lambda: source.read(_CHUNK), b""))

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        with self._explained(name), self._client.read(self._path(name)) as file:
            if start:
                file.seek(start)
            return bytes(file.read(-1 if stop is None else stop - start))

    def fetch(self, name: str, file: Path) -> None:
        with (
            self._explained(name),
            self._client.read(self._path(name)) as source,
            file.open("xb") as copy,
        ):
            while chunk := source.read(_CHUNK):
                copy.write(chunk)

    def has(self, name: str) -> bool:
        with self._explained(name):
            return self._is_there(self._path(name))

    def names(self, prefix: str) -> list[str]:
        # A file is listed as what is in it.
        return [one for one in self._all(prefix) if not one.endswith(PARTIAL) and one != prefix]

    def delete(self, names: Iterable[str]) -> None:
        folders = set()
        for name in names:
            with self._explained(name):
                self._client.delete(self._path(name))
            folders |= {str(one) for one in PurePosixPath(name).parents[:-2]}
        for folder in sorted(folders, key=len, reverse=True):
            with suppress(Exception):  # it is not empty, or another one has removed it
                self._client.delete(self._path(folder), recursive=False)

    def remove_abandoned(self) -> None:
        for name in self._all(""):
            if name.endswith(PARTIAL):
                with self._explained(name), suppress(FileNotFoundError):
                    changed = self._client.get_file_info(self._path(name)).modification_time / 1000
                    if time.time() - changed > ABANDONED:
                        self._client.delete(self._path(name))

    def _all(self, prefix: str) -> list[str]:
        """The files below *prefix*, sorted, those that are being written too."""
        with self._explained(prefix):
            try:
                found = self._client.list_status(self._path(prefix), recursive=True)
                return sorted(self._name(one.path) for one in found if not one.isdir)
            except FileNotFoundError:
                return []

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _name(self, path: str) -> str:
        """The name of a *path*, which may come with its server."""
        if path.startswith("hdfs://"):
            path = "/" + path.removeprefix("hdfs://").partition("/")[2]
        return path.removeprefix(self._root).lstrip("/")

    def _is_there(self, path: str) -> bool:
        try:
            self._client.get_file_info(path)
        except FileNotFoundError:
            return False
        return True

    def _write(self, path: str, chunks: Iterable[bytes]) -> None:
        options = self._fresh(overwrite=True, create_parent=True)
        with self._client.create(path, options) as file:
            for chunk in chunks:
                file.write(chunk)

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        try:
            yield
        except FolderError:
            raise
        except FileNotFoundError:  # pages of Java follow in what it says
            raise FileNotFoundError(f"{self._address}/{name} is missing") from None
        except Exception as error:  # noqa: BLE001 - whatever it is, pages of Java would follow
            raise FolderError(
                f"{self._address}/{name}: {first_line(error)}; check that HDFS answers at that "
                "address, and HADOOP_CONF_DIR"
            ) from None
