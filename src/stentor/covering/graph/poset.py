"""The strict poset: every covering relation, up to what paths imply."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Protocol

import numpy as np

from stentor.covering.graph.contract import Counters, RelationGraph
from stentor.covering.graph.edges import FORWARDED, GONE, PASSIVE
from stentor.covering.graph.g_k import CoveringGraph
from stentor.encoding.columns import Int64, SubscriptionColumns, UInt8
from stentor.encoding.ragged import take
from stentor.model import Schema


class Relation(Protocol):
    """Rows, and which of them covers which: a `CoveringGraph`, or the lab's graph of points."""

    count: int

    def related(self, row: int, among: Int64) -> tuple[Int64, Int64]: ...

    def covers(self, one: int, other: int) -> bool: ...


class WholeGraph(RelationGraph):
    """What G* and the strict poset share: sets of neighbours over the rows of a *relation*."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation
        self._state = np.zeros(0, np.uint8)
        self._above: dict[int, set[int]] = {}
        self._below: dict[int, set[int]] = {}
        self._calls = self._compared = self._arrived = self._left = 0

    def run(self, commands: Int64) -> Int64:
        sent: list[int] = []
        for command in commands.tolist():
            if command >= 0:
                sent += self._insert(command)
            else:
                sent += self._remove(~command)
        return np.array(sent, np.int64)

    def _insert(self, row: int) -> list[int]:
        among = np.flatnonzero(self.state)
        above, below = (set(rows.tolist()) for rows in self.relation.related(row, among))
        self._calls += 1
        self._compared += len(among)
        self._arrived += 1
        self._above[row], self._below[row] = set(), set()
        self._connect(row, above, below)
        self._state[row] = PASSIVE if above else FORWARDED
        return [] if above else [row]

    def _remove(self, row: int) -> list[int]:
        sent = [~row] if self._state[row] == FORWARDED else []
        self._state[row] = GONE
        self._left += 1
        below = sorted(self._below[row])
        self._disconnect(row)
        del self._above[row], self._below[row]
        for one in below:
            if not self._above[one] and self._state[one] == PASSIVE:
                self._state[one] = FORWARDED
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
    def state(self) -> UInt8:
        if len(self._state) < self.relation.count:
            missing = self.relation.count - len(self._state)
            self._state = np.concatenate((self._state, np.zeros(missing, np.uint8)))
        return self._state

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


class PosetGraph(WholeGraph):
    """The strict poset: an edge only where no other row lies between the two."""

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
        rows = np.flatnonzero(self.state)
        for row in rows.tolist():
            _, below = self.relation.related(row, rows[rows != row])
            assert set(below.tolist()) == self._all_below(row), "a path for every covering"
            for one in self._below[row]:
                others = self._below[row] - {one}
                assert not any(one in self._all_below(other) for other in others), "no short cut"


class CoveringPoset(PosetGraph):
    """The poset of rows of columns whose attributes *schema* knows; each is compared with all."""

    relation: CoveringGraph

    def __init__(self, schema: Schema) -> None:
        super().__init__(CoveringGraph(schema))

    @property
    def count(self) -> int:
        """How many rows there are, GONE ones too."""
        return self.relation.count

    def add(self, columns: SubscriptionColumns) -> Int64:
        """The new rows of *columns*; GONE until they subscribe."""
        return self.relation.add(columns)

    def only(self, rows: Int64) -> CoveringPoset:
        """The same poset of *rows* alone, ascending; all current rows are among them."""
        fresh = CoveringPoset(self.relation.schema)
        fresh.add(take(self.relation.index.columns, rows))
        number = {row: position for position, row in enumerate(rows.tolist())}
        fresh._state = np.array(self.state[rows])
        for mine, theirs in ((self._above, fresh._above), (self._below, fresh._below)):
            for row, others in mine.items():
                theirs[number[row]] = {number[other] for other in others}
        return fresh
