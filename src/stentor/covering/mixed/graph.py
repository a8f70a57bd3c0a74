"""G_k over subscriptions of the whole language."""

from __future__ import annotations

from typing import Final

import numpy as np

from stentor.covering.dominance.check import check_tree
from stentor.covering.dominance.forest import Limits
from stentor.covering.dominance.growing import is_too_deep
from stentor.covering.graph.contract import split_equals
from stentor.covering.graph.edge_table import EdgeTable
from stentor.covering.graph.edges import NONE, PASSIVE
from stentor.covering.mixed.commands import NO_ROOM, QUESTION, run_mixed
from stentor.covering.mixed.layout import MixedIndex
from stentor.covering.mixed.table import MixedTable
from stentor.covering.mixed.tokens import PLAIN
from stentor.covering.mixed.trie import NO_TREE
from stentor.encoding.columns import Int64, SubscriptionColumns
from stentor.encoding.ragged import take
from stentor.model import Schema

#: Buckets of the trees in the groups: what is best for points (docs/papers/covering.md).
LIMITS: Final = Limits(64, 16)


class MixedGraph(EdgeTable):
    """The relation graph G_k of rows of columns whose attributes *schema* knows."""

    def __init__(self, schema: Schema, k: int = 1, limits: Limits = LIMITS) -> None:
        super().__init__(k)
        self.schema = schema
        self._table = MixedTable(schema, limits)
        self._pending = np.zeros(2, np.int64)  # of the orphans that wait: the next, and how many

    @property
    def index(self) -> MixedIndex:
        """The arrays of the index."""
        return self._table.index

    def add(self, columns: SubscriptionColumns) -> Int64:
        """The rows of *columns*, which do not stand yet."""
        rows = self._table.add(columns)
        self.grow(len(rows))
        return rows

    def reduce(self, rows: Int64) -> None:
        """Let *rows*, none of which stands, stand all at once.

        Passive is then whatever another one covers, whenever it came; `run` in order of arrival
        would leave forwarded what only a later one covers.
        """
        self._table.enter(rows)
        self.edges.standing[rows] = PASSIVE
        self.outcome.orphans[: len(rows)] = rows
        self._pending[:] = 0, len(rows)
        self.run(np.zeros(0, np.int64))

    def only(self, rows: Int64) -> MixedGraph:
        """The same graph without the rows that are not among *rows*, ascending; all that stand are.

        What is forwarded stays so, and so does every edge: they are carried over, not looked for.
        """
        fresh = MixedGraph(self.schema, self.k, self.index.limits)
        left = fresh.add(take(self.index.columns, rows))
        fresh._table.enter(left)
        number = np.full(self.count + 1, NONE)  # the last place: NONE stays NONE
        number[rows] = left
        places = np.arange(self.k)
        edges = (rows[:, np.newaxis] * self.k + places).reshape(-1)
        edge_number = np.full(self.count * self.k + 1, NONE)
        edge_number[edges] = np.arange(len(edges))
        mine, theirs = self.edges, fresh.edges
        count = len(rows)
        theirs.coverer[: count * self.k] = number[mine.coverer[edges]]
        theirs.following[: count * self.k] = edge_number[mine.following[edges]]
        theirs.before[: count * self.k] = edge_number[mine.before[edges]]
        theirs.first[:count] = edge_number[mine.first[rows]]
        for name in ("covered", "coverers", "standing"):
            getattr(theirs, name)[:count] = getattr(mine, name)[rows]
        return fresh

    def related(self, row: int, among: Int64) -> tuple[Int64, Int64]:
        """Those *among* the rows that cover *row*, and those that it covers; of equals the older.

        Cost: each of them is compared both ways.
        """
        above = np.array([one for one in among.tolist() if self.covers(one, row)], np.int64)
        below = np.array([one for one in among.tolist() if self.covers(row, one)], np.int64)
        return split_equals(row, above, below)

    def covers(self, one: int, other: int) -> bool:
        return self._table.covers(one, other)

    def _run(self, commands: Int64) -> tuple[int, int]:
        done, sent, why = run_mixed(
            self.edges,
            self.index,
            self.schema.plane,
            self.k,
            commands,
            self._pending,
            self.outcome,
        )
        if why == QUESTION:
            self._table.answer()
        elif why == NO_ROOM:
            self._table.make_room()
        if is_too_deep(self.index.forest, self.count):
            self._table.start_anew(np.flatnonzero(self.standing))
        return done, sent

    def _is_waiting(self) -> bool:
        return bool(self._pending[0] < self._pending[1])

    def check(self) -> None:
        super().check()
        index = self.index
        expected = {
            entry
            for alternative in np.flatnonzero(index.states == PLAIN).tolist()
            if alternative + 1 < len(index.columns.predicate_start)
            for entry in range(*index.entry_start[alternative : alternative + 2].tolist())
            if self.standing[index.row_of[entry]]
        }
        found: list[int] = []
        for node in np.flatnonzero(index.trie.tree[: index.trie.used[0]] != NO_TREE).tolist():
            tree, dims = int(index.trie.tree[node]), int(index.trie.dims[node])
            held = check_tree(index.forest, tree, dims, index.limits)
            assert (index.node_of[held] == node).all()
            found += held
        assert len(found) == len(expected)
        assert set(found) == expected
