"""The door of a Spark stream: what is posted here goes to its sources, what it delivers to clients.

    records ─▶ read, kept here: one commit ─▶ lines ─▶ a file in the source's folder, or Kafka
    tables, as batches are committed ─▶ deliveries ─▶ outbox: one commit with the last batch

Subscriptions are kept in a broker of its own too, so that they can be listed and asked; events are
not: the stream matches them. Lines are kept until the source has them. A file has the name of its
first line, so that one is never written twice; repeats in Kafka are known by their positions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from stentor import _files
from stentor.broker.interest import CLIENT
from stentor.broker.messages import Delivery
from stentor.errors import FolderError, SettingsError, StentorError
from stentor.model import EventChanges, Schema
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe, Update, Withdraw
from stentor.model.values.time import time_text
from stentor.pipeline.config.file import StreamConfig, load
from stentor.pipeline.sources import SourceSettings, source_named
from stentor.pipeline.sources.text_records import check_for_everybody
from stentor.pipeline.tables.recording import DeliveryRow, last_batch, read_deliveries, read_events
from stentor.service.core import Core, known_schema
from stentor.service.outbox import ServiceStore
from stentor.service.records import CoreOutput, Records, Waiting
from stentor.service.settings import ServeSettings
from stentor.wire.records import subscription_to_dict

_LOG: Final = logging.getLogger("stentor.service")
CONFIG: Final = "stentor.toml"
#: Lines of one file, lines that may wait for a source, and seconds between two looks at the tables.
MOST_LINES: Final = 20_000
MOST_WAITING: Final = 1_000_000
LOOK: Final = 0.1
#: Microseconds for which the body of an event is kept that is not live.
_KEPT: Final = 3_600_000_000
_TABLES: Final = (
    """CREATE TABLE door_lines (
    number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, line BLOB NOT NULL)""",
    """CREATE TABLE door_events (
    name TEXT NOT NULL, position INTEGER NOT NULL, until INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (name, position)) WITHOUT ROWID""",
    "CREATE TABLE door_names (name TEXT PRIMARY KEY, client TEXT NOT NULL) WITHOUT ROWID",
)
_JSON: Final = msgspec.json.Encoder().encode
#: What the tables call a change, as clients are told: its word, and whether the event is there now.
_CHANGES: Final = {
    "matched": (False, True),
    "added": (False, True),
    "removed": (False, False),
    "entered": (True, True),
    "left": (True, False),
}
_STAYED: Final = "stayed"


class DoorLine(NamedTuple):
    """A record for the source of its *kind*: `events`, `changes` or `records`."""

    number: int
    kind: str
    line: bytes


class DoorStore(ServiceStore):
    """The store of a door: outbox, subscriptions, and lines that wait for the stream's sources."""

    def _begin(self) -> None:
        super()._begin()
        if self.fact("door version", int) is None:
            for statement in _TABLES:
                self._run(statement)
            self.keep_fact("door version", 1)
        [[self.waiting]] = self._database.rows("SELECT count(*) FROM door_lines")
        question = "SELECT name, client FROM door_names"
        self.names: dict[str, str] = dict(self._database.rows(question))

    def keep_line(self, kind: str, line: bytes) -> None:
        """Let *line* wait for the source of this *kind*."""
        self._run("INSERT INTO door_lines (kind, line) VALUES (?, ?)", kind, line)
        self.waiting += 1

    def lines(self, kind: str) -> list[DoorLine]:
        """The first lines that wait for the source of this *kind*."""
        question = "SELECT * FROM door_lines WHERE kind = ? ORDER BY number LIMIT ?"
        return [DoorLine(*row) for row in self._database.rows(question, kind, MOST_LINES)]

    def forget_lines(self, kind: str, last: int) -> None:
        """Forget the lines up to *last*: the source has them."""
        delete = "DELETE FROM door_lines WHERE kind = ? AND number <= ?"
        self.waiting -= self._run(delete, kind, last).rowcount

    def keep_name(self, name: str, client: str) -> None:
        """Know whose the subscription *name* is, also once it has ended: some may be on its way."""
        if self.names.get(name) != client:
            self._run("INSERT OR REPLACE INTO door_names VALUES (?, ?)", name, client)
            self.names[name] = client

    def client_of_delivery(self, name: str) -> str:
        return self.names.get(name) or super().client_of_delivery(name)

    def keep_body(self, name: str, position: int, until: int, body: bytes) -> None:
        """Keep an event as it was posted, for its deliveries."""
        insert = "INSERT OR REPLACE INTO door_events VALUES (?, ?, ?, ?)"
        self._run(insert, name, position, until, body)

    def body(self, name: str, position: int) -> bytes | None:
        """The event *name* as it was at *position*."""
        question = (
            "SELECT body FROM door_events WHERE name = ? AND position <= ? "
            "ORDER BY position DESC LIMIT 1"
        )
        found = self._database.rows(question, name, position)
        return found[0][0] if found else None

    def forget_bodies(self, now: int) -> None:
        """Forget events that are long over."""
        self._run("DELETE FROM door_events WHERE until < ?", now)


