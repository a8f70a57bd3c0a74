"""The graph G_k as arrays: up to k coverers of each subscription, and lists of whom it covers.

    edge = subscription × k + place:  coverer[edge] ─▶ subscription
    first[coverer] ─▶ edge ⇄ edge ⇄ …   the edges out of one coverer, linked both ways

Adding an edge and taking one out cost a constant; nothing is ever moved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import kernel_part
from stentor.encoding.columns import Int64, UInt8

NONE = -1
# What `standing` says of a subscription.
GONE, PASSIVE, FORWARDED = 0, 1, 2


class Edges(NamedTuple):
    """G_k; k is len(coverer) over len(first)."""

    coverer: Int64  # (subscriptions × k) NONE where there is no edge
    following: Int64  # (subscriptions × k) the next edge out of the same coverer
    before: Int64  # (subscriptions × k) the previous one
    first: Int64  # (subscriptions,) the first edge out
    covered: Int64  # (subscriptions,) how many edges go out
    coverers: Int64  # (subscriptions,) how many come in
    standing: UInt8  # (subscriptions,)


def new_edges(k: int, rows: int = 0) -> Edges:
    """A graph of so many subscriptions, none of which stands."""
    return Edges(
        coverer=np.full(rows * k, NONE),
        following=np.full(rows * k, NONE),
        before=np.full(rows * k, NONE),
        first=np.full(rows, NONE),
        covered=np.zeros(rows, np.int64),
        coverers=np.zeros(rows, np.int64),
        standing=np.zeros(rows, np.uint8),
    )


@kernel_part
def add_edges(edges: Edges, k: int, row: int, found: Int64, count: int) -> None:
    """Let the first *count* of *found* cover *row*, which nobody covers yet.

    Paper: III.C, steps 2 to 4 of a subscription and 3a to 3c of an unsubscription.
    """
    for place in range(count):
        edge = row * k + place
        coverer = found[place]
        edges.coverer[edge] = coverer
        edges.before[edge] = NONE
        edges.following[edge] = edges.first[coverer]
        if edges.first[coverer] != NONE:
            edges.before[edges.first[coverer]] = edge
        edges.first[coverer] = edge
        edges.covered[coverer] += 1
    edges.coverers[row] = count
    edges.standing[row] = PASSIVE if count > 0 else FORWARDED


@kernel_part
def drop_edge(edges: Edges, edge: int) -> None:
    """Take *edge* out of its coverer's list."""
    coverer, before, following = edges.coverer[edge], edges.before[edge], edges.following[edge]
    if before == NONE:
        edges.first[coverer] = following
    else:
        edges.following[before] = following
    if following != NONE:
        edges.before[following] = before
    edges.covered[coverer] -= 1
    edges.coverer[edge] = NONE


@kernel_part
def drop_node(edges: Edges, k: int, row: int, orphans: Int64) -> int:
    """Take *row* out with all its edges; those whom nobody covers now, into *orphans*."""
    for place in range(k):
        if edges.coverer[row * k + place] != NONE:
            drop_edge(edges, row * k + place)
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
    edges.standing[row] = GONE
    return count


@kernel_part
def hangs_on(edges: Edges, k: int, row: int, ancestor: int) -> bool:
    """Whether the way from *row* up along first edges leads to *ancestor*.

    Then *row* must not cover it: both would be passive for ever. While covering is transitive this
    cannot happen; it costs next to nothing to be sure.
    """
    steps = 0
    while row != ancestor:
        if edges.standing[row] == FORWARDED:
            return False
        place = row * k
        while place < row * k + k and edges.coverer[place] == NONE:
            place += 1
        steps += 1
        if place == row * k + k:
            return False  # it has lost its coverer too, and waits for its turn
        if steps > len(edges.first):
            return True
        row = edges.coverer[place]
    return True
