"""The BE-Tree: expressions parted by attribute, and clustered by halving its domain.

A c-node has a leaf of expressions; where it overflows, the attribute that most of them ask for
becomes a p-node, whose directory of halves takes those that ask for it. An expression goes to the
smallest half that holds its interval. Halves are rigid: they do not follow the data.

Paper: Sadoghi, Jacobsen: BE-Tree, an index structure to efficiently match Boolean expressions over
high-dimensional discrete space (2011), as compared with in BE*-Tree, section VII.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel
from stentor.encoding.columns import EventColumns, Float64, Int64, UInt64, event_count
from stentor_lab.baselines.dimensions import AXES, bounded, cell_in, domains, event_bounds
from stentor_lab.baselines.entry_lists import (
    NOT_THERE,
    Entries,
    EntryLists,
    ListArrays,
    find_list,
    mixed,
)
from stentor_lab.baselines.rival import Rival

#: Expressions of a leaf before it is parted, and halvings of a domain, at most.
LEAF, DEEPEST = 5, 28
#: Nodes on the way that are still to be visited.
STACK: Final = 1 << 16
#: Halves that the range of an event is looked up in, at most.
MOST_CELLS: Final = 4096
_LEAF, _PARTS = np.uint64(8), np.uint64(9)
_ROOT: Final = 0


class Halves(NamedTuple):
    """The domains that are halved."""

    low: Float64
    high: Float64


class BeTree(Rival):
    """Nodes in Python's order of insertion, lists in Numba: built by levels, matched by a walk."""

    name = "be_tree"

    def __init__(self) -> None:
        super().__init__()
        self._choose(np.zeros(0, np.int64))

    def _choose(self, alternatives: Int64) -> None:
        columns = self.subscriptions.columns
        self._lists = EntryLists(bare=True)
        self._leaves: dict[int, list[int]] = {_ROOT: []}
        self._used: dict[int, frozenset[int]] = {_ROOT: frozenset()}  # attributes above a node
        self._parted: dict[int, dict[int, int]] = {}  # node → dimension → expressions so far
        self._nodes: dict[tuple[int, int, int, int], int] = {}
        self._asked: dict[int, list[tuple[int, int, int]]] = {}
        self._home: dict[int, int] = {}
        found = bounded(columns, alternatives, locations=False)
        count = AXES * (int(columns.attribute.max(initial=0)) + 1)
        self._halves = Halves(*domains(found, count))

    def _insert(self, alternatives: Int64) -> None:
        found = bounded(self.subscriptions.columns, alternatives, locations=False)
        starts = np.searchsorted(found.of, np.arange(len(alternatives) + 1))
        dimensions = found.dimension.tolist()
        cells = self._cells(found.dimension, found.low, found.high)
        touched: set[int] = set()
        self._fresh_parts: list[tuple[int, int, int, int]] = []
        for position, alternative in enumerate(alternatives.tolist()):
            own = slice(starts[position], starts[position + 1])
            asked = [
                (dimension, level, cell)
                for dimension, (level, cell) in zip(dimensions[own], cells[own], strict=True)
            ]
            touched |= self._put(alternative, asked)
        self._write(touched)

    def _cells(self, dimension: Int64, low: Float64, high: Float64) -> list[tuple[int, int]]:
        """The smallest half that holds each interval: its level, and its number there."""
        level, cell = np.zeros(len(low), np.int64), np.zeros(len(low), np.int64)
        smallest_halves(dimension, low, high, self._halves, level, cell)
        return list(zip(level.tolist(), cell.tolist(), strict=True))

    def _put(self, alternative: int, asked: list[tuple[int, int, int]]) -> set[int]:
        """Put *alternative* where it belongs; the leaves that have changed."""
        node = _ROOT
        while True:
            parts = self._parted.get(node, {})
            choice = max(
                (one for one in asked if one[0] in parts and one[0] not in self._used[node]),
                key=lambda one: parts[one[0]],
                default=None,
            )
            if choice is None:
                break
            parts[choice[0]] += 1
            node = self._child(node, *choice)
        self._leaves[node].append(alternative)
        self._home[alternative] = node
        self._asked[alternative] = asked
        return {node} | self._part(node)

    def _child(self, node: int, dimension: int, level: int, cell: int) -> int:
        key = node, dimension, level, cell
        child = self._nodes.get(key)
        if child is None:
            child = self._nodes[key] = len(self._leaves)
            self._leaves[child] = []
            self._used[child] = self._used[node] | {dimension}
            self._fresh_parts.append((node, dimension, level, cell))
        return child

    def _part(self, node: int) -> set[int]:
        """Part an overflowing leaf by the attribute that most of it ask for."""
        leaf = self._leaves[node]
        if len(leaf) <= LEAF or (len(leaf) & (len(leaf) - 1) and len(leaf) > 4 * LEAF):
            return set()
        counts: dict[int, int] = {}
        for one in leaf:
            for dimension, _, _ in self._asked[one]:
                if dimension not in self._used[node]:
                    counts[dimension] = counts.get(dimension, 0) + 1
        parts = self._parted.setdefault(node, {})
        fresh = {one: count for one, count in counts.items() if one not in parts}
        if not fresh:
            return set()
        chosen = max(fresh, key=lambda one: fresh[one])
        parts[chosen] = 0
        staying, touched = [], set()
        for one in leaf:
            mine = next((some for some in self._asked[one] if some[0] == chosen), None)
            if mine is None:
                staying.append(one)
                continue
            parts[chosen] += 1
            child = self._child(node, *mine)
            self._leaves[child].append(one)
            self._home[one] = child
            touched.add(child)
        self._leaves[node] = staying
        for child in list(touched):
            touched |= self._part(child)
        return touched | {node}

    def _write(self, touched: set[int]) -> None:
        """Write leaves that have changed, and new nodes, into the lists."""
        nothing = np.zeros(0, np.uint64), np.zeros(0, np.float32)
        nodes = np.array(sorted(touched), np.int64)
        keys = np.empty(len(nodes), np.uint64)
        leaf_keys(nodes, keys)
        clear_lists(self._lists.arrays, keys)
        sizes = [len(self._leaves[node]) for node in nodes.tolist()]
        items = np.array([one for node in nodes.tolist() for one in self._leaves[node]], np.int64)
        self._lists.add(Entries(np.repeat(keys, sizes), items, *nothing))
        if self._fresh_parts:
            node, dimension, level, cell = np.array(self._fresh_parts, np.int64).T
            part, half = np.empty((2, len(node)), np.uint64)
            of = [np.ascontiguousarray(one) for one in (node, dimension, level, cell)]
            part_keys(of[0], of[1], of[2], of[3], part, half)
            child = np.array([self._nodes[one] for one in self._fresh_parts], np.int64)
            # Beside each dimension of a node stands which levels there are.
            pairs = np.unique(np.stack((part, level.astype(np.uint64))), axis=1)
            part, level = np.ascontiguousarray(pairs[0]), pairs[1].astype(np.int64)
            known = np.zeros(len(part), np.uint8)
            mark_new(self._lists.arrays, part, level, known)
            fresh = known != 0
            self._lists.add(Entries(np.ascontiguousarray(half), child, *nothing))
            self._lists.add(Entries(part[fresh], level[fresh], *nothing))
            self._fresh_parts = []

    def _remove(self, alternatives: Int64) -> None:
        touched = set()
        for one in alternatives.tolist():
            node = self._home.pop(one, None)
            if node is not None:
                self._leaves[node].remove(one)
                touched.add(node)
        self._fresh_parts = []
        if touched:
            self._write(touched)

    def _find(self, events: EventColumns, event: Int64, alternative: Int64) -> int:
        return self._walked(events, event, alternative)[0]

    def _walked(self, events: EventColumns, event: Int64, alternative: Int64) -> tuple[int, int]:
        looked, stack = np.zeros(1, np.int64), np.empty(STACK, np.int64)
        count = len(self.subscriptions.columns.predicate_start) - 1
        found = walk_halves(
            self._lists.arrays, self._halves, count, events, stack, looked, event, alternative
        )
        return found, int(looked[0])

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        return {**inherited, "bytes": inherited["bytes"] + self._lists.nbytes}

    def counted_work(self, events: EventColumns) -> dict[str, float]:
        nothing = np.zeros(0, np.int64)
        looked = self._walked(events, nothing, nothing)[1]
        return {**super().counted_work(events), "nodes/event": looked / max(1, event_count(events))}


