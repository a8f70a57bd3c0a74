"""Who wants what at a broker, which events are live or on their way: all that a restart needs.

`Tables` is the state of a broker, `BrokerLiveEvents` its live events by id, end and range,
`ExpiringValues` what ends at some time.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Generic, TypeVar

import numpy as np

from stentor.broker.announcements import Link
from stentor.broker.interest import (
    CLIENT,
    AnyInterest,
    Interest,
    Names,
    Pairs,
    RangeInterest,
    check_ranges,
    engine_id,
    ranges_of,
    source_and_name,
    with_engine_id,
)
from stentor.broker.messages import BrokerOutput, Delivery, Outgoing
from stentor.broker.store import NoStore, Store
from stentor.encoding.columns import Int64
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.hilbert.ranges import Ranges
from stentor.engine import Engine
from stentor.engine.engine import step_checked
from stentor.engine.report import Answer
from stentor.engine.why_not import Rejection
from stentor.errors import SettingsError, StentorError
from stentor.index.mics.check import check_postings
from stentor.index.mics.postings import Postings
from stentor.index.mics.projection import EVENT_RANGES
from stentor.index.mics.space import Space
from stentor.model import Changes, Event, Schema, Subscription
from stentor.model.record import Move, Publish, Record, Subscribe, Unsubscribe
from stentor.model.values.time import read_time

Value = TypeVar("Value")
#: Ends of values that are no longer kept are swept out when they are more than the others and this.
FEW: Final = 64


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
        self.clients: ExpiringValues[Subscription] = ExpiringValues()
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
        positions = [at for at, one in enumerate(records) if isinstance(one, Publish)]
        if not links or not positions or self._space is None:
            return found
        events = (one.event for one in records if isinstance(one, Publish))
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
            subscription = replace(self.clients[record.id], at=record.at)
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
        self, source: str, interests: Mapping[str, AnyInterest], time: int
    ) -> tuple[set[str], dict[str, StentorError]]:
        """Let the engine have *interests* of *source*, and nothing else of it.

        The live events that it wants, and by name why an interest is refused.
        """
        records: list[Record] = [
            Unsubscribe(name, time)
            for name, one in self._links[source].interests.items()
            if isinstance(one, Interest)
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

    def hold_event(self, event: Event) -> None:
        """Hold a live event."""
        self.events.hold(event)
        self._store.keep_event(event)

    def client(self, id: str) -> Subscription | None:
        """The client's subscription *id*, if there is one."""
        return self.clients[id] if id in self.clients else None  # noqa: SIM401

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

    def keep_forward(self, neighbour: str, event: Event) -> None:
        """Keep *event*, which is not live, until *neighbour* has it."""
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
        return Interest(self.name_of(subscription.id), subscription)

    def name_of(self, id: str) -> str:
        """What the overlay calls the client's subscription *id*."""
        return f"{self._home}/{id}"

    def interests_except(self, neighbour: str) -> dict[str, AnyInterest]:
        """What the clients and all neighbours but this one want, by the names that links know."""
        own = (self._own(self.clients[id]) for id in self.clients)
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
        event: Event,
        keys: list[str],
        ranged: list[str],
        time: int,
        output: BrokerOutput,
    ) -> list[str]:
        """Forward *event* to neighbours, those among *keys* and *ranged*.

        Over each link once at most, and never back. The clients here who want it, sorted as their
        keys are.
        """
        if event.until is not None:
            self.hold_event(event)
        self.note_holder(source, event)
        wanting = dict.fromkeys(ranged)
        clients: list[str] = []
        for key in keys:
            owner, name = source_and_name(key)
            if owner == CLIENT:
                clients.append(name)
            else:
                wanting[owner] = None
        wanting.pop(source, None)
        for neighbour in wanting:
            self._send(event, neighbour, time, output)
        output.deliveries += [Delivery(name, event.id) for name in clients]
        output.unwanted += source != CLIENT and not wanting and not clients
        return clients

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

    def _send(self, event: Event, neighbour: str, time: int, output: BrokerOutput) -> None:
        link = self._links[neighbour]
        if link.up and event.id not in link.live_ids:
            if event.until is not None:
                link.live_ids.add(event.id)
            else:
                self.keep_forward(neighbour, event)
            output.sent.append(Outgoing(neighbour, Publish(event, time)))

    # Files and invariants.

    def restore(self, store: Store, time: int) -> None:
        """Take over the state that a broker kept in *store*."""
        space = None if self._space is None else self._space.to_dict()
        if store.fact("space", object) != space:
            store.forget_ranges()
            store.keep_fact("space", space)
        interests = list(store.interests(self._schema))  # they say most of kinds, and come first
        records: list[Record] = []
        rows: list[tuple[str, int]] = []
        for row, event in store.events(self._schema):
            self.events.hold(event)
            records.append(Publish(event, time))
            rows.append(("events", row))
        for row, source, name, wanted in interests:
            if not isinstance(wanted, Subscription):
                with store.reading("interests", row):
                    check_ranges(wanted, self._space)
                    self._links[source].insert(RangeInterest(name, wanted))
                continue
            records.append(with_engine_id(source, Subscribe(wanted, time)))
            rows.append(("interests", row))
            if source == CLIENT:
                self.clients.keep(wanted.id, wanted, wanted.until)
            else:
                with store.reading("interests", row):
                    self._links[source].insert(Interest(name, wanted))
        for row, neighbour, event in store.forwards(self._schema):
            with store.reading("forwards", row):
                is_stranded = neighbour == CLIENT
                (self.stranded if is_stranded else self._links[neighbour].forwards).append(event)
        for (table, row), answer in zip(rows, self._step(records), strict=True):
            if isinstance(answer, StentorError):
                raise store.damaged(str(answer), table, row)

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


