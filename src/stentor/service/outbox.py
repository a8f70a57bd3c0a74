"""What clients are to be given: numbered by client, kept until it is acknowledged.

A row of the table `outbox` holds what one commit gave one client, ready to be sent:

    client, first … last, time, body: deliveries as JSON, separated by commas

Whoever acknowledges up to a sequence ends the rows up to there. Where a queue is full the oldest
rows go, and the client is told of the gap; under the policy "hold" none does, and senders wait.
Rows that are too old go always. A client that is forgotten leaves the highest sequence it had: no
other one is given it, so that a reader which comes back neither skips nor acknowledges anything.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from stentor.broker.interest import CLIENT, Pairs
from stentor.broker.messages import Delivery, event_from_json
from stentor.errors import StoreError
from stentor.model import Event, Schema, Subscription
from stentor.model.values.time import time_text
from stentor.service.links.store import LINK_TABLES, LinkStore
from stentor.service.settings import DEFAULT_CLIENT, QueueSettings

#: 2: links between brokers; 3: when a client was last used.
_VERSION: Final = 3
_USED: Final = "ALTER TABLE clients ADD COLUMN used INTEGER NOT NULL DEFAULT 0"
#: Of what a store before the version 3 does not say: when it was brought up to date.
_NOW: Final = "UPDATE clients SET used = CAST(strftime('%s', 'now') AS INTEGER) * 1000000"
#: The fact with the highest sequence of all clients that were forgotten.
_FLOOR: Final = "highest sequence forgotten"
_TABLES: Final = (
    """CREATE TABLE clients (
    number INTEGER PRIMARY KEY, owner TEXT NOT NULL, client TEXT NOT NULL,
    acknowledged INTEGER NOT NULL, dropped INTEGER NOT NULL, reason TEXT NOT NULL,
    used INTEGER NOT NULL DEFAULT 0, UNIQUE (owner, client))""",
    """CREATE TABLE outbox (
    client INTEGER NOT NULL, last INTEGER NOT NULL, first INTEGER NOT NULL,
    time INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (client, last)) WITHOUT ROWID""",
    "CREATE TABLE receivers (subscription TEXT PRIMARY KEY, client TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE webhooks (
    owner TEXT NOT NULL, client TEXT NOT NULL, url TEXT NOT NULL, secret TEXT NOT NULL,
    PRIMARY KEY (owner, client)) WITHOUT ROWID""",
    """CREATE TABLE dead_letters (
    owner TEXT NOT NULL, client TEXT NOT NULL, last INTEGER NOT NULL, first INTEGER NOT NULL,
    time INTEGER NOT NULL, body BLOB NOT NULL, reason TEXT NOT NULL,
    PRIMARY KEY (owner, client, last)) WITHOUT ROWID""",
)
#: Of one row: a frame stays small.
MOST_DELIVERIES: Final = 500
MOST_BYTES: Final = 256_000

_JSON: Final = msgspec.json.Encoder().encode
#: Why a client is given something: by whether its event has changed, and whether it is wanted.
_CHANGES: Final = {
    (False, True): b"added",
    (False, False): b"removed",
    (True, True): b"entered",
    (True, False): b"left",
}
Key = tuple[str, str]


class OutboxRow(NamedTuple):
    """Deliveries *first* … *last* of a client, as JSON with commas between."""

    first: int
    last: int
    time: int
    body: bytes


class Gap(NamedTuple):
    """Sequences that will never come."""

    first: int
    last: int
    reason: str

    def to_dict(self) -> dict[str, int | str]:
        """As clients are told."""
        return {"from": self.first, "to": self.last, "reason": self.reason}


class ClientQueue:
    """What is known of a client without a look at the disk."""

    __slots__ = (
        *("acknowledged", "bytes", "dropped", "key", "last", "number", "reason", "rows"),
        "used",
    )

    def __init__(
        self, number: int, key: Key, acknowledged: int, dropped: int, reason: str, used: int
    ) -> None:
        self.number, self.key, self.used = number, key, used
        self.acknowledged, self.dropped, self.reason = acknowledged, dropped, reason
        self.last = max(acknowledged, dropped)
        self.bytes = 0
        self.rows: deque[tuple[int, int, int]] = deque()  # last, bytes, time

    @property
    def queued(self) -> int:
        """Deliveries that wait for an acknowledgement."""
        return self.last - max(self.acknowledged, self.dropped)

    def add(self, last: int, size: int, time: int) -> None:
        """Take note of a row at the end."""
        self.rows.append((last, size, time))
        self.bytes += size
        self.last = last

    def pop(self) -> int:
        """Take note that the oldest row goes; its last sequence."""
        last, size, _ = self.rows.popleft()
        self.bytes -= size
        return last

    def gap(self, after: int) -> Gap | None:
        """What a client that has all up to *after* will never get; None where it gets all."""
        return Gap(after + 1, self.dropped, self.reason) if self.dropped > after else None


