"""The invariants of nodes, asserted in plain NumPy: for tests."""

from __future__ import annotations

import numpy as np

from stentor._tables import LANES
from stentor.encoding.columns import Int64, SubscriptionColumns
from stentor.index.packed.nodes.build import NodeTree, build_nodes
from stentor.index.packed.nodes.layout import (
    BELOW_IT,
    COUNT,
    FIELDS,
    HEIGHT,
    MOST_COLUMNS,
    MOST_SLOTS,
    NO_ROOT,
    WIDTH,
)


def check_nodes(tree: NodeTree, columns: SubscriptionColumns, alternatives: Int64) -> None:
    """Assert that *alternatives* are in leaves, and that roots lead to each leaf once."""
    nodes = tree.nodes
    head = nodes.head.reshape(-1, FIELDS)
    held = np.sort(nodes.alternative)
    assert (np.diff(held) > 0).all(), "each is in one leaf"
    assert np.isin(alternatives, held).all(), "each alternative is in a leaf"
    assert (head[:, COUNT] <= LANES).all()
    assert (head[:, WIDTH] <= MOST_COLUMNS).all()
    assert (np.diff(nodes.slot_start) <= MOST_SLOTS).all()
    reached = np.zeros(len(head), np.int64)
    waiting = nodes.root[nodes.root != NO_ROOT].tolist()
    while waiting:
        node = waiting.pop()
        reached[node] += 1
        start, count, height = (int(head[node, field]) for field in (BELOW_IT, COUNT, HEIGHT))
        if height:
            below = range(start, start + count)
            assert (head[start : start + count, HEIGHT] == height - 1).all(), "levels are even"
            for bound in (nodes.promise, nodes.total):
                assert bound[node] == bound[start : start + count].max()
            waiting += below
    assert (reached == 1).all(), "every node is below one root"
    if not np.array_equal(held, alternatives):
        return  # some were moved or removed since: what is here of them is out of date
    fresh = build_nodes(columns, alternatives).nodes
    for name, array in nodes._asdict().items():
        assert np.array_equal(getattr(fresh, name), array), f"{name} are those of the columns"
