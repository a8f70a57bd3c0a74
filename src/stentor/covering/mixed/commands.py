"""The G_k algorithm over whole subscriptions, a row of commands at a time (paper: III.C)."""

from __future__ import annotations

from stentor._jit import kernel, kernel_part
from stentor.covering.dominance.forest import COORDINATES, NO_NODE, NODES, SLOTS
from stentor.covering.dominance.tree_changes import (
    SMALLEST_ROOM,
    insert_point,
    leaf_for,
    new_leaf,
    remove_entry,
)
from stentor.covering.dominance.tree_search import COMPARED, VISITED
from stentor.covering.graph.commands import (
    CALLS,
    COMMANDS,
    COUNTERS,
    NODES_VISITED,
    POINTS_COMPARED,
    Outcome,
)
from stentor.covering.graph.edges import FORWARDED, Edges, add_edges, drop_node
from stentor.covering.mixed.dims import write_dims
from stentor.covering.mixed.layout import (
    NEED_COORDINATES,
    NEED_NODES,
    NEED_SLOTS,
    NEED_TRIE,
    MixedIndex,
)
from stentor.covering.mixed.search import MUST_ASK, mixed_coverers
from stentor.covering.mixed.tokens import IMPOSSIBLE, tokens_asked
from stentor.covering.mixed.trie import (
    NO_CHILD,
    NO_TREE,
    ROOT,
    child_of,
    count_entry,
    node_for,
)
from stentor.encoding.columns import Int64

# Why `run_mixed` came back.
DONE, NO_ROOM, QUESTION = 0, 1, 2
# What `pending` holds: of the orphans of the last unsubscription, the next one and how many.
NEXT, LAST_ORPHAN = 0, 1


@kernel
def run_mixed(
    edges: Edges,
    index: MixedIndex,
    plane: bool,
    k: int,
    commands: Int64,
    pending: Int64,
    outcome: Outcome,
) -> tuple[int, int, int]:
    """Let *commands* happen: a row subscribes, ~row unsubscribes.

    Returns how many were done, how many entries of `sent` they made, and why it stopped. Orphans
    that were not settled when it stopped wait in `outcome.orphans` and come first the next time.
    """
    sent = 0
    number = 0
    while True:
        while pending[NEXT] < pending[LAST_ORPHAN]:
            orphan = outcome.orphans[pending[NEXT]]
            if sent == len(outcome.sent):
                return number, sent, NO_ROOM
            count = counted_coverers(edges, index, plane, k, orphan, outcome, COUNTERS)
            if count == MUST_ASK:
                return number, sent, QUESTION
            pending[NEXT] += 1
            add_edges(edges, k, orphan, outcome.found, count)
            if count == 0:
                outcome.sent[sent] = orphan
                sent += 1
        if number == len(commands):
            return number, sent, DONE
        row = commands[number]
        if sent == len(outcome.sent):
            return number, sent, NO_ROOM
        if row >= 0:
            if not has_room(index, plane, row):
                return number, sent, NO_ROOM
            count = counted_coverers(edges, index, plane, k, row, outcome, 0)
            if count == MUST_ASK:
                return number, sent, QUESTION
            add_edges(edges, k, row, outcome.found, count)
            enter_row(index, plane, row)
            if count == 0:
                outcome.sent[sent] = row
                sent += 1
            outcome.counters[COMMANDS] += 1
        else:
            if edges.standing[~row] == FORWARDED:
                outcome.sent[sent] = row
                sent += 1
            leave_row(index, ~row)
            pending[NEXT] = 0
            pending[LAST_ORPHAN] = drop_node(edges, k, ~row, outcome.orphans)
            outcome.counters[COMMANDS + COUNTERS] += 1
        number += 1


@kernel_part
def counted_coverers(
    edges: Edges,
    index: MixedIndex,
    plane: bool,
    k: int,
    row: int,
    outcome: Outcome,
    counted: int,
) -> int:
    """`mixed_coverers`, counted."""
    state = index.search.state
    walked, nodes, points = index.walk.state[0], state[VISITED], state[COMPARED]
    count = mixed_coverers(index, edges, plane, k, row, outcome.found)
    visited = state[VISITED] - nodes + index.walk.state[0] - walked
    outcome.counters[counted + NODES_VISITED] += visited
    outcome.counters[counted + POINTS_COMPARED] += state[COMPARED] - points
    if count != MUST_ASK:
        outcome.counters[counted + CALLS] += 1
    return count


