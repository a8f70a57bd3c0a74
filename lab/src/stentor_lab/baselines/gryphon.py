"""Gryphon: a matching tree, whose levels are attributes and whose edges are values or ranges.

An expression is a path through its predicates in the order of attributes; those that begin alike
share it. An equality is an edge found by its value; ranges of one attribute below a node are tried
one after the other, which is why it is said to be good for equalities only.

Paper: Aguilera, Strom, Sturman, Astley, Chandra: Matching events in a content-based subscription
system (1999). Static: what is removed, the verifier passes over.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from stentor._jit import inner_kernel, kernel
from stentor.encoding.columns import EventColumns, Float64, Int64, UInt64, event_count
from stentor_lab.baselines.dimensions import AXES, BoundedPredicates, bounded, event_bounds
from stentor_lab.baselines.entry_lists import (
    NOT_THERE,
    Entries,
    EntryLists,
    ListArrays,
    find_list,
    mixed,
    outwards,
)
from stentor_lab.baselines.rival import Rival

_ROOT: Final = 0
_ENDS, _RANGES, _EQUAL = np.uint64(5), np.uint64(6), np.uint64(7)
#: Nodes that are still to be visited, at most: an event that has more is left to the verifier.
STACK: Final = 1 << 16


class Gryphon(Rival):
    """A tree of predicates."""

    name = "gryphon"

    def __init__(self) -> None:
        super().__init__()
        self._choose(np.zeros(0, np.int64))

    def _choose(self, alternatives: Int64) -> None:
        self._lists = EntryLists()
        self._children: dict[tuple[int, int, float, float], int] = {}
        self._last = -1

    def _insert(self, alternatives: Int64) -> None:
        fresh = alternatives[alternatives > self._last]
        if not len(fresh):
            return  # it moved: locations are no levels here
        self._last = int(fresh.max())
        found = bounded(self.subscriptions.columns, fresh, locations=False)
        node, parent, edge = self._paths(found, len(fresh))
        keys = np.empty(len(edge), np.uint64)
        edge_keys(parent, found.dimension[edge], found.low[edge], found.high[edge], keys)
        ends = np.empty(len(fresh), np.uint64)
        end_keys(node, ends)
        least, most = outwards(found.low[edge], found.high[edge])
        box = np.stack((least, least, most, most), axis=1).reshape(-1)
        child = np.arange(len(self._children) - len(edge), len(self._children)) + 1
        self._lists.add(Entries(keys, child, np.zeros(len(edge), np.uint64), box))
        zeros = np.zeros(len(fresh), np.uint64), np.zeros(4 * len(fresh), np.float32)
        self._lists.add(Entries(ends, fresh, *zeros))

    def _paths(self, found: BoundedPredicates, count: int) -> tuple[Int64, Int64, Int64]:
        """Where each expression ends, and of each new edge: its parent and its bound."""
        node = np.zeros(count, np.int64)
        parents, edges = [], []
        children = self._children
        rows = zip(
            found.of.tolist(),
            found.dimension.tolist(),
            found.low.tolist(),
            found.high.tolist(),
            strict=True,
        )
        here, now = -1, _ROOT
        for position, (of, dimension, low, high) in enumerate(rows):
            if of != here:
                here, now = of, _ROOT
            key = now, dimension, low, high
            child = children.get(key)
            if child is None:
                child = children[key] = len(children) + 1
                parents.append(now)
                edges.append(position)
            node[of] = now = child
        return node, np.array(parents, np.int64), np.array(edges, np.int64)

    def _find(self, events: EventColumns, event: Int64, alternative: Int64) -> int:
        return self._walked(events, event, alternative)[0]

    def _walked(self, events: EventColumns, event: Int64, alternative: Int64) -> tuple[int, int]:
        stack = np.empty(STACK, np.int64), np.empty(STACK, np.int64)
        looked = np.zeros(1, np.int64)
        found = walk(self._lists.arrays, self._last, events, *stack, looked, event, alternative)
        return found, int(looked[0])

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        # A public key of 32 bytes for each edge: what the dictionary would hold without objects.
        beside = self._lists.nbytes + 32 * len(self._children)
        return {**inherited, "bytes": inherited["bytes"] + beside}

    def counted_work(self, events: EventColumns) -> dict[str, float]:
        nothing = np.zeros(0, np.int64)
        looked = self._walked(events, nothing, nothing)[1]
        return {
            **super().counted_work(events),
            "entries/event": looked / max(1, event_count(events)),
        }


@inner_kernel
def node_key(node: int, dimension: int, kind: np.uint64) -> np.uint64:
    """The key of what a node has of one dimension."""
    return mixed(np.uint64(node) * np.uint64(16) + kind, np.uint64(dimension))


@inner_kernel
def value_edge(node: int, dimension: int, value: float) -> np.uint64:
    """The key of the edge of one value."""
    whole = np.uint64(int(min(max(value * 1024.0, -4e18), 4e18)))
    return mixed(node_key(node, dimension, _EQUAL), whole)


@kernel
def edge_keys(node: Int64, dimension: Int64, low: Float64, high: Float64, key: UInt64) -> None:
    """The list of each edge: of its value, or of the ranges of its attribute."""
    for one in range(len(key)):
        if low[one] == high[one]:
            key[one] = value_edge(node[one], dimension[one], low[one])
        else:
            key[one] = node_key(node[one], dimension[one], _RANGES)


@kernel
def end_keys(node: Int64, key: UInt64) -> None:
    """The list of expressions that end at each node."""
    for one in range(len(key)):
        key[one] = node_key(node[one], 0, _ENDS)


@kernel
def walk(
    lists: ListArrays,
    last: int,
    events: EventColumns,
    node_stack: Int64,
    value_stack: Int64,
    looked: Int64,
    event: Int64,
    alternative: Int64,
) -> int:
    """Pairs that may match; those that do not fit are only counted."""
    found = 0
    for one in range(len(events.until)):
        first, stop = events.value_start[one], events.value_start[one + 1]
        depth, node_stack[0], value_stack[0] = 1, _ROOT, first
        has_range, first_found = False, found
        for value in range(first, stop):
            has_range |= events.low[value] < events.high[value]
        while depth > 0:
            depth -= 1
            node, start = node_stack[depth], value_stack[depth]
            which = find_list(lists, node_key(node, 0, _ENDS))
            if which != NOT_THERE:
                begin = lists.start[which]
                for entry in range(begin, begin + lists.used[which]):
                    if found < len(event):
                        event[found], alternative[found] = one, lists.item[entry]
                    found += 1
            for value in range(start, stop):
                low, high = event_bounds(events, value, 0)
                dimension = events.attribute[value] * AXES
                for kind in range(2):
                    key = node_key(node, dimension, _RANGES)
                    if kind == 1:
                        key = value_edge(node, dimension, low)
                    which = find_list(lists, key)
                    if which == NOT_THERE:
                        continue
                    begin = lists.start[which]
                    looked[0] += lists.used[which]
                    for entry in range(begin, begin + lists.used[which]):
                        if high < lists.box[4 * entry] or low > lists.box[4 * entry + 2]:
                            continue
                        if depth < len(node_stack):
                            # The same attribute may be asked for twice.
                            node_stack[depth], value_stack[depth] = lists.item[entry], value
                            depth += 1
                        else:
                            has_range = True
        if has_range:  # equal values within a range have edges of their own: all are candidates
            found = first_found
            for item in range(last + 1):
                if found < len(event):
                    event[found], alternative[found] = one, item
                found += 1
    return found
