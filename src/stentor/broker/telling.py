"""Which links are told of what: each hears, through its policy, of what came from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stentor.broker.interest import AnyInterest, Interests
from stentor.broker.keys import CLIENT
from stentor.broker.link import Link
from stentor.broker.messages import Sent, Want
from stentor.index.mics.space import Space
from stentor.model import Schema
from stentor.model.record import Record


class Telling:
    """Hands what came over one of *links*, or from clients, on to the others.

    What comes waits, so that a batch of it is told together; nothing goes before it.
    """

    def __init__(self, links: Mapping[str, Link], schema: Schema, space: Space | None) -> None:
        self._links, self._schema, self._space = links, schema, space
        self._source = CLIENT  # of what waits
        self._waiting: dict[str, AnyInterest] = {}

    def introduce(self, neighbour: str, interests: Iterable[AnyInterest]) -> None:
        """Let the new policy of *neighbour*, whose link is down, know what is wanted elsewhere."""
        found = Interests(interests, self._schema, self._space)
        if found.by_name:
            self._links[neighbour].policy.put(found, 0)

    def put(self, source: str, interest: AnyInterest) -> None:
        """Let *interest* of *source* stand, soon."""
        assert source == self._source or not self._waiting, "one source at a time"
        self._source = source
        self._waiting[interest.name] = interest

    def drop(self, source: str, name: str, time: int) -> list[Sent]:
        """What to send when all that waits stands, and then *name* of *source* goes."""
        sent = self.settle(time)
        for neighbour, link in self._others(source):
            sent += _over(neighbour, link, link.policy.drop(name, time))
        return sent

    def settle(self, time: int) -> list[Sent]:
        """What to send when all that waits stands.

        New ones are told together, since that only adds; what takes the place of another is told
        by itself, after them.
        """
        if not self._waiting:
            return []
        waiting, self._waiting = self._waiting, {}
        others = self._others(self._source)
        known = others[0][1].policy.interests if others else {}
        fresh = [one for name, one in waiting.items() if name not in known]
        changed = [one for name, one in waiting.items() if known.get(name, one) != one]
        sent: list[Sent] = []
        for batch in (fresh, *([one] for one in changed)):
            interests = Interests(batch, self._schema, self._space)
            for neighbour, link in others if batch else ():
                sent += _over(neighbour, link, link.policy.put(interests, time))
        return sent

    def _others(self, source: str) -> list[tuple[str, Link]]:
        return [(name, link) for name, link in self._links.items() if name != source]


def _over(neighbour: str, link: Link, messages: Iterable[Record | Want]) -> list[Sent]:
    """*messages* to *neighbour*; none while its link is down, since it will be greeted."""
    return [Sent(neighbour, message) for message in messages] if link.up else []