@kernel_part
def write_asked(index: MixedIndex, plane: bool, alternative: int, choice: int) -> tuple[int, int]:
    """The tokens and the point of an entry, into the walk: how many tokens, how many dimensions."""
    asked = index.walk.asked
    start = index.columns.alternative_start
    row = index.row_of[index.entry_start[alternative]]
    branching = start[row + 1] - start[row] > 1
    count = tokens_asked(index.columns, alternative, choice, branching, asked)
    dims = 0
    for place in range(count):
        dims = write_dims(
            index.columns,
            index.kinds,
            plane,
            alternative,
            asked.predicate[place],
            False,
            index.walk.point,
            dims,
        )
    return count, dims


@kernel_part
def has_room(index: MixedIndex, plane: bool, row: int) -> bool:
    """Whether *row* surely fits; `needs` says how long the pools must be."""
    needs, trie, forest = index.needs, index.trie, index.forest
    needs[NEED_NODES], needs[NEED_TRIE] = forest.used[NODES], trie.used[0]
    needs[NEED_COORDINATES], needs[NEED_SLOTS] = forest.used[COORDINATES], forest.used[SLOTS]
    start = index.columns.alternative_start
    for alternative in range(start[row], start[row + 1]):
        if index.states[alternative] == IMPOSSIBLE:
            continue
        entries = index.entry_start[alternative + 1] - index.entry_start[alternative]
        for choice in range(entries):
            count, dims = write_asked(index, plane, alternative, choice)
            room = max(SMALLEST_ROOM, room_there(index, count))
            needs[NEED_NODES] += 4
            needs[NEED_COORDINATES] += 4 * room * dims
            needs[NEED_SLOTS] += 4 * room
            needs[NEED_TRIE] += count
    return bool(
        needs[NEED_NODES] <= len(forest.split)
        and needs[NEED_COORDINATES] <= len(forest.coordinates)
        and needs[NEED_SLOTS] <= len(forest.entries)
        and needs[NEED_TRIE] <= len(trie.tree)
    )


@kernel_part
def room_there(index: MixedIndex, count: int) -> int:
    """How large the bucket is into which the entry in the walk would go; 0 where there is none."""
    trie, forest = index.trie, index.forest
    node = ROOT
    for place in range(count):
        node = child_of(trie, node, index.walk.asked.token[place])
        if node == NO_CHILD:
            return 0
    leaf = trie.tree[node]
    return 0 if leaf == NO_TREE else forest.room[leaf_for(forest, leaf, index.walk.point)]


@kernel_part
def enter_row(index: MixedIndex, plane: bool, row: int) -> None:
    """File every possible alternative of *row* in its groups."""
    columns, trie = index.columns, index.trie
    for alternative in range(columns.alternative_start[row], columns.alternative_start[row + 1]):
        if index.states[alternative] == IMPOSSIBLE:
            continue
        first = index.entry_start[alternative]
        for entry in range(first, index.entry_start[alternative + 1]):
            count, dims = write_asked(index, plane, alternative, entry - first)
            node = node_for(trie, index.walk.asked.token, count)
            if trie.tree[node] == NO_TREE:
                trie.tree[node] = new_leaf(index.forest, dims, SMALLEST_ROOM, NO_NODE)
                trie.dims[node] = dims
            insert_point(index.forest, trie.tree[node], dims, entry, index.walk.point, index.limits)
            index.node_of[entry] = node
            count_entry(trie, node, 1)


@kernel_part
def leave_row(index: MixedIndex, row: int) -> None:
    """Take every alternative of *row* out of its groups."""
    columns, trie = index.columns, index.trie
    for alternative in range(columns.alternative_start[row], columns.alternative_start[row + 1]):
        if index.states[alternative] == IMPOSSIBLE:
            continue
        for entry in range(index.entry_start[alternative], index.entry_start[alternative + 1]):
            node = index.node_of[entry]
            remove_entry(index.forest, entry, trie.dims[node], index.limits)
            count_entry(trie, node, -1)


@kernel
def enter_rows(index: MixedIndex, plane: bool, rows: Int64) -> int:
    """File *rows*; how many fitted."""
    for number in range(len(rows)):
        if not has_room(index, plane, rows[number]):
            return number
        enter_row(index, plane, rows[number])
    return len(rows)
