"""What every relation graph does: one interface for G*, G_k and the strict poset.

Rows are subscriptions in the order of their arrival, so that the smaller of two rows is the older.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from stentor.covering.graph.edges import FORWARDED, PASSIVE
from stentor.encoding.columns import Int64, UInt8


class RowChanges(NamedTuple):
    """What a change announces to the neighbours: rows to be forwarded, and to be withdrawn."""

    forward: Int64
    withdraw: Int64

    @classmethod
    def of(cls, sent: Int64) -> RowChanges:
        """The forwarding of *sent*: a row is forwarded, ~row withdrawn."""
        return cls(sent[sent >= 0], ~sent[sent < 0])


class Counters(NamedTuple):
    """Calls of cov_k, and their work: for subscriptions or for unsubscriptions."""

    calls: int
    nodes_visited: int
    points_compared: int
    commands: int


class RelationGraph(ABC):
    """Subscriptions, which of them covers which, and what is forwarded.

    Invariant: whatever is passive has a chain of current coverers up to one that is forwarded.
    """

    @abstractmethod
    def run(self, commands: Int64) -> Int64:
        """Apply *commands* in order; what they send.

        A row subscribes, ~row unsubscribes. Sent is a row to be forwarded or ~row to be withdrawn,
        in the order in which it must happen.
        """

    @property
    @abstractmethod
    def state(self) -> UInt8:
        """GONE, PASSIVE or FORWARDED, for each row."""

    @abstractmethod
    def coverers(self, row: int) -> list[int]:
        """Those known to cover *row*, ascending."""

    @abstractmethod
    def covered(self, row: int) -> list[int]:
        """Those known to be covered by *row*, ascending."""

    @abstractmethod
    def covers(self, one: int, other: int) -> bool:
        """Whether *one* covers *other*, known to the graph or not."""

    @property
    @abstractmethod
    def counters(self) -> tuple[Counters, Counters]:
        """The work of subscriptions, and the work of unsubscriptions."""

    def subscribe(self, row: int) -> RowChanges:
        """Insert *row*."""
        return RowChanges.of(self.run(np.array([row])))

    def unsubscribe(self, row: int) -> RowChanges:
        """Remove *row*; what only it covered is forwarded again."""
        return RowChanges.of(self.run(np.array([~row])))

    def forwarded(self) -> Int64:
        """The current rows that are forwarded."""
        return np.flatnonzero(self.state == FORWARDED)

    def passive(self) -> Int64:
        """The current rows that need not be forwarded."""
        return np.flatnonzero(self.state == PASSIVE)

    def check(self) -> None:
        """Assert what must be true of any relation graph. Cost: every edge is tested."""
        state = self.state
        rows = np.flatnonzero(state).tolist()
        edges = {(row, below) for row in rows for below in self.covered(row)}
        assert len(edges) == sum(len(self.coverers(row)) for row in rows)
        for row in rows:
            coverers = self.coverers(row)
            for coverer in coverers:
                assert coverer != row
                assert state[coverer], f"{coverer} is gone, and covers {row}"
                assert (coverer, row) in edges
                assert self.covers(coverer, row), f"{coverer} does not cover {row}"
                assert coverer < row or not self.covers(row, coverer), "a younger equal one covers"
            if state[row] == PASSIVE:
                assert coverers, f"{row} is passive, and nobody covers it"
        grounded = self._grounded(rows)
        assert grounded.issuperset(rows), "some are passive with nobody forwarded above them"

    def _grounded(self, rows: Iterable[int]) -> set[int]:
        """Those with a chain of coverers up to a forwarded one."""
        waiting = [row for row in rows if self.state[row] == FORWARDED]
        found = set(waiting)
        while waiting:
            fresh = set(self.covered(waiting.pop())) - found
            found |= fresh
            waiting += fresh
        return found


def split_equals(row: int, above: Int64, below: Int64) -> tuple[Int64, Int64]:
    """*above* and *below* of *row*, where of two that cover one another the older stays above."""
    equal = np.intersect1d(above, below)
    younger, older = equal[equal > row], equal[equal < row]
    return np.setdiff1d(above, younger), np.setdiff1d(below, older)
