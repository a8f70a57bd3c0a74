"""What a link is told: everything, or only what covers the rest.

A broker has one policy for each of its links. The policy hears of the interests that came from
everywhere but its own link, and says what to send over it. One set for the whole broker would lose
events: what a neighbour wants must not silence what others want from that neighbour.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from stentor.broker.interest import Interest, Interests
from stentor.covering.relations import Forwarding, Relations
from stentor.errors import SettingsError
from stentor.model import Schema
from stentor.model.record import Move, Record, Subscribe, Unsubscribe


class Policy(ABC):
    """Decides what one link is told.

    Invariant: whatever event matches an interest that was put in matches one that is `told`.
    It may match more: a client's own broker looks at every event again.
    """

    def __init__(self) -> None:
        self.interests: dict[str, Interest] = {}  # all that were put in
        self.told: dict[str, Interest] = {}  # what the neighbour holds, or will when it is greeted

    def put(self, interests: Interests, time: int) -> list[Record]:
        """What to send when *interests* come, or take the place of those of their names."""
        self.interests |= interests.by_name
        return self._sent(self._put(interests), time)

    def drop(self, name: str, time: int) -> list[Record]:
        """What to send when the interest *name* goes."""
        del self.interests[name]
        return self._sent(self._drop(name), time)

    @abstractmethod
    def _put(self, interests: Interests) -> Forwarding:
        """The names to be told anew, and to be withdrawn."""

    @abstractmethod
    def _drop(self, name: str) -> Forwarding:
        """The names to be told anew, and to be withdrawn."""

    def _sent(self, forwarding: Forwarding, time: int) -> list[Record]:
        """The messages of *forwarding*: first what takes over, then what is withdrawn."""
        sent: list[Record] = []
        for name in forwarding.forward:
            interest, before = self.interests[name], self.told.get(name)
            if interest == before:
                continue
            self.told[name] = interest
            at, wanted = interest.subscription.at, interest.subscription.expression
            if before is not None and at and before.subscription.expression == wanted:
                sent.append(Move(name, at, time))
            else:
                sent.append(Subscribe(interest.subscription, time))
        for name in forwarding.withdraw:
            del self.told[name]
            sent.append(Unsubscribe(name, time))
        return sent

    def check(self) -> None:
        """Assert that all that is told was put in, as it stands now."""
        for name, interest in self.told.items():
            assert self.interests[name] == interest


class Flooding(Policy):
    """Everything is told."""

    def _put(self, interests: Interests) -> Forwarding:
        return Forwarding(list(interests.by_name), [])

    def _drop(self, name: str) -> Forwarding:
        return Forwarding([], [name])

    def check(self) -> None:
        super().check()
        assert self.told == self.interests


class Covering(Policy):
    """What another one covers is not told until that one goes."""

    def __init__(self, relations: Relations) -> None:
        super().__init__()
        self._relations = relations

    def _put(self, interests: Interests) -> Forwarding:
        return self._relations.subscribe_batch(list(interests.by_name), interests.columns)

    def _drop(self, name: str) -> Forwarding:
        return self._relations.unsubscribe(name)

    def check(self) -> None:
        super().check()
        self._relations.check()
        assert set(self._relations) == set(self.interests)
        assert self._relations.forwarded() == sorted(self.told)


def policy_of(name: str) -> Callable[[Schema], Policy]:
    """What makes the policy *name*: `none`, `covering`, `covering k=3`, or `poset`."""
    match name.split():
        case ["none"]:
            return lambda schema: Flooding()
        case ["poset"]:
            return lambda schema: Covering(Relations(schema, poset=True))
        case ["covering"]:
            return lambda schema: Covering(Relations(schema))
        case ["covering", k] if k.startswith("k=") and k[2:].isdecimal() and int(k[2:]) >= 1:
            return lambda schema: Covering(Relations(schema, int(k[2:])))
    raise SettingsError(
        f"no policy {name!r}; there are 'none', 'covering', 'covering k=3' and 'poset'"
    )
