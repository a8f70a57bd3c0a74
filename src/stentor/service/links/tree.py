"""Who is linked with whom: each broker tells all others of its own links, and refuses a ring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from stentor.service.settings import NAME

MOST_BROKERS: Final = 1_000
_Name = Annotated[str, Meta(pattern=f"^{NAME.pattern}$")]
_Count = Annotated[int, Meta(ge=0)]


class LinkReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker says of its link to *to*: what went over it, and what did not have to."""

    to: _Name
    up: bool = False
    carried: dict[str, _Count] = {}
    saved: _Count = 0
    announced: _Count = 0
    covered: _Count = 0
    queued: _Count = 0
    problems: tuple[str, ...] = ()


class BrokerState(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker says of itself; of two the one of the later *version* counts."""

    name: _Name
    instance: str
    version: _Count
    links: Annotated[tuple[LinkReport, ...], Meta(max_length=MOST_BROKERS)] = ()
    subscriptions: _Count = 0
    live_events: _Count = 0

    @property
    def neighbours(self) -> frozenset[str]:
        """Whom it is linked with, whether the link is up or not."""
        return frozenset(one.to for one in self.links)


class BrokerTree:
    """What the broker *name* knows of all brokers that it has heard of."""

    def __init__(self, name: str, instance: str) -> None:
        self.name, self.instance = name, instance
        self.states: dict[str, BrokerState] = {}

    def take(self, states: Iterable[BrokerState]) -> bool:
        """Hear of *states*; whether one was news."""
        is_news = False
        for one in states:
            known = self.states.get(one.name)
            if one.name == self.name or (known is not None and known.version >= one.version):
                continue
            if known is None and len(self.states) >= MOST_BROKERS:
                continue
            self.states[one.name] = one
            is_news = True
        return is_news

    def note(self, state: BrokerState) -> None:
        """Take note of what is to be said of this broker."""
        self.states[self.name] = state

    def namesake(self, states: Iterable[BrokerState]) -> bool:
        """Whether *states* know another broker of this name."""
        return any(one.name == self.name and one.instance != self.instance for one in states)

    def ring(self, neighbour: str, states: Iterable[BrokerState]) -> set[str]:
        """The brokers that a link to *neighbour*, which knows *states*, would reach twice."""
        theirs = {one.name: one for one in states}
        own = beyond(self.states, self.name, neighbour)
        return own & beyond(theirs, neighbour, self.name)

    def extra_link(self) -> tuple[str, str] | None:
        """Where there is a ring through this broker, the one of its links that must go."""
        edges = {
            edge
            for one in beyond(self.states, self.name, "")
            for edge in (_edge(one, other) for other in _joined(self.states, one))
        }
        for edge in sorted(edges, reverse=True):
            if edge[1] in beyond(self.states, *edge):
                return edge
        return None

    def reached(self) -> list[BrokerState]:
        """All brokers of the tree that have said something, this one first."""
        names = beyond(self.states, self.name, "")
        names.discard(self.name)
        found = [self.name, *sorted(names)]
        return [self.states[one] for one in found if one in self.states]


def beyond(states: Mapping[str, BrokerState], start: str, without: str) -> set[str]:
    """Whom *start* reaches, itself among them, without the link to *without*."""
    reached, fresh, skipped = {start}, [start], _edge(start, without)
    while fresh:
        here = fresh.pop()
        for other in _joined(states, here):
            if _edge(here, other) != skipped and other not in reached:
                reached.add(other)
                fresh.append(other)
    return reached


def _joined(states: Mapping[str, BrokerState], name: str) -> Iterable[str]:
    """Whom *name* is linked with: who denies it is not."""
    found = states.get(name)
    for other in found.neighbours if found is not None else ():
        if other not in states or name in states[other].neighbours:
            yield other


def _edge(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)
