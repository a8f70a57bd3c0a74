"""The changes of a durable engine: encoded, in a store, on disk before they are answered.

    change ─change_to_bytes─▶ ChangeLog: those of one moment, one commit ─▶ ChangeStore (SQLite)

An entry has what came, encoded, with the seq and the time that each record was given, so that
letting it happen again needs no clock, no parser and no match.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from stentor.encoding.check import fault
from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns, read_only_columns
from stentor.encoding.ragged import take
from stentor.engine.apply import NO_EVENTS, NO_SUBSCRIPTIONS, EncodedRecords
from stentor.engine.batch import NewEvents, NewSubscriptions
from stentor.engine.database import FACTS, Cell, FactStore, text_of
from stentor.engine.ids import StringArrays
from stentor.engine.plan import (
    Plan,
    PlannedRecord,
)
from stentor.engine.tags import Tags, among_of
from stentor.errors import StoreError
from stentor.index.storage.arrays import Arrays, bundle_of, with_prefix
from stentor.model import Point, Schema
from stentor.model.record import Operation
from stentor.model.values.labels import read_labels, read_owner
from stentor.model.values.time import NEVER

_VERSION: Final = 1
_TABLES: Final = (
    FACTS,
    "CREATE TABLE attributes (code INTEGER PRIMARY KEY, name TEXT, kind TEXT, first_use TEXT)",
    """CREATE TABLE changes (
    number INTEGER PRIMARY KEY, records INTEGER NOT NULL, body BLOB NOT NULL)""",
)
_AT_ONCE: Final = 64


class Position(NamedTuple):
    """The last record that has come, and its logical time."""

    seq: int
    time: int


class LoggedChange(NamedTuple):
    """What came between two positions; every one of *records* was accepted."""

    before: Position
    after: Position
    records: EncodedRecords


class _Entry(msgspec.Struct, array_like=True):
    """A change as MessagePack lays it out."""

    before: tuple[int, int]
    after: tuple[int, int]
    arrays: dict[str, tuple[str, memoryview]]
    tags: list[tuple[str | None, dict[str, str]]] | None
    among: dict[int, dict[str, str]]


class _Steps(NamedTuple):
    """Planned records, by column."""

    operation: Int64
    time: Int64
    seq: Int64
    until: Int64
    column: Int64
    x: Any
    y: Any


def change_to_bytes(
    before: Position,
    after: Position,
    arriving: EncodedRecords | NewEvents | NewSubscriptions,
    plan: Plan | None,
) -> tuple[bytes, int]:
    """What *arriving* changed, to be kept, and how many records did; none: nothing but time passed.

    *plan* is what was decided of it; None: all of it was accepted.
    """
    if plan is None and not isinstance(arriving, EncodedRecords):
        if isinstance(arriving, NewEvents):
            return b"", 0  # none stayed live
        return _new_to_bytes(before, after, arriving), len(arriving.ids)
    assert plan is not None
    kept = arriving if isinstance(arriving, EncodedRecords) else arriving.arriving()
    steps, chosen = kept.steps, list[int]()
    for record, step in enumerate(steps):
        is_gone = step.operation is Operation.PUBLISH and step.until == NEVER
        if not is_gone and record not in plan.errors:
            chosen.append(record)
    if not chosen:
        return b"", 0
    new = [record for record in chosen if steps[record].operation is Operation.SUBSCRIBE]
    events = [record for record in chosen if _brings_event(steps[record])]
    column = dict(zip(new, range(len(new)), strict=True))
    column |= zip(events, range(len(events)), strict=True)
    nowhere = Point(np.nan, np.nan)
    at = [steps[record].at or nowhere for record in chosen]
    arrays = with_prefix(
        "steps",
        _Steps(
            np.array([steps[record].operation for record in chosen], np.int64),
            np.array([plan.times[record] for record in chosen], np.int64),
            np.array([plan.seqs[record] for record in chosen], np.int64),
            np.array([steps[record].until for record in chosen], np.int64),
            np.array([column.get(record, 0) for record in chosen], np.int64),
            np.array([one.x for one in at], np.float64),
            np.array([one.y for one in at], np.float64),
        ),
    )
    arrays |= with_prefix("ids", StringArrays.of([steps[record].id for record in chosen]))
    tags = None
    if new:
        columns = [steps[record].column for record in new]
        texts = kept.texts
        if len(columns) < len(texts):
            kept_columns = take(kept.columns, np.array(columns, np.int64))
        else:
            kept_columns = kept.columns
        own = [texts[one] for one in columns]
        arrays |= with_prefix("columns", kept_columns)
        arrays |= with_prefix("texts", StringArrays.of(own))
        if kept.tags is not None:
            tags = [(one.owner, dict(one.labels)) for one in (kept.tags[c] for c in columns)]
    if events:
        rows = np.array([steps[record].column for record in events], np.int64)
        arrays |= with_prefix("events", take(kept.events, rows))
    among = {
        position: dict(wanted)
        for position, record in enumerate(chosen)
        if (wanted := steps[record].among) is not None
    }
    return _packed(before, after, arrays, tags, among), len(chosen)


def _new_to_bytes(before: Position, after: Position, new: NewSubscriptions) -> bytes:
    """The same for subscriptions that were all accepted."""
    count = len(new.ids)
    every = np.arange(count, dtype=np.int64)
    times = np.maximum.accumulate(np.maximum(new.times, before.time))
    operation = np.full(count, Operation.SUBSCRIBE, np.int64)
    nowhere = np.full(count, np.nan)
    seq, until = every + before.seq + 1, new.columns.until
    texts = new.texts if isinstance(new.texts, list) else new.texts.of(every)
    arrays = {
        **with_prefix("steps", _Steps(operation, times, seq, until, every, nowhere, nowhere)),
        **with_prefix("ids", StringArrays.of(new.ids)),
        **with_prefix("columns", new.columns),
        **with_prefix("texts", StringArrays.of(texts)),
    }
    tags = None if new.tags is None else [(one.owner, dict(one.labels)) for one in new.tags]
    return _packed(before, after, arrays, tags, {})


def _packed(
    before: Position,
    after: Position,
    arrays: Arrays,
    tags: list[tuple[str | None, dict[str, str]]] | None,
    among: dict[int, dict[str, str]],
) -> bytes:
    plain = {
        name: (array.dtype.str, np.ascontiguousarray(array).data) for name, array in arrays.items()
    }
    body = msgspec.msgpack.encode(_Entry(before, after, plain, tags, among))
    return zlib.crc32(body).to_bytes(4, "little") + body


def _brings_event(step: PlannedRecord) -> bool:
    return step.operation in (Operation.PUBLISH, Operation.UPDATE)


def change_from_bytes(body: bytes, codes: int) -> LoggedChange:
    """What `change_to_bytes` wrote, of a schema of so many *codes*; a ValueError where it did not.

    Cost: O(bytes); what the numbers say is checked before a kernel sees them.
    """
    if zlib.crc32(memoryview(body)[4:]) != int.from_bytes(body[:4], "little"):
        raise ValueError("the bytes are not those that were written")
    entry = msgspec.msgpack.decode(memoryview(body)[4:], type=_Entry)
    arrays = {  # copied: kernels take aligned arrays
        name: np.frombuffer(data, np.dtype(kind)).copy() if len(data) else np.zeros(0, kind)
        for name, (kind, data) in entry.arrays.items()
    }
    steps, strings = bundle_of(_Steps, "steps", arrays), bundle_of(StringArrays, "ids", arrays)
    count = len(steps.operation)
    faults = [strings.fault(count)]
    faults += [None if len(one) == count else "the length of steps" for one in steps]
    columns, events, texts = NO_SUBSCRIPTIONS, NO_EVENTS, list[str]()
    if "columns.until" in arrays:
        columns = read_only_columns(bundle_of(SubscriptionColumns, "columns", arrays))
        written = bundle_of(StringArrays, "texts", arrays)
        faults += [fault(columns, codes), written.fault(len(columns.until))]
        texts = written.arrow.to_pylist()
    if "events.until" in arrays:
        events = read_only_columns(bundle_of(EventColumns, "events", arrays))
        faults.append(fault(events, codes))
    if found := next((one for one in faults if one is not None), None):
        raise ValueError(f"{found} cannot be right")
    planned = [
        PlannedRecord(
            Operation(operation),
            id,
            time,
            column,
            until,
            Point(x, y) if x == x else None,  # noqa: PLR0124
            seq,
            among_of(read_labels(entry.among[position], "among"))
            if position in entry.among
            else None,
        )
        for position, (id, operation, time, seq, until, column, x, y) in enumerate(
            zip(strings.arrow.to_pylist(), *(one.tolist() for one in steps), strict=True)
        )
    ]
    for step in planned:
        brought = len(columns.until) if step.operation is Operation.SUBSCRIBE else None
        brought = len(events.until) if _brings_event(step) else brought
        if brought is not None and not 0 <= step.column < brought:
            raise ValueError("the columns of steps cannot be right")
    tags = None
    if entry.tags is not None:
        tags = [Tags(read_owner(owner), read_labels(labels)) for owner, labels in entry.tags]
        if len(tags) != len(texts):
            raise ValueError("the number of tags cannot be right")
    records = EncodedRecords(planned, columns, texts, events, tags)
    return LoggedChange(Position(*entry.before), Position(*entry.after), records)


class Base(msgspec.Struct):
    """A saved engine that has all changes up to a number; no folder: the empty engine."""

    folder: str = ""
    upto: int = 0
    count: int = 0


class ChangeStore(FactStore):
    """The store of a durable engine: what it knows of attributes, and the changes since a base."""

    def __init__(self, path: str) -> None:
        self.using = threading.Lock()  # threads take turns
        super().__init__(path)

    def _begin(self) -> None:
        if self.is_new:
            for statement in _TABLES:
                self._run(statement)
            self.keep_fact("engine", _VERSION)
        version = self.fact("engine", int)
        if version is None:
            raise StoreError(f"{self.path} is the store of a broker, not of an engine")
        if version != _VERSION:
            raise StoreError(
                f"{self.path} has version {version}, and this Stentor reads {_VERSION}; "
                "`stentor migrate` brings an older folder forward"
            )

    def base(self) -> Base:
        """The base that changes are counted from."""
        return self.fact("base", Base) or Base()

    def position(self) -> Position | None:
        """The last record that came, as far as that was kept by itself."""
        found = self.fact("position", tuple[int, int])
        return None if found is None else Position(*found)

    def keep_base(self, base: Base) -> None:
        """Begin with *base* from now on: changes that are in it are forgotten."""
        with self.using, self.transaction():
            self.keep_fact("base", msgspec.to_builtins(base))
            self._run("DELETE FROM changes WHERE number <= ?", base.upto)

    def keep_changes(self, changes: list[tuple[int, int, bytes]]) -> None:
        """Keep changes: number, records and body of each."""
        self._database.run_many("INSERT OR REPLACE INTO changes VALUES (?, ?, ?)", changes)

    def changes(
        self, codes: int, after: int, upto: int | None = None
    ) -> Iterator[tuple[int, int, LoggedChange]]:
        """Changes after a number, in order: number, records, and what happened."""
        last = 2**62 if upto is None else upto
        while True:
            with self.using:
                rows = self._database.rows(
                    "SELECT number, records, body FROM changes WHERE number > ? AND number <= ? "
                    f"ORDER BY number LIMIT {_AT_ONCE}",
                    after,
                    last,
                )
            for number, records, body in rows:
                with self.reading("changes", number):
                    if not isinstance(body, bytes) or number != after + 1:
                        raise ValueError(f"the change {after + 1} is missing")
                    found = change_from_bytes(body, codes)
                yield number, records, found
                after = number
            if not rows:
                return

    def keep_schema(self, schema: Schema, rows: list[tuple[Cell, ...]], *, anew: bool) -> None:
        """Keep what *rows* say of attributes, instead of all that was known where it is *anew*."""
        if anew:
            self._run("DELETE FROM attributes")
        self._database.run_many("INSERT OR REPLACE INTO attributes VALUES (?, ?, ?, ?)", rows)
        self.keep_fact("schema", [schema.plane, schema.declared, schema.code_count])

    def schema(self) -> Schema | None:
        """The attributes that were known; None where none were kept."""
        found = self.fact("schema", tuple[bool, bool, int])
        if found is None:
            return None
        plane, declared, codes = found
        attributes: list[dict[str, Any]] = [{"name": "", "kind": None, "where": ""}] * codes
        rows = self._database.rows("SELECT code, name, kind, first_use FROM attributes")
        for code, name, kind, where in rows:
            with self.reading("attributes", code):
                if not 0 <= code < codes:
                    raise ValueError("there is no such code")
                attributes[code] = {"name": text_of(name), "kind": kind, "where": text_of(where)}
        with self.reading("attributes"):
            return Schema.from_dict(
                {"plane": plane, "declared": declared, "attributes": attributes}
            )


class ChangeLog:
    """Changes on their way into a store: those of one moment are one commit.

    Whoever waits first commits what all have appended; the others wait for that one.
    """

    def __init__(self, store: ChangeStore, schema: Schema, number: int, *, fsync: bool) -> None:
        self._store = store
        self._schema = schema
        self._fsync = fsync
        self.number = number  # of the last change
        self._done = number
        self._appended = 0  # counts what was appended; `_kept` what is in the store
        self._kept = 0
        self._pending: list[tuple[int, int, bytes]] = []
        self._position: Position | None = None
        self._attributes: list[tuple[Cell, ...]] = []
        self._is_anew = False
        self._known, self._generation = 0, -1
        self._kindless: set[str] = set()
        self._waiting = threading.Condition()
        self._is_committing = False
        self._failure: StoreError | None = None

    def check(self) -> None:
        """Refuse everything where a change could not be kept."""
        if self._failure is not None:
            raise StoreError(
                f"{self._failure}; what was not answered may be lost, so this engine answers "
                "nothing any more: open the folder again"
            ) from self._failure

    def append(self, body: bytes, records: int, position: Position) -> None:
        """Let a change follow, or only time pass; the engine's lock is held."""
        learned, is_anew = self._learned()
        with self._waiting:
            if records:
                self.number += 1
                self._pending.append((self.number, records, body))
            self._attributes = learned if is_anew else self._attributes + learned
            self._is_anew |= is_anew
            self._position = position
            self._appended += 1

    def wait(self) -> None:
        """Return when all that was appended is kept."""
        with self._waiting:
            appended = self._appended
            while self._kept < appended:
                self.check()
                if not self._is_committing:
                    self._is_committing = True
                    break
                self._waiting.wait()
            else:
                return
        try:
            self._commit()
        except StoreError as error:
            self._failure = error
            raise
        finally:
            with self._waiting:
                self._is_committing = False
                self._waiting.notify_all()

    def _commit(self) -> None:
        """Keep what is pending; numbers make it harmless to do so twice."""
        with self._waiting:
            appended, changes, position = self._appended, list(self._pending), self._position
            attributes, is_anew = self._attributes, self._is_anew
        store = self._store
        with store.using, store.transaction(synced=self._fsync and bool(changes)):
            if attributes or is_anew:
                store.keep_schema(self._schema, attributes, anew=is_anew)
            store.keep_changes(changes)
            store.keep_fact("position", position)
        with self._waiting:
            del self._pending[: len(changes)]
            if self._attributes is attributes:
                self._attributes, self._is_anew = [], False
            self._kept = appended

    def _learned(self) -> tuple[list[tuple[Cell, ...]], bool]:
        """The attributes that are new since the last time; True: these are all there are."""
        schema = self._schema
        is_anew = schema.generation != self._generation
        if is_anew:
            self._generation, self._known, self._kindless = schema.generation, 0, set()
        names = [*islice(reversed(schema), len(schema) - self._known)]
        names += [name for name in self._kindless if schema.kind(name) is not None]
        self._known = len(schema)
        self._kindless.difference_update(names)
        self._kindless.update(name for name in names if schema.kind(name) is None)
        rows: list[tuple[Cell, ...]] = []
        for name in names:
            kind = schema.kind(name)
            said = None if kind is None else str(kind)
            rows.append((schema.code(name), name, said, schema.where(name)))
        return rows, is_anew
