"""What a person may want to know of a tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from stentor.index.ap_tree.layout import (
    COPIES,
    DEPTH,
    FIELDS,
    FREE,
    KEYWORDS,
    KIND,
    LEAF,
    LISTED,
    NODES,
    SPACE,
)
from stentor.index.ap_tree.store import TreeStore


def shape_of(store: TreeStore) -> dict[str, Any]:
    """Counts of nodes, how deep they are, how many copies of an entry and a message there are."""
    counter = store.tree.counter
    nodes = store.tree.node[: int(counter[NODES]) * FIELDS].reshape(-1, FIELDS)
    used = nodes[nodes[:, KIND] != FREE]
    kinds = {
        name: int(np.count_nonzero(used[:, KIND] == kind))
        for name, kind in (("keyword nodes", KEYWORDS), ("space nodes", SPACE), ("leaves", LEAF))
    }
    return {
        **kinds,
        "depth": int(used[:, DEPTH].max(initial=0)),
        "copies per entry": float(counter[COPIES]) / max(1, store.entries),
        "message places": int(counter[LISTED]),
        "keywords": store.keywords.count,
        "nodes built anew": store.rebuilt,
    }
