"""G* and the strict poset: every covering relation, in full or up to what paths imply.

Paper: III.A and the end of III. Both look for all that cover a new subscription and all that it
covers, which is what makes them expensive; nothing has to be looked for when one leaves.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Protocol

import numpy as np

from stentor.covering.graph.contract import Counters, RelationGraph
from stentor.covering.graph.edges import FORWARDED, GONE, PASSIVE
from stentor.encoding.columns import Int64, UInt8


class Relation(Protocol):
    """Rows, and who of them covers whom: `PointGraph` or `MixedGraph`."""

    count: int

    def related(self, row: int, among: Int64) -> tuple[Int64, Int64]: ...

    def covers(self, one: int, other: int) -> bool: ...


class WholeGraph(RelationGraph):
    """What G* and the strict poset share: sets of neighbours over the rows of a *relation*."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation
        self._standing = np.zeros(0, np.uint8)
        self._above: dict[int, set[int]] = {}
        self._below: dict[int, set[int]] = {}
        self._calls = self._compared = self._arrived = self._left = 0

    def run(self, commands: Int64) -> Int64:
        sent: list[int] = []
        for command in commands.tolist():
            if command >= 0:
                sent += self._enter(command)
            else:
                sent += self._leave(~command)
        return np.array(sent, np.int64)

    def _enter(self, row: int) -> list[int]:
        among = np.flatnonzero(self.standing)
        above, below = (set(rows.tolist()) for rows in self.relation.related(row, among))
        self._calls += 1
        self._compared += len(among)
        self._arrived += 1
        self._above[row], self._below[row] = set(), set()
        self._connect(row, above, below)
        self._standing[row] = PASSIVE if above else FORWARDED
        return [] if above else [row]

    def _leave(self, row: int) -> list[int]:
        sent = [~row] if self._standing[row] == FORWARDED else []
        self._standing[row] = GONE
        self._left += 1
        below = sorted(self._below[row])
        self._disconnect(row)
        del self._above[row], self._below[row]
        for one in below:
            if not self._above[one] and self._standing[one] == PASSIVE:
                self._standing[one] = FORWARDED
                sent.append(one)
        return sent

    @abstractmethod
    def _connect(self, row: int, above: set[int], below: set[int]) -> None:
        """Add the edges of *row*, which all of *above* cover and which covers all of *below*."""

    def _disconnect(self, row: int) -> None:
        for one in self._above[row]:
            self._below[one].discard(row)
        for one in self._below[row]:
            self._above[one].discard(row)

    def _link(self, above: Iterable[int], below: Iterable[int]) -> None:
        below = set(below)
        for one in above:
            for other in below:
                self._below[one].add(other)
                self._above[other].add(one)

    @property
    def standing(self) -> UInt8:
        if len(self._standing) < self.relation.count:
            missing = self.relation.count - len(self._standing)
            self._standing = np.concatenate((self._standing, np.zeros(missing, np.uint8)))
        return self._standing

    def coverers(self, row: int) -> list[int]:
        return sorted(self._above.get(row, ()))

    def covered(self, row: int) -> list[int]:
        return sorted(self._below.get(row, ()))

    def covers(self, one: int, other: int) -> bool:
        return self.relation.covers(one, other)

    @property
    def counters(self) -> tuple[Counters, Counters]:
        return (
            Counters(self._calls, 0, self._compared, self._arrived),
            Counters(0, 0, 0, self._left),
        )


class StarGraph(WholeGraph):
    """G*: an edge for every pair of which one covers the other."""

    def _connect(self, row: int, above: set[int], below: set[int]) -> None:
        self._link(above, [row])
        self._link([row], below)

    def check(self) -> None:
        super().check()
        rows = np.flatnonzero(self.standing)
        for row in rows.tolist():
            above, below = self.relation.related(row, rows[rows != row])
            assert above.tolist() == self.coverers(row)
            assert below.tolist() == self.covered(row)


class PosetGraph(WholeGraph):
    """The strict poset: an edge only where nobody stands between the two."""

    def _connect(self, row: int, above: set[int], below: set[int]) -> None:
        nearest_above = {one for one in above if not self._below[one] & above}
        nearest_below = {one for one in below if not self._above[one] & below}
        for one in nearest_above:
            for other in self._below[one] & nearest_below:
                self._below[one].discard(other)
                self._above[other].discard(one)
        self._link(nearest_above, [row])
        self._link([row], nearest_below)

    def _disconnect(self, row: int) -> None:
        above, below = set(self._above[row]), set(self._below[row])
        super()._disconnect(row)
        for one in above:
            reached = self._all_below(one)
            self._link([one], below - reached)

    def _all_below(self, row: int) -> set[int]:
        waiting, found = [row], set[int]()
        while waiting:
            fresh = self._below[waiting.pop()] - found
            found |= fresh
            waiting += fresh
        return found

    def check(self) -> None:
        super().check()
        rows = np.flatnonzero(self.standing)
        for row in rows.tolist():
            _, below = self.relation.related(row, rows[rows != row])
            assert set(below.tolist()) == self._all_below(row), "a path for every covering"
            for one in self._below[row]:
                others = self._below[row] - {one}
                assert not any(one in self._all_below(other) for other in others), "no short cut"
