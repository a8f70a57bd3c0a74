"""A broker's state in SQLite: JSON records, kept with each batch of messages or not at all."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from stentor.broker.interest import Pairs
from stentor.broker.messages import Delivery
from stentor.errors import FolderError
from stentor.language.limits import ANY_SIZE
from stentor.model import Event, Schema, Subscription
from stentor.wire.events import event_from_dict, event_to_dict
from stentor.wire.limits import RecordLimits
from stentor.wire.records import subscription_from_dict, subscription_to_dict

_VERSION: Final = 1
_LIMITS: Final = RecordLimits(expression=ANY_SIZE)
_RANGES: Final = "ranges"
#: Names are longer than clients' ids may be: their broker stands before them.
_ANY_ID: Final = "?"
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, fact TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS interests (
    source TEXT NOT NULL, name TEXT NOT NULL, record TEXT NOT NULL, UNIQUE (source, name));
CREATE TABLE IF NOT EXISTS events (id TEXT NOT NULL UNIQUE, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (
    subscription TEXT NOT NULL, event TEXT NOT NULL, added INTEGER NOT NULL);
"""


class Store:
    """What a broker needs to go on after a restart; `:memory:` lives as long as the store."""

    def __init__(self, path: str | Path = ":memory:") -> None:
        try:
            self._database = sqlite3.connect(path, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")  # one wait for the disk a batch
            self._database.executescript(_TABLES)
        except sqlite3.OperationalError as error:
            raise FolderError(
                f"{path} cannot be opened as a broker's database: {error}; is there such a folder?"
            ) from None
        except sqlite3.DatabaseError as error:
            raise FolderError(f"{path} is no broker's database: {error}") from None
        version = self.fact("version")
        if version is None:
            self.keep_fact("version", _VERSION)
        elif version != _VERSION:
            raise FolderError(f"{path} has version {version}, and this Stentor reads {_VERSION}")

    def belong_to(self, broker: str) -> None:
        """Be the store of *broker*; a FolderError where it is that of another."""
        owner = self.fact("broker")
        if owner not in (None, broker):
            raise FolderError(f"this is the store of the broker {owner!r}, not of {broker!r}")
        self.keep_fact("broker", broker)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Keep all that is kept within, or nothing of it where it fails."""
        self._database.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def keep_fact(self, name: str, fact: Any) -> None:
        """Keep *fact*, which JSON can hold, under *name*."""
        self._run("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, json.dumps(fact))

    def fact(self, name: str) -> Any:
        """What was kept under *name*; None where nothing was."""
        found = self._run("SELECT fact FROM facts WHERE name = ?", name).fetchone()
        return None if found is None else json.loads(found[0])

    def keep_interest(self, source: str, name: str, wanted: Subscription | Pairs) -> None:
        """Keep what *source* wants under *name*: a subscription, or ranges of the space."""
        if isinstance(wanted, Subscription):
            record = json.dumps(subscription_to_dict(wanted))
        else:
            record = json.dumps({_RANGES: wanted})
        self._run("INSERT OR REPLACE INTO interests VALUES (?, ?, ?)", source, name, record)

    def forget_interest(self, source: str, name: str) -> None:
        """Forget what *source* wanted under *name*."""
        self._run("DELETE FROM interests WHERE source = ? AND name = ?", source, name)

    def forget_ranges(self) -> None:
        """Forget all interests that are ranges: they mean nothing in another space."""
        self._run("DELETE FROM interests WHERE record LIKE ?", f'{{"{_RANGES}":%')

    def interests(self, schema: Schema) -> Iterator[tuple[str, str, Subscription | Pairs]]:
        """All interests in the order in which they came: source, name, and what is wanted."""
        rows = self._run("SELECT source, name, record FROM interests ORDER BY rowid").fetchall()
        for source, name, record in rows:
            raw = json.loads(record)
            if _RANGES in raw:
                yield source, name, tuple((int(low), int(high)) for low, high in raw[_RANGES])
            else:
                wanted = subscription_from_dict({**raw, "id": _ANY_ID}, schema, _LIMITS)
                yield source, name, replace(wanted, id=name)

    def keep_event(self, event: Event) -> None:
        """Keep a live event."""
        record = json.dumps(event_to_dict(event))
        self._run("INSERT OR REPLACE INTO events VALUES (?, ?)", event.id, record)

    def forget_event(self, id: str) -> None:
        """Forget a live event."""
        self._run("DELETE FROM events WHERE id = ?", id)

    def events(self, schema: Schema) -> Iterator[Event]:
        """All live events in the order in which they came."""
        for (record,) in self._run("SELECT record FROM events ORDER BY rowid").fetchall():
            yield event_from_dict(json.loads(record), schema, _LIMITS)

    def keep_deliveries(self, deliveries: Iterable[Delivery]) -> None:
        """Keep what clients are to be given."""
        self._database.executemany("INSERT INTO deliveries VALUES (?, ?, ?)", deliveries)

    def forget_deliveries(self) -> None:
        """Forget all deliveries: clients have been given them."""
        self._run("DELETE FROM deliveries")

    def deliveries(self) -> list[Delivery]:
        """All deliveries that were kept, in order."""
        rows = self._run("SELECT subscription, event, added FROM deliveries ORDER BY rowid")
        return [Delivery(subscription, event, bool(added)) for subscription, event, added in rows]

    def _run(self, statement: str, *values: str) -> sqlite3.Cursor:
        return self._database.execute(statement, values)

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()


class NoStore:
    """Keeps nothing, for a broker that is not to be opened again."""

    @contextmanager
    def at_once(self) -> Iterator[None]:
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

    def keep_deliveries(self, deliveries: Iterable[Delivery]) -> None:
        pass

    def forget_deliveries(self) -> None:
        pass

    def deliveries(self) -> list[Delivery]:
        return []
