"""The broker of a service and its outbox: records in, answers and deliveries out. No sockets.

    records of many clients ─▶ read ─▶ one `receive`, one commit ─▶ answers, rows of the outbox

Ids of an owner's subscriptions and events are `owner/id` in the broker. The server stamps the time.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from stentor.broker import Broker
from stentor.broker.interest import CLIENT
from stentor.broker.messages import Delivery
from stentor.engine.report import Answer
from stentor.errors import RecordError, SettingsError, StentorError, UnknownIdError
from stentor.model import Changes, Event, EventChanges, Kind, Schema, Subscription
from stentor.model.record import (
    EVENT_OPS,
    Move,
    Publish,
    Record,
    Subscribe,
    Unsubscribe,
    Update,
    Withdraw,
    lasting,
)
from stentor.model.schema import AttributeUse
from stentor.model.values import read_location
from stentor.model.values.object import check_object
from stentor.model.values.string import describe, read_id
from stentor.model.values.time import FOR_GOOD, time_text
from stentor.service.hold import held, parts_that_fit
from stentor.service.json_values import as_json_has_it
from stentor.service.links.book import LinkBook
from stentor.service.outbox import Key, ServiceStore
from stentor.service.recent import Recent, Seen
from stentor.service.records import CoreOutput, Records, RecordsAnswer, Waiting
from stentor.service.refusals import RefusedError
from stentor.service.settings import DEFAULT_CLIENT, NAME, ServeSettings
from stentor.wire.events import event_from_dict, event_to_dict
from stentor.wire.formats import ReadSettings, plain_object
from stentor.wire.records import (
    change_from_dict,
    op_of,
    subscription_from_dict,
)

#: Of an id, so that it fits behind its owner's name.
MOST_ID_BYTES: Final = 400
#: Subscriptions that a remembered event lists.
MOST_MATCHED: Final = 100
_JSON: Final = msgspec.json.Encoder().encode
_READ: Final = {op: ReadSettings(default_op=op) for op in ("subscribe", "publish", None)}
#: What the server says of a record, or what is no part of an event.
_NOT_KEPT: Final = ("time", "op", "seq")


def known_schema(
    kinds: Mapping[str, str | Kind | None], where: str, *, plane: bool = False
) -> Schema | None:
    """A schema that knows *kinds*, as *where* says, and learns others; None where it says none."""
    if not kinds:
        return None
    schema = Schema(plane=plane)
    schema.learn(
        [
            AttributeUse(name, None if kind is None else Kind(kind), where)
            for name, kind in kinds.items()
        ]
    )
    return schema


class Core:
    """One broker with its store in the folder of *settings*; *clock* gives seconds since 1970."""

    #: Seconds between two ticks.
    tick_seconds = 1.0

    def __init__(self, settings: ServeSettings, clock: Callable[[], float]) -> None:
        self.settings = settings
        self._clock = clock
        self.counts = {"events": 0, "rejected": 0, "deliveries": 0, "commits": 0}
        self.recent = Recent(settings.remembered_events, settings.remembered_minutes)
        self._output = CoreOutput()
        self.problem = ""  # what the operator is to be told
        self._open()

    def _open(self) -> None:
        folder = Path(self.settings.folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"{folder} cannot be made: {error.strerror}") from None
        self.store = self._new_store(folder / "service.db")
        self.store.shares_events = self.settings.shared_events
        self.store.event_json = self._event_json
        self.broker = Broker(
            self.settings.broker,
            policy=self.settings.policy,
            schema=self._schema(),
            index=self.settings.index,
            store=self.store,
            clock=self._clock,
        )
        self._bodies: dict[str, bytes] = {}
        self._fresh_events: Mapping[str, Event] = {}
        self.links = LinkBook(self)

    def _new_store(self, path: Path) -> ServiceStore:
        return ServiceStore(path, self.settings.queue)

    def _schema(self) -> Schema | None:
        """What is known of attributes before anybody uses one."""
        return known_schema(self.settings.schema, "[schema]")

    def reopen(self) -> None:
        """Go on from what the store holds, after it has failed."""
        self.broker.close()
        self._open()

    def close(self) -> None:
        """Let go of the store."""
        self.broker.close()

    def now(self) -> int:
        """The server's time, which never goes back."""
        return max(int(self._clock() * 1_000_000), self.broker.time)

    # Records.

    def run(self, commands: Sequence[Records], acknowledged: dict[Key, int]) -> CoreOutput:
        """Let *commands* happen in order, and clients have what they *acknowledged*: one commit."""
        store, output = self.store, self._output
        with self.batch(synced=bool(commands)) as now:
            waiting: list[Waiting] = []
            for command in commands:
                answer = RecordsAnswer()
                output.answers.append(answer)
                waiting += self._read_all(command, answer, now)
            for key, seq in acknowledged.items():
                store.acknowledge_up_to(key, seq)
            for segment in self._segments(waiting):
                for part in parts_that_fit(segment, self.store):
                    self._run_segment(part, output)
        self.counts["rejected"] += sum(len(answer.errors) for answer in output.answers)
        return self.taken()

    @contextmanager
    def batch(self, *, synced: bool = True) -> Iterator[int]:
        """One transaction at the server's time, which is given; `taken` has what it led to."""
        store, output, now = self.store, self._output, self.now()
        store.fresh, store.overfull, store.now = {}, set(), now
        with store.transaction(synced=synced):
            if self.broker.tables.has_ended(now):
                self.links.put(self.broker.pass_time(now), 1)
            yield now
        self.counts["commits"] += 1
        output.overfull |= store.overfull
        for key, rows in store.fresh.items():
            output.rows.setdefault(key, []).extend(rows)
            self.counts["deliveries"] += sum(row.last - row.first + 1 for row in rows)

    def taken(self) -> CoreOutput:
        """What was led to since the last time; all of it is kept."""
        output, self._output = self._output, CoreOutput()
        output.linked, self.links.fresh = self.links.fresh, set()
        return output

    def _segments(self, waiting: list[Waiting]) -> Iterator[list[Waiting]]:
        """*waiting* in runs within which a name has one event, one subscription, one client.

        A delivery of the broker names its event and subscription, and no more. What changes events
        comes by itself: whoever is given something then is given it for that reason.
        """
        segment: list[Waiting] = []
        names: set[tuple[bool, str]] = set()
        for one in waiting:
            name = (one.is_about_event, one.name)
            is_other = bool(segment) and segment[-1].changes_event != one.changes_event
            if name in names or is_other or (one.client and self._changes_client(one)):
                yield segment
                segment, names = [], set()
            segment.append(one)
            names.add(name)
        if segment:
            yield segment

    def _changes_client(self, one: Waiting) -> bool:
        is_known = one.id in self.store.owned.get(one.owner, ())
        return is_known and self.store.client_of(one.name) != one.client

    def _run_segment(self, segment: list[Waiting], output: CoreOutput) -> None:
        if not segment:
            return
        live = self.broker.tables.events
        # One that is live is refused: those who come in this segment get the older one.
        bodies = {
            one.name: one.body
            for one in segment
            if one.body and (one.changes_event or one.name not in live)
        }
        clients = {one.name: one.client for one in segment if one.client}
        self.begin_segment(bodies, clients, {one.name for one in segment if one.changes_event})
        found = self.broker.receive(CLIENT, [one.record for one in segment], is_checked=True)
        self.store.keep_deliveries(found.stayed, stayed=True)
        self.store.forget_receivers()
        self.links.count_saved(CLIENT, sum(bool(one.body) for one in segment), found.sent)
        self.links.put(found.sent, 1)
        for one, said in zip(segment, found.answers, strict=True):
            self._answer(one, said, output)

    def begin_segment(
        self,
        bodies: dict[str, bytes],
        clients: dict[str, str],
        changed: set[str],
        events: Mapping[str, Event] | None = None,
    ) -> None:
        """Let deliveries have the *bodies* of events, go to *clients*, and say what *changed*.

        Of *events* the bodies are made when they are needed.
        """
        self._bodies, self._fresh_events = bodies, events or {}
        self.store.assigned, self.store.changed_events = clients, changed

    def _is_full(self) -> bool:
        """Whether all events are refused now."""
        return self.links.is_full()

    def _read_all(self, command: Records, answer: RecordsAnswer, now: int) -> list[Waiting]:
        found = []
        is_full = self._is_full()
        for position, raw in enumerate(command.raws):
            try:
                if isinstance(raw, StentorError):
                    raise raw
                found.append(self._read(command, raw, position, answer, now, is_full))
            except StentorError as error:
                answer.errors.append((position, error))
        return found

    def _read(
        self,
        command: Records,
        raw: Any,
        position: int,
        answer: RecordsAnswer,
        now: int,
        is_full: bool,
    ) -> Waiting:
        """The record that *raw* describes, at the server's time, under its owner's name."""
        plain, default_op = plain_object(raw, _READ.get(command.default_op, _READ[None]))
        op = op_of(plain.get("op"), default_op)
        needed = "publish" if op in EVENT_OPS else "subscribe"
        if needed not in command.may:
            raise RefusedError(403, "forbidden", f"the key lacks the scope {needed!r}")
        owner, body, client = command.owner, b"", ""
        fields = {name: plain[name] for name in plain if name not in _NOT_KEPT}
        if op == "publish" and fields.get("id") is None:
            fields["id"] = secrets.token_hex(8)
        id = _own_id(fields.get("id"))
        name = f"{owner}/{id}"
        record: Record
        if op in EVENT_OPS and is_full:
            raise held()
        if op in ("publish", "update"):
            fields = as_json_has_it({**fields, "id": name})
            event = event_from_dict(fields, self.broker.schema)
            fields["id"] = id
            if event.until is not None:
                fields["until"] = time_text(event.until)
            body = _body(fields, event)
            is_new = op == "publish"
            record = Publish(event, now) if is_new else Update(lasting(event), now)
        elif op == "withdraw":
            change_from_dict({**fields, "id": name}, op, plane=self.broker.schema.plane)
            record = Withdraw(name, now)
        elif op == "subscribe":
            client = checked_client(fields.pop("client", None) or command.client)
            record = self._read_subscribe(owner, fields, name, id, now)
        elif op == "move":
            at = read_location(fields.get("at"), plane=self.broker.schema.plane)
            if at is None:
                raise RecordError("a move says where to: [longitude, latitude]", field="at")
            record = Move(name, at, now)
        else:
            record = Unsubscribe(name, now)
        wants = command.wants_results
        is_created = bool(client) and id not in self.store.owned.get(owner, ())
        return Waiting(record, owner, id, answer, position, wants, body, client, is_created)

    def _read_subscribe(
        self, owner: str, fields: dict[str, Any], name: str, id: str, now: int
    ) -> Subscribe:
        owned = self.store.owned.get(owner, ())
        most = self.settings.limits.subscriptions_per_owner
        if len(owned) >= most and id not in owned:
            raise RefusedError(429, "too_many", f"an owner has at most {most:,} subscriptions")
        subscription = subscription_from_dict({**fields, "id": name}, self.broker.schema)
        return Subscribe(subscription, now)

    def _answer(self, one: Waiting, said: Answer, output: CoreOutput) -> None:
        if isinstance(said, UnknownIdError):
            what = "live event" if one.is_about_event else "subscription"
            said = UnknownIdError(f"no {what} has the id {one.id!r}", id=one.id)
        if isinstance(said, StentorError):
            one.answer.errors.append((one.position, said))
            return
        one.answer.accepted += 1
        result: dict[str, Any] = {"id": one.id}
        if isinstance(one.record, Publish):
            matched = self._visible(one.owner, said)
            result["matched"] = len(matched)
            self._see(one, matched, output)
        elif isinstance(said, EventChanges):
            changes = {
                word: self._visible(one.owner, getattr(said, word))
                for word in ("entered", "left", "stayed")
            }
            for word, names in changes.items():
                result[word] = _own_ids(one.owner, names)
            if isinstance(one.record, Update):
                self._see(one, [*changes["entered"], *changes["stayed"]], output)
            else:
                output.withdrawn.append((one.owner, one.id))
        else:
            is_there = not isinstance(one.record, Unsubscribe)
            output.changed.setdefault(one.owner, {})[one.id] = is_there
            if isinstance(said, Changes):
                result["added"] = self._own_events(one.owner, said.added)
                result["removed"] = self._own_events(one.owner, said.removed)
            if one.client:
                result["created"] = one.is_created
        if one.wants_result:
            one.answer.results.append(result)

    def _see(self, one: Waiting, matched: list[str], output: CoreOutput) -> None:
        """Remember the event of *one*, and tell who watches."""
        self._remember(one.record.time or 0, one.name, one.body, matched, output)

    def see_events(
        self, events: Mapping[str, Event], ended: Iterable[str], given: Iterable[Delivery]
    ) -> None:
        """Remember those of a neighbour's *events* that clients were *given*, and to whom."""
        matched: dict[str, list[str]] = {}
        for name, event, added in given:
            if added:
                matched.setdefault(event, []).append(name)
        for name, names in matched.items():
            if name in events and (visible := self._visible(name.partition("/")[0], names)):
                body = self._event_json(name)
                self._remember(self.store.now, name, body, visible, self._output)
        for name in ended:
            owner, _, id = name.partition("/")
            self._output.withdrawn.append((owner, id))

    def _remember(
        self, time: int, name: str, body: bytes, matched: list[str], output: CoreOutput
    ) -> None:
        self.counts["events"] += 1
        owner, _, id = name.partition("/")
        shown, total = tuple(matched[:MOST_MATCHED]), len(matched)
        seen = Seen(self.counts["events"], time, owner, id, body, shown, total)
        output.seen.append(seen)
        self.recent.add(seen)

    def _visible(self, owner: str, names: Any) -> list[str]:
        """Those of the subscriptions *names* that an event of *owner* is delivered to."""
        if self.settings.shared_events:
            return list(names)
        prefix = owner + "/"
        return [name for name in names if name.startswith(prefix)]

    def _own_events(self, owner: str, names: Sequence[str]) -> list[str]:
        """Those of the events *names* that *owner* is delivered, by their own ids."""
        return [name.partition("/")[2] for name in self._visible(owner, names)]

    def _event_json(self, name: str) -> bytes:
        """The event *name* as clients get it: one of this batch, a live one, or one that was."""
        body = self._bodies.get(name)
        if body is None:
            event = self._fresh_events.get(name) or self.event(name)
            event = event or self.store.gone_event(name, self.broker.schema)
            body = b"null" if event is None else self.event_body(event)
            self._bodies[name] = body
        return body

    def event(self, name: str) -> Event | None:
        """The live event *name*."""
        return self.broker.tables.live_event(name)

    @staticmethod
    def event_body(event: Event) -> bytes:
        """*event* as its owner knows it; one that lasts until it is withdrawn says no end."""
        plain = replace(event, until=None) if event.until == FOR_GOOD else event
        return _JSON({**event_to_dict(plain), "id": event.id.partition("/")[2]})

    def subscription(self, name: str) -> Subscription | None:
        """The subscription *name*."""
        return self.broker.tables.client(name)

    def remove_client(self, key: Key) -> bool:
        """Whether there was a client *key*: its subscriptions, its queue, its endpoint are gone."""
        store, (owner, client) = self.store, key
        owned = store.owned.get(owner, ()) if key in store.wanted_by else ()
        ids = [id for id in owned if store.client_of(f"{owner}/{id}") == client]
        with store.transaction():
            ended = [{"op": "unsubscribe", "id": id} for id in ids]
            output = self.run([Records(owner, client, ended)], {})
            output.rows.pop(key, None)
            is_known = store.forget_client(key)
            for table in ("webhooks", "dead_letters"):
                delete = f"DELETE FROM {table} WHERE owner = ? AND client = ?"
                is_known |= bool(store.execute(delete, *key))
        output.answers.clear()  # nobody waits for them
        self._output = output
        return is_known or bool(ids)

    # Time.

    def tick(self) -> None:
        """Let it be the server's time: what is over goes, and what is too old in the outbox."""
        now = self.now()
        if self.broker.tables.has_ended(now):
            with self.batch():
                pass
        if self.links.report():
            self.links.news()
        oldest = now - int(self.settings.queue.time_to_live.total_seconds() * 1_000_000)
        if self.store.has_expired(oldest):
            self.store.now = now
            with self.store.transaction():
                self.store.expire(oldest)


def _own_ids(owner: str, names: list[str]) -> list[str]:
    """Those of the subscriptions *names* that are the *owner*'s, by its own ids."""
    prefix = owner + "/"
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def _own_id(raw: Any) -> str:
    id = read_id(raw)
    if len(id.encode()) > MOST_ID_BYTES:
        raise RecordError(f"expected at most {MOST_ID_BYTES} bytes", field="id")
    return id


def _body(fields: dict[str, Any], event: Event) -> bytes:
    """The event as it is delivered: as it came where that is flat, else as Stentor writes it."""
    if "attributes" not in fields:
        try:
            return _JSON(fields)
        except (TypeError, ValueError, RecursionError):  # MessagePack has more than JSON
            pass
    return Core.event_body(event)


def checked_client(raw: Any) -> str:
    """The name of a client."""
    client = DEFAULT_CLIENT if raw is None else raw
    if not isinstance(client, str) or not NAME.fullmatch(client):
        raise RecordError(
            f"expected 1 to 64 letters, digits, '.', '_' or '-', got {describe(client)}",
            field="client",
        )
    return client


def checked_body(raw: Any, what: str) -> dict[str, Any]:
    """*raw*, which is an object."""
    return dict(check_object(raw, what))
