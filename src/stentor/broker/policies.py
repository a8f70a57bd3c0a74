"""What a link is told: everything, only what covers the rest, or ranges that are merged.

A broker has one policy for each of its links. The policy hears of the interests that came from
everywhere but its own link, and says what to send over it. One set for the whole broker would lose
events: what a neighbour wants must not silence what others want from that neighbour.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from stentor._jit import announce_compilation
from stentor.broker.interest import AnyInterest, Interest, Interests, RangeInterest, ranges_of
from stentor.broker.merging import MergedRanges, Told
from stentor.broker.messages import Want
from stentor.covering.relations import Forwarding, Relations
from stentor.errors import SettingsError
from stentor.index.mics.space import Space
from stentor.model import Schema
from stentor.model.record import Move, Record, Subscribe, Unsubscribe

#: What is told under a name from now on, in the order in which it must be said; None: nothing.
ToTell = list[tuple[str, AnyInterest | None]]
#: About how many ranges an alternative is told as, at most.
RANGES: Final = 64


class Policy(ABC):
    """Decides what one link is told.

    Invariant: whatever event matches an interest that was put in matches one that is `told`.
    It may match more: a client's own broker looks at every event again.
    """

    def __init__(self) -> None:
        self.interests: dict[str, AnyInterest] = {}  # all that were put in
        self.told: dict[str, AnyInterest] = {}  # what the neighbour holds, or will when greeted

    def put(self, interests: Interests, time: int) -> list[Record | Want]:
        """What to send when *interests* come, or one takes the place of that of its name.

        One that replaces another comes alone: between two messages of a link nothing that is
        wanted may be missing.
        """
        self.interests |= interests.by_name
        return self._messages(self._put(interests), time)

    def drop(self, name: str, time: int) -> list[Record | Want]:
        """What to send when the interest *name* goes."""
        del self.interests[name]
        return self._messages(self._drop(name), time)

    @abstractmethod
    def _put(self, interests: Interests) -> ToTell:
        """What is told from now on."""

    @abstractmethod
    def _drop(self, name: str) -> ToTell:
        """What is told from now on."""

    def _messages(self, telling: ToTell, time: int) -> list[Record | Want]:
        found = (self._message(name, interest, time) for name, interest in telling)
        return [message for message in found if message is not None]

    def _message(self, name: str, interest: AnyInterest | None, time: int) -> Record | Want | None:
        """What says that *interest* is told as *name* now; None where that is known."""
        before = self.told.pop(name, None)
        if interest is not None:
            self.told[name] = interest
        if interest == before:
            return None
        match interest, before:
            case RangeInterest(_, ranges), _:
                return Want(name, ranges, time)
            case Interest(subscription=wish), Interest(subscription=last) if (
                wish.at and wish.expression == last.expression
            ):
                return Move(name, wish.at, time)
            case Interest(subscription=wish), _:
                return Subscribe(wish, time)
            case _, RangeInterest():
                return Want(name, (), time)
        return Unsubscribe(name, time)

    def check(self) -> None:
        """Assert what must be true of what is told."""


class Flooding(Policy):
    """Everything is told."""

    def _put(self, interests: Interests) -> ToTell:
        return [*interests.by_name.items()]

    def _drop(self, name: str) -> ToTell:
        return [(name, None)]

    def check(self) -> None:
        assert self.told == self.interests


class Covering(Policy):
    """What another one covers is not told until that one goes; ranges are merged."""

    def __init__(self, relations: Relations) -> None:
        super().__init__()
        announce_compilation("stentor.covering")
        self._relations = relations
        self._ranges = MergedRanges()

    def _put(self, interests: Interests) -> ToTell:
        told: ToTell = []
        if exact := [*interests.exact]:
            told += self._forwarded(self._relations.subscribe_batch(exact, interests.columns))
        if ranged := interests.ranged:
            arrays = ranges_of(one.ranges for one in ranged.values())
            told += _as_ranges(self._ranges.put([*ranged], arrays))
        other = [name for name in exact if name in self._ranges]
        other += [name for name in ranged if name in self._relations]
        return self._changed_kind(other[0], told) if other else told

    def _changed_kind(self, name: str, told: ToTell) -> ToTell:
        """*told*, after what takes over from that which *name* was: ranges, or a subscription."""
        is_exact = isinstance(self.interests[name], Interest)
        taken = self._drop_ranges(name) if is_exact else self._drop_exact(name)
        own = [] if any(one == name for one, _ in told) else [(name, None)]
        return [one for one in taken if one[0] != name] + told + own

    def _drop(self, name: str) -> ToTell:
        return self._drop_ranges(name) if name in self._ranges else self._drop_exact(name)

    def _drop_ranges(self, name: str) -> ToTell:
        return _as_ranges(self._ranges.drop(name))

    def _drop_exact(self, name: str) -> ToTell:
        return self._forwarded(self._relations.unsubscribe(name))

    def _forwarded(self, forwarding: Forwarding) -> ToTell:
        """First what takes over, then what is withdrawn."""
        told: ToTell = [(name, self.interests[name]) for name in forwarding.forward]
        return told + [(name, None) for name in forwarding.withdraw]

    def check(self) -> None:
        self._relations.check()
        self._ranges.check()
        assert {*self._relations, *self._ranges} == set(self.interests)
        assert len(self._relations) + len(self._ranges) == len(self.interests)
        exact = {name: self.interests[name] for name in self._relations.forwarded()}
        assert self.told == exact | dict(_as_ranges([*self._ranges.told.items()]))


class Merging(Policy):
    """Ranges of the space are told: those that the union of what was told does not cover.

    Covering, subsumption and merging at once (MICS, Algorithm 1). Projection onto the dimensions of
    the space and whole cells let the neighbour send too much, never too little.
    """

    def __init__(self, space: Space | None, gap: int = 0, ranges: int = RANGES) -> None:
        super().__init__()
        if space is None:
            raise SettingsError(
                "the policy 'mics' needs the space that all brokers share: give `space`"
            )
        announce_compilation("stentor.index.mics")
        self._most = ranges
        self._ranges = MergedRanges(gap)

    def _put(self, interests: Interests) -> ToTell:
        return _as_ranges(self._ranges.put(*interests.projected(self._most)))

    def _drop(self, name: str) -> ToTell:
        return _as_ranges(self._ranges.drop(name))

    def check(self) -> None:
        self._ranges.check()
        assert set(self._ranges) == set(self.interests)
        assert self.told == dict(_as_ranges([*self._ranges.told.items()]))


def _as_ranges(told: Told) -> ToTell:
    return [(name, RangeInterest(name, pairs) if pairs else None) for name, pairs in told]


#: What makes a policy for a link of a broker with a schema and a space.
NewPolicy = Callable[[Schema, Space | None], Policy]

_SETTINGS: Final = {"covering": {"k": 1}, "mics": {"gap": 0, "ranges": 1}}


def policy_of(name: str) -> NewPolicy:
    """What makes the policy *name*: `none`, `covering`, `covering k=3`, `poset`, `mics gap=16`."""
    kind, *words = name.split() or [""]
    least = _SETTINGS.get(kind, {})
    given = dict(word.partition("=")[::2] for word in words)
    values = {key: int(text) for key, text in given.items() if text.isdecimal()}
    if values.keys() != given.keys() or not all(
        values[key] >= least.get(key, values[key] + 1) for key in values
    ):
        kind = ""
    match kind:
        case "none":
            return lambda schema, space: Flooding()
        case "poset":
            return lambda schema, space: Covering(Relations(schema, poset=True))
        case "covering":
            return lambda schema, space: Covering(Relations(schema, values.get("k", 1)))
        case "mics":
            return lambda schema, space: Merging(space, **values)
    raise SettingsError(
        f"no policy {name!r}; there are 'none', 'covering', 'covering k=3', 'poset', 'mics', "
        "and 'mics gap=16 ranges=32'"
    )
