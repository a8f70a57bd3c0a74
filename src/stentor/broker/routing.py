"""How events are handed on: to clients who want them, over links behind which somebody does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stentor.broker.keys import CLIENT, source_and_name
from stentor.broker.link import Link
from stentor.broker.messages import Delivery, Sent
from stentor.broker.outcome import Outcome
from stentor.broker.tables import Tables
from stentor.engine.report import Answer
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
        answer: Answer,
        ranged: list[str],
        time: int,
        outcome: Outcome,
    ) -> None:
        """Hand *event* on to those in *answer*, by their keys, and to the neighbours *ranged*.

        A live one that came before goes no further: its answer is an error.
        """
        if isinstance(answer, list) and event.until is not None:
            self._tables.keep_event(event)
        if source != CLIENT and event.id in self._tables.events:
            self._links[source].holds.add(event.id)
        if not isinstance(answer, list):
            return
        wanting = dict.fromkeys(ranged)
        before = len(outcome.deliveries)
        for key in answer:
            wants, name = source_and_name(key)
            if wants == CLIENT:
                outcome.deliveries.append(Delivery(name, event.id))
            else:
                wanting[wants] = None
        wanting.pop(source, None)
        for neighbour in wanting:
            self._send(event, neighbour, time, outcome)
        if source != CLIENT and not wanting and len(outcome.deliveries) == before:
            outcome.unwanted += 1

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