@kernel
def smallest_halves(
    dimension: Int64, low: Float64, high: Float64, halves: Halves, level: Int64, cell: Int64
) -> None:
    """The deepest level at which an interval lies in one cell, and the cell."""
    for one in range(len(low)):
        if dimension[one] >= len(halves.low):
            continue
        least, most = halves.low[dimension[one]], halves.high[dimension[one]]
        for depth in range(1, DEEPEST + 1):
            first = cell_in(low[one], least, most, 1 << depth)
            if first != cell_in(high[one], least, most, 1 << depth):
                break
            level[one], cell[one] = depth, first


@inner_kernel
def half_key(node: int, dimension: int, level: int, cell: int) -> np.uint64:
    """The key of the node below a half."""
    return mixed(
        mixed(np.uint64(node) * np.uint64(32) + np.uint64(level + 1), np.uint64(dimension)),
        np.uint64(cell),
    )


@inner_kernel
def part_key(node: int, dimension: int) -> np.uint64:
    """The key of a p-node."""
    return mixed(
        np.uint64(node) * np.uint64(16) + _PARTS, np.uint64(dimension) + np.uint64(1 << 40)
    )


@inner_kernel
def leaf_key(node: int) -> np.uint64:
    """The key of a leaf."""
    return mixed(np.uint64(node) * np.uint64(16) + _LEAF, np.uint64(1 << 50))


