"""Room for a forest and a curve: arrays doubled when full."""

from __future__ import annotations

from stentor.covering.dominance.curve import BLOCK, BLOCKS, Curve
from stentor.covering.dominance.forest import (
    CHUNK,
    COORDINATES,
    DEEPEST,
    FREE,
    LARGEST_ROOM,
    NO_NODE,
    NODES,
    SLOTS,
    Forest,
)
from stentor.covering.growth import longer


def roomier_forest(forest: Forest, dims: int) -> Forest:
    """*forest* with room for some more entries of *dims* dimensions in any of its trees."""
    used = forest.used
    bucket = 8 * max(int(used[LARGEST_ROOM]), CHUNK)
    coordinates = int(used[COORDINATES]) + bucket * max(dims, 1)
    return roomier(forest, int(used[NODES]) + 8, coordinates, int(used[SLOTS]) + bucket)


def roomier(forest: Forest, nodes: int, coordinates: int, slots: int) -> Forest:
    """*forest* with pools at least so long."""
    return forest._replace(
        split_dim=longer(forest.split_dim, nodes, FREE),
        split=longer(forest.split, nodes),
        left=longer(forest.left, nodes, NO_NODE),
        right=longer(forest.right, nodes, NO_NODE),
        parent=longer(forest.parent, nodes, NO_NODE),
        start=longer(forest.start, nodes),
        slot=longer(forest.slot, nodes),
        room=longer(forest.room, nodes),
        filled=longer(forest.filled, nodes),
        coordinates=longer(forest.coordinates, coordinates),
        entries=longer(forest.entries, slots),
    )


def with_entries(forest: Forest, entries: int) -> Forest:
    """*forest* with room for the numbers of so many entries."""
    return forest._replace(
        node_of=longer(forest.node_of, entries, NO_NODE), place_of=longer(forest.place_of, entries)
    )


def is_too_deep(forest: Forest, points: int) -> bool:
    """Whether some leaf lies much deeper than in a balanced tree of so many points."""
    return bool(forest.used[DEEPEST] > 32 + 4 * max(points, 1).bit_length())


def roomier_curve(curve: Curve) -> Curve:
    """*curve* with room for some more blocks."""
    words = int(curve.shape[2])
    blocks = len(longer(curve.filled, int(curve.used[BLOCKS]) + 4))
    return curve._replace(
        keys=longer(curve.keys, blocks * BLOCK * words),
        entries=longer(curve.entries, blocks * BLOCK),
        filled=longer(curve.filled, blocks),
        order=longer(curve.order, blocks),
    )
