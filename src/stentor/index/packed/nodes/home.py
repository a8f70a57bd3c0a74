"""The nodes as a home."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from stentor._jit import direct
from stentor.encoding.columns import (
    EventColumns,
    Int64,
    SubscriptionColumns,
    all_read_only,
    event_count,
)
from stentor.index.packed.homes import Found, HomeArrays
from stentor.index.packed.lists.layout import ListAxes
from stentor.index.packed.nodes.best import BestFound, best_scratch
from stentor.index.packed.nodes.build import NodeTree, build_nodes
from stentor.index.packed.nodes.check import check_nodes
from stentor.index.packed.nodes.layout import FIELDS, HEIGHT, NodeArrays, NodeScratch, scratch_of
from stentor.index.packed.nodes.match import match_nodes
from stentor.index.packed.nodes.top import BestInputs, top_nodes
from stentor.model import Scoring

_match_one = direct(match_nodes)


class Nodes:
    """Alternatives in leaves of 32 lanes below the attribute that they go by; read-only.

    What is removed stays until the nodes are built anew: the index knows that it is gone.
    """

    name = "nodes"

    def __init__(self, tree: NodeTree) -> None:
        self.tree = tree
        self._scratches: list[NodeScratch] = []
        self._one = self._scratch()

    @classmethod
    def build(cls, columns: SubscriptionColumns, alternatives: Int64) -> Self:
        """Cost: about 2 µs for each."""
        return cls(build_nodes(columns, alternatives))

    @property
    def count(self) -> int:
        return len(self.tree.nodes.alternative)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for bundle in self.tree for array in bundle)

    def match(self, events: EventColumns, found: Found) -> int:
        scratch = self._borrow()
        count = match_nodes(*self.tree, events, scratch, found)
        self._scratches.append(scratch)
        return count

    def match_one(self, events: EventColumns, found: Found) -> int:
        return _match_one(*self.tree, events, self._one, found)

    def top(
        self, inputs: BestInputs, k: int, scoring: Scoring, starts: Int64, known: BestFound
    ) -> BestFound:
        """Rows that may be among the *k* best of each event, beside those that are *known*.

        *starts* has where those of each event begin among the *known*.
        """
        nodes, columns = self.tree.nodes, inputs.columns
        rows = 0 if inputs.holding.is_single else len(columns.alternative_start) - 1
        scratch = self._borrow()
        best = best_scratch(k, len(nodes.head) // FIELDS, len(self.tree.axes.is_exact), rows)
        capacity, count = 0, (4 * k + 32) * max(1, event_count(inputs.events))
        while count > capacity:
            capacity = count
            found = BestFound(
                np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity)
            )
            count = top_nodes(*self.tree, inputs, int(scoring), starts, known, scratch, best, found)
        self._scratches.append(scratch)
        return BestFound(found.event[:count], found.row[:count], found.score[:count])

    def _borrow(self) -> NodeScratch:
        """Scratch that no other thread has."""
        return self._scratches.pop() if self._scratches else self._scratch()

    def _scratch(self) -> NodeScratch:
        return scratch_of(len(self.tree.axes.is_exact), len(self.tree.nodes.head) // FIELDS)

    def remove(self, alternatives: Int64) -> None:
        """Nothing: what is gone is passed over when it is found."""

    def move(self, columns: SubscriptionColumns, alternatives: Int64) -> Int64:
        """None of *alternatives*: nodes are not changed, and by themselves hold nothing that moves.

        What is around a subscriber is never proved here: by its old bounds it is a candidate.
        """
        return alternatives[:0]

    def arrays(self) -> HomeArrays:
        named: HomeArrays = {}
        for bundle in self.tree:
            named.update(bundle._asdict())
        return named

    @classmethod
    def over(cls, arrays: HomeArrays) -> Self:
        axes, nodes = (
            all_read_only(kind(*(arrays[name] for name in kind._fields)))
            for kind in (ListAxes, NodeArrays)
        )
        made: Any = NodeTree
        return cls(made(axes, nodes))

    def stats(self) -> dict[str, Any]:
        nodes = self.tree.nodes
        leaves = int(np.count_nonzero(nodes.head.reshape(-1, FIELDS)[:, HEIGHT] == 0))
        return {
            "alternatives": self.count,
            "leaves": leaves,
            "nodes": len(nodes.head) // FIELDS,
            "dictionaries": len(nodes.slot_start) - 1,
            "axes": len(self.tree.axes.is_exact) - 1,
            "bytes": self.nbytes,
        }

    def check(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        check_nodes(self.tree, columns, alternatives)
