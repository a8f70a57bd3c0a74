"""A SQLite file that one process has at a time; what fails in it is a StoreError that says why."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from weakref import WeakValueDictionary, finalize

from stentor.errors import SettingsError, StoreError
from stentor.model.values.string import describe

_IN_MEMORY: Final = ":memory:"
#: What SQLite raises; its messages may quote what is damaged, and be no UTF-8.
_ERRORS: Final = (sqlite3.Error, UnicodeError)
#: By device and inode: SQLite's lock is one of processes, so that within one we look ourselves.
_OPEN_HERE: WeakValueDictionary[tuple[int, int], Database] = WeakValueDictionary()


class Database:
    """The file *path*, locked until it is closed or the process ends, however that happens.

    Whoever opens a file again within one process takes it over: the older database refuses
    everything from then on. It may be used by any thread, by one at a time.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = _checked(path)
        self._end = ""  # why it cannot be used any more
        self._process = os.getpid()
        self._take_over()
        try:
            self._connection = sqlite3.connect(
                self.path, isolation_level=None, timeout=0, check_same_thread=False
            )
        except (*_ERRORS, ValueError) as error:  # a path may have a NUL
            raise self._unopened(error) from None
        self._connection.text_factory = _text  # what is no UTF-8 is found where it is read
        # A connection is a part of a circle: it would keep the lock until that is collected.
        self._release = finalize(self, _release, self._connection, self._process)
        try:
            self._begin()
        except _ERRORS as error:
            self.close()
            raise self._unopened(error) from None
        except BaseException:
            self.close()
            raise
        if self.path != _IN_MEMORY:
            _OPEN_HERE[_file(self.path)] = self

    def _take_over(self) -> None:
        with suppress(OSError, ValueError):  # there is no such file yet
            if older := _OPEN_HERE.get(_file(self.path)):
                older.close()
                older._end = "this process has opened the file again, and goes on there"

    def _begin(self) -> None:
        """Lock the file, and look whether it is whole. Cost: it is read once."""
        run = self._connection.execute
        has = {kind: name for name, kind in run("SELECT name, type FROM sqlite_master")}
        if has and not run("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone():
            raise StoreError(f"{self.path} is no broker's database: it has others' tables")
        if strange := has.keys() - {"table", "index"}:  # a trigger would do what we did not ask for
            raise StoreError(f"{self.path} is no broker's database: it has a {strange.pop()}")
        run("PRAGMA trusted_schema = OFF")
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")  # one wait for the disk a batch
        run("BEGIN EXCLUSIVE")
        run("COMMIT")
        [found] = run("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise StoreError(f"{self.path} is damaged: {found}; go on from a copy of it")

    def _unopened(self, error: Exception) -> StoreError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreError(
                f"{self.path} is open in another process, and a store belongs to one at a time: "
                "end that one first, or give another file"
            )
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return StoreError(f"{self.path} is no broker's database, or damaged: {error}")
        return StoreError(
            f"{self.path} cannot be opened as a broker's database: {error}; is there such a folder?"
        )

    @contextmanager
    def transaction(self, *, synced: bool = True) -> Iterator[None]:
        """Keep all that is changed within, or nothing of it where it fails.

        What is not *synced* may be undone where the machine loses power, not where the process
        dies.
        """
        self.run(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            # A failed statement may have ended the transaction. The first reason is what counts.
            with suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            raise

    def run(self, statement: str, *values: str | int | bytes) -> sqlite3.Cursor:
        """Do *statement*."""
        self._check_usable()
        try:
            return self._connection.execute(statement, values)
        except _ERRORS as error:
            raise self._failed(error) from None

    def run_many(self, statement: str, rows: Iterable[tuple[str | int, ...]]) -> None:
        """Do *statement* with each of *rows*."""
        self._check_usable()
        try:
            self._connection.executemany(statement, rows)
        except _ERRORS as error:
            raise self._failed(error) from None

    def rows(self, question: str, *values: str | int | bytes) -> list[tuple[Any, ...]]:
        """The answer to *question*."""
        cursor = self.run(question, *values)
        try:
            return cursor.fetchall()
        except _ERRORS as error:
            raise self._failed(error) from None

    def _check_usable(self) -> None:
        if self._end:
            raise StoreError(f"{self.path} cannot be used any more: {self._end}")
        if self._process != os.getpid():
            raise StoreError(
                f"{self.path} was opened by the process {self._process}; after a fork the child "
                "cannot use it"
            )

    def _failed(self, error: Exception) -> StoreError:
        return StoreError(f"{self.path}: {error}")

    def close(self) -> None:
        """Let go of the file; nothing can be done with it any more."""
        self._end = self._end or "it was closed"
        self._release()


def _release(connection: sqlite3.Connection, process: int) -> None:
    if process == os.getpid():
        with suppress(sqlite3.Error):
            connection.close()


def _checked(path: object) -> str:
    """*path* as a text; anything would make a file of some name."""
    named = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(named, str):
        raise SettingsError(f"a store is a file's path, got {describe(path)}")
    return named


def _file(path: str) -> tuple[int, int]:
    found = Path(path).stat()
    return found.st_dev, found.st_ino


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")
