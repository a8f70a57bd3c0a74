"""The G_k algorithm over whole subscriptions, an array of commands at a time (paper: III.C)."""

from __future__ import annotations

from stentor._jit import inner_kernel, kernel
from stentor.covering.graph.edges import (
    CALLS,
    COMMANDS,
    COUNTERS,
    FORWARDED,
    NODES_VISITED,
    POINTS_COMPARED,
    CommandResult,
    Edges,
    add_edges,
    drop_node,
)
from stentor.covering.kd_tree.match import COMPARED, VISITED
from stentor.covering.trie.insert import has_trie_capacity, insert_row, remove_row
from stentor.covering.trie.layout import (
    TrieArrays,
)
from stentor.covering.trie.match import NEEDS_DEFINITION, trie_coverers
from stentor.encoding.columns import Int64

# Why `run_commands` returned.
DONE, NO_CAPACITY, QUESTION = 0, 1, 2
# What `pending` holds: of the orphans of the last unsubscription, the next one and how many.
NEXT, LAST_ORPHAN = 0, 1


@kernel
def run_commands(
    edges: Edges,
    index: TrieArrays,
    plane: bool,
    k: int,
    commands: Int64,
    pending: Int64,
    result: CommandResult,
) -> tuple[int, int, int]:
    """Apply *commands*: a row subscribes, ~row unsubscribes.

    Returns how many were done, how many entries of `sent` they made, and why it stopped. Orphans
    that had no result when it stopped wait in `result.orphans` and come first the next time.
    """
    sent = 0
    number = 0
    while True:
        while pending[NEXT] < pending[LAST_ORPHAN]:
            orphan = result.orphans[pending[NEXT]]
            if sent == len(result.sent):
                return number, sent, NO_CAPACITY
            count = counted_coverers(edges, index, plane, k, orphan, result, COUNTERS)
            if count == NEEDS_DEFINITION:
                return number, sent, QUESTION
            pending[NEXT] += 1
            add_edges(edges, k, orphan, result.found, count)
            if count == 0:
                result.sent[sent] = orphan
                sent += 1
        if number == len(commands):
            return number, sent, DONE
        row = commands[number]
        if sent == len(result.sent):
            return number, sent, NO_CAPACITY
        if row >= 0:
            if not has_trie_capacity(index, plane, row):
                return number, sent, NO_CAPACITY
            count = counted_coverers(edges, index, plane, k, row, result, 0)
            if count == NEEDS_DEFINITION:
                return number, sent, QUESTION
            add_edges(edges, k, row, result.found, count)
            insert_row(index, plane, row)
            if count == 0:
                result.sent[sent] = row
                sent += 1
            result.counters[COMMANDS] += 1
        else:
            if edges.state[~row] == FORWARDED:
                result.sent[sent] = row
                sent += 1
            remove_row(index, ~row)
            pending[NEXT] = 0
            pending[LAST_ORPHAN] = drop_node(edges, k, ~row, result.orphans)
            result.counters[COMMANDS + COUNTERS] += 1
        number += 1


@inner_kernel
def counted_coverers(
    edges: Edges,
    index: TrieArrays,
    plane: bool,
    k: int,
    row: int,
    result: CommandResult,
    counted: int,
) -> int:
    """`trie_coverers`, counted."""
    state = index.search.state
    walked, nodes, points = index.walk.state[0], state[VISITED], state[COMPARED]
    count = trie_coverers(index, edges, plane, k, row, result.found)
    visited = state[VISITED] - nodes + index.walk.state[0] - walked
    result.counters[counted + NODES_VISITED] += visited
    result.counters[counted + POINTS_COMPARED] += state[COMPARED] - points
    if count != NEEDS_DEFINITION:
        result.counters[counted + CALLS] += 1
    return count
