"""A broker's state in SQLite: JSON records, kept with each batch of messages or not at all."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from stentor.broker.interest import CLIENT, Pairs
from stentor.broker.messages import (
    Delivery,
    event_from_json,
    fields_from_json,
    interest_from_json,
    interest_to_json,
)
from stentor.engine.database import FACTS, FactStore, decoded, text_of
from stentor.errors import SettingsError, StoreError
from stentor.index.mics.space import Space
from stentor.model import Event, Kind, Schema, Subscription
from stentor.model.values.string import describe
from stentor.model.values.time import BEGINNING, EARLIEST, LATEST
from stentor.wire.events import event_to_dict
from stentor.wire.records import SubscriptionFields

#: 2: deliveries are numbered, and events that are on their way over a link are kept.
#: 3: live events have versions, and what was withdrawn is remembered.
_VERSION: Final = 3
_DELIVERIES: Final = """
CREATE TABLE deliveries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    subscription TEXT NOT NULL, event TEXT NOT NULL, added INTEGER NOT NULL)"""
_FORWARDS: Final = """
CREATE TABLE forwards (
    number INTEGER PRIMARY KEY AUTOINCREMENT, neighbour TEXT NOT NULL, record TEXT NOT NULL)"""
_VERSIONS: Final = """
CREATE TABLE versions (
    id TEXT PRIMARY KEY, version INTEGER NOT NULL, until INTEGER, own INTEGER NOT NULL)"""
_TABLES: Final = (
    FACTS,
    """CREATE TABLE interests (
    source TEXT NOT NULL, name TEXT NOT NULL, record TEXT NOT NULL, UNIQUE (source, name))""",
    "CREATE TABLE events (id TEXT NOT NULL UNIQUE, record TEXT NOT NULL)",
    _DELIVERIES,
    _FORWARDS,
    _VERSIONS,
)
#: From version 1.
_UPGRADE: Final = (
    "ALTER TABLE deliveries RENAME TO deliveries_1",
    _DELIVERIES,
    "INSERT INTO deliveries SELECT rowid, subscription, event, added FROM deliveries_1",
    "DROP TABLE deliveries_1",
    _FORWARDS,
)


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
    raw: Mapping[str, Any]

    def wanted(self, schema: Schema) -> Subscription | Pairs:
        """What is wanted: a subscription, or ranges of the space."""
        return interest_from_json(self.raw, self.name, schema)

    def fields(self, schema: Schema) -> SubscriptionFields:
        """What the row says of a subscription, its expression not yet read."""
        return fields_from_json(self.raw, self.name, schema)


class Store(FactStore):
    """What a broker needs to go on after a restart; `:memory:` lives as long as the store.

    A file belongs to one process at a time; it is free again when that is gone.
    """

    #: Whether who has this store keeps what goes over links until neighbours have it.
    keeps_links = False

    def __init__(self, path: str | Path = ":memory:") -> None:
        super().__init__(path)

    def _begin(self) -> None:
        """Make the tables of a new file, and bring an older one up to date."""
        if self.is_new:
            for statement in _TABLES:
                self._run(statement)
            self.keep_fact("version", _VERSION)
        version = self.fact("version", int)
        if version in (1, 2):
            for statement in (*(_UPGRADE if version == 1 else ()), _VERSIONS):
                self._run(statement)
            self.keep_fact("version", _VERSION)
        elif version != _VERSION:
            raise StoreError(
                f"{self.path} has version {version}, and this Stentor reads {_VERSION}"
            )

    def belong_to(self, broker: str) -> None:
        """Be the store of *broker*; a StoreError where it is that of another."""
        owner = self.fact("broker", str)
        if owner not in (None, broker):
            raise StoreError(f"{self.path} is the store of the broker {owner!r}, not of {broker!r}")
        self.keep_fact("broker", broker)

    # Facts.

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

    def interests(self) -> Iterator[KeptInterest]:
        """All interests in the order in which they came."""
        rows = self._database.rows(
            "SELECT rowid, source, name, record FROM interests ORDER BY rowid"
        )
        for row, source, name, record in rows:
            with self.reading("interests", row):
                kept = KeptInterest(row, text_of(source), text_of(name), decoded(record))
            yield kept

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
                event = event_from_json(decoded(record), schema)
                if event.until is None or event.id != id:
                    raise ValueError(f"it is not the live event {id!r}")
            yield row, event

    def keep_version(self, id: str, version: int, until: int | None, own: bool) -> None:
        """Keep which version of the event *id* is live, or was withdrawn; and whether it is own."""
        self._run(
            "INSERT OR REPLACE INTO versions VALUES (?, ?, ?, ?)", id, version, until, int(own)
        )

    def forget_version(self, id: str) -> None:
        """Forget the version of the event *id*, which is over."""
        self._run("DELETE FROM versions WHERE id = ?", id)

    def versions(self) -> dict[str, tuple[int, int | None, bool]]:
        """The versions of events, live or withdrawn, until when, and whether they are own."""
        found = {}
        rows = self._database.rows("SELECT rowid, id, version, until, own FROM versions")
        for row, id, *cells in rows:
            with self.reading("versions", row):
                version, until, own = msgspec.convert(cells, tuple[int, int | None, int])
                found[text_of(id)] = version, until, own == 1
        return found

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
                event = event_from_json(decoded(record), schema)
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
                found[row] = Delivery(text_of(subscription), text_of(event), bool(added))
        return found


def version_of(path: str | Path) -> tuple[int | None, int]:
    """The version of the store in the file *path*, and the one that this Stentor writes."""
    with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as reader:
        try:
            [found] = reader.execute("SELECT fact FROM facts WHERE name = 'version'").fetchone()
            return int(found), _VERSION
        except (sqlite3.Error, TypeError, ValueError):
            raise StoreError(f"{path} is no broker's store") from None


class NoStore:
    """Keeps nothing, for a broker that is not to be opened again."""

    keeps_links = False

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

    def keep_version(self, id: str, version: int, until: int | None, own: bool) -> None:
        pass

    def forget_version(self, id: str) -> None:
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
