"""What a link is announced: everything, only what covers the rest, or ranges that are merged.

A broker has one policy for each of its links. The policy hears of the interests that came from
everywhere but its own link, and says what to send over it. One set for the whole broker would lose
events: what a neighbour wants must not silence what others want from that neighbour.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from stentor._jit import announce_compilation
from stentor.broker.interest import (
    AnyInterest,
    Interest,
    InterestTable,
    Pairs,
    RangeInterest,
    ranges_of,
)
from stentor.broker.messages import AnnounceRanges
from stentor.covering.relations import AnnouncedIds, CoveringTable
from stentor.encoding.columns import UInt8
from stentor.encoding.hilbert.ranges import Ranges
from stentor.errors import SettingsError
from stentor.index.mics import RangeTable
from stentor.index.mics.space import Space
from stentor.model import Schema
from stentor.model.record import Move, Record, Subscribe, Unsubscribe
from stentor.model.values.string import describe

#: What is announced under a name from now on, in the order in which it must be sent; None: nothing.
Announcements = list[tuple[str, AnyInterest | None]]
#: The same where all of it is ranges; none: nothing.
NamedRanges = list[tuple[str, Pairs]]
#: About how many ranges an alternative is announced as, at most.
RANGES: Final = 64


class Policy(ABC):
    """Decides what one link is announced.

    Invariant: whatever event matches one of the interests matches one that is `announced`.
    It may match more: a client's own broker looks at every event again.
    """

    def __init__(self) -> None:
        self.interests: dict[str, AnyInterest] = {}  # all that came
        self.announced: dict[str, AnyInterest] = {}  # what the neighbour has, or will when greeted

    def announce(self, interests: InterestTable, time: int) -> list[Record | AnnounceRanges]:
        """What to send when *interests* come, or one replaces that of its name.

        One that replaces another comes alone: between two messages of a link nothing that is
        wanted may be missing.
        """
        self.interests |= interests.by_name
        return self._messages(self._announce(interests), time)

    def withdraw(self, name: str, time: int) -> list[Record | AnnounceRanges]:
        """What to send when the interest *name* goes."""
        del self.interests[name]
        return self._messages(self._withdraw(name), time)

    @abstractmethod
    def _announce(self, interests: InterestTable) -> Announcements:
        """What changes when *interests* come."""

    @abstractmethod
    def _withdraw(self, name: str) -> Announcements:
        """What changes when *name* goes."""

    def _messages(self, announcements: Announcements, time: int) -> list[Record | AnnounceRanges]:
        found = (self._message(name, interest, time) for name, interest in announcements)
        return [message for message in found if message is not None]

    def _message(
        self, name: str, interest: AnyInterest | None, time: int
    ) -> Record | AnnounceRanges | None:
        """What says that *interest* is announced as *name* now; None where that is known."""
        before = self.announced.pop(name, None)
        if interest is not None:
            self.announced[name] = interest
        if interest == before:
            return None
        match interest, before:
            case RangeInterest(_, ranges), _:
                return AnnounceRanges(name, ranges, time)
            case Interest(subscription=now), Interest(subscription=last) if (
                now.at and now.expression == last.expression
            ):
                return Move(name, now.at, time)
            case Interest(subscription=now), _:
                return Subscribe(now, time)
            case _, RangeInterest():
                return AnnounceRanges(name, (), time)
        return Unsubscribe(name, time)

    def check(self) -> None:
        """Assert what must be true of what is announced."""


class FloodingPolicy(Policy):
    """Everything is announced."""

    def _announce(self, interests: InterestTable) -> Announcements:
        return [*interests.by_name.items()]

    def _withdraw(self, name: str) -> Announcements:
        return [(name, None)]

    def check(self) -> None:
        assert self.announced == self.interests


class TwoPartPolicy(Policy):
    """Ranges are merged; how subscriptions are announced, each policy says by itself."""

    def __init__(self) -> None:
        super().__init__()
        self._ranges = MergedRanges()

    @abstractmethod
    def _announce_exact(self, interests: InterestTable) -> Announcements:
        """What changes when the subscriptions of *interests* come."""

    @abstractmethod
    def _withdraw_exact(self, name: str) -> tuple[Announcements, Announcements]:
        """What takes over when the subscription *name* goes, and then what goes or is narrower."""

    @abstractmethod
    def _is_exact(self, name: str) -> bool:
        """Whether the policy has a subscription under *name*."""

    def _announce(self, interests: InterestTable) -> Announcements:
        announcements: Announcements = []
        if exact := [*interests.exact]:
            announcements += self._announce_exact(interests)
        if ranged := interests.ranged:
            arrays = ranges_of(one.ranges for one in ranged.values())
            announcements += as_ranges(self._ranges.insert([*ranged], arrays))
        other = [name for name in exact if name in self._ranges]
        other += [name for name in ranged if self._is_exact(name)]
        return self._changed_kind(other[0], announcements) if other else announcements

    def _changed_kind(self, name: str, announcements: Announcements) -> Announcements:
        """*announcements*, after what takes over from what *name* was: ranges or a subscription."""
        own: Announcements = [(name, None)]
        then: Announcements = []
        if isinstance(self.interests[name], Interest):
            first = as_ranges(self._ranges.remove(name))
        else:
            first, then = self._withdraw_exact(name)
        first, then = ([one for one in part if one[0] != name] for part in (first, then))
        own = [] if any(one == name for one, _ in announcements) else own
        return first + announcements + own + then

    def _withdraw(self, name: str) -> Announcements:
        if name in self._ranges:
            return as_ranges(self._ranges.remove(name))
        first, then = self._withdraw_exact(name)
        return first + then


class CoveringPolicy(TwoPartPolicy):
    """What another one covers is not announced until that one goes."""

    def __init__(self, relations: CoveringTable) -> None:
        super().__init__()
        announce_compilation("stentor.covering")
        self._relations = relations

    def _announce_exact(self, interests: InterestTable) -> Announcements:
        exact = [*interests.exact]
        first, then = self._forwarded(self._relations.subscribe_batch(exact, interests.columns))
        return first + then

    def _withdraw_exact(self, name: str) -> tuple[Announcements, Announcements]:
        return self._forwarded(self._relations.unsubscribe(name))

    def _is_exact(self, name: str) -> bool:
        return name in self._relations

    def _forwarded(self, forwarding: AnnouncedIds) -> tuple[Announcements, Announcements]:
        """First what takes over, then what is withdrawn."""
        first: Announcements = [(name, self.interests[name]) for name in forwarding.forward]
        return first, [(name, None) for name in forwarding.withdraw]

    def check(self) -> None:
        self._relations.check()
        self._ranges.check()
        assert {*self._relations, *self._ranges} == set(self.interests)
        assert len(self._relations) + len(self._ranges) == len(self.interests)
        exact = {name: self.interests[name] for name in self._relations.forwarded()}
        assert self.announced == exact | dict(as_ranges([*self._ranges.announced.items()]))


class MergedRangesPolicy(Policy):
    """Ranges of the space are announced: those that the union of what was does not cover.

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

    def _announce(self, interests: InterestTable) -> Announcements:
        return as_ranges(self._ranges.insert(*interests.projected(self._most)))

    def _withdraw(self, name: str) -> Announcements:
        return as_ranges(self._ranges.remove(name))

    def check(self) -> None:
        self._ranges.check()
        assert set(self._ranges) == set(self.interests)
        assert self.announced == dict(as_ranges([*self._ranges.announced.items()]))


