"""Who wants what at a broker, which events are live or on their way: all that a restart needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from stentor.broker.announcements import Link
from stentor.broker.interest import (
    CLIENT,
    AnyInterest,
    Interest,
    Names,
    RangeInterest,
    check_ranges,
    engine_id,
    source_and_name,
    with_engine_id,
)
from stentor.broker.live_events import BrokerLiveEvents, ExpiringValues, event_ranges
from stentor.broker.messages import (
    BrokerOutput,
    Delivery,
    EventsGone,
    GoneEvent,
    Outgoing,
    about,
)
from stentor.broker.store import KeptInterest, NoStore, Store
from stentor.engine import Engine
from stentor.engine.calls import subscribe_texts
from stentor.engine.engine import step_checked
from stentor.engine.report import Answer
from stentor.engine.why_not import Rejection
from stentor.errors import DuplicateEventError, SettingsError, StentorError, UnknownIdError
from stentor.index.mics.space import Space
from stentor.model import Changes, Event, EventChanges, Schema, Subscription
from stentor.model.record import (
    EventRecord,
    Move,
    Publish,
    Record,
    Subscribe,
    Unsubscribe,
    Update,
    Withdraw,
)
from stentor.model.values.time import read_time
from stentor.wire.records import SubscriptionFields


class Tables:
    """Subscriptions of clients and neighbours in one engine, ranges of neighbours, live events.

    Whatever changes is kept in the store; what neighbours hold they announce again.
    """

    def __init__(
        self,
        home: str,
        index: str,
        schema: Schema,
        space: Space | None,
        links: dict[str, Link],
        names: Names,
        store: Store | NoStore,
    ) -> None:
        self._home, self._schema, self._space = home, schema, space
        self._links, self._names, self._store = links, names, store
        self.clients: ExpiringValues[Subscription | KeptInterest] = ExpiringValues()
        self.events = BrokerLiveEvents(schema, space)
        self.stranded: deque[Event] = deque()  # were on their way when neighbours changed
        self._engine = Engine(index, schema=schema, clock=None, most_ahead=None)

    # Records.

    def step(self, source: str, records: Sequence[Record]) -> Sequence[Answer]:
        """What one engine answers to the *records* of *source*; subscriptions go by their keys."""
        return self._step([with_engine_id(source, record) for record in records])

    def _step(self, records: Sequence[Record]) -> Sequence[Answer]:
        """*records* are checked already: keys are longer than ids may be."""
        return step_checked(self._engine, records)

    def why_not(self, event: Event, ids: Sequence[str]) -> list[Rejection | None]:
        """Which predicate of each client's subscription rejects *event*; None where it matches."""
        found = self._engine.why_not(event, [engine_id(CLIENT, id) for id in ids])
        pairs = zip(ids, found, strict=True)
        return [one if one is None else replace(one, subscription=id) for id, one in pairs]

    def routes(self, records: Sequence[Record]) -> list[list[str]]:
        """For each of *records* the neighbours one of whose ranges an event lies in."""
        found: list[list[str]] = [[] for _ in records]
        links = [(name, link) for name, link in self._links.items() if len(link.ranges)]
        positions = [at for at, one in enumerate(records) if isinstance(one, Publish | Update)]
        if not links or not positions or self._space is None:
            return found
        events = (one.event for one in records if isinstance(one, Publish | Update))
        queries = event_ranges(events, self._schema, self._space)
        for name, link in links:
            is_wanted = link.ranges.meets(queries).tolist()
            for position, wanted in zip(positions, is_wanted, strict=True):
                if wanted:
                    found[position].append(name)
        return found

    # Subscriptions, interests, events.

    def insert_client(self, record: Subscribe | Move) -> Interest:
        """Keep a client's subscription, or its new location; what neighbours are to hear of it."""
        if isinstance(record, Subscribe):
            subscription = record.subscription
        else:
            subscription = replace(self.own_client(record.id), at=record.at)
        self.clients.keep(subscription.id, subscription, subscription.until)
        self._store.keep_interest(CLIENT, subscription.id, subscription)
        return self._own(subscription)

    def remove_client(self, id: str) -> None:
        """Forget a client's subscription, and its end."""
        self.clients.drop(id)
        self._store.forget_interest(CLIENT, id)

    def ended_clients(self, time: int) -> list[str]:
        """The ids of clients' subscriptions that are over at *time*, forgotten now."""
        ended = self.clients.over(time)
        for id in ended:
            self._store.forget_interest(CLIENT, id)
        return ended

    def insert_interest(self, source: str, interest: AnyInterest) -> None:
        """Let the neighbour *source* want *interest*; the engine has it already."""
        self._links[source].insert(interest)
        wanted = interest.subscription if isinstance(interest, Interest) else interest.ranges
        self._store.keep_interest(source, interest.name, wanted)

    def remove_interest(self, source: str, name: str) -> None:
        """Let the neighbour *source* want nothing under *name*; the engine has it no longer."""
        self._links[source].remove(name)
        self._store.forget_interest(source, name)

    def replace_interests(
        self, source: str, names: Iterable[str], interests: Mapping[str, AnyInterest], time: int
    ) -> tuple[set[str], dict[str, StentorError]]:
        """Let the engine have *interests* of *source* instead of what is there under *names*.

        The live events that it wants, and by name why an interest is refused.
        """
        records: list[Record] = [
            Unsubscribe(name, time)
            for name in names
            if isinstance(self._links[source].interests[name], Interest)
        ]
        wanted: set[str] = set()
        mistakes: dict[str, StentorError] = {}
        for name, interest in interests.items():
            if isinstance(interest, Interest):
                records.append(Subscribe(interest.subscription, time))
                continue
            try:
                check_ranges(interest.ranges, self._space)
            except SettingsError as mistake:
                mistakes[name] = mistake
            else:
                wanted.update(self.events.within(interest.ranges))
        for record, answer in zip(records, self.step(source, records), strict=True):
            if isinstance(answer, Changes):
                wanted.update(answer.added)
            elif isinstance(record, Subscribe) and isinstance(answer, StentorError):
                mistakes[record.subscription.id] = answer
        return wanted, mistakes

    def hold_event(self, event: Event, version: int, *, own: bool) -> None:
        """Hold a live event, a client's *own* or not, instead of the one of its id, if any."""
        self.events.hold(event, version, own=own)
        self._store.keep_event(event)
        self._store.keep_version(event.id, version, event.until, own)

    def version_of(self, source: str, record: EventRecord) -> int:
        """The version of what *record* says: of a client's, one that is later than all known."""
        if source != CLIENT:
            return record.version
        known = self.events.version(about(record))
        return known if isinstance(record, Withdraw) else known + 1

    def stale(self, source: str, message: EventRecord) -> StentorError | None:
        """Why *message* of the neighbour *source* says nothing new; None where it does."""
        id = about(message)
        known = self.events.version(id)
        if isinstance(message, Withdraw):
            if id in self.events and known <= message.version:
                return None
            return UnknownIdError(f"no live event has the id {id!r}", id=id)
        if known < message.version:
            return None
        if known == message.version:
            self.note_holder(source, message.event)
        return DuplicateEventError(f"the event {id!r} is here, or was withdrawn", field="id")

    def is_news(self, message: Publish | Update) -> bool:
        """Whether nothing as late as *message* is known of its event."""
        return self.events.version(message.event.id) < message.version

    def client(self, id: str) -> Subscription | None:
        """The client's subscription *id*, if there is one."""
        return self.own_client(id) if id in self.clients else None

    def own_client(self, id: str) -> Subscription:
        """The client's subscription *id*, which there is; one of the store is read just once."""
        found = self.clients[id]
        if isinstance(found, KeptInterest):
            read = found.wanted(self._schema)
            assert isinstance(read, Subscription)
            self.clients.replace(id, read)
            return read
        return found

    def live_event(self, id: str) -> Event | None:
        """The live event *id*, if there is one."""
        return self.events[id] if id in self.events else None  # noqa: SIM401

    def has_ended(self, time: int) -> bool:
        """Whether a client's subscription or an event is over at *time*, and still kept."""
        return self.clients.has_over(time) or self.events.has_over(time)

    def drop_ended_events(self, time: int) -> None:
        """Forget the events that are over at *time*."""
        for id in self.events.over(time):
            for link in self._links.values():
                link.live_ids.discard(id)
            self._store.forget_event(id)
            self._store.forget_version(id)

    def keep_forward(self, neighbour: str, event: Event) -> None:
        """Keep *event*, which is not live, until *neighbour* has it."""
        if self._store.keeps_links:
            return
        self._links[neighbour].forwards.append(event)
        self._store.keep_forward(neighbour, event)

    def drop_forwards(self, neighbour: str, count: int | None = None) -> None:
        """Forget the first *count* events that were on their way to *neighbour*; None: all."""
        forwards = self.stranded if neighbour == CLIENT else self._links[neighbour].forwards
        for _ in range(len(forwards) if count is None else min(count, len(forwards))):
            forwards.popleft()
        self._store.forget_forwards(neighbour, count)

    def strand_forwards(self, neighbour: str) -> None:
        """Keep what was on its way to *neighbour* for whoever wants it then."""
        self.stranded += self._links[neighbour].forwards
        self._links[neighbour].forwards.clear()
        self._store.strand_forwards(neighbour)

    def _own(self, subscription: Subscription) -> Interest:
        plain = replace(subscription, owner=None, labels={})  # these stay here
        return Interest(self.name_of(subscription.id), plain)

    def name_of(self, id: str) -> str:
        """What the overlay calls the client's subscription *id*."""
        return f"{self._home}/{id}"

    def interests_except(self, neighbour: str) -> dict[str, AnyInterest]:
        """What the clients and all neighbours but this one want, by the names that links know."""
        own = (self._own(self.own_client(id)) for id in self.clients)
        found: list[tuple[str, AnyInterest]] = [(CLIENT, one) for one in own]
        for other, link in self._links.items():
            if other != neighbour:
                found += [(other, one) for one in link.interests.values()]
        named = ((self._names.of(source, one.name), one) for source, one in found)
        return {name: one.renamed(name) for name, one in named}

    # Events on their way.

    def forward(
        self,
        source: str,
        record: Publish,
        keys: list[str],
        ranged: list[str],
        time: int,
        output: BrokerOutput,
    ) -> list[str]:
        """Forward an event to neighbours, those among *keys* and *ranged*.

        Over each link once at most, and never back. The clients here who want it, sorted as their
        keys are.
        """
        event = record.event
        if event.until is not None:
            self.hold_event(event, self.version_of(source, record), own=source == CLIENT)
        self.note_holder(source, event)
        clients, neighbours = _apart(keys)
        wanting = dict.fromkeys([*ranged, *neighbours])
        wanting.pop(source, None)
        for neighbour in wanting:
            self._send(event, neighbour, time, output)
        output.deliveries += [Delivery(name, event.id) for name in clients]
        output.unwanted += source != CLIENT and not wanting and not clients
        return clients

    def forward_update(
        self,
        source: str,
        record: Update | Withdraw,
        changes: EventChanges,
        ranged: list[str],
        time: int,
        output: BrokerOutput,
    ) -> EventChanges:
        """Forward an update or a withdrawal to whom it concerns.

        Neighbours that want what the event is now get it; those that have what it was, and do not
        want it any more, are told that this is gone.
        """
        id, version = about(record), self.version_of(source, record)
        if isinstance(record, Withdraw):
            self._withdraw_event(id, version)
        else:
            self.hold_event(record.event, version, own=source == CLIENT)
        entered, left, stayed = map(_apart, (changes.entered, changes.left, changes.stayed))
        wanting = {*ranged, *entered[1], *stayed[1]}
        for neighbour, link in self._links.items():
            has = id in link.live_ids
            link.live_ids.discard(id)
            if neighbour == source:
                if isinstance(record, Update):
                    link.live_ids.add(id)
            elif isinstance(record, Update) and neighbour in wanting:
                self._send(record.event, neighbour, time, output, is_update=True)
            elif has and link.up:
                gone = version if isinstance(record, Withdraw) else version - 1
                output.sent.append(Outgoing(neighbour, Withdraw(id, time, gone)))
        for clients, added in ((entered[0], True), (left[0], False)):
            output.deliveries += [Delivery(name, id, added) for name in clients]
        output.stayed += [Delivery(name, id) for name in stayed[0]]
        return EventChanges(entered[0], left[0], stayed[0])

    def _withdraw_event(self, id: str, version: int) -> None:
        until, own = self.events[id].until, id in self.events.own
        self.events.drop(id)
        self._store.forget_event(id)
        self._remember_gone(id, version, until, own=own)

    def _remember_gone(self, id: str, version: int, until: int | None, *, own: bool) -> None:
        for one in self.events.remember(id, version, until):
            self._store.forget_version(one)
        self._store.keep_version(id, version, until, own)

    def end_events(
        self, source: str, gone: Iterable[GoneEvent], time: int, output: BrokerOutput
    ) -> None:
        """Let nothing be live that the neighbour *source* knows to be *gone*; others hear of it."""
        news: list[GoneEvent] = []
        for id, version, until in gone:
            known, is_live = self.events.version(id), id in self.events
            is_over = until is not None and until <= time
            if is_over or known > version or (known == version and not is_live):
                continue
            news.append((id, version, until))
            if is_live:
                end = Withdraw(id, time, version)
                [answer] = self.step(source, [end])
                changes = answer if isinstance(answer, EventChanges) else EventChanges()
                self.forward_update(source, end, changes, [], time, output)
            else:
                self._remember_gone(id, version, until, own=False)
        for neighbour, link in self._links.items() if news else ():
            if link.up and neighbour != source:
                output.sent.append(Outgoing(neighbour, EventsGone(tuple(news), time)))

    def note_holders(self, neighbour: str, held: Mapping[str, int]) -> None:
        """Take note of the live events that *neighbour* holds, in these versions."""
        self._links[neighbour].live_ids |= {
            id
            for id, version in held.items()
            if id in self.events and self.events.version(id) == version
        }

    def note_holder(self, source: str, event: Event) -> None:
        """Remember that *source* holds *event*, if that is live here, or was before it came."""
        if source != CLIENT and event.id in self.events:
            self._links[source].live_ids.add(event.id)

    def send_live(
        self, ids: Iterable[str], neighbour: str, time: int, output: BrokerOutput
    ) -> None:
        """Send *neighbour* those of the live events *ids* that it does not hold."""
        for id in ids:
            self._send(self.events[id], neighbour, time, output)

    def _send(
        self,
        event: Event,
        neighbour: str,
        time: int,
        output: BrokerOutput,
        *,
        is_update: bool = False,
    ) -> None:
        link = self._links[neighbour]
        if link.up and event.id not in link.live_ids:
            if event.until is not None:
                link.live_ids.add(event.id)
            else:
                self.keep_forward(neighbour, event)
            version = 0 if event.until is None else self.events.version(event.id)
            said = Update if is_update else Publish
            output.sent.append(Outgoing(neighbour, said(event, time, version)))

    # Files and invariants.

    def restore(self, store: Store, time: int) -> None:
        """Take over the state that a broker kept in *store*."""
        space = None if self._space is None else self._space.to_dict()
        if store.fact("space", object) != space:
            store.forget_ranges()
            store.keep_fact("space", space)
        interests = list(store.interests())
        self._restore_clients(store, interests, time)
        records: list[tuple[str, int, Record]] = []
        # They say most of kinds, and come before events.
        for one in [one for one in interests if one.source != CLIENT]:
            with store.reading("interests", one.row):
                wanted, link = one.wanted(self._schema), self._links[one.source]
                if isinstance(wanted, Subscription):
                    link.insert(Interest(one.name, wanted))
                    record = with_engine_id(one.source, Subscribe(wanted, time))
                    records.append(("interests", one.row, record))
                else:
                    check_ranges(wanted, self._space)
                    link.insert(RangeInterest(one.name, wanted))
        versions = store.versions()
        for row, event in store.events(self._schema):
            version, _, own = versions.pop(event.id, (0, None, False))
            self.events.hold(event, version, own=own)
            records.append(("events", row, Publish(event, time)))
        for row, neighbour, event in store.forwards(self._schema):
            with store.reading("forwards", row):
                is_stranded = neighbour == CLIENT
                (self.stranded if is_stranded else self._links[neighbour].forwards).append(event)
        for id, (version, until, own) in versions.items():
            self.events.remember(id, version, until)
            (self.events.own.add if own else self.events.own.discard)(id)
        answers = self._step([record for _, _, record in records])
        for (table, row, _), answer in zip(records, answers, strict=True):
            if isinstance(answer, StentorError):
                raise store.damaged(str(answer), table, row)

    def _restore_clients(self, store: Store, kept: list[KeptInterest], time: int) -> None:
        """Take over what clients want: compiled shape by shape, their trees not even read."""
        keyed: list[SubscriptionFields] = []
        own = [one for one in kept if one.source == CLIENT]
        for one in own:
            with store.reading("interests", one.row):
                fields = one.fields(self._schema)
            self.clients.keep(one.name, one, fields.until)
            keyed.append(fields._replace(id=engine_id(CLIENT, one.name)))
        for one, answer in zip(own, subscribe_texts(self._engine, keyed, time), strict=True):
            if isinstance(answer, StentorError):
                raise store.damaged(str(answer), "interests", one.row)

    def stats(self) -> dict[str, int]:
        """Counts: clients' subscriptions, what neighbours want and its ranges, live events."""
        return {
            "subscriptions": len(self.clients),
            "table entries": sum(len(link.interests) for link in self._links.values()),
            "ranges": sum(link.ranges.range_count for link in self._links.values()),
            "live events": len(self.events),
        }

    def check(self, time: int) -> None:
        """Assert that the engine holds the subscriptions of the tables, and the rest is over."""
        self.events.check()
        keys = {engine_id(CLIENT, id) for id in self.clients} | set(self._exact_keys())
        known = set(self._engine)
        assert known >= keys
        for key in known - keys:  # the engine knows the time with its next record
            until = read_time(self._engine.get(key).get("until"), "until")
            assert until is not None, key
            assert until <= time, key

    def _exact_keys(self) -> Iterator[str]:
        for neighbour, link in self._links.items():
            for name, interest in link.interests.items():
                if isinstance(interest, Interest):
                    yield engine_id(neighbour, name)


def _apart(keys: Iterable[str]) -> tuple[list[str], list[str]]:
    """The clients' own names among *keys*, in order, and the neighbours that the others are of."""
    clients: list[str] = []
    neighbours: dict[str, None] = {}
    for key in keys:
        owner, name = source_and_name(key)
        if owner == CLIENT:
            clients.append(name)
        else:
            neighbours[owner] = None
    return clients, [*neighbours]
