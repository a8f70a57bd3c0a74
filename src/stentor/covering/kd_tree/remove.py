"""Removal of points; buckets that are nearly empty are merged."""

from __future__ import annotations

from stentor._jit import inner_kernel
from stentor.covering.kd_tree.insert import grow_bucket, move_entry, swap_buckets
from stentor.covering.kd_tree.layout import (
    FREE,
    LEAF,
    NO_NODE,
    BucketLimits,
    KdTrees,
)


@inner_kernel
def remove_entry(forest: KdTrees, entry: int, dims: int, limits: BucketLimits) -> None:
    """Remove *entry*; a leaf below the underflow limit is merged with a sibling that fits."""
    node = forest.node_of[entry]
    position = forest.position_of[entry]
    last = forest.filled[node] - 1
    if position != last:
        move_entry(forest, node, last, node, position, dims)
    forest.filled[node] = last
    forest.node_of[entry] = NO_NODE
    parent = forest.parent[node]
    while parent != NO_NODE:
        left, right = forest.left[parent], forest.right[parent]
        if forest.split_dim[left] != LEAF or forest.split_dim[right] != LEAF:
            return
        fewer = min(forest.filled[left], forest.filled[right])
        both = forest.filled[left] + forest.filled[right]
        if fewer >= limits.underflow or both > limits.overflow:
            return
        merge(forest, parent, left, right, dims)
        parent = forest.parent[parent]


@inner_kernel
def merge(forest: KdTrees, parent: int, left: int, right: int, dims: int) -> None:
    """Make *parent* a leaf of what its two leaves hold; both become free."""
    if forest.capacity[left] < forest.capacity[right]:
        left, right = right, left
    wanted = forest.filled[left] + forest.filled[right]
    if forest.capacity[left] < wanted:
        grow_bucket(forest, left, dims, wanted)
    for position in range(forest.filled[right]):
        move_entry(forest, right, position, left, forest.filled[left], dims)
        forest.filled[left] += 1
    swap_buckets(forest, left, parent)
    forest.split_dim[parent] = LEAF
    forest.left[parent] = NO_NODE
    forest.right[parent] = NO_NODE
    for node in (left, right):
        forest.split_dim[node] = FREE
        forest.filled[node] = 0
        forest.left[node] = forest.free[dims]
        forest.free[dims] = node