def as_ranges(ranges: NamedRanges) -> Announcements:
    """What announces *ranges*."""
    return [(name, RangeInterest(name, pairs) if pairs else None) for name, pairs in ranges]


class MergedRanges:
    """Ranges by name, merged, and what was announced of each (MICS, section 4).

    What the union of what was announced covers is not announced until that union shrinks. *gap*
    numbers between two ranges may be filled when they are merged.
    """

    def __init__(self, gap: int = 0) -> None:
        self.announced: dict[str, Pairs] = {}  # of those of whom something was announced
        self._table: RangeTable[int] = RangeTable(gap)
        self._number: dict[str, int] = {}  # of each name, by which the table knows it
        self._name: dict[int, str] = {}
        self._next = 0

    def insert(self, names: list[str], ranges: Ranges) -> NamedRanges:
        """What to announce when *names* come with their *ranges*, or one name is replaced.

        A replaced one comes alone: of two, each might be relied upon by what the other leaves.
        """
        before = [self._number.pop(name) for name in names if name in self._number]
        assert not before or len(names) == 1
        fresh = range(self._next, self._next + len(names))
        self._next += len(names)
        self._number |= dict(zip(names, fresh, strict=True))
        self._name |= dict(zip(fresh, names, strict=True))
        found = self._table.subscribe_all(fresh, ranges)
        if before:
            [own], [number] = fresh, before
            promoted = self._table.unsubscribe(number).promoted
            pairs = found.get(own, []) + promoted.get(own, [])
            others = {other: promoted[other] for other in promoted if other != own}
            return self._others(others) + self._now(self._name.pop(number), pairs)
        return [one for number in found for one in self._now(self._name[number], found[number])]

    def remove(self, name: str) -> NamedRanges:
        """What to announce when *name* goes: first what takes over, then that it has no ranges."""
        number = self._number.pop(name)
        promoted = self._table.unsubscribe(number).promoted
        del self._name[number]
        return self._others(promoted) + self._now(name, [])

    def _others(self, promoted: Mapping[int, list[tuple[int, int]]]) -> NamedRanges:
        """What takes over, beside what was announced of the same names."""
        names = ((self._name[number], pairs) for number, pairs in promoted.items())
        return [
            one
            for name, pairs in names
            for one in self._now(name, [*self.announced.get(name, ()), *pairs])
        ]

    def _now(self, name: str, pairs: list[tuple[int, int]]) -> NamedRanges:
        """Let *pairs* be what is announced of *name*; nothing where they were before."""
        now = tuple(sorted(pairs))
        if now == self.announced.pop(name, ()):
            self.announced |= {name: now} if now else {}
            return []
        if now:
            self.announced[name] = now
        return [(name, now)]

    def meets(self, queries: Ranges) -> UInt8:
        """1 where a range of *queries*, the ranges of events, is in the union (Algorithm 2)."""
        return self._table.meets(queries)

    @property
    def range_count(self) -> int:
        """How many ranges the union has."""
        return self._table.range_count

    def __contains__(self, name: object) -> bool:
        return name in self._number

    def __iter__(self) -> Iterator[str]:
        return iter(self._number)

    def __len__(self) -> int:
        return len(self._number)

    def check(self) -> None:
        """Assert the invariants of the table, and that what is remembered was announced."""
        self._table.check()
        of_table = self._table.announced().items()
        assert {self._name[one]: tuple(sorted(of)) for one, of in of_table} == self.announced
        assert {name: number for number, name in self._name.items()} == self._number


