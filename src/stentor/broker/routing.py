"""How events are handed on: to clients who want them, over links behind which somebody does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stentor.broker.keys import CLIENT, source_and_name
from stentor.broker.link import Link
from stentor.broker.messages import Delivery, Sent
from stentor.broker.outcome import Outcome
from stentor.broker.tables import Tables
from stentor.model import Event
from stentor.model.record import Publish


class Routing:
    """Sends each event over each link once at most, and never back."""

    def __init__(self, links: Mapping[str, Link], tables: Tables) -> None:
        self._links, self._tables = links, tables

    def published(
        self,
        source: str,
        event: Event,
        keys: list[str],
        ranged: list[str],
        time: int,
        outcome: Outcome,
    ) -> list[str]:
        """Hand *event* on to those with *keys*, and to the neighbours *ranged*.

        The clients here who want it, sorted as their keys are.
        """
        if event.until is not None:
            self._tables.keep_event(event)
        self.note_holder(source, event)
        wanting = dict.fromkeys(ranged)
        clients: list[str] = []
        for key in keys:
            wants, name = source_and_name(key)
            if wants == CLIENT:
                clients.append(name)
            else:
                wanting[wants] = None
        wanting.pop(source, None)
        for neighbour in wanting:
            self._send(event, neighbour, time, outcome)
        outcome.deliveries += [Delivery(name, event.id) for name in clients]
        outcome.unwanted += source != CLIENT and not wanting and not clients
        return clients

    def note_holder(self, source: str, event: Event) -> None:
        """Remember that *source* holds *event*, if that is live here, or was before it came."""
        if source != CLIENT and event.id in self._tables.events:
            self._links[source].holds.add(event.id)

    def send_live(self, ids: Iterable[str], neighbour: str, time: int, outcome: Outcome) -> None:
        """Send *neighbour* those of the live events *ids* that it does not hold."""
        for id in ids:
            self._send(self._tables.events[id], neighbour, time, outcome)

    def _send(self, event: Event, neighbour: str, time: int, outcome: Outcome) -> None:
        link = self._links[neighbour]
        if link.up and event.id not in link.holds:
            if event.until is not None:
                link.holds.add(event.id)
            outcome.sent.append(Sent(neighbour, Publish(event, time)))
