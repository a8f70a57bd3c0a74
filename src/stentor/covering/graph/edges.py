"""The graph G_k as arrays: up to k coverers of each subscription, and lists of what it covers.

    edge = subscription × k + position:  coverer[edge] ─▶ subscription
    first[coverer] ─▶ edge ⇄ edge ⇄ …   the edges out of one coverer, doubly linked

Adding and removing an edge cost a constant; nothing is ever moved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel
from stentor.encoding.columns import Int64, UInt8

NONE = -1
# What `state` holds of each subscription.
GONE, PASSIVE, FORWARDED = 0, 1, 2

# Counters, for subscriptions; those for unsubscriptions are COUNTERS further.
CALLS, NODES_VISITED, POINTS_COMPARED, COMMANDS = range(4)
COUNTERS = 4


class Edges(NamedTuple):
    """G_k; k is len(coverer) over len(first)."""

    coverer: Int64  # (subscriptions × k) NONE where there is no edge
    following: Int64  # (subscriptions × k) the next edge out of the same coverer
    before: Int64  # (subscriptions × k) the previous one
    first: Int64  # (subscriptions,) the first edge out
    covered: Int64  # (subscriptions,) how many edges go out
    coverers: Int64  # (subscriptions,) how many come in
    state: UInt8  # (subscriptions,)


def new_edges(k: int, rows: int = 0) -> Edges:
    """A graph of so many subscriptions, all of them GONE."""
    return Edges(
        coverer=np.full(rows * k, NONE),
        following=np.full(rows * k, NONE),
        before=np.full(rows * k, NONE),
        first=np.full(rows, NONE),
        covered=np.zeros(rows, np.int64),
        coverers=np.zeros(rows, np.int64),
        state=np.zeros(rows, np.uint8),
    )


@inner_kernel
def add_edges(edges: Edges, k: int, row: int, found: Int64, count: int) -> None:
    """Let the first *count* of *found* cover *row*, which nothing covers yet.

    Paper: III.C, steps 2 to 4 of a subscription and 3a to 3c of an unsubscription.
    """
    for position in range(count):
        edge = row * k + position
        coverer = found[position]
        edges.coverer[edge] = coverer
        edges.before[edge] = NONE
        edges.following[edge] = edges.first[coverer]
        if edges.first[coverer] != NONE:
            edges.before[edges.first[coverer]] = edge
        edges.first[coverer] = edge
        edges.covered[coverer] += 1
    edges.coverers[row] = count
    edges.state[row] = PASSIVE if count > 0 else FORWARDED


@inner_kernel
def drop_edge(edges: Edges, edge: int) -> None:
    """Remove *edge* from its coverer's list."""
    coverer, before, following = edges.coverer[edge], edges.before[edge], edges.following[edge]
    if before == NONE:
        edges.first[coverer] = following
    else:
        edges.following[before] = following
    if following != NONE:
        edges.before[following] = before
    edges.covered[coverer] -= 1
    edges.coverer[edge] = NONE


@inner_kernel
def drop_node(edges: Edges, k: int, row: int, orphans: Int64) -> int:
    """Remove *row* with all its edges; what nothing covers now goes into *orphans*; how many."""
    for position in range(k):
        if edges.coverer[row * k + position] != NONE:
            drop_edge(edges, row * k + position)
    count = 0
    edge = edges.first[row]
    while edge != NONE:
        following = edges.following[edge]
        child = edge // k
        edges.coverer[edge] = NONE
        edges.coverers[child] -= 1
        if edges.coverers[child] == 0:
            orphans[count] = child
            count += 1
        edge = following
    edges.first[row] = NONE
    edges.covered[row] = 0
    edges.coverers[row] = 0
    edges.state[row] = GONE
    return count


@inner_kernel
def is_below(edges: Edges, k: int, row: int, ancestor: int) -> bool:
    """Whether the path from *row* up along first edges leads to *ancestor*.

    Then *row* must not cover it: both would be passive for ever. While covering is transitive this
    cannot happen; it costs next to nothing to be sure.
    """
    steps = 0
    while row != ancestor:
        if edges.state[row] == FORWARDED:
            return False
        position = row * k
        while position < row * k + k and edges.coverer[position] == NONE:
            position += 1
        steps += 1
        if position == row * k + k:
            return False  # an orphan too, which is yet to be processed
        if steps > len(edges.first):
            return True
        row = edges.coverer[position]
    return True


class CommandResult(NamedTuple):
    """What commands result in, and scratch for them."""

    sent: Int64  # rows to be forwarded now; ~row is to be withdrawn
    found: Int64  # (k,)
    orphans: Int64  # (subscriptions,)
    counters: Int64  # (2 × COUNTERS,)


def new_result(k: int, sent: int, rows: int) -> CommandResult:
    """The result of no commands, with capacity for so many sent and so many orphans."""
    return CommandResult(
        np.empty(sent, np.int64),
        np.empty(k, np.int64),
        np.empty(rows, np.int64),
        np.zeros(2 * COUNTERS, np.int64),
    )
