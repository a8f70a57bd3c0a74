"""What neighbours say: tables are changed, answered from the live events, and handed on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stentor.broker.interest import AnyInterest, Interest, RangeInterest
from stentor.broker.link import Link
from stentor.broker.messages import Greeting, Want
from stentor.broker.outcome import Outcome
from stentor.broker.routing import Routing
from stentor.broker.tables import Tables
from stentor.broker.telling import Telling
from stentor.errors import SettingsError, StentorError
from stentor.index.mics.space import Space
from stentor.model import Changes
from stentor.model.record import Move, Record, Subscribe, Unsubscribe


class Neighbours:
    """The neighbours of the broker *home*, whose *links* these are."""

    def __init__(
        self,
        home: str,
        space: Space | None,
        links: Mapping[str, Link],
        tables: Tables,
        telling: Telling,
        routing: Routing,
    ) -> None:
        self._home, self._space, self._links = home, space, links
        self._tables, self._telling, self._routing = tables, telling, routing

    def mistake_in(self, source: str, message: Want | Greeting) -> SettingsError | None:
        """Why *message* of *source* is refused; None where it is not."""
        if isinstance(message, Want):
            return self._mistake_in_ranges(source, message)
        if not self._links[source].up:  # what it lacks could not be sent, nor will it greet again
            return SettingsError(
                f"{source} greets {self._home} over a link that is down; `connect` it first"
            )
        if message.space != self._space:
            return SettingsError(
                f"{source} and {self._home} have different spaces; give all brokers the same"
            )
        return None

    def _mistake_in_ranges(self, source: str, want: Want | RangeInterest) -> SettingsError | None:
        """What is wrong with ranges that *source* tells."""
        if self._space is None:
            return SettingsError(
                f"{source} tells {self._home} ranges of a space that it does not have: "
                "give all brokers of an overlay the same `space`"
            )
        last = self._space.partition.curve.last_number
        if not all(0 <= low <= high <= last for low, high in want.ranges):
            return SettingsError(f"{source} tells {self._home} ranges beyond 0 … {last}")
        return None

    def changed(
        self,
        source: str,
        record: Subscribe | Unsubscribe | Move,
        live: Iterable[str],
        time: int,
        outcome: Outcome,
    ) -> None:
        """File a neighbour's change, send it the *live* events that it wants now, hand it on."""
        self._routing.send_live(live, source, time, outcome)
        match record:
            case Unsubscribe(name):
                self.drop(source, name, time, outcome)
                return
            case Subscribe(subscription):
                interest = Interest(subscription.id, subscription)
            case Move(name, at):
                known = self._links[source].wants[name]
                assert isinstance(known, Interest), "the engine knows it, so it is no ranges"
                interest = known.moved(at)
        self._put(source, interest)

    def wanted(self, source: str, want: Want, time: int, outcome: Outcome) -> None:
        """Let the neighbour *source* want ranges, or none, under a name."""
        known = self._links[source].wants.get(want.name)
        if isinstance(known, Interest):
            self._tables.step(source, [Unsubscribe(want.name, time)])
        if want.ranges:
            live = self._tables.events.within(want.ranges)
            self._routing.send_live(live, source, time, outcome)
            self._put(source, RangeInterest(want.name, want.ranges))
        elif known is not None:
            self.drop(source, want.name, time, outcome)

    def greeted(self, source: str, greeting: Greeting, time: int, outcome: Outcome) -> None:
        """Let *source* want what it says now, and send it the live events that it lacks."""
        link = self._links[source]
        link.holds |= greeting.held.intersection(self._tables.events)
        told = {one.name: one for one in greeting.told}
        wanted = self._replace_all(source, told, time, outcome)
        for interest in told.values():
            if link.wants.get(interest.name) != interest:
                self._put(source, interest)
        for name in [name for name in link.wants if name not in told]:
            self.drop(source, name, time, outcome)
        live = (id for id in self._tables.events if id in wanted)
        self._routing.send_live(live, source, time, outcome)

    def _replace_all(
        self, source: str, told: dict[str, AnyInterest], time: int, outcome: Outcome
    ) -> set[str]:
        """Let the engine hold what *source* has *told*, and nothing else of it.

        The live events that it wants; what is refused is taken out of *told*.
        """
        records: list[Record] = [
            Unsubscribe(name, time)
            for name, one in self._links[source].wants.items()
            if isinstance(one, Interest)
        ]
        wanted: set[str] = set()
        mistakes: dict[str, StentorError] = {}
        for name, interest in told.items():
            if isinstance(interest, Interest):
                records.append(Subscribe(interest.subscription, time))
            elif mistake := self._mistake_in_ranges(source, interest):
                mistakes[name] = mistake
            else:
                wanted.update(self._tables.events.within(interest.ranges))
        for record, answer in zip(records, self._tables.step(source, records), strict=True):
            if isinstance(answer, Changes):
                wanted.update(answer.added)
            elif isinstance(record, Subscribe) and isinstance(answer, StentorError):
                mistakes[record.subscription.id] = answer
        for name in mistakes:
            del told[name]
        outcome.answers += mistakes.values()
        return wanted

    def _put(self, source: str, interest: AnyInterest) -> None:
        self._tables.put_neighbour(source, interest)
        self._telling.put(source, interest)

    def drop(self, source: str, name: str, time: int, outcome: Outcome) -> None:
        """Let *source* want nothing under *name*; the engine has been told."""
        self._tables.drop_neighbour(source, name)
        outcome.sent += self._telling.drop(source, name, time)