class DoorCore(Core):
    """A core whose events are matched by the stream that the folder `settings.pipeline` has."""

    tick_seconds = LOOK

    def __init__(self, settings: ServeSettings, clock: Callable[[], float]) -> None:
        assert settings.pipeline is not None
        self.config = read_config(settings.pipeline)
        found = {kind: source_for(self.config, kind) for kind in ("events", "changes")}
        #: Of one source for both, all lines wait together: their order counts.
        is_one = found["events"] is found["changes"]
        self._kinds = dict.fromkeys(found, "records") if is_one else {kind: kind for kind in found}
        self._sources = {self._kinds[kind]: source for kind, source in found.items()}
        self._position = 0
        self._tidied = 0
        self._bodies_at: dict[str, bytes] = {}
        super().__init__(settings, clock)

    def _new_store(self, path: Path) -> ServiceStore:
        self.door = DoorStore(path, self.settings.queue)
        if self.door.fact("batch", int) is None:
            with self.door.transaction():  # what was delivered before there was a door is nobody's
                self.door.keep_fact("batch", last_batch(self.config.folder))
                self.door.keep_fact("position", 0)
        self._position = self.door.fact("position", int) or 0
        return self.door

    def _schema(self) -> Schema | None:
        if self.config.schema is None:
            return None
        declared = self.config.schema
        kinds = {name: declared.kind(name) for name in declared}
        return known_schema(kinds, CONFIG, plane=declared.plane)

    # Records.

    def _is_full(self) -> bool:
        waiting: int = self.door.waiting
        return waiting >= MOST_WAITING

    def _read(self, command: Records, raw: Any, *details: Any) -> Waiting:
        """The same, unless the stream would reject it once it is answered."""
        one = super()._read(command, raw, *details)
        if isinstance(one.record, Publish | Update):
            check_for_everybody(among=one.record.event.among)
        elif isinstance(one.record, Subscribe):
            wanted = one.record.subscription
            check_for_everybody(owner=wanted.owner, labels=wanted.labels)
        return one

    def _run_segment(self, segment: Sequence[Waiting], output: CoreOutput) -> None:
        changes = [one for one in segment if not one.is_about_event]
        self.begin_segment({}, {one.name: one.client for one in changes if one.client}, set())
        found = self.broker.receive(CLIENT, [one.record for one in changes], is_checked=True)
        self.store.forget_receivers()
        answers = iter(found.answers)
        for one in segment:
            said: Any = next(answers) if not one.is_about_event else []
            if one.changes_event:
                said = EventChanges()
            if not isinstance(said, StentorError):
                self._append(one)
            self._answer(one, said, output)
        self.store.keep_fact("position", self._position)

    def _append(self, one: Waiting) -> None:
        """Let the record of *one* wait for its source, at the next position."""
        now = one.record.time or 0
        self._position = max(self._position + 1, now)
        kind = self._kinds["events" if one.is_about_event else "changes"]
        columns = self._sources[kind].columns
        fields = _fields(one)
        if columns.order is not None:
            fields[columns.order] = self._position
        if columns.time is not None:
            fields[columns.time] = time_text(now)
        if one.client:
            self.door.keep_name(one.name, one.client)
        if isinstance(one.record, Publish | Update):
            until = one.record.event.until
            kept = now + _KEPT if until is None else max(until, now) + _KEPT
            self.door.keep_body(one.name, self._position, min(kept, 1 << 62), one.body)
        self.door.keep_line(kind, _JSON(fields))

    # What the stream does.

    def tick(self) -> None:
        super().tick()
        for kind in self._sources:
            self._ship(kind)
        self._poll()
        now = self.now()
        if now - self._tidied > _KEPT // 60:
            self._tidied = now
            with self.store.transaction(synced=False):
                self.door.forget_bodies(now)

    def _ship(self, kind: str) -> None:
        """Give the source what waits for it; where it cannot take it now, later."""
        while lines := self.door.lines(kind):
            try:
                put_lines(self._sources[kind], lines)
            except (FolderError, SettingsError, OSError) as error:
                if self.problem != str(error):
                    _LOG.error("the stream's source takes nothing now: %s", error)
                self.problem = str(error)
                return
            self.problem = ""
            with self.store.transaction():
                self.door.forget_lines(kind, lines[-1].number)

    def _poll(self) -> None:
        """Give clients what the stream has committed since the last time."""
        after = self.door.fact("batch", int)
        assert after is not None
        rows, last = read_deliveries(self.config.folder, after)
        if last <= after:
            return
        own = [row for row in rows if row.subscription in self.door.names]
        strange = {row.event for row in own if self.door.body(row.event, 1 << 62) is None}
        self._bodies_at = {
            id: _JSON(event) for id, event in read_events(self.config.folder, strange).items()
        }
        with self.batch():
            for change, some in groupby(own, key=lambda row: row.change):
                self._deliver(change, list(some))
            self.store.keep_fact("batch", last)

    def _deliver(self, change: str, rows: list[DeliveryRow]) -> None:
        """Give clients *rows*, all of one *change*; an event once, as it was then."""
        for some in _distinct(rows):
            self._bodies = {row.event: self._body(row) for row in some}
            is_changed, is_added = _CHANGES.get(change, (False, True))
            self.store.changed_events = {row.event for row in some} if is_changed else set()
            deliveries = [Delivery(row.subscription, row.event, is_added) for row in some]
            self.store.keep_deliveries(deliveries, stayed=change == _STAYED)

    def _body(self, row: DeliveryRow) -> bytes:
        found = self.door.body(row.event, (1 << 62) if row.order is None else row.order)
        own = row.event.partition("/")[2] or row.event
        return found or self._bodies_at.get(row.event) or _JSON({"id": own})


