"""The invariants of the tree, for tests: everything is worked out once more and compared."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import Int32, Int64, SubscriptionColumns
from stentor.index.ap_tree.insert import insert_scratch
from stentor.index.ap_tree.layout import (
    BRANCH,
    COPIES,
    COUNT,
    DEPTH,
    DIRTY,
    FIELDS,
    FLAGS,
    FREE,
    KEYWORDS,
    KIND,
    LEAF,
    LINES,
    LIST_SIZE,
    LIST_START,
    MAY_CUT,
    MAY_GRID,
    MOST_DEPTH,
    NODES,
    NONE,
    OFFSET,
    PARENT,
    ROOT,
    SIZE,
    SPLIT_ABOVE,
    START,
    TERMS_KNOWN,
    ApTreeArrays,
    X,
    Y,
)
from stentor.index.ap_tree.live import LiveLists, branches_of_live
from stentor.index.ap_tree.match import match_scratch
from stentor.index.ap_tree.rebalance import SMOOTHING
from stentor.index.ap_tree.remove import leaves_of_entries
from stentor.index.ap_tree.state import ApTreeState
from stentor.index.table import EventTable

#: The content of each slot, by leaf, alternative and clause.
Slots = dict[tuple[int, int, int], tuple[object, ...]]


def check_tree(store: ApTreeState, columns: SubscriptionColumns, alternatives: Int64) -> None:
    """Assert that every entry of *alternatives* is where events find it, and nodes are sound.

    Entries of others may still be there: of rows that were hidden in a read-only base.
    """
    tree = store.tree
    seen = _nodes(tree)
    used = [node for node in range(int(tree.counter[NODES])) if _fields(tree, node)[KIND] != FREE]
    assert sorted(seen) == used, "a node is neither in the tree nor free, or both"
    for node in seen:
        _check_node(tree, node)
        fields = _fields(tree, node)
        assert not fields[FLAGS] & DIRTY
        if fields[KIND] == LEAF:
            assert fields[SIZE] <= max(store.policy.leaf, fields[SPLIT_ABOVE]), (
                "a leaf is too large"
            )
    copies = sum(int(_fields(tree, node)[SIZE]) for node in seen if _is_leaf(tree, node))
    assert copies == tree.counter[COPIES] == _fields(tree, ROOT)[COUNT]
    assert sorted(set(store.keywords.rank.tolist()) - {NONE}) == list(
        range(int(tree.counter[TERMS_KNOWN]))
    ), "each rank is one keyword's"
    expected, found = _expected_slots(store, columns, alternatives), _slots(tree, seen)
    for key, content in expected.items():
        assert found.get(key) == content, f"not in its leaf, or with other content: {key}"
    left_over = {alternative for _, alternative, _ in found.keys() - expected.keys()}
    assert left_over.isdisjoint(alternatives.tolist()), (
        "an entry is in a leaf where it does not belong"
    )
    if not left_over:
        entries = store.entries_of(columns, alternatives, learn=False)
        assert store.entries == len(entries.alternative)


def _nodes(tree: ApTreeArrays) -> list[int]:
    """All nodes of *tree* that are reached from the root, parents first."""
    seen = [ROOT]
    assert _fields(tree, ROOT)[PARENT] == NONE
    for node in seen:
        fields = _fields(tree, node)
        if fields[KIND] != LEAF:
            start = fields[START]
            for position in range(start, start + fields[SIZE] + 1):
                child = int(tree.child[position])
                if child != NONE:
                    assert _fields(tree, child)[PARENT] == node
                    assert _fields(tree, child)[BRANCH] == position
                    seen.append(child)
    assert len(set(seen)) == len(seen)
    return seen


def _check_node(tree: ApTreeArrays, node: int) -> None:
    fields = _fields(tree, node)
    if fields[KIND] == LEAF:
        assert fields[COUNT] == fields[SIZE]
        return
    start, size = int(fields[START]), int(fields[SIZE])
    children = [int(child) for child in tree.child[start : start + size + 1]]
    weights = [0 if child == NONE else int(_fields(tree, child)[COUNT]) for child in children]
    assert fields[COUNT] == sum(weights), "a node counts what is beneath it"
    for number, child in enumerate(children):
        if child != NONE:
            _check_child(tree, node, number, child)
    if fields[KIND] == KEYWORDS:
        bounds = tree.bound[start : start + size]
        assert bounds[0] == 0, "cuts tile the vocabulary"
        assert (np.diff(bounds) > 0).all(), "cuts are ordered and disjoint"
    else:
        assert size == fields[X] * fields[Y]
        lines = tree.line[fields[LINES] :]
        for first, count in ((0, fields[X] - 1), (fields[X] - 1, fields[Y] - 1)):
            along = lines[first : first + count]
            assert (np.diff(along) >= 0).all(), "cells tile their region"
    share = tree.share[start : start + size + 1]
    if share.any():  # `keyword_root` and `space_root` have none
        weight = np.array(weights) + SMOOTHING
        expected = float((share * np.log(share / (weight / weight.sum()))).sum())
        built, now = tree.spread[2 * node : 2 * node + 2].tolist()
        assert abs(built - now + float(np.log(weight.sum())) - expected) < 1e-6


def _check_child(tree: ApTreeArrays, node: int, number: int, child: int) -> None:
    above, below = _fields(tree, node), _fields(tree, child)
    is_dummy = number == above[SIZE]
    assert below[DEPTH] == above[DEPTH] + 1 <= MOST_DEPTH + 1
    by_keyword = above[KIND] == KEYWORDS
    assert below[OFFSET] == above[OFFSET] + (by_keyword and not is_dummy)
    lost = (MAY_CUT if by_keyword else MAY_GRID) if is_dummy else 0
    assert below[FLAGS] & ~DIRTY == above[FLAGS] & ~DIRTY & ~lost
    outer, inner = tree.region[4 * node : 4 * node + 4], tree.region[4 * child : 4 * child + 4]
    if by_keyword or is_dummy:
        assert (outer == inner).all()
    else:
        assert (inner[:2] >= outer[:2]).all()
        assert (inner[2:] <= outer[2:]).all()


def _slots(tree: ApTreeArrays, nodes: list[int]) -> Slots:
    """The content of each slot of *nodes*."""
    found: Slots = {}
    for node in nodes:
        if _is_leaf(tree, node):
            start = int(_fields(tree, node)[START])
            for slot in range(start, start + int(_fields(tree, node)[SIZE])):
                key = (node, int(tree.alternative[slot]), int(tree.clause[slot]))
                assert key not in found, "an entry is twice in a leaf"
                box = tuple(tree.box[4 * slot : 4 * slot + 4].tolist())
                found[key] = (int(tree.signature[slot]), box)
    return found


def _expected_slots(store: ApTreeState, columns: SubscriptionColumns, alternatives: Int64) -> Slots:
    entries = store.entries_of(columns, alternatives, learn=False)
    starts = np.zeros(len(entries.alternative) + 1, np.int64)
    tree = store.tree._replace(
        **{name: np.array(array) for name, array in store.tree._asdict().items()}
    )
    walk = insert_scratch(tree)
    nodes: Int32 = np.empty(
        leaves_of_entries(tree, entries, walk, starts, np.zeros(0, np.int32)), np.int32
    )
    leaves_of_entries(tree, entries, walk, starts, nodes)
    expected: Slots = {}
    for entry, alternative in enumerate(entries.alternative.tolist()):
        box = tuple(entries.box[4 * entry : 4 * entry + 4].tolist())
        for node in nodes[starts[entry] : starts[entry + 1]].tolist():
            key = (node, alternative, int(entries.clause[entry]))
            expected[key] = (int(entries.signature[entry]), box)
    return expected


def check_live_lists(lists: LiveLists, store: ApTreeState, live: EventTable) -> None:
    """Assert that each live event is listed where every subscription it matches would find it."""
    tree = lists.tree
    listed = {
        node: set(tree.listed[fields[LIST_START] :][: fields[LIST_SIZE]].tolist())
        for node in _nodes(tree)
        for fields in [_fields(tree, node)]
    }
    path = match_scratch(live.columns)
    for event in live.current_rows().tolist():
        for position, parent in branches_of_live(
            tree, store.keywords.view, live.columns, event, store.location, path
        ):
            node = int(tree.child[position]) if parent == NONE else parent
            while node != NONE and event not in listed[node]:
                node = int(_fields(tree, node)[PARENT])
            assert node != NONE, (
                f"event {event} is not found by all subscriptions that may match it"
            )


def _fields(tree: ApTreeArrays, node: int) -> Int32:
    return tree.node[node * FIELDS : (node + 1) * FIELDS]


def _is_leaf(tree: ApTreeArrays, node: int) -> bool:
    return bool(_fields(tree, node)[KIND] == LEAF)
