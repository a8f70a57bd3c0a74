"""Bucket k-d trees, any number of them in one set of arrays.

    node ─▶ split dimension and value, left (≤ split), right (> split)
    leaf ─▶ a bucket: `room` places by dimension in `coordinates`, and as many in `entries`

              coordinates: [ dim 0: room values | dim 1: room values | … ]  from `start`
              entries:     [ room entries ]                                 from `slot`

A split keeps the left half in place and a merge takes the right half back, so that a freed node
keeps its bucket for the next split. Trees may differ in their number of dimensions.

Paper: IV.C, after the adaptive k-d tree of Bentley and Friedman: points in leaves only, a leaf that
passes the overflow limit is split at the median of its widest dimension, one below the underflow
limit is merged with its sibling where that is a leaf too and both fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import Float64, Int32, Int64

LEAF, FREE = -1, -2
NO_NODE = -1
#: Points that are compared at a time.
CHUNK = 64
MOST_DIMENSIONS = 64

# What `used` counts.
NODES, COORDINATES, SLOTS, WASTED, LARGEST_ROOM, DEEPEST = range(6)
USED_FIELDS = 8


class Forest(NamedTuple):
    """Trees of buckets."""

    split_dim: Int32  # (nodes,) LEAF, FREE or a dimension
    split: Float64  # (nodes,)
    left: Int64  # (nodes,) of a free node: the next free one
    right: Int64  # (nodes,)
    parent: Int64  # (nodes,)
    start: Int64  # (nodes,) into coordinates
    slot: Int64  # (nodes,) into entries
    room: Int64  # (nodes,) 0: no bucket
    filled: Int64  # (nodes,) entries in the bucket
    coordinates: Float64
    entries: Int64
    node_of: Int64  # (entries,) the leaf that holds it; NO_NODE
    place_of: Int64  # (entries,) where in the leaf
    free: Int64  # (MOST_DIMENSIONS + 1,) by dimensions: the first free node
    used: Int64  # (USED_FIELDS,)


class Limits(NamedTuple):
    """When a bucket is split and when it is merged."""

    overflow: int
    underflow: int


def new_forest(nodes: int = 16, coordinates: int = 64, slots: int = 16) -> Forest:
    """A forest without trees, with room for so many."""
    return Forest(
        split_dim=np.full(nodes, FREE, np.int32),
        split=np.zeros(nodes),
        left=np.full(nodes, NO_NODE),
        right=np.full(nodes, NO_NODE),
        parent=np.full(nodes, NO_NODE),
        start=np.zeros(nodes, np.int64),
        slot=np.zeros(nodes, np.int64),
        room=np.zeros(nodes, np.int64),
        filled=np.zeros(nodes, np.int64),
        coordinates=np.zeros(coordinates),
        entries=np.zeros(slots, np.int64),
        node_of=np.full(0, NO_NODE),
        place_of=np.zeros(0, np.int64),
        free=np.full(MOST_DIMENSIONS + 1, NO_NODE),
        used=np.zeros(USED_FIELDS, np.int64),
    )
