"""Named sets of ranges that are merged: what has to be told of each (MICS, section 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stentor.broker.interest import Pairs
from stentor.encoding.columns import UInt8
from stentor.encoding.hilbert import Ranges
from stentor.index.mics import RangeTable

#: What is told of a name from now on, in the order in which it must be said.
Told = list[tuple[str, Pairs]]


class MergedRanges:
    """Ranges by name, and what was told of each.

    What the union of what was told covers is not told until that union shrinks. *gap* numbers
    between two ranges may be filled when they are merged.
    """

    def __init__(self, gap: int = 0) -> None:
        self.told: dict[str, Pairs] = {}  # of those of whom something was told
        self._table: RangeTable[int] = RangeTable(gap)
        self._number: dict[str, int] = {}  # of each name, by which the table knows it
        self._name: dict[int, str] = {}
        self._next = 0

    def put(self, names: list[str], ranges: Ranges) -> Told:
        """What to tell when *names* come with their *ranges*, or one name is replaced.

        A replaced one comes alone: of two, each might be relied upon by what the other leaves.
        """
        before = [self._number.pop(name) for name in names if name in self._number]
        assert not before or len(names) == 1
        fresh = range(self._next, self._next + len(names))
        self._next += len(names)
        self._number |= dict(zip(names, fresh, strict=True))
        self._name |= dict(zip(fresh, names, strict=True))
        told = self._table.subscribe_all(fresh, ranges)
        if before:
            [own], [number] = fresh, before
            promoted = self._table.unsubscribe(number).promoted
            pairs = told.get(own, []) + promoted.get(own, [])
            others = {other: promoted[other] for other in promoted if other != own}
            return self._others(others) + self._now(self._name.pop(number), pairs)
        return [one for number in told for one in self._now(self._name[number], told[number])]

    def drop(self, name: str) -> Told:
        """What to tell when *name* goes: first what takes over, then that it has no ranges."""
        number = self._number.pop(name)
        promoted = self._table.unsubscribe(number).promoted
        del self._name[number]
        return self._others(promoted) + self._now(name, [])

    def _others(self, promoted: Mapping[int, list[tuple[int, int]]]) -> Told:
        """What takes over, beside what was told of the same names."""
        names = ((self._name[number], pairs) for number, pairs in promoted.items())
        return [
            one
            for name, pairs in names
            for one in self._now(name, [*self.told.get(name, ()), *pairs])
        ]

    def _now(self, name: str, pairs: list[tuple[int, int]]) -> Told:
        """Let *pairs* be what is told of *name*; nothing where they were before."""
        now = tuple(sorted(pairs))
        if now == self.told.pop(name, ()):
            self.told |= {name: now} if now else {}
            return []
        if now:
            self.told[name] = now
        return [(name, now)]

    def meets(self, asked: Ranges) -> UInt8:
        """1 where a range of *asked*, the ranges of events, is in the union (Algorithm 2)."""
        return self._table.meets(asked)

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
        """Assert the invariants of the table, and that what is remembered was told."""
        self._table.check()
        told = {self._name[one]: tuple(sorted(of)) for one, of in self._table.told().items()}
        assert told == self.told
        assert {name: number for number, name in self._name.items()} == self._number
