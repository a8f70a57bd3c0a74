"""One broker: message in, messages out.

    client ─┐                       ┌─▶ client: deliveries
            ├─▶ receive ─▶ tables ──┤
 neighbour ─┘                 │     └─▶ neighbour: events that it wants, each once
                              └─▶ a policy for each other link ─▶ what that neighbour is told

One engine holds what the clients and what the neighbours want, so that an event is matched once.
Ranges that neighbours want are looked up beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from stentor.broker.admission import mistake_in
from stentor.broker.interest import AnyInterest, Interest
from stentor.broker.keys import BETWEEN, CLIENT
from stentor.broker.link import Link
from stentor.broker.messages import Delivery, Greeting, Message, Sent, Want
from stentor.broker.neighbours import Neighbours
from stentor.broker.outcome import Outcome
from stentor.broker.policies import policy_of
from stentor.broker.routing import Routing
from stentor.broker.store import NoStore, Store
from stentor.broker.tables import Tables
from stentor.broker.telling import Telling
from stentor.engine.report import Answer
from stentor.errors import (
    AlreadyOverError,
    DuplicateEventError,
    SettingsError,
    StentorError,
    UnknownIdError,
)
from stentor.index.mics.space import Space
from stentor.model import Changes, Event, Schema, Subscription
from stentor.model.record import Move, Publish, Record, Subscribe, Unsubscribe
from stentor.model.time import BEGINNING

#: These refuse a record, but not its time; between brokers they are no mistake.
LATE = (AlreadyOverError, DuplicateEventError, UnknownIdError)


class Broker:
    """A broker called *name*, with clients and neighbours.

    *policy* says what its links are told, *index* names the structure that matches, *space* is what
    the ranges on links are about, one for the whole overlay. Ids of subscriptions are the clients'
    own; ids of live events are unique in the whole overlay. With a *store* it goes on where the
    broker of that name has stopped.
    """

    def __init__(
        self,
        name: str,
        *,
        policy: str = "covering",
        index: str = "auto",
        schema: Schema | None = None,
        space: Space | None = None,
        store: Store | None = None,
    ) -> None:
        _check_name(name)
        self.name, self.space = name, space
        self.time = BEGINNING
        self.links: dict[str, Link] = {}
        self.schema = _schema(store) if schema is None else schema
        self._new_policy = policy_of(policy)
        self._new_policy(self.schema, space)  # what is wrong with it is said at once
        self._store = NoStore() if store is None else store
        self._tables = Tables(name, index, self.schema, space, self.links, self._store)
        self._telling = Telling(self.links, self.schema, space)
        self._routing = Routing(self.links, self._tables)
        self._neighbours = Neighbours(
            name, space, self.links, self._tables, self._telling, self._routing
        )
        self._known_attributes = 0  # that the store knows too
        if store is not None:
            self._restore(store)

    # Links.

    def add_neighbour(self, neighbour: str) -> None:
        """Know *neighbour*, over a link that is down. Cost: everything is put to its policy."""
        _check_name(neighbour)
        if neighbour in self.links:
            raise SettingsError(f"{self.name} has the neighbour {neighbour!r} already")
        self._add_link(neighbour)
        self._telling.introduce(neighbour, self._tables.interests_but(neighbour).values())
        self._store.keep_fact("neighbours", list(self.links))

    def remove_neighbour(self, neighbour: str) -> list[Sent]:
        """What to send when *neighbour* is none any more: what it wanted is withdrawn."""
        wants, outcome = self._link(neighbour).wants, Outcome()
        with self._kept_at_once():
            exact = [name for name, one in wants.items() if isinstance(one, Interest)]
            self._tables.step(neighbour, [Unsubscribe(name, self.time) for name in exact])
            for name in [*wants]:
                self._neighbours.drop(neighbour, name, self.time, outcome)
            del self.links[neighbour]
            self._store.keep_fact("neighbours", list(self.links))
        return outcome.sent

    def connect(self, neighbour: str) -> list[Sent]:
        """What to send when the link to *neighbour* has come up, before it is listened to."""
        held = frozenset(self._tables.events)
        return [Sent(neighbour, self._link(neighbour).greeting(held, self.time, self.space))]

    def disconnect(self, neighbour: str) -> None:
        """Send *neighbour* nothing until it is connected again; what it wants is not forgotten."""
        self._link(neighbour).up = False

    # Messages.

    def receive(self, source: str, messages: Sequence[Message]) -> Outcome:
        """What *messages* from *source*, a neighbour or CLIENT, lead to, in order.

        An event is answered with those clients here who want it. What is refused is answered with
        its error, and changes nothing. Cost: one step of the engine.
        """
        if source != CLIENT:
            self._link(source)
        outcome = Outcome()
        with self._kept_at_once():
            records: list[Record] = []
            for message in messages:
                match message:
                    case Want() | Greeting():
                        self._settle(source, records, outcome)
                        self._told(source, message, outcome)
                    case _ if source == CLIENT and (mistake := mistake_in(message, self.schema)):
                        self._settle(source, records, outcome)
                        outcome.answers.append(mistake)
                    case _:
                        records.append(message)
            self._settle(source, records, outcome)
            outcome.sent += self._telling.settle(self.time)
            self._store.keep_deliveries(outcome.deliveries)
        return outcome

    def undelivered(self) -> list[Delivery]:
        """What clients are to be given and `delivered` was not said of, in order.

        After a restart: what a broker that died had not handed over. What it had, but could not say
        so any more, comes again; a client knows it by the event's id.
        """
        return self._store.deliveries()

    def delivered(self) -> None:
        """Take note that the clients have all that they were to be given."""
        self._store.forget_deliveries()

    def pass_time(self, time: int) -> list[Sent]:
        """What to send when it has become *time*: what is over is withdrawn."""
        outcome = Outcome()
        with self._kept_at_once():
            self._pass_time(time, outcome)
        return outcome.sent

    @contextmanager
    def _kept_at_once(self) -> Iterator[None]:
        """Keep what happens within in the store, all of it or nothing."""
        with self._store.at_once():
            yield
            self._store.keep_fact("time", self.time)
            if len(self.schema) != self._known_attributes:
                self._store.keep_fact("schema", self.schema.to_dict())
                self._known_attributes = len(self.schema)

    def _settle(self, source: str, records: list[Record], outcome: Outcome) -> None:
        """Let *records* of *source* come, in one step; none are left."""
        if not records:
            return
        timed = [self._timed(record) for record in records]
        records.clear()
        answers = self._tables.step(source, timed)
        routes = self._tables.routes(timed)
        for record, answer, ranged in zip(timed, answers, routes, strict=True):
            refused = isinstance(answer, StentorError)
            if record.time is not None and (not refused or isinstance(answer, LATE)):
                self._pass_time(record.time, outcome)
            outcome.answers.append(self._settled(source, record, answer, ranged, outcome))
        outcome.sent += self._telling.settle(self.time)

    def _settled(
        self, source: str, record: Record, answer: Answer, ranged: list[str], outcome: Outcome
    ) -> Answer:
        """The answer to *record* after what the engine's *answer* and *ranged* links call for."""
        match record, answer:
            case Publish(event), list(keys):
                return self._routing.published(source, event, keys, ranged, self.time, outcome)
            case Publish(event), _:
                self._routing.note_holder(source, event)
            case ((Unsubscribe(name) | Move(name)), UnknownIdError()):
                return UnknownIdError(f"no subscription has the id {name!r}", id=name)
            case ((Subscribe() | Unsubscribe() | Move()), Changes(added)):
                if source == CLIENT:
                    self._client_changed(record, answer, outcome)
                else:
                    self._neighbours.changed(source, record, added, self.time, outcome)
        return answer

    def _told(self, source: str, message: Want | Greeting, outcome: Outcome) -> None:
        """Let the neighbour *source* want other ranges, or other things altogether."""
        link = self._link(source)
        if mistake := self._neighbours.mistake_in(source, message):
            outcome.answers.append(mistake)
            if isinstance(message, Greeting):
                link.up = False
            return
        self._pass_time(message.time, outcome)
        if isinstance(message, Want):
            self._neighbours.wanted(source, message, self.time, outcome)
        else:
            self._neighbours.greeted(source, message, self.time, outcome)

    def _client_changed(
        self, record: Subscribe | Unsubscribe | Move, changes: Changes, outcome: Outcome
    ) -> None:
        """File a client's change, answer it from the live events, and hand it on."""
        id = record.subscription.id if isinstance(record, Subscribe) else record.id
        for events, added in ((changes.added, True), (changes.removed, False)):
            outcome.deliveries += [Delivery(id, event, added) for event in events]
        if isinstance(record, Unsubscribe):
            self._tables.drop_client(id)
            self._withdraw(id, outcome)
        else:
            self._telling.put(CLIENT, self._tables.put_client(record))

    # What stands.

    def _pass_time(self, time: int, outcome: Outcome) -> None:
        """Let it be *time*, if it is not later already; what is over by then goes."""
        self.time = max(self.time, time)
        self._tables.drop_ended_events(self.time)
        for id in self._tables.ended_clients(self.time):
            self._withdraw(id, outcome)

    def _withdraw(self, id: str, outcome: Outcome) -> None:
        """Let all links know that the client's subscription *id* is gone."""
        outcome.sent += self._telling.drop(CLIENT, self._tables.name_of(id), self.time)

    def _timed(self, record: Record) -> Record:
        """*record* at its time, or the broker's own where that is later."""
        if record.time is not None and record.time >= self.time:
            return record
        return replace(record, time=None if self.time == BEGINNING else self.time)

    def _link(self, neighbour: str) -> Link:
        if neighbour not in self.links:
            raise SettingsError(f"{self.name} has no neighbour {neighbour!r}")
        return self.links[neighbour]

    def _add_link(self, neighbour: str) -> None:
        self.links[neighbour] = Link(self._new_policy(self.schema, self.space))

    def _restore(self, store: Store) -> None:
        """Stand where the one stood that kept its state in *store*; every link is down."""
        store.belong_to(self.name)
        self.time = BEGINNING if (time := store.fact("time")) is None else time
        for neighbour in store.fact("neighbours") or ():
            self._add_link(neighbour)
        self._tables.restore(store, self.time)
        for neighbour in self.links:
            self._telling.introduce(neighbour, self._tables.interests_but(neighbour).values())

    def wants(self, source: str) -> dict[str, AnyInterest]:
        """The subscription table of the neighbour *source*, by name."""
        return dict(self._link(source).wants)

    def standing(self) -> tuple[Iterable[Subscription], Iterable[Event]]:
        """The clients' subscriptions, and the live events."""
        clients, events = self._tables.clients, self._tables.events
        return [clients[id] for id in clients], [events[id] for id in events]

    def stats(self) -> dict[str, int]:
        """Counts: clients' subscriptions, what neighbours want and its ranges, live events."""
        return {
            "subscriptions": len(self._tables.clients),
            "table entries": sum(len(link.wants) for link in self.links.values()),
            "ranges": sum(link.ranges.range_count for link in self.links.values()),
            "live events": len(self._tables.events),
        }

    def check(self) -> None:
        """Assert that engine, tables and policies speak of the same subscriptions."""
        self._tables.check(self.time)
        for neighbour, link in self.links.items():
            link.check()
            elsewhere = self._tables.interests_but(neighbour)
            assert link.policy.interests == elsewhere, "all but its own"
            assert link.holds <= set(self._tables.events), "only what is live is kept as sent"


def _check_name(name: str) -> None:
    if not name or BETWEEN in name or "/" in name:
        raise SettingsError(f"a broker's name has neither '|' nor '/', got {name!r}")


def _schema(store: Store | None) -> Schema:
    saved = None if store is None else store.fact("schema")
    return Schema() if saved is None else Schema.from_dict(saved)