def event_ranges(events: Iterable[Event], schema: Schema, space: Space) -> Ranges:
    """The number of each of *events* in *space*; of range events all ranges that they touch."""
    columns = encode_events((TimedEvent(event) for event in events), schema)
    return space.on(schema).of_events(columns, EVENT_RANGES)


class BrokerLiveEvents:
    """Events until they end, in the order in which they came."""

    def __init__(self, schema: Schema, space: Space | None) -> None:
        self._schema, self._space = schema, space
        self._events: ExpiringValues[Event] = ExpiringValues()
        self._waiting: dict[str, None] = {}  # those that the postings do not have yet
        self._postings = Postings()
        self._number: dict[str, int] = {}  # by which the postings know an event
        self._id: dict[int, str] = {}
        self._free: list[int] = []

    def hold(self, event: Event) -> None:
        """Hold *event*, which ends."""
        self._events.keep(event.id, event, event.until)
        if self._space is not None:
            self._waiting[event.id] = None

    def over(self, time: int) -> list[str]:
        """The ids of those that have ended at *time*, no longer kept."""
        ended = self._events.over(time)
        for id in ended:
            self._waiting.pop(id, None)
        if gone := [self._number.pop(id) for id in ended if id in self._number]:
            self._postings.remove(np.array(gone))
            self._free += gone
            for number in gone:
                del self._id[number]
        return ended

    def has_over(self, time: int) -> bool:
        """Whether one has ended at *time*."""
        return self._events.has_over(time)

    def within(self, ranges: Pairs) -> list[str]:
        """The ids of those that touch one of *ranges*. Cost: O(log events) for each, and theirs."""
        if not ranges or self._space is None:
            return []
        self._insert_waiting(self._space)
        _, owners = self._postings.owners_of(ranges_of([ranges]))
        return [self._id[number] for number in np.unique(owners).tolist()]

    def _insert_waiting(self, space: Space) -> None:
        """Insert what has come since the last query into the postings."""
        if self._postings.is_wasteful:
            self._postings, self._waiting = Postings(), dict.fromkeys(self._events)
            self._number, self._id, self._free = {}, {}, []
        if not self._waiting:
            return
        for id in self._waiting:
            number = self._free.pop() if self._free else len(self._number)
            self._number[id], self._id[number] = number, id
        numbers = np.array([self._number[id] for id in self._waiting])
        events = (self._events[id] for id in self._waiting)
        self._postings.add(numbers, event_ranges(events, self._schema, space))
        self._waiting = {}

    def __getitem__(self, id: str) -> Event:
        return self._events[id]

    def __contains__(self, id: object) -> bool:
        return id in self._events

    def __iter__(self) -> Iterator[str]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def check(self) -> None:
        """Assert that every live event has its postings, or waits for them."""
        if self._space is None:
            return
        assert {*self._number, *self._waiting} == set(self._events)
        assert {number: id for id, number in self._number.items()} == self._id
        check_postings(self._postings, np.array(sorted(self._id), np.int64), self._ranges_of)

    def _ranges_of(self, numbers: Int64) -> Ranges:
        assert self._space is not None
        events = (self._events[self._id[number]] for number in numbers.tolist())
        return event_ranges(events, self._schema, self._space)


class ExpiringValues(Generic[Value]):
    """Values by id, some of which end, in the order in which they came."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[Value, int | None]] = {}
        self._heap: list[tuple[int, str]] = []

    def keep(self, id: str, value: Value, until: int | None) -> None:
        """Keep *value* as *id*, instead of what was there."""
        self._values[id] = value, until
        if until is not None:
            heapq.heappush(self._heap, (until, id))
        if len(self._heap) > 2 * len(self._values) + FEW:
            ends = ((until, id) for id, (_, until) in self._values.items())
            self._heap = [(until, id) for until, id in ends if until is not None]
            heapq.heapify(self._heap)

    def drop(self, id: str) -> None:
        """Keep *id* no longer."""
        del self._values[id]

    def over(self, time: int) -> list[str]:
        """The ids of what has ended at *time*, no longer kept; each once. Cost: O(log n) each."""
        ended = []
        while self._heap and self._heap[0][0] <= time:
            until, id = heapq.heappop(self._heap)
            if id in self._values and self._values[id][1] == until:
                del self._values[id]
                ended.append(id)
        return ended

    def has_over(self, time: int) -> bool:
        """Whether something may have ended at *time*."""
        return bool(self._heap) and self._heap[0][0] <= time

    def __getitem__(self, id: str) -> Value:
        return self._values[id][0]

    def __contains__(self, id: object) -> bool:
        return id in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
