"""A stream's folder as one process sees it, wherever it is.

    folder = stream_folder("s3://bucket/alerts")
    segments = folder / "segments"
    segments.new("7-ab")        where this process writes a file …
    segments.keep("7-ab")       … which is in the store, for good, when this returns
    segments.file("7-ab")       where any process, on any machine, reads it

A folder of a disk is used as it is. Of any other place each machine keeps copies of what its
processes write and read.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from stentor._cache import private_folder
from stentor._files import PARTIAL, explain_os_errors
from stentor.errors import FolderError, SettingsError
from stentor.index.storage.folders import has_scheme, scheme_mistake
from stentor.pipeline.commit.failpoints import failpoint
from stentor.pipeline.storage.copies import (
    MOST_BYTES,
    copied,
    discard,
    evict,
    making,
    remove_abandoned,
)
from stentor.pipeline.storage.hdfs import HdfsStore
from stentor.pipeline.storage.local import LocalStore
from stentor.pipeline.storage.objects import ObjectStore
from stentor.pipeline.storage.port import FileStore

#: How addresses begin that are not folders of this machine, and what serves them.
SCHEMES: Final[Mapping[str, Callable[[str, Mapping[str, str]], FileStore]]] = {
    "s3": ObjectStore,
    "gs": ObjectStore,
    "abfss": ObjectStore,
    "hdfs": HdfsStore,
}
#: Other names of schemes: Hadoop's own.
ALIASES: Final = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}
#: What Spark calls them.
_SPARK_SCHEMES: Final = {"s3": "s3a"}
#: Whose epoch a file is of, in its name.
_EPOCH: Final = re.compile(r"(?:^|[-/])(\d+)w[0-9a-f]{16}")
#: The stores that this process has met.
_STORES: dict[tuple[str, tuple[tuple[str, str], ...]], FileStore] = {}


@dataclass(frozen=True)
class StreamFolder:
    """A folder of a stream: the whole, or one within it."""

    address: str
    """Of the whole: a path of this machine, or with a scheme."""
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)
    """How its store is reached: keys of obstore, of Hadoop where it is HDFS. Never shown."""
    cache: str | None = None
    """Where a machine keeps its copies; None: among its user's caches."""
    name: str = ""
    most_copies: int = field(default=MOST_BYTES, compare=False)
    """How many bytes the copies of all streams may take on a machine."""
    epoch: int = field(default=0, compare=False)
    """Which of the stream's writers names files here, where nobody can lock; later ones: larger."""

    def __truediv__(self, name: str) -> StreamFolder:
        """The folder *name* in this one."""
        return replace(self, name=f"{self.name}/{name}" if self.name else name)

    def __str__(self) -> str:
        return f"{self.address}/{self.name}" if self.name else self.address

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return not has_scheme(self.address)

    @property
    def local(self) -> Path:
        """The folder itself, or this machine's copies of what is in it."""
        return (Path(self.address) if self.is_local else self._copies) / self.name

    @property
    def store(self) -> FileStore:
        """Where all of it is."""
        key = self.address, self.options
        if key not in _STORES:
            scheme = self.address.partition(":")[0]
            _STORES[key] = (
                LocalStore(Path(self.address))
                if self.is_local
                else SCHEMES[scheme](self.address, dict(self.options))
            )
        return _STORES[key]

    @property
    def title(self) -> str:
        """The last word of its address."""
        return str(self).rstrip("/").rpartition("/")[2]

    @property
    def spark_address(self) -> str:
        """As Spark finds it: without a scheme it may look into HDFS."""
        if self.is_local:
            return f"file:{self.local.as_posix()}"
        scheme, colon, rest = str(self).partition(":")
        return _SPARK_SCHEMES.get(scheme, scheme) + colon + rest

    # Files.

    def fresh(self, *words: object) -> str:
        """A name that nobody else gives, `7-0-…` for 7 and 0; it tells the writer's epoch."""
        own = f"{self.epoch}w" if self.epoch else ""
        return "-".join([*map(str, words), own + secrets.token_hex(8)])

    def is_mine(self, name: str) -> bool:
        """Whether the file *name* is of this writer, or of one that it has shut out.

        What a later one has named this one knows nothing of.
        """
        found = _EPOCH.search(name)
        return self.is_local or found is None or int(found[1]) <= self.epoch

    def new(self, name: str) -> Path:
        """Where this process writes the file *name*, before it is kept."""
        file = self.local / name
        with explain_os_errors(file):
            file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def keep(self, *names: str, durable: bool = True) -> None:
        """See to it that written files are in the store: for good, where they are *durable*."""
        for name in names:
            self.store.put(self._full(name), self.local / name, durable=durable)

    def release(self, name: str) -> None:
        """Do without this machine's copy of a file that is kept."""
        if not self.is_local:
            (self.local / name).unlink(missing_ok=True)

    def file(self, name: str) -> Path:
        """Where this process reads the file *name*; a FolderError where there is none."""
        file = self.local / name
        return file if self.is_local else copied(file, lambda partial: self._fetch(name, partial))

    def whole(self, check: Callable[[Path], object] = lambda folder: None) -> Path:
        """Where this process reads all of this folder; *check* is given each new copy of it."""
        if self.is_local:
            return self.local
        if self.local.is_dir():
            os.utime(self.local)  # it is in use
        else:
            remove_abandoned(self.local.parent)
            evict(self._copies.parent, self.most_copies)
            with making(self.local) as partial:
                for name in self.names():
                    file = partial / name
                    file.parent.mkdir(parents=True, exist_ok=True)
                    self._fetch(name, file)
                if not partial.is_dir():
                    raise FolderError(f"{self} is missing; restore it from a backup")
                check(partial)
        return self.local

    def keep_whole(self) -> None:
        """See to it that all written files of this folder are in the store, for good."""
        if not self.is_local:
            found = (file for file in self.local.rglob("*") if file.is_file())
            self.keep(*(file.relative_to(self.local).as_posix() for file in found))

    def put_if_absent(self, name: str, content: bytes, *, step: str = "") -> bool:
        """Put *content*, for good when this returns; False where somebody was first.

        What every commit consists of. *step* names its failpoints, where it has some.
        """
        return self.store.put_if_absent(
            self._full(name), content, lambda at: failpoint(f"{step}-{at}" if step else "")
        )

    def claim(self, name: str) -> bool:
        """Whether this is the first claim of *name*; claims need not outlive the machine."""
        if not self.is_local:
            return self.put_if_absent(name, secrets.token_bytes(16))
        file = self.new(name)
        with explain_os_errors(file):
            try:
                os.close(os.open(file, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return False
        return True

    def take_over(self, name: str, of: StreamFolder) -> None:
        """Have the file *name* of another folder of this stream here too, for a while."""
        here, there = self.new(name), of.file(name)
        here.symlink_to(there.resolve())
        self.keep(name, durable=False)

    def read(self, name: str) -> bytes:
        """What the file *name* holds, in the store; a FileNotFoundError where there is none."""
        return self.store.read(self._full(name))

    def has(self, name: str) -> bool:
        """Whether there is a file *name*."""
        return self.store.has(self._full(name))

    def names(self) -> list[str]:
        """The files in the store, of this folder and of those in it."""
        prefix = f"{self.name}/" if self.name else ""
        return [name.removeprefix(prefix) for name in self.store.names(self.name)]

    def entries(self) -> list[str]:
        """The files and folders that are in this folder itself; names that a crash left too."""
        if self.is_local:
            return sorted(one.name for one in self.local.iterdir()) if self.local.is_dir() else []
        return sorted({name.partition("/")[0] for name in self.names()})

    def make(self) -> None:
        """Make this folder on this machine."""
        with explain_os_errors(self.local):
            self.local.mkdir(parents=True, exist_ok=True)

    def remove(self, entries: Iterable[str]) -> None:
        """Remove files, and folders with all that is in them."""
        for entry in entries:
            if not self.is_local:
                within = (self / entry).names()
                self.store.delete(
                    [self._full(f"{entry}/{name}") for name in within] or [self._full(entry)]
                )
            _remove(self.local / entry)
            failpoint("unused-removed")

    def remove_all(self) -> None:
        """Remove this folder, as far as that can be done."""
        if not self.is_local:
            with suppress(FolderError):
                self.store.delete(self._full(name) for name in self.names())
        shutil.rmtree(self.local, ignore_errors=True)

    def forget(self, kept: Collection[str]) -> None:
        """Do without this machine's copies of all folders here but *kept*."""
        if not self.is_local and self.local.is_dir():
            for one in self.local.iterdir():
                if one.name not in kept and not one.name.endswith(PARTIAL):
                    discard(one)

    @property
    def _copies(self) -> Path:
        """This machine's copies of all of the stream."""
        parent = Path(self.cache) if self.cache else private_folder("streams")
        if parent is None:
            raise SettingsError(
                f"there is no folder for copies of {self.address} on this machine; name one with "
                "local_cache"
            )
        token = hashlib.blake2b(self.address.encode(), digest_size=6).hexdigest()
        return parent / f"{self.address.rstrip('/').rpartition('/')[2]}-{token}"

    def _fetch(self, name: str, file: Path) -> None:
        try:
            self.store.fetch(self._full(name), file)
        except FileNotFoundError:
            raise FolderError(f"{self}/{name} is missing; restore it from a backup") from None

    def _full(self, name: str) -> str:
        return f"{self.name}/{name}" if self.name else name


def stream_folder(
    given: str | os.PathLike[str] | StreamFolder,
    what: str = "path",
    *,
    options: Mapping[str, str] | None = None,
    cache: str | None = None,
) -> StreamFolder:
    """The folder *given*, which is *what*: a path of this machine, or an address of a store.

    >>> str(stream_folder("s3a://bucket/alerts/"))
    's3://bucket/alerts'
    >>> stream_folder("dbfs:/alerts")
    Traceback (most recent call last):
    stentor.errors.SettingsError: path: dbfs:/alerts is an address of the scheme 'dbfs', which \
Stentor does not know; give a folder that all machines see, or an address that begins with s3://, \
gs://, abfss://, hdfs://
    """
    if isinstance(given, StreamFolder):
        if given.is_local or given.options:
            return given
        return replace(
            given, options=tuple(sorted((options or {}).items())), cache=given.cache or cache
        )
    if not has_scheme(given):
        return StreamFolder(str(Path(given).resolve()))
    address = os.fspath(given)
    scheme, _, rest = address.partition(":")
    scheme = ALIASES.get(scheme.lower(), scheme.lower())
    if scheme == "file":
        raise SettingsError(f"{what}: {scheme_mistake(address)}")
    if scheme not in SCHEMES or not rest.startswith("//"):
        known = ", ".join(f"{name}://" for name in SCHEMES)
        raise SettingsError(
            f"{what}: {address} is an address of the scheme {scheme!r}, which Stentor does not "
            f"know; give a folder that all machines see, or an address that begins with {known}"
        )
    below = rest[2:].strip("/")
    if not below.partition("/")[2] and scheme != "hdfs":
        raise SettingsError(
            f"{what}: {address} names a bucket alone; name a folder in it, such as "
            f"{scheme}://{below or 'bucket'}/alerts"
        )
    return StreamFolder(f"{scheme}://{below}", tuple(sorted((options or {}).items())), cache)


def _remove(path: Path) -> None:
    """Remove *path*; a task that a failed job left behind may rename or remove it meanwhile."""
    with explain_os_errors(path):
        while path.is_dir() and not path.is_symlink():
            with suppress(FileNotFoundError):
                shutil.rmtree(path)
        path.unlink(missing_ok=True)
