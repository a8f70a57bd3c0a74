"""Trees without entries: a root for all, or the fixed root of a separate index of messages."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import Float64
from stentor.index.ap_tree.layout import (
    FIELDS,
    FLAGS,
    GRID_LINES,
    KEYWORDS,
    KIND,
    LEAF,
    LINES,
    MAY_CUT,
    MAY_GRID,
    NODES,
    NOTHING,
    PARENT,
    PLACE,
    PLACES,
    ROOT,
    SIZE,
    SPACE,
    START,
    TERMS_KNOWN,
    Tree,
    X,
    Y,
)
from stentor.index.ap_tree.pools import empty_tree, with_room
from stentor.index.ap_tree.presence import words_for

#: Columns and rows of the grid of AP+s (5.2.1: 40 for each dimension).
GRID = 40


def planted(region: Float64, keywords: int, entries: int = 0, *, has_place: bool) -> Tree:
    """A tree whose root is a leaf of nothing, for *region*, so many known keywords and entries."""
    tree = with_room(empty_tree(), {NODES: 1, PLACES: 1})
    tree = tree._replace(present=np.zeros(words_for(entries), np.uint64))
    tree.counter[TERMS_KNOWN] = keywords
    tree.counter[NODES] = tree.counter[PLACES] = 1
    fields = tree.node[:FIELDS]
    fields[:] = 0
    fields[KIND], fields[PARENT], fields[PLACE] = LEAF, NOTHING, 0
    fields[FLAGS] = MAY_CUT | (MAY_GRID if has_place else 0)
    tree.region[:4] = region
    tree.spread[:2] = 0.0
    tree.child[0], tree.bound[0], tree.share[0] = ROOT, 0, 0.0
    return tree


def by_keywords(region: Float64, keywords: int) -> Tree:
    """A tree whose root has a cut for each keyword (AP+k)."""
    tree = planted(region, keywords, has_place=True)
    tree = with_room(tree, {PLACES: keywords + 2})
    _open(tree, KEYWORDS, keywords + 1)
    tree.bound[1 : keywords + 2] = np.arange(keywords + 1)
    return tree


def by_space(region: Float64, keywords: int) -> Tree:
    """A tree whose root is an even grid (AP+s)."""
    tree = planted(region, keywords, has_place=True)
    tree = with_room(tree, {PLACES: GRID * GRID + 1, GRID_LINES: 2 * GRID})
    _open(tree, SPACE, GRID * GRID)
    tree.node[X], tree.node[Y], tree.node[LINES] = GRID, GRID, 0
    for axis in range(2):
        lines = np.linspace(region[axis], region[axis + 2], GRID + 1)[1:-1]
        tree.line[axis * (GRID - 1) : (axis + 1) * (GRID - 1)] = lines
    tree.counter[GRID_LINES] = 2 * (GRID - 1)
    return tree


def _open(tree: Tree, kind: int, size: int) -> None:
    """Make the root an inner node of *size* children and a dummy, none of them there."""
    tree.node[KIND], tree.node[START], tree.node[SIZE] = kind, 1, size
    tree.child[1 : size + 2] = NOTHING
    tree.bound[1 : size + 2] = 0
    tree.share[1 : size + 2] = 0.0
    tree.counter[PLACES] = size + 2
