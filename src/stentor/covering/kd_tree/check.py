"""What must be true of k-d trees; an AssertionError where it is not."""

from __future__ import annotations

import numpy as np

from stentor.covering.kd_tree.layout import LEAF, NO_NODE, BucketLimits, KdTrees
from stentor.encoding.columns import Float64


def check_tree(forest: KdTrees, root: int, dims: int, limits: BucketLimits) -> list[int]:
    """The entries under *root*, once everything about that tree has been checked.

    A bucket may overflow where its points are all equal. It may underflow where its sibling is
    split, or where both together would overflow.
    """
    assert forest.parent[root] == NO_NODE or forest.split_dim[root] == LEAF
    found: list[int] = []
    waiting = [(root, np.full(dims, -np.inf), np.full(dims, np.inf))]
    while waiting:
        node, above, upto = waiting.pop()
        if forest.split_dim[node] != LEAF:
            dim, split = int(forest.split_dim[node]), float(forest.split[node])
            left, right = int(forest.left[node]), int(forest.right[node])
            assert forest.parent[left] == forest.parent[right] == node
            lower, higher = upto.copy(), above.copy()
            lower[dim], higher[dim] = split, split
            waiting += [(left, above, lower), (right, higher, upto)]
            continue
        points = leaf_points(forest, node, dims)
        assert ((points > above) | np.isneginf(above)).all()
        assert (points <= upto).all()
        count = int(forest.filled[node])
        assert count <= forest.capacity[node]
        assert count <= limits.overflow or (points == points[0]).all(), "an overflowing bucket"
        slot = int(forest.slot[node])
        entries = forest.entries[slot : slot + count].tolist()
        assert (forest.node_of[entries] == node).all()
        assert forest.position_of[entries].tolist() == list(range(count))
        found += entries
        parent = int(forest.parent[node])
        if parent != NO_NODE:
            left, right = int(forest.left[parent]), int(forest.right[parent])
            both = (forest.split_dim[left] == LEAF) and (forest.split_dim[right] == LEAF)
            together = forest.filled[left] + forest.filled[right]
            assert count >= limits.underflow or not both or together > limits.overflow
    return found


def leaf_points(forest: KdTrees, node: int, dims: int) -> Float64:
    """The points of a leaf, (count, dims)."""
    start, capacity = int(forest.start[node]), int(forest.capacity[node])
    bucket = forest.coordinates[start : start + capacity * dims].reshape(dims, capacity)
    return bucket[:, : forest.filled[node]].T
