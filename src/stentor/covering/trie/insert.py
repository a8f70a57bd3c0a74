"""Insertion of rows into the trie, and removal."""

from __future__ import annotations

from stentor._jit import inner_kernel, kernel
from stentor.covering.kd_tree.insert import (
    SMALLEST_CAPACITY,
    insert_point,
    leaf_for,
    new_leaf,
    remove_entry,
)
from stentor.covering.kd_tree.layout import COORDINATES, NO_NODE, NODES, SLOTS
from stentor.covering.trie.layout import (
    NEED_COORDINATES,
    NEED_NODES,
    NEED_SLOTS,
    NEED_TRIE,
    NO_CHILD,
    NO_TREE,
    ROOT,
    TrieArrays,
    child_of,
    count_entry,
    node_for,
)
from stentor.covering.trie.points import write_point
from stentor.covering.trie.tokens import IMPOSSIBLE, wanted_tokens
from stentor.encoding.columns import Int64


@inner_kernel
def write_question(
    index: TrieArrays, plane: bool, alternative: int, choice: int
) -> tuple[int, int]:
    """The tokens and the point of an entry, into the walk: how many tokens, how many dimensions."""
    wanted = index.walk.wanted
    start = index.columns.alternative_start
    row = index.row_of[index.entry_start[alternative]]
    branching = start[row + 1] - start[row] > 1
    count = wanted_tokens(index.columns, alternative, choice, branching, wanted)
    dims = 0
    for position in range(count):
        dims = write_point(
            index.columns,
            index.kinds,
            plane,
            alternative,
            wanted.predicate[position],
            False,
            index.walk.point,
            dims,
        )
    return count, dims


@inner_kernel
def has_trie_capacity(index: TrieArrays, plane: bool, row: int) -> bool:
    """Whether *row* fits; `needs` says how long the arrays must be."""
    needs, trie, forest = index.needs, index.trie, index.forest
    needs[NEED_NODES], needs[NEED_TRIE] = forest.used[NODES], trie.used[0]
    needs[NEED_COORDINATES], needs[NEED_SLOTS] = forest.used[COORDINATES], forest.used[SLOTS]
    start = index.columns.alternative_start
    for alternative in range(start[row], start[row + 1]):
        if index.states[alternative] == IMPOSSIBLE:
            continue
        entries = index.entry_start[alternative + 1] - index.entry_start[alternative]
        for choice in range(entries):
            count, dims = write_question(index, plane, alternative, choice)
            capacity = max(SMALLEST_CAPACITY, fits_in_trees(index, count))
            needs[NEED_NODES] += 4
            needs[NEED_COORDINATES] += 4 * capacity * dims
            needs[NEED_SLOTS] += 4 * capacity
            needs[NEED_TRIE] += count
    return bool(
        needs[NEED_NODES] <= len(forest.split)
        and needs[NEED_COORDINATES] <= len(forest.coordinates)
        and needs[NEED_SLOTS] <= len(forest.entries)
        and needs[NEED_TRIE] <= len(trie.tree)
    )


@inner_kernel
def fits_in_trees(index: TrieArrays, count: int) -> int:
    """The capacity of the bucket that the walk's entry belongs to; 0 where there is none."""
    trie, forest = index.trie, index.forest
    node = ROOT
    for position in range(count):
        node = child_of(trie, node, index.walk.wanted.token[position])
        if node == NO_CHILD:
            return 0
    leaf = trie.tree[node]
    return 0 if leaf == NO_TREE else forest.capacity[leaf_for(forest, leaf, index.walk.point)]


@inner_kernel
def insert_row(index: TrieArrays, plane: bool, row: int) -> None:
    """Insert every possible alternative of *row* into its groups."""
    columns, trie = index.columns, index.trie
    for alternative in range(columns.alternative_start[row], columns.alternative_start[row + 1]):
        if index.states[alternative] == IMPOSSIBLE:
            continue
        first = index.entry_start[alternative]
        for entry in range(first, index.entry_start[alternative + 1]):
            count, dims = write_question(index, plane, alternative, entry - first)
            node = node_for(trie, index.walk.wanted.token, count)
            if trie.tree[node] == NO_TREE:
                trie.tree[node] = new_leaf(index.forest, dims, SMALLEST_CAPACITY, NO_NODE)
                trie.dims[node] = dims
            insert_point(index.forest, trie.tree[node], dims, entry, index.walk.point, index.limits)
            index.node_of[entry] = node
            count_entry(trie, node, 1)


@inner_kernel
def remove_row(index: TrieArrays, row: int) -> None:
    """Remove every alternative of *row* from its groups."""
    columns, trie = index.columns, index.trie
    for alternative in range(columns.alternative_start[row], columns.alternative_start[row + 1]):
        if index.states[alternative] == IMPOSSIBLE:
            continue
        for entry in range(index.entry_start[alternative], index.entry_start[alternative + 1]):
            node = index.node_of[entry]
            remove_entry(index.forest, entry, trie.dims[node], index.limits)
            count_entry(trie, node, -1)


@kernel
def insert_rows(index: TrieArrays, plane: bool, rows: Int64) -> int:
    """Insert *rows*; how many fitted."""
    for number in range(len(rows)):
        if not has_trie_capacity(index, plane, rows[number]):
            return number
        insert_row(index, plane, rows[number])
    return len(rows)
