"""A broker's state in SQLite: JSON records, kept with each batch of messages or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from stentor.broker.database import Database
from stentor.broker.interest import CLIENT, Pairs
from stentor.broker.messages import (
    Delivery,
    event_from_json,
    interest_from_json,
    interest_to_json,
)
from stentor.errors import RecordError, SettingsError, StentorError, StoreError
from stentor.index.mics.space import Space
from stentor.model import Event, Kind, Schema, Subscription
from stentor.model.values.string import describe, read_string
from stentor.model.values.time import BEGINNING, EARLIEST, LATEST
from stentor.wire.events import event_to_dict

#: 2: deliveries are numbered, and events that are on their way over a link are kept.
_VERSION: Final = 2
_DELIVERIES: Final = """
CREATE TABLE deliveries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    subscription TEXT NOT NULL, event TEXT NOT NULL, added INTEGER NOT NULL)"""
_FORWARDS: Final = """
CREATE TABLE forwards (
    number INTEGER PRIMARY KEY AUTOINCREMENT, neighbour TEXT NOT NULL, record TEXT NOT NULL)"""
_TABLES: Final = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, fact TEXT NOT NULL)",
    """CREATE TABLE interests (
    source TEXT NOT NULL, name TEXT NOT NULL, record TEXT NOT NULL, UNIQUE (source, name))""",
    "CREATE TABLE events (id TEXT NOT NULL UNIQUE, record TEXT NOT NULL)",
    _DELIVERIES,
    _FORWARDS,
)
#: From version 1.
_UPGRADE: Final = (
    "ALTER TABLE deliveries RENAME TO deliveries_1",
    _DELIVERIES,
    "INSERT INTO deliveries SELECT rowid, subscription, event, added FROM deliveries_1",
    "DROP TABLE deliveries_1",
    _FORWARDS,
)

Fact = TypeVar("Fact")


class _Attribute(msgspec.Struct):
    name: str
    kind: Kind | None
    where: str


class _Schema(msgspec.Struct):
    plane: bool
    declared: bool
    attributes: list[_Attribute]


class KeptInterest(NamedTuple):
    """A row: what *source* wants under *name*."""

    row: int
    source: str
    name: str
    wanted: Subscription | Pairs


class Store:
    """What a broker needs to go on after a restart; `:memory:` lives as long as the store.

    A file belongs to one process at a time; it is free again when that is gone.
    """

    def __init__(self, path: str | Path = ":memory:") -> None:
        self._database = Database(path)
        try:
            with self.transaction():
                self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        """Make the tables of a new file, and bring an older one up to date."""
        if not self._database.rows("SELECT 1 FROM sqlite_master WHERE name = 'facts'"):
            for statement in _TABLES:
                self._run(statement)
            self.keep_fact("version", _VERSION)
        version = self.fact("version", int)
        if version == 1:
            for statement in _UPGRADE:
                self._run(statement)
            self.keep_fact("version", _VERSION)
        elif version != _VERSION:
            raise StoreError(
                f"{self.path} has version {version}, and this Stentor reads {_VERSION}"
            )

    @property
    def path(self) -> str:
        """The file."""
        return self._database.path

    def reopen(self) -> None:
        """Begin anew with what the file holds, whatever has failed before."""
        if self.path != ":memory:":
            self._database = Database(self.path)

    def belong_to(self, broker: str) -> None:
        """Be the store of *broker*; a StoreError where it is that of another."""
        owner = self.fact("broker", str)
        if owner not in (None, broker):
            raise StoreError(f"{self.path} is the store of the broker {owner!r}, not of {broker!r}")
        self.keep_fact("broker", broker)

    def transaction(self, *, synced: bool = True) -> AbstractContextManager[None]:
        """Keep all that is kept within, or nothing of it where it fails.

        What is not *synced* survives the end of the process, and perhaps not that of the machine.
        """
        return self._database.transaction(synced=synced)

    # Facts.

    def keep_fact(self, name: str, fact: Any) -> None:
        """Keep *fact*, which JSON can hold, under *name*."""
        self._run("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, json.dumps(fact))

    def fact(self, name: str, kind: type[Fact]) -> Fact | None:
        """What was kept under *name*, which is of this *kind*; None where nothing was."""
        found = self._database.rows("SELECT fact FROM facts WHERE name = ?", name)
        with self.reading(f"the fact {name!r}"):
            return msgspec.convert(_decoded(found[0][0]), kind) if found else None

    def time(self) -> int:
        """The time that it was for the broker."""
        time = self.fact("time", int)
        with self.reading("the fact 'time'"):
            if time is None or time == BEGINNING:
                return BEGINNING
            if not EARLIEST <= time <= LATEST:
                raise ValueError(f"{time} is no instant of the years 1 to 9999")
            return time

    def schema(self) -> Schema | None:
        """The attributes that the broker knew; None where it knew none."""
        saved = self.fact("schema", dict[str, Any])
        with self.reading("the fact 'schema'"):
            if saved is None:
                return None
            known = msgspec.convert(saved, _Schema).attributes
            names = [one.name for one in known if one.name]  # others were forgotten
            if len(set(names)) < len(names):
                raise ValueError("an attribute stands there twice")
            return Schema.from_dict(saved)

    # What is wanted.

    def keep_interest(self, source: str, name: str, wanted: Subscription | Pairs) -> None:
        """Keep what *source* wants under *name*: a subscription, or ranges of the space."""
        record = json.dumps(interest_to_json(wanted))
        self._run("INSERT OR REPLACE INTO interests VALUES (?, ?, ?)", source, name, record)

    def forget_interest(self, source: str, name: str) -> None:
        """Forget what *source* wanted under *name*."""
        self._run("DELETE FROM interests WHERE source = ? AND name = ?", source, name)

    def forget_ranges(self) -> None:
        """Forget all interests that are ranges: they mean nothing in another space."""
        self._run("DELETE FROM interests WHERE record LIKE ?", '{"ranges":%')

    def interests(self, schema: Schema) -> Iterator[KeptInterest]:
        """All interests in the order in which they came."""
        rows = self._database.rows(
            "SELECT rowid, source, name, record FROM interests ORDER BY rowid"
        )
        for row, source, name, record in rows:
            with self.reading("interests", row):
                raw, _ = _decoded(record), (_string(source), _string(name))
                wanted = interest_from_json(raw, name, schema)
            yield KeptInterest(row, source, name, wanted)

    # Events.

    def keep_event(self, event: Event) -> None:
        """Keep a live event."""
        self._run("INSERT OR REPLACE INTO events VALUES (?, ?)", event.id, _record(event))

    def forget_event(self, id: str) -> None:
        """Forget a live event."""
        self._run("DELETE FROM events WHERE id = ?", id)

    def events(self, schema: Schema) -> Iterator[tuple[int, Event]]:
        """All live events in the order in which they came, by row."""
        rows = self._database.rows("SELECT rowid, id, record FROM events ORDER BY rowid")
        for row, id, record in rows:
            with self.reading("events", row):
                event = event_from_json(_decoded(record), schema)
                if event.until is None or event.id != id:
                    raise ValueError(f"it is not the live event {id!r}")
            yield row, event

    def keep_forward(self, neighbour: str, event: Event) -> None:
        """Keep an event that is on its way to *neighbour*, and is not live: nobody else has it."""
        insert = "INSERT INTO forwards (neighbour, record) VALUES (?, ?)"
        self._run(insert, neighbour, _record(event))

    def forget_forwards(self, neighbour: str, count: int | None = None) -> None:
        """Forget the first *count* events that were on their way to *neighbour*; None: all."""
        self._run(
            "DELETE FROM forwards WHERE number IN "
            "(SELECT number FROM forwards WHERE neighbour = ? ORDER BY number LIMIT ?)",
            neighbour,
            -1 if count is None else count,
        )

    def strand_forwards(self, neighbour: str) -> None:
        """Keep what was on its way to *neighbour* for whoever wants it then."""
        self._run("UPDATE forwards SET neighbour = ? WHERE neighbour = ?", CLIENT, neighbour)

    def forwards(self, schema: Schema) -> Iterator[tuple[int, str, Event]]:
        """All events that were on their way, and to whom, by row, in order."""
        question = "SELECT number, neighbour, record FROM forwards ORDER BY number"
        for row, neighbour, record in self._database.rows(question):
            with self.reading("forwards", row):
                event = event_from_json(_decoded(record), schema)
            yield row, neighbour, event

    # Deliveries.

    def keep_deliveries(self, deliveries: Iterable[Delivery]) -> list[int]:
        """Keep what clients are to be given; the number of each."""
        insert = "INSERT INTO deliveries (subscription, event, added) VALUES (?, ?, ?)"
        return [self._run(insert, *delivery).lastrowid or 0 for delivery in deliveries]

    def forget_deliveries(self, numbers: Iterable[int]) -> None:
        """Forget the deliveries of these *numbers*: clients have been given them."""
        self._database.run_many(
            "DELETE FROM deliveries WHERE number = ?", ((number,) for number in numbers)
        )

    def deliveries(self) -> dict[int, Delivery]:
        """All deliveries that were kept, by number, in order."""
        found = {}
        question = "SELECT number, subscription, event, added FROM deliveries ORDER BY number"
        for row, subscription, event, added in self._database.rows(question):
            with self.reading("deliveries", row):
                if added not in (0, 1):
                    raise ValueError(f"`added` is {added!r}; expected 0 or 1")
                found[row] = Delivery(_string(subscription), _string(event), bool(added))
        return found

    # Inside.

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

    def _run(self, statement: str, *values: str | int | bytes) -> Any:
        return self._database.run(statement, *values)

    def close(self) -> None:
        """Let go of the file; the broker that has it can do nothing any more."""
        self._database.close()


class NoStore:
    """Keeps nothing, for a broker that is not to be opened again."""

    @contextmanager
    def transaction(self, *, synced: bool = True) -> Iterator[None]:
        yield

    def keep_fact(self, name: str, fact: Any) -> None:
        pass

    def keep_interest(self, source: str, name: str, wanted: Subscription | Pairs) -> None:
        pass

    def forget_interest(self, source: str, name: str) -> None:
        pass

    def keep_event(self, event: Event) -> None:
        pass

    def forget_event(self, id: str) -> None:
        pass

    def keep_forward(self, neighbour: str, event: Event) -> None:
        pass

    def forget_forwards(self, neighbour: str, count: int | None = None) -> None:
        pass

    def strand_forwards(self, neighbour: str) -> None:
        pass

    def keep_deliveries(self, deliveries: Iterable[Delivery]) -> list[int]:
        return [0 for _ in deliveries]

    def forget_deliveries(self, numbers: Iterable[int]) -> None:
        pass

    def deliveries(self) -> dict[int, Delivery]:
        return {}

    def close(self) -> None:
        pass


def check_settings(schema: Schema | None, space: Space | None, store: Store | None = None) -> None:
    """Refuse what is no schema, no space or no store."""
    if not (schema is None or isinstance(schema, Schema)):
        raise SettingsError(f"a schema is a Schema, got {describe(schema)}")
    if not (space is None or isinstance(space, Space)):
        raise SettingsError(f"a space is a Space, got {describe(space)}")
    if not (store is None or isinstance(store, Store)):
        raise SettingsError(f"a store is a Store, got {describe(store)}")


def _record(event: Event) -> str:
    return json.dumps(event_to_dict(event))


def _decoded(record: object) -> Any:
    return json.loads(_string(record))


def _string(cell: object) -> str:
    if not isinstance(cell, str):
        raise RecordError(f"expected a text, got {type(cell).__name__}")
    return read_string(cell)
