"""Hadoop's file system through hdfs-native, which needs no Java.

Its own create refuses what exists, but a file that is being written can be seen: so a commit is
written under a name of its own first, and gets its name by a rename that refuses likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from stentor.errors import FolderError
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
        partial = f"{folder}/.{own}.{token_hex(8)}.partial"
        with self._explained(name):
            self._write(partial, content)
            reached("written")
            try:
                # It refuses what exists, unlike a local one.
                self._client.rename(partial, file, overwrite=False)
            except FileExistsError:
                self._client.delete(partial)
                return False
            except Exception as error:
                self._client.delete(partial)
                if "exist" in str(error).lower() and self._is_there(file):
                    return self.read(name) == content
                raise
            reached("linked")
        return True

    def put(self, name: str, file: Path, *, durable: bool = True) -> None:
        with self._explained(name):
            self._write(self._path(name), file.read_bytes())

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

    def names(self, prefix: str) -> list[str]:
        with self._explained(prefix):
            try:
                found = [
                    one.path
                    for one in self._client.list_status(self._path(prefix), recursive=True)
                    if not one.isdir and not one.path.endswith(".partial")
                ]
            except FileNotFoundError:
                return []
        return sorted(self._name(path) for path in found)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            with self._explained(name):
                try:
                    self._client.delete(self._path(name))
                except FileNotFoundError:
                    continue

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

    def _write(self, path: str, content: bytes) -> None:
        options = self._fresh(overwrite=False, create_parent=True)
        with self._client.create(path, options) as file:
            file.write(content)

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, FolderError):
            raise
        except Exception as error:
            raise FolderError(
                f"{self._address}/{name}: {first_line(error)}; check that HDFS answers at that "
                "address, and HADOOP_CONF_DIR"
            ) from error
