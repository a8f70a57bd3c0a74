"""Points that dominate a query point, a chunk at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel_inline
from stentor.covering.kd_tree.layout import CHUNK, LEAF, NO_NODE, KdTrees
from stentor.encoding.columns import Float64, Int64


class KdMatchScratch(NamedTuple):
    """One query: the nodes that are left, and the hits of the last chunk."""

    stack: Int64  # (nodes,)
    state: Int64  # (SEARCH_FIELDS,)
    mask: Int64  # (CHUNK,)
    hits: Int64  # (CHUNK,) entries


# What `state` holds.
TOP, AT_LEAF, AT_POSITION, VISITED, COMPARED = range(5)

MATCH_FIELDS = 5


def new_matching(forest: KdTrees) -> KdMatchScratch:
    """Scratch that any tree of *forest* fits into."""
    return KdMatchScratch(
        np.empty(len(forest.split) + 1, np.int64),
        np.zeros(MATCH_FIELDS, np.int64),
        np.empty(CHUNK, np.int64),
        np.empty(CHUNK, np.int64),
    )


@kernel_inline
def begin_matching(matching: KdMatchScratch, root: int) -> None:
    """Start over at *root*."""
    matching.stack[0] = root
    matching.state[TOP] = 1
    matching.state[AT_LEAF] = NO_NODE


@inner_kernel
def next_hits(forest: KdTrees, dims: int, query: Float64, matching: KdMatchScratch) -> int:
    """The hits of the next chunk that has some, in `matching.hits`; 0 when there are no more.

    The right-most leaf comes first: its points are the largest. Left of a split lie only smaller
    ones, so that subtree is searched only where the query is not larger than the split.
    """
    state = matching.state
    while True:
        node = state[AT_LEAF]
        if node == NO_NODE:
            if state[TOP] == 0:
                return 0
            state[TOP] -= 1
            node = matching.stack[state[TOP]]
            while True:
                state[VISITED] += 1
                dim = forest.split_dim[node]
                if dim == LEAF:
                    break
                if query[dim] <= forest.split[node]:
                    matching.stack[state[TOP]] = forest.left[node]
                    state[TOP] += 1
                node = forest.right[node]
            state[AT_LEAF] = node
            state[AT_POSITION] = 0
        first = state[AT_POSITION]
        count = min(forest.filled[node] - first, CHUNK)
        if count <= 0:
            state[AT_LEAF] = NO_NODE
            continue
        state[AT_POSITION] = first + count
        state[COMPARED] += count
        if compare(forest, node, dims, first, count, query, matching.mask):
            slot = forest.slot[node] + first
            found = 0
            for position in range(count):
                if matching.mask[position] != 0:
                    matching.hits[found] = forest.entries[slot + position]
                    found += 1
            return found


@inner_kernel
def compare(
    forest: KdTrees, node: int, dims: int, first: int, count: int, query: Float64, mask: Int64
) -> bool:
    """Set *mask* where a point dominates *query*; whether one does.

    Dimension by dimension over all points: vector instructions, and an end as soon as none is left.
    """
    capacity = forest.capacity[node]
    start = forest.start[node] + first
    marks = mask[:count]
    for position in range(count):
        marks[position] = 1
    for dim in range(dims):
        values = forest.coordinates[start + dim * capacity : start + dim * capacity + count]
        least = query[dim]
        some = 0
        for position in range(count):
            hit = marks[position] & (values[position] >= least)
            marks[position] = hit
            some |= hit
        if some == 0:
            return False
    return True