@kernel
def leaf_keys(node: Int64, key: UInt64) -> None:
    """`leaf_key` of each."""
    for one in range(len(key)):
        key[one] = leaf_key(node[one])


@kernel
def part_keys(
    node: Int64, dimension: Int64, level: Int64, cell: Int64, part: UInt64, half: UInt64
) -> None:
    """`part_key` and `half_key` of each."""
    for one in range(len(node)):
        part[one] = part_key(node[one], dimension[one])
        half[one] = half_key(node[one], dimension[one], level[one], cell[one])


@kernel
def clear_lists(lists: ListArrays, key: UInt64) -> None:
    """Empty the list of each key."""
    for one in range(len(key)):
        which = find_list(lists, key[one])
        if which != NOT_THERE:
            lists.used[which] = 0


@kernel
def mark_new(lists: ListArrays, part: UInt64, level: Int64, is_new: np.ndarray[Any, Any]) -> None:
    """1 where a p-node has no half of the level yet; none comes twice."""
    for one in range(len(part)):
        is_new[one] = 1
        which = find_list(lists, part[one])
        if which != NOT_THERE:
            start = lists.start[which]
            for entry in range(start, start + lists.used[which]):
                if lists.item[entry] == level[one]:
                    is_new[one] = 0


@kernel
def walk_halves(
    lists: ListArrays,
    halves: Halves,
    alternatives: int,
    events: EventColumns,
    stack: Int64,
    looked: Int64,
    event: Int64,
    alternative: Int64,
) -> int:
    """Pairs that may match; those that do not fit are only counted."""
    found = 0
    for one in range(len(events.until)):
        depth, stack[0], is_wide, first_found = 1, _ROOT, False, found
        while depth > 0:
            depth -= 1
            node = stack[depth]
            looked[0] += 1
            which = find_list(lists, leaf_key(node))
            if which != NOT_THERE:
                start = lists.start[which]
                for entry in range(start, start + lists.used[which]):
                    if found < len(event):
                        event[found], alternative[found] = one, lists.item[entry]
                    found += 1
            for value in range(events.value_start[one], events.value_start[one + 1]):
                dimension = events.attribute[value] * AXES
                which = find_list(lists, part_key(node, dimension))
                if which == NOT_THERE:
                    continue
                low, high = event_bounds(events, value, 0)
                start = lists.start[which]
                for entry in range(start, start + lists.used[which]):
                    level = lists.item[entry]
                    least, most = 0.0, 1.0
                    if dimension < len(halves.low):
                        least, most = halves.low[dimension], halves.high[dimension]
                    first = cell_in(low, least, most, 1 << level)
                    last = cell_in(high, least, most, 1 << level)
                    if dimension >= len(halves.low):
                        first = last = 0
                    if last - first > MOST_CELLS:
                        is_wide, first, last = True, 0, -1
                    for cell in range(first, last + 1):
                        below = find_list(lists, half_key(node, dimension, level, cell))
                        if below == NOT_THERE:
                            continue
                        is_wide |= depth == len(stack)
                        if depth < len(stack):
                            stack[depth] = lists.item[lists.start[below]]
                            depth += 1
        if is_wide:  # a long range is in too many halves: all are candidates, once
            found = first_found
            for item in range(alternatives):
                if found < len(event):
                    event[found], alternative[found] = one, item
                found += 1
    return found
