"""The G_k algorithm over points, a row of commands at a time.

Paper: III.C, with IV's indexes behind cov_k. One kernel serves all of them: what is compared in a
benchmark differs in nothing but the index.
"""

from __future__ import annotations

from typing import NamedTuple

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
from stentor.covering.kd_tree.insert import has_capacity, insert_point, remove_entry
from stentor.covering.kd_tree.layout import BucketLimits, KdTrees
from stentor.covering.kd_tree.match import (
    COMPARED,
    VISITED,
    KdMatchScratch,
    begin_matching,
    next_hits,
)
from stentor.encoding.columns import Float64, Int64
from stentor_lab.baselines.curve import Curve
from stentor_lab.baselines.curve_changes import fits_one_more_block, insert_key, remove_key
from stentor_lab.baselines.curve_search import CurveSearch, curve_coverers
from stentor_lab.baselines.point_rows import Rows, insert_row, remove_row, row_coverers
from stentor_lab.baselines.points import goes_before

# Which index answers cov_k.
FOREST, CURVE, ROWS = 0, 1, 2


class PointIndex(NamedTuple):
    """The points, and every index that could hold them: all but one are empty."""

    points: Float64  # (subscriptions × dims)
    forest: KdTrees
    limits: BucketLimits
    search: KdMatchScratch
    curve: Curve
    curve_search: CurveSearch
    rows: Rows
    state: Int64  # (2,) nodes visited and points compared by the naive scan


@kernel
def run_commands(
    edges: Edges,
    index: PointIndex,
    which: int,
    dims: int,
    k: int,
    commands: Int64,
    result: CommandResult,
) -> tuple[int, int]:
    """Let *commands* happen: a row subscribes, ~row unsubscribes.

    Returns how many were done, and how many entries of `sent` they made. It stops early where an
    array is full: the caller enlarges it and goes on from there.
    """
    sent = 0
    for number in range(len(commands)):
        row = commands[number]
        if row >= 0:
            if not has_room(index, which, dims) or sent + 1 > len(result.sent):
                return number, sent
            count = cov_k(index, which, dims, k, row, result, 0)
            add_edges(edges, k, row, result.found, count)
            enter(index, which, dims, row)
            if count == 0:
                result.sent[sent] = row
                sent += 1
        else:
            gone = ~row
            if sent + edges.covered[gone] + 1 > len(result.sent):
                return number, sent
            if edges.state[gone] == FORWARDED:
                result.sent[sent] = row
                sent += 1
            leave(index, which, dims, gone)
            orphans = drop_node(edges, k, gone, result.orphans)
            for position in range(orphans):
                orphan = result.orphans[position]
                count = cov_k(index, which, dims, k, orphan, result, COUNTERS)
                add_edges(edges, k, orphan, result.found, count)
                if count == 0:
                    result.sent[sent] = orphan
                    sent += 1
        result.counters[COMMANDS + (0 if row >= 0 else COUNTERS)] += 1
    return len(commands), sent


@kernel
def enter_all(index: PointIndex, which: int, dims: int, rows: Int64) -> int:
    """Put *rows* into the index; how many fitted."""
    for number in range(len(rows)):
        if not has_room(index, which, dims):
            return number
        enter(index, which, dims, rows[number])
    return len(rows)


@inner_kernel
def has_room(index: PointIndex, which: int, dims: int) -> bool:
    """Whether one more point surely fits."""
    if which == FOREST:
        return has_capacity(index.forest, dims, index.limits)
    return which == ROWS or fits_one_more_block(index.curve)


@inner_kernel
def enter(index: PointIndex, which: int, dims: int, row: int) -> None:
    """Put *row* into the index."""
    point = index.points[row * dims : row * dims + dims]
    if which == FOREST:
        insert_point(index.forest, 0, dims, row, point, index.limits)
    elif which == CURVE:
        insert_key(index.curve, row, point, index.curve_search.key)
    else:
        insert_row(index.rows, row)


@inner_kernel
def leave(index: PointIndex, which: int, dims: int, row: int) -> None:
    """Take *row* out of the index."""
    if which == FOREST:
        remove_entry(index.forest, row, dims, index.limits)
    elif which == CURVE:
        remove_key(index.curve, row, index.curve_search.key)
    else:
        remove_row(index.rows, row)


@inner_kernel
def cov_k(
    index: PointIndex,
    which: int,
    dims: int,
    k: int,
    row: int,
    result: CommandResult,
    counted: int,
) -> int:
    """Up to *k* subscriptions that cover *row*, into `outcome.found`; how many.

    Neither the subscription itself nor a younger equal one.
    """
    result.counters[counted + CALLS] += 1
    if which == FOREST:
        state = index.search.state
        nodes, points = state[VISITED], state[COMPARED]
        count = forest_coverers(index, dims, k, row, result.found)
        result.counters[counted + NODES_VISITED] += state[VISITED] - nodes
        result.counters[counted + POINTS_COMPARED] += state[COMPARED] - points
        return count
    state = index.curve_search.state if which == CURVE else index.state
    nodes, points = state[0], state[1]
    if which == CURVE:
        count = curve_coverers(index.curve, index.points, row, k, index.curve_search, result.found)
    else:
        count = row_coverers(index.rows, index.points, dims, row, k, state, result.found)
    result.counters[counted + NODES_VISITED] += state[0] - nodes
    result.counters[counted + POINTS_COMPARED] += state[1] - points
    return count


@inner_kernel
def forest_coverers(index: PointIndex, dims: int, k: int, row: int, found: Int64) -> int:
    """Up to *k* coverers of *row* from the tree with the root 0."""
    query = index.points[row * dims : row * dims + dims]
    begin_matching(index.search, 0)
    count = 0
    while True:
        hits = next_hits(index.forest, dims, query, index.search)
        if hits == 0:
            return count
        for position in range(hits):
            entry = index.search.hits[position]
            if entry != row and goes_before(index.points, dims, entry, row):
                found[count] = entry
                count += 1
                if count == k:
                    return count
