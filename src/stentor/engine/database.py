"""A SQLite file that one process has at a time; what fails in it is a StoreError that says why.

`FactStore` is what the stores of brokers and of durable engines have in common.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary, finalize

import msgspec

from stentor.errors import RecordError, SettingsError, StentorError, StoreError
from stentor.model.values.string import describe, read_string

_IN_MEMORY: Final = ":memory:"
#: What SQLite raises; its messages may quote what is damaged, and be no UTF-8.
_ERRORS: Final = (sqlite3.Error, UnicodeError)
FACTS: Final = "CREATE TABLE facts (name TEXT PRIMARY KEY, fact TEXT NOT NULL)"
Fact = TypeVar("Fact")
Cell = str | int | bytes | None
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
            raise StoreError(f"{self.path} is no store of Stentor's: it has others' tables")
        if strange := has.keys() - {"table", "index"}:  # a trigger would do what we did not ask for
            raise StoreError(f"{self.path} is no store of Stentor's: it has a {strange.pop()}")
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
            return StoreError(f"{self.path} is no store of Stentor's, or damaged: {error}")
        return StoreError(
            f"{self.path} cannot be opened as a store: {error}; is there such a folder?"
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

    def run(self, statement: str, *values: Cell) -> sqlite3.Cursor:
        """Do *statement*."""
        self._check_usable()
        try:
            return self._connection.execute(statement, values)
        except _ERRORS as error:
            raise self._failed(error) from None

    def run_many(
        self, statement: str, rows: Iterable[tuple[str | int | bytes | None, ...]]
    ) -> None:
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


class FactStore:
    """Facts by name, and whatever tables a subclass adds, in one file.

    It belongs to one process at a time; it is free again when that is gone.
    """

    def __init__(self, path: str | Path) -> None:
        self._database = Database(path)
        try:
            with self.transaction():
                self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        """Make the tables of a new file, and bring an older one up to date."""
        raise NotImplementedError

    @property
    def is_new(self) -> bool:
        """Whether the file has no tables yet."""
        return not self._database.rows("SELECT 1 FROM sqlite_master WHERE name = 'facts'")

    @property
    def path(self) -> str:
        """The file."""
        return self._database.path

    def reopen(self) -> None:
        """Begin anew with what the file holds, whatever has failed before."""
        if self.path != _IN_MEMORY:
            self._database = Database(self.path)

    def transaction(self, *, synced: bool = True) -> AbstractContextManager[None]:
        """Keep all that is kept within, or nothing of it where it fails.

        What is not *synced* survives the end of the process, and perhaps not that of the machine.
        """
        return self._database.transaction(synced=synced)

    def keep_fact(self, name: str, fact: Any) -> None:
        """Keep *fact*, which JSON can hold, under *name*."""
        self._run("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, json.dumps(fact))

    def fact(self, name: str, kind: type[Fact]) -> Fact | None:
        """What was kept under *name*, which is of this *kind*; None where nothing was."""
        found = self._database.rows("SELECT fact FROM facts WHERE name = ?", name)
        with self.reading(f"the fact {name!r}"):
            return msgspec.convert(decoded(found[0][0]), kind) if found else None

    @contextmanager
    def reading(self, what: str, row: int | None = None) -> Iterator[None]:
        """Say of whatever is wrong within that it is *what*, or a *row* of that table."""
        try:
            yield
        except StoreError:
            raise
        except (
            StentorError,
            msgspec.MsgspecError,
            ValueError,
            TypeError,
            KeyError,
            RecursionError,
        ) as error:
            raise self.damaged(str(error) or type(error).__name__, what, row) from None

    def damaged(self, why: str, what: str, row: int | None = None) -> StoreError:
        """Why *what*, or a *row* of that table, cannot be used."""
        where = what if row is None else f"the row {row} of {what}"
        return StoreError(
            f"{self.path}: {where} cannot be used: {why}; go on from a copy of the file"
        )

    def _run(self, statement: str, *values: Cell) -> Any:
        return self._database.run(statement, *values)

    def close(self) -> None:
        """Let go of the file; whoever has the store can do nothing any more."""
        self._database.close()


def decoded(record: object) -> Any:
    """What the JSON of a cell says."""
    return json.loads(text_of(record))


def text_of(cell: object) -> str:
    """The text in a cell; a RecordError where it holds something else."""
    if not isinstance(cell, str):
        raise RecordError(f"expected a text, got {type(cell).__name__}")
    return read_string(cell)


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