#: What makes a policy for a link of a broker with a schema and a space.
NewPolicy = Callable[[Schema, Space | None], Policy]

_SETTINGS: Final = {
    "covering": {"k": 1},
    "mics": {"gap": 0, "ranges": 1},
    "subsumption": {"steps": 1},
}


def policy_of(name: str) -> NewPolicy:
    """What makes the policy *name*: `none`, `covering k=3`, `subsumption`, `mics gap=16`."""
    kind, *words = str(name).split() or [""]
    least = _SETTINGS.get(kind, {})
    given = dict(word.partition("=")[::2] for word in words)
    values = {key: int(text) for key, text in given.items() if text.isdecimal()}
    if values.keys() != given.keys() or not all(
        values[key] >= least.get(key, values[key] + 1) for key in values
    ):
        kind = ""
    match kind:
        case "none":
            return lambda schema, space: FloodingPolicy()
        case "poset":
            return lambda schema, space: CoveringPolicy(CoveringTable(schema, poset=True))
        case "covering":
            return lambda schema, space: CoveringPolicy(CoveringTable(schema, values.get("k", 1)))
        case "mics":
            return lambda schema, space: MergedRangesPolicy(space, **values)
        case "subsumption":
            from stentor.broker.subsumption import SubsumptionPolicy  # which is a policy itself

            return lambda schema, space: SubsumptionPolicy(schema, **values)
    raise SettingsError(
        f"no policy {describe(name)}; there are 'none', 'covering', 'covering k=3', 'poset', "
        "'subsumption', 'subsumption steps=500', 'mics', and 'mics gap=16 ranges=32'"
    )
