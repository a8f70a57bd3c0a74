"""What must be true of a forest and of a curve; AssertionErrors where it is not."""

from __future__ import annotations

import numpy as np

from stentor.covering.dominance.curve import BLOCK, ORDERED, Curve
from stentor.covering.dominance.forest import LEAF, NO_NODE, Forest, Limits
from stentor.covering.dominance.keys import key_words, place_on_curve
from stentor.encoding.columns import Float64


def check_tree(forest: Forest, root: int, dims: int, limits: Limits) -> list[int]:
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
        assert count <= forest.room[node]
        assert count <= limits.overflow or (points == points[0]).all(), "an overflowing bucket"
        slot = int(forest.slot[node])
        entries = forest.entries[slot : slot + count].tolist()
        assert (forest.node_of[entries] == node).all()
        assert forest.place_of[entries].tolist() == list(range(count))
        found += entries
        parent = int(forest.parent[node])
        if parent != NO_NODE:
            left, right = int(forest.left[parent]), int(forest.right[parent])
            both = (forest.split_dim[left] == LEAF) and (forest.split_dim[right] == LEAF)
            together = forest.filled[left] + forest.filled[right]
            assert count >= limits.underflow or not both or together > limits.overflow
    return found


def leaf_points(forest: Forest, node: int, dims: int) -> Float64:
    """The points of a leaf, (count, dims)."""
    start, room = int(forest.start[node]), int(forest.room[node])
    bucket = forest.coordinates[start : start + room * dims].reshape(dims, room)
    return bucket[:, : forest.filled[node]].T


def check_curve(curve: Curve, points: Float64) -> list[int]:
    """The entries of *curve* in order; keys are sorted and are those of their *points*."""
    dims, bits, words = curve.shape.tolist()
    found: list[int] = []
    last: list[int] = []
    for block in curve.order[: curve.used[ORDERED]].tolist():
        count = int(curve.filled[block])
        assert 1 <= count <= BLOCK
        for place in range(block * BLOCK, block * BLOCK + count):
            entry = int(curve.entries[place])
            key = curve.keys[place * words : (place + 1) * words].tolist()
            assert last <= key, "keys out of order"
            last = key
            cell = [
                cell_of(point, low, scale, bits)
                for point, low, scale in zip(
                    points[entry].tolist(), curve.low.tolist(), curve.scale.tolist(), strict=True
                )
            ]
            assert key == key_words(place_on_curve(cell, bits), dims * bits, words)
            assert curve.key_of[entry * words : (entry + 1) * words].tolist() == key
            found.append(entry)
    return found


def cell_of(value: float, low: float, scale: float, bits: int) -> int:
    """The cell of *value*: monotone, and clamped at both ends."""
    scaled = (value - low) * scale
    if not scaled > 0.0:
        return 0
    most = (1 << bits) - 1
    return most if scaled >= most else int(scaled)
