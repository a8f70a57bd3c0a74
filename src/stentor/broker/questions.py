"""What a broker tells of itself without changing, and whether it can be asked at all."""

from __future__ import annotations

from collections.abc import Iterable

from stentor.broker.announcements import Link
from stentor.broker.interest import AnyInterest, is_among
from stentor.broker.store import NoStore, Store
from stentor.broker.tables import Tables
from stentor.errors import SettingsError, StoreError
from stentor.model import Event, Subscription
from stentor.model.values.string import describe


class BrokerQuestions:
    """The methods of `Broker` that leave its state as it is."""

    name: str
    time: int
    links: dict[str, Link]
    _tables: Tables
    _store: Store | NoStore
    _failure: str  # why it refuses everything

    def fail(self, reason: BaseException) -> None:
        """Refuse everything from now on: what a call has led to got lost for this *reason*."""
        self._failure = self._failure or f"{type(reason).__name__}: {reason}".rstrip(": ")

    def interests_of(self, source: str) -> dict[str, AnyInterest]:
        """The subscription table of the neighbour *source*, by name."""
        return dict(self._link(source).interests)

    @property
    def tables(self) -> Tables:
        """Who wants what here, and what is live: to be read."""
        self._check_usable()
        return self._tables

    def contents(self) -> tuple[Iterable[Subscription], Iterable[Event]]:
        """The clients' subscriptions, and the live events."""
        clients, events = self.tables.clients, self.tables.events
        return [self.tables.own_client(id) for id in clients], [events[id] for id in events]

    def own_events(self) -> frozenset[str]:
        """The ids of events that came from clients here, and are live or were withdrawn."""
        return frozenset(self._tables.events.own)

    def stats(self) -> dict[str, int]:
        """Counts: clients' subscriptions, what neighbours want and its ranges, live events."""
        return self.tables.stats()

    def check(self) -> None:
        """Assert that engine, tables and policies speak of the same subscriptions."""
        self._tables.check(self.time)
        for neighbour, link in self.links.items():
            link.check()
            elsewhere = self._tables.interests_except(neighbour)
            assert link.policy.interests == elsewhere, "all but its own"
            assert link.live_ids <= set(self._tables.events), "only what is live is kept as sent"

    def _check_usable(self) -> None:
        if self._failure:
            has_store = isinstance(self._store, Store)
            then = "open it again from its store" if has_store else "make it anew: it has no store"
            raise StoreError(
                f"the broker {self.name!r} refuses everything since it has failed "
                f"({self._failure}); {then}"
            )

    def _link(self, neighbour: str) -> Link:
        self._check_usable()
        if not is_among(neighbour, self.links):
            raise SettingsError(f"{self.name} has no neighbour {describe(neighbour)}")
        return self.links[neighbour]
