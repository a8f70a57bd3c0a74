"""The G_k algorithm over points, a row of commands at a time.

Paper: III.C, with IV's indexes behind cov_k. One kernel serves all of them: what is compared in a
benchmark differs in nothing but the index.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_part
from stentor.covering.dominance.curve import Curve
from stentor.covering.dominance.curve_changes import fits_one_more_block, insert_key, remove_key
from stentor.covering.dominance.curve_search import CurveSearch, curve_coverers
from stentor.covering.dominance.forest import Forest, Limits
from stentor.covering.dominance.points import goes_before
from stentor.covering.dominance.rows import Rows, insert_row, remove_row, row_coverers
from stentor.covering.dominance.tree_changes import fits_one_more, insert_point, remove_entry
from stentor.covering.dominance.tree_search import (
    COMPARED,
    VISITED,
    Search,
    begin_search,
    next_hits,
)
from stentor.covering.graph.edges import FORWARDED, Edges, add_edges, drop_node
from stentor.encoding.columns import Float64, Int64

# Which index answers cov_k.
FOREST, CURVE, ROWS = 0, 1, 2

# Counters, for subscriptions; those for unsubscriptions are COUNTERS further.
CALLS, NODES_VISITED, POINTS_COMPARED, COMMANDS = range(4)
COUNTERS = 4


class PointIndex(NamedTuple):
    """The points, and every index that could hold them: all but one are empty."""

    points: Float64  # (subscriptions × dims)
    forest: Forest
    limits: Limits
    search: Search
    curve: Curve
    curve_search: CurveSearch
    rows: Rows
    state: Int64  # (2,) nodes visited and points compared by the naive scan


class Outcome(NamedTuple):
    """What the commands led to."""

    sent: Int64  # rows to be forwarded now; ~row is to be withdrawn
    found: Int64  # (k,)
    orphans: Int64  # (subscriptions,)
    counters: Int64  # (2 × COUNTERS,)


@kernel
def run_commands(
    edges: Edges,
    index: PointIndex,
    which: int,
    dims: int,
    k: int,
    commands: Int64,
    outcome: Outcome,
) -> tuple[int, int]:
    """Let *commands* happen: a row subscribes, ~row unsubscribes.

    Returns how many were done, and how many entries of `sent` they made. It stops early where an
    array is full: the caller enlarges it and goes on from there.
    """
    sent = 0
    for number in range(len(commands)):
        row = commands[number]
        if row >= 0:
            if not has_room(index, which, dims) or sent + 1 > len(outcome.sent):
                return number, sent
            count = cov_k(index, which, dims, k, row, outcome, 0)
            add_edges(edges, k, row, outcome.found, count)
            enter(index, which, dims, row)
            if count == 0:
                outcome.sent[sent] = row
                sent += 1
        else:
            gone = ~row
            if sent + edges.covered[gone] + 1 > len(outcome.sent):
                return number, sent
            if edges.standing[gone] == FORWARDED:
                outcome.sent[sent] = row
                sent += 1
            leave(index, which, dims, gone)
            orphans = drop_node(edges, k, gone, outcome.orphans)
            for place in range(orphans):
                orphan = outcome.orphans[place]
                count = cov_k(index, which, dims, k, orphan, outcome, COUNTERS)
                add_edges(edges, k, orphan, outcome.found, count)
                if count == 0:
                    outcome.sent[sent] = orphan
                    sent += 1
        outcome.counters[COMMANDS + (0 if row >= 0 else COUNTERS)] += 1
    return len(commands), sent


@kernel
def enter_all(index: PointIndex, which: int, dims: int, rows: Int64) -> int:
    """Put *rows* into the index; how many fitted."""
    for number in range(len(rows)):
        if not has_room(index, which, dims):
            return number
        enter(index, which, dims, rows[number])
    return len(rows)


@kernel_part
def has_room(index: PointIndex, which: int, dims: int) -> bool:
    """Whether one more point surely fits."""
    if which == FOREST:
        return fits_one_more(index.forest, dims, index.limits)
    return which == ROWS or fits_one_more_block(index.curve)


@kernel_part
def enter(index: PointIndex, which: int, dims: int, row: int) -> None:
    """Put *row* into the index."""
    point = index.points[row * dims : row * dims + dims]
    if which == FOREST:
        insert_point(index.forest, 0, dims, row, point, index.limits)
    elif which == CURVE:
        insert_key(index.curve, row, point, index.curve_search.key)
    else:
        insert_row(index.rows, row)


@kernel_part
def leave(index: PointIndex, which: int, dims: int, row: int) -> None:
    """Take *row* out of the index."""
    if which == FOREST:
        remove_entry(index.forest, row, dims, index.limits)
    elif which == CURVE:
        remove_key(index.curve, row, index.curve_search.key)
    else:
        remove_row(index.rows, row)


@kernel_part
def cov_k(
    index: PointIndex,
    which: int,
    dims: int,
    k: int,
    row: int,
    outcome: Outcome,
    counted: int,
) -> int:
    """Up to *k* subscriptions that cover *row*, into `outcome.found`; how many.

    Neither the subscription itself nor a younger equal one.
    """
    outcome.counters[counted + CALLS] += 1
    if which == FOREST:
        state = index.search.state
        nodes, points = state[VISITED], state[COMPARED]
        count = forest_coverers(index, dims, k, row, outcome.found)
        outcome.counters[counted + NODES_VISITED] += state[VISITED] - nodes
        outcome.counters[counted + POINTS_COMPARED] += state[COMPARED] - points
        return count
    state = index.curve_search.state if which == CURVE else index.state
    nodes, points = state[0], state[1]
    if which == CURVE:
        count = curve_coverers(index.curve, index.points, row, k, index.curve_search, outcome.found)
    else:
        count = row_coverers(index.rows, index.points, dims, row, k, state, outcome.found)
    outcome.counters[counted + NODES_VISITED] += state[0] - nodes
    outcome.counters[counted + POINTS_COMPARED] += state[1] - points
    return count


@kernel_part
def forest_coverers(index: PointIndex, dims: int, k: int, row: int, found: Int64) -> int:
    """Up to *k* coverers of *row* from the tree with the root 0."""
    query = index.points[row * dims : row * dims + dims]
    begin_search(index.search, 0)
    count = 0
    while True:
        hits = next_hits(index.forest, dims, query, index.search)
        if hits == 0:
            return count
        for place in range(hits):
            entry = index.search.hits[place]
            if entry != row and goes_before(index.points, dims, entry, row):
                found[count] = entry
                count += 1
                if count == k:
                    return count


def new_outcome(k: int, sent: int, rows: int) -> Outcome:
    """Room for what commands lead to."""
    return Outcome(
        np.empty(sent, np.int64),
        np.empty(k, np.int64),
        np.empty(rows, np.int64),
        np.zeros(2 * COUNTERS, np.int64),
    )
