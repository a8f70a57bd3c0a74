"""What a broker knows of a neighbour, and which links are announced what.

Each link hears, through its policy, of what came from elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from stentor.broker.interest import (
    CLIENT,
    AnyInterest,
    InterestTable,
    Names,
    RangeInterest,
    ranges_of,
)
from stentor.broker.messages import AnnounceRanges, GoneEvent, LinkGreeting, Outgoing
from stentor.broker.policies import MergedRanges, Policy
from stentor.errors import SettingsError
from stentor.index.mics.space import Space
from stentor.model import Event, Schema
from stentor.model.record import Record
from stentor.model.schema import AttributeUse


class Link:
    """A neighbour: what it wants, what it was announced, which live events it is known to have."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.interests: dict[str, AnyInterest] = {}  # the subscription table of this neighbour
        self.ranges = MergedRanges()  # of those that are ranges
        self.live_ids: set[str] = set()  # live events that went or came over this link
        self.forwards: deque[Event] = deque()  # events that are not live, on their way over it
        self.up = False

    def insert(self, interest: AnyInterest) -> None:
        """Let the neighbour want *interest* instead of what it wanted under that name."""
        name = interest.name
        self.interests[name] = interest
        if isinstance(interest, RangeInterest):
            self.ranges.insert([name], ranges_of([interest.ranges]))
        elif name in self.ranges:
            self.ranges.remove(name)

    def remove(self, name: str) -> None:
        """Let the neighbour want nothing under *name*."""
        if isinstance(self.interests.pop(name), RangeInterest):
            self.ranges.remove(name)

    def greeting(
        self,
        live_ids: frozenset[str],
        time: int,
        space: Space | None,
        learned: tuple[AttributeUse, ...],
        versions: Mapping[str, int],
        gone: tuple[GoneEvent, ...],
    ) -> LinkGreeting:
        """What to say when the link comes up; until the neighbour says so it has nothing live."""
        self.up = True
        self.live_ids.clear()
        announced = tuple(self.policy.announced.values())
        held = tuple(versions.items())
        return LinkGreeting(announced, live_ids, time, space, learned, held, gone)

    def greeting_error(
        self, home: str, neighbour: str, space: Space | None, greeting: LinkGreeting
    ) -> SettingsError | None:
        """Why *home* refuses *greeting* of its *neighbour*; None where it does not."""
        if not self.up:  # what it lacks could not be sent, nor will it greet again
            return SettingsError(
                f"{neighbour} greets {home} over a link that is down; `connect` it first"
            )
        if greeting.space != space:
            return SettingsError(
                f"{neighbour} and {home} have different spaces; give all brokers the same"
            )
        return None

    def check(self) -> None:
        """Assert that the ranges are those of the interests, and what the policy asserts."""
        self.policy.check()
        self.ranges.check()
        ranged = {name for name, one in self.interests.items() if isinstance(one, RangeInterest)}
        assert set(self.ranges) == ranged


class Announcer:
    """Announces what came over one of *links*, or from clients, over the others.

    What comes waits, so that a batch of it is announced together; nothing goes before it.
    """

    def __init__(
        self, links: Mapping[str, Link], names: Names, schema: Schema, space: Space | None
    ) -> None:
        self._links, self._names, self._schema, self._space = links, names, schema, space
        self._source = CLIENT  # of what waits
        self._waiting: dict[str, AnyInterest] = {}

    def introduce(self, neighbour: str, interests: Iterable[AnyInterest]) -> None:
        """Let the new policy of *neighbour*, whose link is down, know what is wanted elsewhere."""
        found = InterestTable(interests, self._schema, self._space)
        if found.by_name:
            self._links[neighbour].policy.announce(found, 0)

    def announce(self, source: str, interest: AnyInterest) -> None:
        """Announce *interest* of *source*, with the next flush."""
        assert source == self._source or not self._waiting, "one source at a time"
        self._source = source
        name = self._names.of(source, interest.name)
        self._waiting[name] = interest.renamed(name)

    def withdraw(self, source: str, name: str, time: int) -> list[Outgoing]:
        """What to send when all that waits is announced, and then *name* of *source* goes."""
        sent = self.flush(time)
        announced = self._names.free(source, name)
        for neighbour, link in self._others(source):
            sent += _over(neighbour, link, link.policy.withdraw(announced, time))
        return sent

    def flush(self, time: int) -> list[Outgoing]:
        """What to send when all that waits is announced.

        New interests are announced together, since that only adds; one that replaces another is
        announced by itself, after them.
        """
        if not self._waiting:
            return []
        waiting, self._waiting = self._waiting, {}
        others = self._others(self._source)
        known = others[0][1].policy.interests if others else {}
        fresh = [one for name, one in waiting.items() if name not in known]
        changed = [one for name, one in waiting.items() if known.get(name, one) != one]
        sent: list[Outgoing] = []
        for batch in (fresh, *([one] for one in changed)):
            interests = InterestTable(batch, self._schema, self._space)
            for neighbour, link in others if batch else ():
                sent += _over(neighbour, link, link.policy.announce(interests, time))
        return sent

    def _others(self, source: str) -> list[tuple[str, Link]]:
        return [(name, link) for name, link in self._links.items() if name != source]


def _over(
    neighbour: str, link: Link, messages: Iterable[Record | AnnounceRanges]
) -> list[Outgoing]:
    """*messages* to *neighbour*; none while its link is down, since it will be greeted."""
    return [Outgoing(neighbour, message) for message in messages] if link.up else []
