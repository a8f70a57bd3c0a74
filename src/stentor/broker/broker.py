"""One broker: message in, messages out.

    client ─┐                       ┌─▶ client: deliveries
            ├─▶ receive ─▶ engine ──┤
 neighbour ─┘                 │     └─▶ neighbour: events that it wants, each once
                              └─▶ a policy for each other link ─▶ what that neighbour is told

One engine holds what the clients and what the neighbours want, so that an event is matched once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from stentor.broker.held import Held
from stentor.broker.interest import Interest, Interests
from stentor.broker.link import Link
from stentor.broker.messages import Delivery, Greeting, Message, Sent
from stentor.broker.policies import policy_of
from stentor.broker.store import Store
from stentor.engine import Engine
from stentor.engine.report import Answer
from stentor.errors import (
    AlreadyOverError,
    DuplicateEventError,
    SettingsError,
    StentorError,
    UnknownIdError,
)
from stentor.model import Changes, Event, Schema, Subscription
from stentor.model.record import Move, Publish, Record, Subscribe, Unsubscribe
from stentor.model.time import BEGINNING, instant

#: Where a message comes from that no neighbour sent.
CLIENT = ""
#: Stands between where a subscription came from and its name, in the engine's ids.
_BETWEEN = "|"
#: These refuse a record, but not its time.
_LATE = (AlreadyOverError, DuplicateEventError, UnknownIdError)


@dataclass(slots=True)
class Outcome:
    """What messages led to: an answer for each, what to send, and what clients are given."""

    answers: list[Answer] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    unwanted: int = 0  # events from neighbours that nobody here or beyond wanted


class Broker:
    """A broker called *name*, with clients and neighbours.

    *policy* says what its links are told, *index* names the structure that matches. Ids of
    subscriptions are the clients' own; ids of live events are unique in the whole overlay. With a
    *store* it goes on where it, or the broker that had the store before, has stopped.
    """

    def __init__(
        self,
        name: str,
        *,
        policy: str = "covering",
        index: str = "auto",
        schema: Schema | None = None,
        store: Store | None = None,
    ) -> None:
        if not name or _BETWEEN in name or "/" in name:
            raise SettingsError(f"a broker's name has neither '|' nor '/', got {name!r}")
        self.name = name
        self.time = BEGINNING
        self.links: dict[str, Link] = {}
        self.schema = _schema(store) if schema is None else schema
        self._new_policy = policy_of(policy)
        self._clients: Held[Subscription] = Held()
        self._events: Held[Event] = Held()
        self._engine = Engine(index, schema=self.schema, clock=None)
        self._serving = CLIENT  # where the messages come from that are being settled
        self._waiting: dict[str, Interest] = {}  # what they want, which is still to be told
        self._store = store
        self._known_attributes = 0  # that the store knows too
        if store is not None:
            self._restore(store)

    # Links.

    def add_neighbour(self, neighbour: str) -> None:
        """Know *neighbour*, over a link that is down. Cost: everything is put to its policy."""
        if neighbour in self.links:
            raise SettingsError(f"{self.name} has the neighbour {neighbour!r} already")
        self.links[neighbour] = Link(self._new_policy(self.schema))
        self._put_all(neighbour)
        if self._store is not None:
            self._store.keep_fact("neighbours", list(self.links))

    def connect(self, neighbour: str) -> list[Sent]:
        """What to send when the link to *neighbour* has come up."""
        return [Sent(neighbour, self._link(neighbour).greeting(frozenset(self._events), self.time))]

    def disconnect(self, neighbour: str) -> None:
        """Send *neighbour* nothing until it is connected again; what it wants is not forgotten."""
        self._link(neighbour).up = False

    # Messages.

    def receive(self, source: str, messages: Sequence[Message]) -> Outcome:
        """What *messages* from *source*, a neighbour or CLIENT, lead to, in order.

        A client's bad record is answered with its error. Cost: one step of the engine.
        """
        if source != CLIENT:
            self._link(source)
        outcome = Outcome()
        with self._kept_at_once():
            self._receive(source, messages, outcome)
        return outcome

    def pass_time(self, time: int) -> list[Sent]:
        """What to send when it has become *time*: what is over is withdrawn."""
        outcome = Outcome()
        with self._kept_at_once():
            self._pass_time(time, outcome)
        return outcome.sent

    @contextmanager
    def _kept_at_once(self) -> Iterator[None]:
        """Keep what happens within in the store, all of it or nothing."""
        if self._store is None:
            yield
            return
        with self._store.at_once():
            yield
            self._store.keep_fact("time", self.time)
            if len(self.schema) != self._known_attributes:
                self._store.keep_fact("schema", self.schema.to_dict())
                self._known_attributes = len(self.schema)

    def _receive(self, source: str, messages: Sequence[Message], outcome: Outcome) -> None:
        records: list[Record] = []
        for message in messages:
            if isinstance(message, Greeting):
                self._run(source, records, outcome)
                records = []
                self._greeted(source, message, outcome)
            else:
                records.append(message)
        self._run(source, records, outcome)

    def _run(self, source: str, records: list[Record], outcome: Outcome) -> None:
        if not records:
            return
        self._serving = source
        timed = [replace(record, time=self._later(record.time)) for record in records]
        answers = self._engine.step([_filed(source, record) for record in timed])
        for record, answer in zip(timed, answers, strict=True):
            refused = isinstance(answer, StentorError)
            if record.time is not None and (not refused or isinstance(answer, _LATE)):
                self._pass_time(record.time, outcome)
            if isinstance(record, Publish):
                self._published(source, record.event, answer, outcome)
            elif isinstance(answer, Changes):
                self._changed(source, record, answer, outcome)
            elif source != CLIENT:
                assert isinstance(answer, StentorError)
                raise answer  # neighbours do not forward what is wrong
            outcome.answers.append(answer)
        self._tell_waiting(outcome)

    def _published(self, source: str, event: Event, answer: Answer, outcome: Outcome) -> None:
        """Hand *event* on to those who want it; a live one that came before goes no further."""
        if isinstance(answer, list) and event.until is not None:
            self._events.keep(event.id, event, event.until)
            if self._store is not None:
                self._store.keep_event(event)
        if source != CLIENT and event.id in self._events:
            self.links[source].holds.add(event.id)
        if not isinstance(answer, list):
            return
        wanting: dict[str, None] = {}
        for key in answer:
            wants, _, name = key.partition(_BETWEEN)
            if wants == CLIENT:
                outcome.deliveries.append(Delivery(name, event.id))
            else:
                wanting[wants] = None
        others = [neighbour for neighbour in wanting if neighbour != source]
        for neighbour in others:
            self._send_event(neighbour, event, outcome)
        if source != CLIENT and not others and not any(key.startswith(_BETWEEN) for key in answer):
            outcome.unwanted += 1

    def _send_event(self, neighbour: str, event: Event, outcome: Outcome) -> None:
        link = self.links[neighbour]
        if not link.up or event.id in link.holds:
            return
        if event.until is not None:
            link.holds.add(event.id)
        outcome.sent.append(Sent(neighbour, Publish(event, self.time)))

    def _changed(
        self,
        source: str,
        record: Subscribe | Unsubscribe | Move,
        changes: Changes,
        outcome: Outcome,
    ) -> None:
        """File a change of a subscription, answer it from the live events, and hand it on."""
        if source == CLIENT:
            name = self._home(record)
            for events, added in ((changes.added, True), (changes.removed, False)):
                outcome.deliveries += [Delivery(name, event, added) for event in events]
            self._tell(CLIENT, f"{self.name}/{name}", self._client_changed(record), outcome)
            return
        for id in changes.added:
            self._send_event(source, self._events[id], outcome)
        name = self._home(record)
        self._tell(source, name, self._neighbour_changed(source, record), outcome)

    @staticmethod
    def _home(record: Subscribe | Unsubscribe | Move) -> str:
        return record.subscription.id if isinstance(record, Subscribe) else record.id

    def _client_changed(self, record: Subscribe | Unsubscribe | Move) -> Interest | None:
        match record:
            case Unsubscribe(id):
                self._clients.drop(id)
                self._forget(CLIENT, id)
                return None
            case Subscribe(subscription):
                pass
            case Move(id, at):
                subscription = replace(self._clients[id], at=at)
        self._keep_client(subscription)
        if self._store is not None:
            self._store.keep_interest(CLIENT, subscription.id, subscription)
        return self._own(subscription)

    def _neighbour_changed(
        self, source: str, record: Subscribe | Unsubscribe | Move
    ) -> Interest | None:
        wants = self.links[source].wants
        match record:
            case Unsubscribe(name):
                del wants[name]
                self._forget(source, name)
                return None
            case Subscribe(subscription):
                interest = Interest(subscription.id, subscription, self.schema)
            case Move(name, at):
                interest = wants[name].moved(at)
        self._keep_interest(source, interest)
        return interest

    def _tell(self, source: str, name: str, interest: Interest | None, outcome: Outcome) -> None:
        """Let every link but *source* know that *name* is *interest* now, or gone.

        What comes waits, so that a batch of it is told together; nothing goes before it.
        """
        if interest is not None:
            self._waiting[name] = interest
            return
        self._tell_waiting(outcome)
        for neighbour, link in self.links.items():
            if neighbour != source:
                self._send(neighbour, link.policy.drop(name, self.time), outcome)

    def _tell_waiting(self, outcome: Outcome) -> None:
        others = {name: link for name, link in self.links.items() if name != self._serving}
        known = next((link.policy.interests for link in others.values()), {})
        new = [one for one in self._waiting.values() if known.get(one.name) != one]
        self._waiting = {}
        if new:
            interests = Interests(new, self.schema)
            for neighbour, link in others.items():
                self._send(neighbour, link.policy.put(interests, self.time), outcome)

    def _send(self, neighbour: str, records: list[Record], outcome: Outcome) -> None:
        if self.links[neighbour].up:
            outcome.sent += [Sent(neighbour, record) for record in records]

    def _greeted(self, source: str, greeting: Greeting, outcome: Outcome) -> None:
        """Let *source* want what it says now, and send it the live events that it lacks."""
        self._serving = source
        self._pass_time(greeting.time, outcome)
        link = self._link(source)
        link.holds |= greeting.held.intersection(self._events)
        told = {one.id: Interest(one.id, one, self.schema) for one in greeting.told}
        records: list[Record] = [Unsubscribe(name, self.time) for name in link.wants]
        records += [Subscribe(interest.subscription, self.time) for interest in told.values()]
        wanted: set[str] = set()
        for answer in self._engine.step([_filed(source, record) for record in records]):
            if isinstance(answer, StentorError):
                raise answer
            if isinstance(answer, Changes):
                wanted.update(answer.added)
        gone = [name for name in link.wants if name not in told]
        changed = [one for name, one in told.items() if link.wants.get(name) != one]
        for interest in changed:
            self._keep_interest(source, interest)
            self._tell(source, interest.name, interest, outcome)
        self._tell_waiting(outcome)
        for name in gone:
            del link.wants[name]
            self._forget(source, name)
            self._tell(source, name, None, outcome)
        for id in self._events:
            if id in wanted:
                self._send_event(source, self._events[id], outcome)

    # What stands.

    def _pass_time(self, time: int, outcome: Outcome) -> None:
        """Let it be *time*, if it is not later already; what is over by then goes."""
        self.time = max(self.time, time)
        for id in self._events.over(self.time):
            for link in self.links.values():
                link.holds.discard(id)
            if self._store is not None:
                self._store.forget_event(id)
        for id in self._clients.over(self.time):
            self._forget(CLIENT, id)
            self._tell(CLIENT, f"{self.name}/{id}", None, outcome)

    def _later(self, time: int | None) -> int | None:
        """*time*, or the broker's own where that is later; None before the first record."""
        later = self.time if time is None else max(self.time, time)
        return None if later == BEGINNING else later

    def _own(self, subscription: Subscription) -> Interest:
        return Interest(f"{self.name}/{subscription.id}", subscription, self.schema)

    def _keep_client(self, subscription: Subscription) -> None:
        self._clients.keep(subscription.id, subscription, subscription.until)

    def _keep_interest(self, source: str, interest: Interest) -> None:
        self.links[source].wants[interest.name] = interest
        if self._store is not None:
            self._store.keep_interest(source, interest.name, interest.subscription)

    def _forget(self, source: str, name: str) -> None:
        if self._store is not None:
            self._store.forget_interest(source, name)

    def _link(self, neighbour: str) -> Link:
        if neighbour not in self.links:
            raise SettingsError(f"{self.name} has no neighbour {neighbour!r}")
        return self.links[neighbour]

    def _restore(self, store: Store) -> None:
        """Stand where the one stood that kept its state in *store*; every link is down."""
        self.time = BEGINNING if (time := store.fact("time")) is None else time
        for neighbour in store.fact("neighbours") or ():
            self.links[neighbour] = Link(self._new_policy(self.schema))
        records: list[Record] = []
        for event in store.events(self.schema):
            self._events.keep(event.id, event, event.until)
            records.append(Publish(event, self.time))
        for source, name, subscription in store.interests(self.schema):
            if source == CLIENT:
                self._keep_client(subscription)
            else:
                self.links[source].wants[name] = Interest(name, subscription, self.schema)
            records.append(_filed(source, Subscribe(subscription, self.time)))
        for answer in self._engine.step(records):
            if isinstance(answer, StentorError):
                raise answer
        for neighbour in self.links:
            self._put_all(neighbour)

    def _put_all(self, neighbour: str) -> None:
        """Let the new policy of *neighbour* know what came from everywhere else."""
        found = Interests(self._interests_but(neighbour).values(), self.schema)
        if found.by_name:
            self.links[neighbour].policy.put(found, self.time)

    def _interests_but(self, neighbour: str) -> dict[str, Interest]:
        """What the clients and all neighbours but this one want, by name."""
        found = {one.name: one for one in (self._own(self._clients[id]) for id in self._clients)}
        for other, link in self.links.items():
            found |= link.wants if other != neighbour else {}
        return found

    def wants(self, source: str) -> dict[str, Interest]:
        """The subscription table of the neighbour *source*, by name."""
        return dict(self._link(source).wants)

    def serves(self, id: str, time: int) -> bool:
        """Whether a client's subscription *id* stands here and is not over at *time*."""
        if id not in self._clients:
            return False
        until = self._clients.until(id)
        return until is None or until > time

    def stats(self) -> dict[str, int]:
        """Counts: clients' subscriptions, entries of the neighbours' tables, live events."""
        tables = sum(len(link.wants) for link in self.links.values())
        return {
            "subscriptions": len(self._clients),
            "table entries": tables,
            "live events": len(self._events),
        }

    def check(self) -> None:
        """Assert that engine, tables and policies speak of the same subscriptions."""
        keys = {_key(CLIENT, id) for id in self._clients}
        for neighbour, link in self.links.items():
            keys |= {_key(neighbour, name) for name in link.wants}
            assert link.policy.interests == self._interests_but(neighbour), "all but its own"
            link.policy.check()
            assert link.holds <= set(self._events), "only what is live is remembered as sent"
        known = set(self._engine)
        assert known >= keys
        for key in known - keys:  # the engine hears of the time with its next record
            until = instant(self._engine.get(key).get("until"), "until")
            assert until is not None, key
            assert until <= self.time, key


def _key(source: str, name: str) -> str:
    """The engine's id of what *source* calls *name*."""
    return f"{source}{_BETWEEN}{name}"


def _filed(source: str, record: Record) -> Record:
    """*record* as the engine takes it: what *source* calls by a name goes by its key."""
    match record:
        case Subscribe(subscription):
            filed = replace(subscription, id=_key(source, subscription.id))
            return replace(record, subscription=filed)
        case Unsubscribe(name) | Move(name):
            return replace(record, id=_key(source, name))
    return record


def _schema(store: Store | None) -> Schema:
    saved = None if store is None else store.fact("schema")
    return Schema() if saved is None else Schema.from_dict(saved)
