"""G_k over subscriptions of the whole language, on the arrays of `edges.py`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

import numpy as np

from stentor._jit import inner_kernel, kernel
from stentor.covering.graph.contract import Counters, RelationGraph, split_equals
from stentor.covering.graph.edges import (
    CALLS,
    COMMANDS,
    COUNTERS,
    FORWARDED,
    NODES_VISITED,
    NONE,
    PASSIVE,
    POINTS_COMPARED,
    CommandResult,
    Edges,
    add_edges,
    drop_node,
    new_edges,
    new_result,
)
from stentor.covering.kd_tree.check import check_tree
from stentor.covering.kd_tree.layout import BucketLimits, is_too_deep
from stentor.covering.kd_tree.match import COMPARED, VISITED
from stentor.covering.trie.insert import has_trie_capacity, insert_row, remove_row
from stentor.covering.trie.layout import (
    NO_TREE,
    TrieArrays,
)
from stentor.covering.trie.match import NEEDS_DEFINITION, trie_coverers
from stentor.covering.trie.table import TrieTable
from stentor.covering.trie.tokens import PLAIN
from stentor.encoding.columns import Int64, SubscriptionColumns, UInt8
from stentor.encoding.ragged import take
from stentor.errors import SettingsError
from stentor.index.arena import extended
from stentor.model import Schema

# Why `run_commands` returned.
DONE, NO_CAPACITY, QUESTION = 0, 1, 2
# What `pending` holds: of the orphans of the last unsubscription, the next one and how many.
NEXT, LAST_ORPHAN = 0, 1


@kernel
def run_commands(
    edges: Edges,
    index: TrieArrays,
    plane: bool,
    k: int,
    commands: Int64,
    pending: Int64,
    result: CommandResult,
) -> tuple[int, int, int]:
    """Apply *commands*: a row subscribes, ~row unsubscribes.

    Returns how many were done, how many entries of `sent` they made, and why it stopped. Orphans
    that had no result when it stopped wait in `result.orphans` and come first the next time.
    """
    sent = 0
    number = 0
    while True:
        while pending[NEXT] < pending[LAST_ORPHAN]:
            orphan = result.orphans[pending[NEXT]]
            if sent == len(result.sent):
                return number, sent, NO_CAPACITY
            count = counted_coverers(edges, index, plane, k, orphan, result, COUNTERS)
            if count == NEEDS_DEFINITION:
                return number, sent, QUESTION
            pending[NEXT] += 1
            add_edges(edges, k, orphan, result.found, count)
            if count == 0:
                result.sent[sent] = orphan
                sent += 1
        if number == len(commands):
            return number, sent, DONE
        row = commands[number]
        if sent == len(result.sent):
            return number, sent, NO_CAPACITY
        if row >= 0:
            if not has_trie_capacity(index, plane, row):
                return number, sent, NO_CAPACITY
            count = counted_coverers(edges, index, plane, k, row, result, 0)
            if count == NEEDS_DEFINITION:
                return number, sent, QUESTION
            add_edges(edges, k, row, result.found, count)
            insert_row(index, plane, row)
            if count == 0:
                result.sent[sent] = row
                sent += 1
            result.counters[COMMANDS] += 1
        else:
            if edges.state[~row] == FORWARDED:
                result.sent[sent] = row
                sent += 1
            remove_row(index, ~row)
            pending[NEXT] = 0
            pending[LAST_ORPHAN] = drop_node(edges, k, ~row, result.orphans)
            result.counters[COMMANDS + COUNTERS] += 1
        number += 1


@inner_kernel
def counted_coverers(
    edges: Edges,
    index: TrieArrays,
    plane: bool,
    k: int,
    row: int,
    result: CommandResult,
    counted: int,
) -> int:
    """`trie_coverers`, counted."""
    state = index.matching.state
    walked, nodes, points = index.walk.state[0], state[VISITED], state[COMPARED]
    count = trie_coverers(index, edges, plane, k, row, result.found)
    visited = state[VISITED] - nodes + index.walk.state[0] - walked
    result.counters[counted + NODES_VISITED] += visited
    result.counters[counted + POINTS_COMPARED] += state[COMPARED] - points
    if count != NEEDS_DEFINITION:
        result.counters[counted + CALLS] += 1
    return count


#: The least capacity of `sent`.
SMALLEST_SENT = 1024
#: Buckets of the trees in the groups: what is best for points (docs/papers/covering.md).
LIMITS: Final = BucketLimits(64, 16)


class EdgeTable(RelationGraph):
    """G_k: up to *k* coverers of each subscription, found when it came or lost its last one."""

    def __init__(self, k: int = 1) -> None:
        if k < 1:
            raise SettingsError(f"G_{k} keeps no coverer; take a k of at least 1")
        self.k = k
        self.count = 0
        self.edges = new_edges(k)
        self.result = new_result(k, SMALLEST_SENT, 0)

    def grow(self, rows: int) -> None:
        """Grow by so many rows, all of them GONE."""
        self.count += rows
        edges, k = self.edges, self.k
        size = len(extended(edges.first, self.count))
        self.edges = edges._replace(
            coverer=extended(edges.coverer, size * k, NONE),
            following=extended(edges.following, size * k, NONE),
            before=extended(edges.before, size * k, NONE),
            first=extended(edges.first, size, NONE),
            covered=extended(edges.covered, size),
            coverers=extended(edges.coverers, size),
            state=extended(edges.state, size),
        )
        self.result = self.result._replace(
            orphans=extended(self.result.orphans, size),
            sent=extended(self.result.sent, size + SMALLEST_SENT),
        )

    def run(self, commands: Int64) -> Int64:
        sent: list[Int64] = []
        commands = np.ascontiguousarray(commands, np.int64)
        while len(commands) or self._is_waiting():
            done, count = self._run(commands)
            sent.append(self.result.sent[:count].copy())
            commands = commands[done:]
        return np.concatenate(sent) if sent else np.zeros(0, np.int64)

    @abstractmethod
    def _run(self, commands: Int64) -> tuple[int, int]:
        """Apply as many of *commands* as the capacity allows: how many, and how much they sent.

        Where it does not apply all, it has grown, so that the next call gets further.
        """

    def _is_waiting(self) -> bool:
        """Whether a command that was applied has orphans left."""
        return False

    @property
    def state(self) -> UInt8:
        return self.edges.state[: self.count]

    def coverers(self, row: int) -> list[int]:
        found = self.edges.coverer[row * self.k : (row + 1) * self.k]
        return sorted(found[found != NONE].tolist())

    def covered(self, row: int) -> list[int]:
        found = []
        edge = int(self.edges.first[row])
        while edge != NONE:
            found.append(edge // self.k)
            edge = int(self.edges.following[edge])
        return sorted(found)

    @property
    def counters(self) -> tuple[Counters, Counters]:
        counts = self.result.counters.tolist()
        return Counters(*counts[:COUNTERS]), Counters(*counts[COUNTERS:])

    def check(self) -> None:
        super().check()
        edges, rows = self.edges, range(self.count)
        for row in rows:
            coverers, covered = self.coverers(row), self.covered(row)
            assert len(coverers) == edges.coverers[row] <= self.k
            assert len(covered) == edges.covered[row]
            assert edges.state[row] != FORWARDED or not coverers
            assert edges.state[row] in (PASSIVE, FORWARDED) or not (coverers or covered)


class CoveringGraph(EdgeTable):
    """The relation graph G_k of rows of columns whose attributes *schema* knows."""

    def __init__(self, schema: Schema, k: int = 1, limits: BucketLimits = LIMITS) -> None:
        super().__init__(k)
        self.schema = schema
        self._table = TrieTable(schema, limits)
        self._pending = np.zeros(2, np.int64)  # of the orphans that wait: the next, and how many

    @property
    def index(self) -> TrieArrays:
        """The arrays of the index."""
        return self._table.index

    def add(self, columns: SubscriptionColumns) -> Int64:
        """The new rows of *columns*; GONE until they subscribe."""
        rows = self._table.add(columns)
        self.grow(len(rows))
        return rows

    def reduce(self, rows: Int64, coverers: Int64 | None = None) -> None:
        """Insert *rows*, all of them GONE, at once; only *coverers* among them cover.

        Passive is then whatever another row covers, in whatever order they came; `run` in order
        of arrival would leave forwarded what only a later row covers.
        """
        self._table.insert(rows if coverers is None else coverers)
        self.edges.state[rows] = PASSIVE
        self.result.orphans[: len(rows)] = rows
        self._pending[:] = 0, len(rows)
        self.run(np.zeros(0, np.int64))

    def only(self, rows: Int64) -> CoveringGraph:
        """The same graph of *rows* alone, ascending; all current rows are among them.

        States and edges are copied, not computed again.
        """
        fresh = CoveringGraph(self.schema, self.k, self.index.limits)
        left = fresh.add(take(self.index.columns, rows))
        fresh._table.insert(left)
        number = np.full(self.count + 1, NONE)  # the last position: NONE stays NONE
        number[rows] = left
        locations = np.arange(self.k)
        edges = (rows[:, np.newaxis] * self.k + locations).reshape(-1)
        edge_number = np.full(self.count * self.k + 1, NONE)
        edge_number[edges] = np.arange(len(edges))
        mine, theirs = self.edges, fresh.edges
        count = len(rows)
        theirs.coverer[: count * self.k] = number[mine.coverer[edges]]
        theirs.following[: count * self.k] = edge_number[mine.following[edges]]
        theirs.before[: count * self.k] = edge_number[mine.before[edges]]
        theirs.first[:count] = edge_number[mine.first[rows]]
        for name in ("covered", "coverers", "state"):
            getattr(theirs, name)[:count] = getattr(mine, name)[rows]
        return fresh

    def related(self, row: int, among: Int64) -> tuple[Int64, Int64]:
        """Those *among* the rows that cover *row*, and those that it covers; of equals the older.

        Cost: each of them is compared in both directions.
        """
        above = np.array([one for one in among.tolist() if self.covers(one, row)], np.int64)
        below = np.array([one for one in among.tolist() if self.covers(row, one)], np.int64)
        return split_equals(row, above, below)

    def covers(self, one: int, other: int) -> bool:
        return self._table.covers(one, other)

    def _run(self, commands: Int64) -> tuple[int, int]:
        done, sent, why = run_commands(
            self.edges,
            self.index,
            self.schema.plane,
            self.k,
            commands,
            self._pending,
            self.result,
        )
        if why == QUESTION:
            self._table.answer()
        elif why == NO_CAPACITY:
            self._table.grow()
        if is_too_deep(self.index.forest, self.count):
            self._table.rebuild(np.flatnonzero(self.state))
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
            if self.state[index.row_of[entry]]
        }
        found: list[int] = []
        for node in np.flatnonzero(index.trie.tree[: index.trie.used[0]] != NO_TREE).tolist():
            tree, dims = int(index.trie.tree[node]), int(index.trie.dims[node])
            entries = check_tree(index.forest, tree, dims, index.limits)
            assert (index.node_of[entries] == node).all()
            found += entries
        assert len(found) == len(expected)
        assert set(found) == expected