def _distinct(rows: Iterable[DeliveryRow]) -> Iterator[list[DeliveryRow]]:
    """*rows* in runs in which an event has one content."""
    run: list[DeliveryRow] = []
    orders: dict[str, int | None] = {}
    for row in rows:
        if orders.setdefault(row.event, row.order) != row.order:
            yield run
            run, orders = [], {row.event: row.order}
        run.append(row)
    if run:
        yield run


def _fields(one: Waiting) -> dict[str, Any]:
    """The record of *one* as the stream's reader takes it, under the name that the broker uses."""
    match one.record:
        case Publish() | Update():
            op = "publish" if isinstance(one.record, Publish) else "update"
            return {**msgspec.json.decode(one.body), "id": one.name, "op": op}
        case Withdraw():
            return {"op": "withdraw", "id": one.name}
        case Subscribe(subscription):
            return {**subscription_to_dict(subscription), "op": "subscribe", "id": one.name}
        case Move(_, at):
            return {"op": "move", "id": one.name, "at": [at.x, at.y]}
        case Unsubscribe():
            return {"op": "unsubscribe", "id": one.name}


# The stream.


def read_config(folder: Path) -> StreamConfig:
    """What the `stentor.toml` in *folder*, or *folder* itself where it is a file, says."""
    file = folder if folder.is_file() else folder / CONFIG
    if not file.is_file():
        raise SettingsError(f"{folder} has no {CONFIG}: name the folder of a stream's file")
    return load(file)


def source_for(config: StreamConfig, kind: str) -> SourceSettings:
    """The source of *config* to which *kind*, events or changes, can be appended."""
    fitting = [one for one in config.sources if one.kind in (kind, "records")]
    for one in sorted(fitting, key=lambda one: one.kind == "records"):
        if source_named(one.format).appended and "*" not in (one.path or ""):
            return one
    raise SettingsError(
        f"the stream has no source that {kind} can be appended to: give it a [[source]] of the "
        f'kind "{kind}" or "records" whose format is "json" (a folder) or "kafka"'
    )


def put_lines(source: SourceSettings, lines: Sequence[DoorLine]) -> None:
    """Append *lines* to *source*; on disk, or acknowledged by Kafka, when this returns."""
    if source_named(source.format).appended == "messages":
        _to_kafka(source, lines)
        return
    folder = Path(source.path or "")
    with _files.explain_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    name = f"door-{lines[0].kind}-{lines[0].number:015d}-{lines[-1].number:015d}.jsonl"
    # Where the process was killed after this, more lines may follow the same first one.
    known = [*folder.glob(f"door-{lines[0].kind}-{lines[0].number:015d}-*.jsonl")]
    if known:
        last = int(known[0].stem.rpartition("-")[2])
        if rest := [one for one in lines if one.number > last]:
            put_lines(source, rest)
        return
    _files.replace(folder / name, b"".join(one.line + b"\n" for one in lines))


def _to_kafka(source: SourceSettings, lines: Sequence[DoorLine]) -> None:
    try:
        from confluent_kafka import KafkaException, Producer
    except ModuleNotFoundError:
        raise SettingsError(
            "the package confluent-kafka is not installed: pip install 'stentor[kafka]'"
        ) from None
    plain = {
        name.removeprefix("kafka."): value
        for name, value in source.options.items()
        if name.startswith("kafka.")
    }
    errors: list[str] = []

    def report(error: Any, message: Any) -> None:
        if error is not None:
            errors.append(str(error))

    try:
        producer = Producer(
            {
                **plain,
                "bootstrap.servers": source.servers,
                "enable.idempotence": True,
                "message.timeout.ms": 10_000,
                "log_level": 0,
            }
        )
        for one in lines:
            producer.produce(source.topic or "", one.line, partition=0, on_delivery=report)
        left = producer.flush(15)
    except (KafkaException, BufferError) as error:
        raise SettingsError(f"Kafka takes nothing: {error}") from None
    if errors or left:
        raise SettingsError(f"Kafka has not taken everything: {errors[:1] or left}")