class ServiceStore(LinkStore):
    """A broker's store with the outbox in the same transactions."""

    def __init__(self, path: str | Path, queue: QueueSettings) -> None:
        self._limits = queue
        self.queues: dict[Key, ClientQueue] = {}
        self.owned: dict[str, dict[str, None]] = {}  # owner → ids of its subscriptions
        self.receivers: dict[str, str] = {}  # subscription → client, where it is not the default
        self.assigned: dict[str, str] = {}  # the same, of subscriptions that come just now
        self.changed_events: set[str] = set()  # those that were updated or withdrawn just now
        self.wanted_by: Counter[Key] = Counter()  # subscriptions of each client
        self._floor = 0
        self._gone: dict[str, str] = {}  # events that this transaction has ended
        self._leaving: list[str] = []
        self._is_within = False
        self.fresh: dict[Key, list[OutboxRow]] = {}  # what the last transaction has added
        self.overfull: set[Key] = set()  # whose oldest rows it had to drop
        self.now = 0
        self.event_json: Callable[[str], bytes] = lambda id: b"null"
        self.shares_events = False
        super().__init__(path)

    def _begin(self) -> None:
        super()._begin()
        version = self.fact("service version", int)
        updates = {None: (*_TABLES, *LINK_TABLES), 1: (*LINK_TABLES, _USED, _NOW), 2: (_USED, _NOW)}
        if version in updates:
            for statement in updates[version]:
                self._run(statement)
            self.keep_fact("service version", _VERSION)
        elif version != _VERSION:
            raise StoreError(
                f"{self.path} has version {version} of the service, and this Stentor reads "
                f"{_VERSION}"
            )
        self._load()
        self._load_links()

    def _load(self) -> None:
        rows = self._database.rows
        by_number = {}
        for number, owner, client, *state in rows("SELECT * FROM clients"):
            queue = ClientQueue(number, (owner, client), *state)
            by_number[number] = self.queues[owner, client] = queue
        self._floor = self.fact(_FLOOR, int) or 0
        sizes = "SELECT client, last, length(body), time FROM outbox ORDER BY client, last"
        for number, last, size, time in rows(sizes):
            with self.reading("outbox", number):
                by_number[number].add(last, size, time)
        self.receivers = dict(rows("SELECT subscription, client FROM receivers"))
        for (name,) in rows("SELECT name FROM interests WHERE source = ?", CLIENT):
            owner, _, id = name.partition("/")
            self.owned.setdefault(owner, {})[id] = None
            self.wanted_by[owner, self.client_of(name)] += 1

    @contextmanager
    def transaction(self, *, synced: bool = True) -> Iterator[None]:
        """Keep all that is kept within, or nothing; what is within another is kept with that."""
        if self._is_within:
            yield
            return
        with super().transaction(synced=synced):
            self._is_within = True
            try:
                yield
            finally:
                self._is_within = False
                self._gone.clear()

    # Events.

    def forget_event(self, id: str) -> None:
        """Forget a live event; who no longer has it is told which one it was."""
        question = "SELECT record FROM events WHERE id = ?"
        self._gone.update((id, record) for (record,) in self._database.rows(question, id))
        super().forget_event(id)

    def gone_event(self, id: str, schema: Schema) -> Event | None:
        """The event *id*, if this transaction has ended it."""
        record = self._gone.get(id)
        return None if record is None else event_from_json(msgspec.json.decode(record), schema)

    # Subscriptions.

    def keep_interest(self, source: str, name: str, wanted: Subscription | Pairs) -> None:
        """Keep it, and to which client its deliveries go."""
        super().keep_interest(source, name, wanted)
        if source != CLIENT:
            return
        owner, _, id = name.partition("/")
        older = self.client_of(name)
        client = self.assigned.get(name, older)
        owned = self.owned.setdefault(owner, {})
        if id in owned:
            self._want_less((owner, older))
        owned[id] = None
        self.wanted_by[owner, client] += 1
        if client == older:
            return
        if client == DEFAULT_CLIENT:
            del self.receivers[name]
            self._run("DELETE FROM receivers WHERE subscription = ?", name)
        else:
            self.receivers[name] = client
            self._run("INSERT OR REPLACE INTO receivers VALUES (?, ?)", name, client)

    def forget_interest(self, source: str, name: str) -> None:
        """Forget it, and its client."""
        super().forget_interest(source, name)
        if source == CLIENT:
            owner, _, id = name.partition("/")
            if id in self.owned[owner]:
                del self.owned[owner][id]
                self._want_less((owner, self.client_of(name)))
            if name in self.receivers:
                self._run("DELETE FROM receivers WHERE subscription = ?", name)
                self._leaving.append(name)  # what was delivered before is still for this client

    def _want_less(self, key: Key) -> None:
        """Take note that the client *key* has one subscription less."""
        self.wanted_by[key] -= 1
        if not self.wanted_by[key]:
            del self.wanted_by[key]

    def forget_receivers(self) -> None:
        """Forget the clients of subscriptions that have gone."""
        for name in self._leaving:
            self.receivers.pop(name, None)
        self._leaving.clear()

    def client_of(self, name: str) -> str:
        """The client whose queue the deliveries of the subscription *name* go to."""
        return self.receivers.get(name, DEFAULT_CLIENT)

    def client_of_delivery(self, name: str) -> str:
        """The same, of a subscription that may have ended."""
        return self.receivers.get(name, DEFAULT_CLIENT)

    # Deliveries.

    def keep_deliveries(self, deliveries: Iterable[Delivery], *, stayed: bool = False) -> list[int]:
        """Put *deliveries* into their clients' queues; nobody gets another owner's events.

        Of *stayed* the event has changed, and is wanted as before.
        """
        pieces: dict[Key, list[bytes]] = {}
        count, time = 0, _JSON(time_text(self.now))
        sequences: dict[Key, int] = {}
        for name, event, added in deliveries:
            count += 1
            owner, _, id = name.partition("/")
            if not self.shares_events and "/" in event and not event.startswith(owner + "/"):
                continue
            key = owner, self.client_of_delivery(name)
            if key not in sequences:
                pieces[key], sequences[key] = [], self.queue(key).last
            sequences[key] += 1
            pieces[key].append(
                b'{"seq":%d,"subscription":%b,"client":"%b","owner":"%b","change":"%b","time":%b,'
                b'"event":%b}'
                % (
                    sequences[key],
                    _JSON(id),
                    key[1].encode(),
                    owner.encode(),
                    b"stayed" if stayed else _CHANGES[event in self.changed_events, added],
                    time,
                    self.event_json(event),
                )
            )
        for key, parts in pieces.items():
            self._put(self.queues[key], parts)
        return [0] * count

    def _put(self, queue: ClientQueue, pieces: list[bytes]) -> None:
        insert = "INSERT INTO outbox VALUES (?, ?, ?, ?, ?)"
        for part in _parts(pieces):
            body, first = b",".join(part), queue.last + 1
            row = OutboxRow(first, queue.last + len(part), self.now, body)
            self._run(insert, queue.number, row.last, first, self.now, body)
            queue.add(row.last, len(body), self.now)
            self.fresh.setdefault(queue.key, []).append(row)
        if self.holds_senders:
            return  # more than fits has come from a neighbour, or with one event: it is kept
        while len(queue.rows) > 1 and self._is_over(queue):
            self._drop(queue, "dropped")
            self.overfull.add(queue.key)

    def _is_over(self, queue: ClientQueue) -> bool:
        return queue.queued > self._limits.deliveries or queue.bytes > self._limits.bytes

    @property
    def holds_senders(self) -> bool:
        """Whether events wait where a queue is full, instead of others being dropped."""
        return self._limits.policy == "hold"

    def fitting(self, owner: str) -> tuple[int, int]:
        """How many events of *owner*, and how many bytes of them, every client has room for.

        At least one event where none of the clients is full, whatever it leads to; (0, 0) where one
        is. A client without subscriptions is reached by no event.
        """
        limits = self._limits
        events, size = limits.deliveries, limits.bytes
        for key, wanted in self.wanted_by.items():
            if self.shares_events or key[0] == owner:
                queue = self.queues.get(key)
                free = limits.deliveries - (queue.queued if queue else 0)
                free_bytes = limits.bytes - (queue.bytes if queue else 0)
                if free <= 0 or free_bytes <= 0:
                    return 0, 0
                events = min(events, max(1, free // wanted))
                size = min(size, free_bytes // wanted)
        return events, size

    def queue(self, key: Key) -> ClientQueue:
        """The queue of the client *key*, made where there is none."""
        found = self.queues.get(key)
        if found is None:
            values = (*key, self._floor, 0, "", self.now)
            cursor = self._run("INSERT INTO clients VALUES (NULL, ?, ?, ?, ?, ?, ?)", *values)
            found = self.queues[key] = ClientQueue(cursor.lastrowid, key, *values[2:])
        return found

    def acknowledge_up_to(self, key: Key, seq: int) -> None:
        """Take note that the client *key* has everything up to *seq*."""
        queue = self.queues.get(key)
        if queue is None or (seq := min(seq, queue.last)) <= queue.acknowledged:
            return
        queue.acknowledged = seq
        self._keep(queue)
        ended = None
        while queue.rows and queue.rows[0][0] <= seq:
            ended = queue.pop()
        if ended is not None:
            self._run("DELETE FROM outbox WHERE client = ? AND last <= ?", queue.number, ended)

    def expire(self, time: int) -> None:
        """Drop what was kept before *time*, and clients without subscriptions not used since."""
        for queue in [*self.queues.values()]:
            while queue.rows and queue.rows[0][2] < time:
                self._drop(queue, "expired")
            if self._is_idle(queue, time):
                self.forget_client(queue.key)

    def has_expired(self, time: int) -> bool:
        """Whether `expire` would change anything."""
        return any(
            queue.rows[0][2] < time if queue.rows else self._is_idle(queue, time)
            for queue in self.queues.values()
        )

    def _is_idle(self, queue: ClientQueue, time: int) -> bool:
        return not queue.rows and queue.used < time and queue.key not in self.wanted_by

    def forget_client(self, key: Key) -> bool:
        """Whether there was a queue of the client *key*; it has gone, with all that is in it."""
        queue = self.queues.pop(key, None)
        if queue is None:
            return False
        if queue.last > self._floor:
            self._floor = queue.last
            self.keep_fact(_FLOOR, self._floor)
        self._run("DELETE FROM outbox WHERE client = ?", queue.number)
        self._run("DELETE FROM clients WHERE number = ?", queue.number)
        self.fresh.pop(key, None)
        return True

    def _drop(self, queue: ClientQueue, reason: str) -> None:
        queue.dropped, queue.reason = queue.pop(), reason
        self._keep(queue)
        delete = "DELETE FROM outbox WHERE client = ? AND last <= ?"
        self._run(delete, queue.number, queue.dropped)

    def _keep(self, queue: ClientQueue) -> None:
        queue.used = self.now
        state = queue.acknowledged, queue.dropped, queue.reason, queue.used
        update = "UPDATE clients SET acknowledged = ?, dropped = ?, reason = ?, used = ?"
        self._run(f"{update} WHERE number = ?", *state, queue.number)

    def rows_after(self, key: Key, after: int, most: int = 20) -> list[OutboxRow]:
        """The first rows of the client *key* that hold something after *after*."""
        queue = self.queues.get(key)
        if queue is None:
            return []
        question = (
            "SELECT first, last, time, body FROM outbox "
            "WHERE client = ? AND last > ? ORDER BY last LIMIT ?"
        )
        return [OutboxRow(*row) for row in self._database.rows(question, queue.number, after, most)]

    def deliveries(self) -> dict[int, Delivery]:
        """None: the outbox has them."""
        return {}

    def execute(self, statement: str, *values: str | int | bytes) -> int:
        """Do *statement*, within a transaction; how many rows it changed."""
        changed: int = self._run(statement, *values).rowcount
        return changed

    def query(self, question: str, *values: str | int | bytes) -> list[tuple[Any, ...]]:
        """The answer to *question*."""
        return self._database.rows(question, *values)

    def back_up(self, path: Path) -> None:
        """Write all of it into a new file, while it is in use."""
        self._run("VACUUM INTO ?", str(path))


def _parts(pieces: list[bytes]) -> Iterator[list[bytes]]:
    """*pieces* in runs that fit into a row each."""
    part: list[bytes] = []
    size = 0
    for piece in pieces:
        if part and (len(part) >= MOST_DELIVERIES or size + len(piece) > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(piece)
        size += len(piece)
    if part:
        yield part
