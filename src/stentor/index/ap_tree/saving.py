"""A tree in a folder: its arrays as they are, but for live messages, which are saved elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stentor.encoding.columns import SubscriptionColumns
from stentor.errors import FolderError
from stentor.index.ap_tree.layout import (
    FIELDS,
    LIST_CLASSES,
    LIST_ROOM,
    LIST_SIZE,
    LIST_START,
    LISTED,
    NOTHING,
    Tree,
    Vocabulary,
)
from stentor.index.ap_tree.pools import used_part
from stentor.index.ap_tree.settings import Settings
from stentor.index.ap_tree.store import TreeStore
from stentor.index.ap_tree.vocabulary import Keywords
from stentor.index.bundles import bundle_of, with_prefix
from stentor.index.storage import read_arrays, write_arrays


def write_tree(folder: Path, store: TreeStore, reach: int, *, kind: str) -> None:
    """Write *store*, whose alternatives are below *reach*, into *folder*."""
    meta = {
        "place": store.place,
        "entries": store.entries,
        "built": store.built,
        "reach": reach,
    }
    arrays = {
        **with_prefix("tree", _without_messages(store.tree)),
        **with_prefix("vocabulary", store.keywords.view),
    }
    write_arrays(folder, arrays, kind=kind, meta=meta)


def read_tree(
    folder: Path, settings: Settings, columns: SubscriptionColumns, *, kind: str
) -> TreeStore:
    """The read-only tree in *folder*, of the subscriptions in *columns*."""
    arrays, meta = read_arrays(folder, kind=kind)
    if meta["reach"] != len(columns.predicate_start) - 1:
        raise FolderError(
            f"{folder} holds the tree of other subscriptions than those it was opened with; "
            "open both from one saved folder"
        )
    store = TreeStore(settings)
    store.tree = bundle_of(Tree, "tree", arrays)
    store.keywords = Keywords.over(store.tree.counter, bundle_of(Vocabulary, "vocabulary", arrays))
    store.place, store.entries, store.built = meta["place"], meta["entries"], meta["built"]
    return store


def _without_messages(tree: Tree) -> Tree:
    used = used_part(tree)
    counter, node = used.counter.copy(), used.node.copy().reshape(-1, FIELDS)
    counter[LISTED] = 0
    counter[LIST_CLASSES:] = NOTHING
    node[:, [LIST_START, LIST_SIZE, LIST_ROOM]] = 0
    return used._replace(counter=counter, node=node.reshape(-1), listed=np.zeros(0, np.int32))
