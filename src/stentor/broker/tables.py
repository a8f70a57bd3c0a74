"""Who wants what at a broker, and which events are live there: all that a restart must find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stentor.broker.held import Held
from stentor.broker.interest import AnyInterest, Interest, RangeInterest
from stentor.broker.keys import CLIENT, filed, key_of
from stentor.broker.link import Link
from stentor.broker.live import LiveEvents, event_ranges
from stentor.broker.store import NoStore, Store
from stentor.engine import Engine
from stentor.engine.report import Answer
from stentor.errors import StentorError
from stentor.index.mics.space import Space
from stentor.model import Event, Schema, Subscription
from stentor.model.record import Move, Publish, Record, Subscribe
from stentor.model.time import instant


class Tables:
    """Subscriptions of clients and neighbours in one engine, ranges of neighbours, live events.

    Whatever changes is kept in the store; what neighbours hold is theirs to say again.
    """

    def __init__(
        self,
        home: str,
        index: str,
        schema: Schema,
        space: Space | None,
        links: dict[str, Link],
        store: Store | NoStore,
    ) -> None:
        self._home, self._schema, self._space = home, schema, space
        self._links, self._store = links, store
        self.clients: Held[Subscription] = Held()
        self.events = LiveEvents(schema, space)
        self._engine = Engine(index, schema=schema, clock=None)

    # Records.

    def step(self, source: str, records: Sequence[Record]) -> Sequence[Answer]:
        """What one engine answers to the *records* of *source*; subscriptions go by their keys."""
        return self._engine.step([filed(source, record) for record in records])

    def routes(self, records: Sequence[Record]) -> list[list[str]]:
        """For each of *records* the neighbours one of whose ranges an event lies in."""
        found: list[list[str]] = [[] for _ in records]
        links = [(name, link) for name, link in self._links.items() if len(link.ranges)]
        places = [place for place, one in enumerate(records) if isinstance(one, Publish)]
        if not links or not places or self._space is None:
            return found
        events = (one.event for one in records if isinstance(one, Publish))
        asked = event_ranges(events, self._schema, self._space)
        for name, link in links:
            for place, is_wanted in zip(places, link.ranges.meets(asked).tolist(), strict=True):
                if is_wanted:
                    found[place].append(name)
        return found

    # What stands.

    def put_client(self, record: Subscribe | Move) -> Interest:
        """Keep a client's subscription, or its new place; what neighbours are to hear of it."""
        if isinstance(record, Subscribe):
            subscription = record.subscription
        else:
            subscription = replace(self.clients[record.id], at=record.at)
        self.clients.keep(subscription.id, subscription, subscription.until)
        self._store.keep_interest(CLIENT, subscription.id, subscription)
        return self._own(subscription)

    def drop_client(self, id: str) -> None:
        """Forget a client's subscription, and its end."""
        self.clients.drop(id)
        self._store.forget_interest(CLIENT, id)

    def ended_clients(self, time: int) -> list[str]:
        """The ids of clients' subscriptions that are over at *time*, forgotten now."""
        ended = self.clients.over(time)
        for id in ended:
            self._store.forget_interest(CLIENT, id)
        return ended

    def put_neighbour(self, source: str, interest: AnyInterest) -> None:
        """Let the neighbour *source* want *interest*; the engine has been told."""
        self._links[source].want(interest)
        wanted = interest.subscription if isinstance(interest, Interest) else interest.ranges
        self._store.keep_interest(source, interest.name, wanted)

    def drop_neighbour(self, source: str, name: str) -> None:
        """Let the neighbour *source* want nothing under *name*; the engine has been told."""
        self._links[source].forget(name)
        self._store.forget_interest(source, name)

    def keep_event(self, event: Event) -> None:
        """Keep a live event."""
        self.events.keep(event)
        self._store.keep_event(event)

    def drop_ended_events(self, time: int) -> None:
        """Forget the events that are over at *time*."""
        for id in self.events.over(time):
            for link in self._links.values():
                link.holds.discard(id)
            self._store.forget_event(id)

    def _own(self, subscription: Subscription) -> Interest:
        return Interest(self.name_of(subscription.id), subscription)

    def name_of(self, id: str) -> str:
        """What the overlay calls the client's subscription *id*."""
        return f"{self._home}/{id}"

    def interests_but(self, neighbour: str) -> dict[str, AnyInterest]:
        """What the clients and all neighbours but this one want, by name."""
        own = (self._own(self.clients[id]) for id in self.clients)
        found: dict[str, AnyInterest] = {one.name: one for one in own}
        for other, link in self._links.items():
            found |= link.wants if other != neighbour else {}
        return found

    # Files and invariants.

    def restore(self, store: Store, time: int) -> None:
        """Stand where the broker stood that kept its state in *store*."""
        space = None if self._space is None else self._space.to_dict()
        if store.fact("space") != space:
            store.forget_ranges()
            store.keep_fact("space", space)
        records: list[Record] = []
        for event in store.events(self._schema):
            self.events.keep(event)
            records.append(Publish(event, time))
        for source, name, wanted in store.interests(self._schema):
            if not isinstance(wanted, Subscription):
                self._links[source].want(RangeInterest(name, wanted))
                continue
            records.append(filed(source, Subscribe(wanted, time)))
            if source == CLIENT:
                self.clients.keep(wanted.id, wanted, wanted.until)
            else:
                self._links[source].want(Interest(name, wanted))
        for answer in self._engine.step(records):
            if isinstance(answer, StentorError):
                raise answer

    def check(self, time: int) -> None:
        """Assert that the engine holds the subscriptions of the tables, and the rest is over."""
        self.events.check()
        keys = {key_of(CLIENT, id) for id in self.clients} | set(self._exact_keys())
        known = set(self._engine)
        assert known >= keys
        for key in known - keys:  # the engine hears of the time with its next record
            until = instant(self._engine.get(key).get("until"), "until")
            assert until is not None, key
            assert until <= time, key

    def _exact_keys(self) -> Iterator[str]:
        for neighbour, link in self._links.items():
            for name, interest in link.wants.items():
                if isinstance(interest, Interest):
                    yield key_of(neighbour, name)
