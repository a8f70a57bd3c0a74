"""Bucket k-d trees, any number of them in one set of arrays.

Inner nodes have a dimension and a cut, leaves a bucket of points; all coordinates of a bucket lie
together, dimension by dimension.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import Float64, Int32, Int64
from stentor.index.arena import extended

# What `split_dim` holds of a node that is not split.
LEAF, FREE = -1, -2
NO_NODE = -1
#: Points that are compared at a time.
CHUNK = 64
MOST_DIMENSIONS = 64
# What `used` counts.
NODES, COORDINATES, SLOTS, WASTED, LARGEST_CAPACITY, DEEPEST = range(6)
USED_FIELDS = 8


class KdTrees(NamedTuple):
    """Trees of buckets."""

    split_dim: Int32  # (nodes,) LEAF, FREE or a dimension
    split: Float64  # (nodes,)
    left: Int64  # (nodes,) of a free node: the next free one
    right: Int64  # (nodes,)
    parent: Int64  # (nodes,)
    start: Int64  # (nodes,) into coordinates
    slot: Int64  # (nodes,) into entries
    capacity: Int64  # (nodes,) 0: no bucket
    filled: Int64  # (nodes,) entries in the bucket
    coordinates: Float64
    entries: Int64
    node_of: Int64  # (entries,) the leaf that holds it; NO_NODE
    position_of: Int64  # (entries,) where in the leaf
    free: Int64  # (MOST_DIMENSIONS + 1,) by dimensions: the first free node
    used: Int64  # (USED_FIELDS,)


class BucketLimits(NamedTuple):
    """When a bucket is split and when it is merged."""

    overflow: int
    underflow: int


def new_forest(nodes: int = 16, coordinates: int = 64, slots: int = 16) -> KdTrees:
    """A forest without trees, of such capacity."""
    return KdTrees(
        split_dim=np.full(nodes, FREE, np.int32),
        split=np.zeros(nodes),
        left=np.full(nodes, NO_NODE),
        right=np.full(nodes, NO_NODE),
        parent=np.full(nodes, NO_NODE),
        start=np.zeros(nodes, np.int64),
        slot=np.zeros(nodes, np.int64),
        capacity=np.zeros(nodes, np.int64),
        filled=np.zeros(nodes, np.int64),
        coordinates=np.zeros(coordinates),
        entries=np.zeros(slots, np.int64),
        node_of=np.full(0, NO_NODE),
        position_of=np.zeros(0, np.int64),
        free=np.full(MOST_DIMENSIONS + 1, NO_NODE),
        used=np.zeros(USED_FIELDS, np.int64),
    )


def grow_trees(forest: KdTrees, dims: int) -> KdTrees:
    """*forest* grown by some entries of *dims* dimensions in any of its trees."""
    used = forest.used
    bucket = 8 * max(int(used[LARGEST_CAPACITY]), CHUNK)
    coordinates = int(used[COORDINATES]) + bucket * max(dims, 1)
    return grow(forest, int(used[NODES]) + 8, coordinates, int(used[SLOTS]) + bucket)


def grow(forest: KdTrees, nodes: int, coordinates: int, slots: int) -> KdTrees:
    """*forest* with arrays at least so long."""
    return forest._replace(
        split_dim=extended(forest.split_dim, nodes, FREE),
        split=extended(forest.split, nodes),
        left=extended(forest.left, nodes, NO_NODE),
        right=extended(forest.right, nodes, NO_NODE),
        parent=extended(forest.parent, nodes, NO_NODE),
        start=extended(forest.start, nodes),
        slot=extended(forest.slot, nodes),
        capacity=extended(forest.capacity, nodes),
        filled=extended(forest.filled, nodes),
        coordinates=extended(forest.coordinates, coordinates),
        entries=extended(forest.entries, slots),
    )


def with_entries(forest: KdTrees, entries: int) -> KdTrees:
    """*forest* with capacity for so many entries."""
    return forest._replace(
        node_of=extended(forest.node_of, entries, NO_NODE),
        position_of=extended(forest.position_of, entries),
    )


def is_too_deep(forest: KdTrees, points: int) -> bool:
    """Whether some leaf lies much deeper than in a balanced tree of so many points."""
    return bool(forest.used[DEEPEST] > 32 + 4 * max(points, 1).bit_length())
