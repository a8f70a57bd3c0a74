"""The best so far, what is still to be looked at, and the lines that bound scores: for `top.py`."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel_inline
from stentor._tables import LANES
from stentor.encoding.columns import Float64, Int64, UInt8
from stentor.index.packed.lists.layout import whole
from stentor.index.packed.nodes.layout import Float32, NodeArrays, NodeScratch, UInt16

#: Bounds are added up in another order than scores are, and compared as 32 bits.
COARSE: Final = 1.0 - 1e-6
MORE: Final = 1.0 + 1e-9
#: Lines that bound scores by promises, and as many by totals.
LINES: Final = 16
#: Slopes of lines are between: their products with promises and totals are numbers.
_LEAST_SLOPE, _MOST_SLOPE = 1e-150, 1e150


class BestScratch(NamedTuple):
    """Mutable arrays for one thread: what is still to be looked at, and the best so far."""

    bound: Float64  # (nodes,) a heap, the highest first
    node: Int64  # (nodes,)
    lanes: Int64  # (nodes,) the nodes below that are met
    size: Int64  # (3,) of that heap, of the best, of what was found
    score: Float64  # (k,) a heap, the least first
    row: Int64  # (k,)
    weight: Float64  # (axes,) the event's
    weight_byte: UInt8  # (axes,) that times the greatest of the axis, in 255ths of the most
    table: UInt8  # (LANES,) the same by slot
    most: UInt16  # (LANES,) what lanes may reach
    slope: Float64  # (2 × LINES,) by promise, by total
    base: Float64  # (2 × LINES,)
    needed: Float32  # (2,) the promise and the total that an entry must have
    number: Float64  # (4,) see below
    is_best: UInt8  # (rows,) 1 of those in the heap, where a row may be found more than once


# Positions in `BestScratch.size` and `number`.
WAITING, BEST, FOUND = range(3)
UNIT, OTHER, NEEDED_FOR, GREATEST = range(4)


class BestFound(NamedTuple):
    """Rows that were among the k best when they were found; what does not fit is counted."""

    event: Int64
    row: Int64
    score: Float64


def best_scratch(k: int, nodes: int, axes: int, rows: int) -> BestScratch:
    """Scratch for the *k* best."""
    return BestScratch(
        np.empty(nodes + 1),
        np.empty(nodes + 1, np.int64),
        np.empty(nodes + 1, np.int64),
        np.zeros(3, np.int64),
        np.empty(k),
        np.empty(k, np.int64),
        np.zeros(axes),
        np.zeros(axes, np.uint8),
        np.zeros(LANES, np.uint8),
        np.zeros(LANES, np.uint16),
        np.ones(2 * LINES),
        np.zeros(2 * LINES),
        np.zeros(2, np.float32),
        np.zeros(4),
        np.zeros(rows, np.uint8),
    )


@kernel_inline
def draw_line(
    nodes: NodeArrays, scratch: NodeScratch, best: BestScratch, line: int, slope: float
) -> None:
    """Find the base of *line* for *slope*; a slope that is no use bounds nothing."""
    best.slope[line], best.base[line] = 1.0, math.inf
    if not _LEAST_SLOPE < slope < _MOST_SLOPE:
        return
    base = 0.0
    for position in range(scratch.used[0]):
        axis = scratch.axis[position]
        heaviest = nodes.heaviest[axis]
        usual = heaviest if line < LINES else 1.0
        surplus = best.weight[axis] - slope * usual
        base += heaviest * surplus if surplus > 0.0 else 0.0
    best.slope[line], best.base[line] = slope, base * MORE


@kernel_inline
def least_score(best: BestScratch) -> float:
    """What a row must score to be among the k best so far; −∞ while there are fewer."""
    return float(best.score[0]) if best.size[BEST] == len(best.score) else -math.inf


@inner_kernel
def find_needed(best: BestScratch) -> None:
    """Fill `best.needed` for the score that must be reached now."""
    wanted = least_score(best)
    best.number[NEEDED_FOR] = wanted
    wanted -= best.number[OTHER] + abs(wanted) * 1e-9
    for kind in range(2):
        needed = 0.0
        for line in range(kind * LINES, (kind + 1) * LINES):
            least = (wanted - best.base[line]) / best.slope[line]
            needed = max(needed, least) if least > needed else needed  # which NaN never is
        best.needed[kind] = np.float32(needed * COARSE)


@kernel_inline
def bound_of(nodes: NodeArrays, node: int, best: BestScratch) -> float:
    """The most that anything below *node* scores: by the lines of the greatest slopes."""
    promise, total = np.float64(nodes.promise[node]), np.float64(nodes.total[node])
    most = math.inf
    for line in range(LINES):
        by_promise = best.slope[line] * promise + best.base[line]
        by_total = best.slope[LINES + line] * total + best.base[LINES + line]
        most = min(most, by_promise) if by_promise < most else most
        most = min(most, by_total) if by_total < most else most
    return float(most + best.number[OTHER])


@kernel_inline
def bound_by(promise: float, best: BestScratch) -> float:
    """The most that entries score whose promise is at most *promise*."""
    most = math.inf
    for line in range(LINES):
        by_promise = best.slope[line] * promise + best.base[line]
        most = min(most, by_promise) if by_promise < most else most
    return float(most + best.number[OTHER])


@kernel_inline
def add_waiting(best: BestScratch, bound: float, node: int, lanes: int) -> None:
    """Add *node* to what is still to be looked at."""
    position = best.size[WAITING]
    best.size[WAITING] = position + 1
    while position > 0 and best.bound[(position - 1) >> 1] < bound:
        above = (position - 1) >> 1
        best.bound[position], best.node[position] = best.bound[above], best.node[above]
        best.lanes[position] = best.lanes[above]
        position = above
    best.bound[position], best.node[position], best.lanes[position] = bound, node, lanes


@inner_kernel
def take_waiting(best: BestScratch) -> tuple[int, int]:
    """Remove the node with the highest bound, and the nodes below it that are met."""
    node, lanes = best.node[0], best.lanes[0]
    size = best.size[WAITING] - 1
    best.size[WAITING] = size
    bound, position = best.bound[size], 0
    while 2 * position + 1 < size:
        child = 2 * position + 1
        if child + 1 < size and best.bound[child + 1] > best.bound[child]:
            child += 1
        if best.bound[child] <= bound:
            break
        best.bound[position], best.node[position] = best.bound[child], best.node[child]
        best.lanes[position] = best.lanes[child]
        position = child
    best.bound[position], best.node[position] = bound, best.node[size]
    best.lanes[position] = best.lanes[size]
    return int(node), int(lanes)


@inner_kernel
def add_best(best: BestScratch, row: int, score: float, is_single: bool) -> None:
    """Add *row* to the k best so far, where it is not among them: by its first score.

    A row that comes again with a higher score keeps the lower one here: it still says what must be
    reached at least.
    """
    if not is_single and best.is_best[row] != 0:
        return
    size, position = best.size[BEST], whole(0)
    if size < len(best.score):
        best.size[BEST] = size + 1
        position = size
        while position > 0 and best.score[(position - 1) >> 1] > score:
            above = (position - 1) >> 1
            best.score[position], best.row[position] = best.score[above], best.row[above]
            position = above
    else:
        if score <= best.score[0]:
            return
        if not is_single:
            best.is_best[best.row[0]] = 0
        while 2 * position + 1 < size:
            child = 2 * position + 1
            if child + 1 < size and best.score[child + 1] < best.score[child]:
                child += 1
            if best.score[child] >= score:
                break
            best.score[position], best.row[position] = best.score[child], best.row[child]
            position = child
    best.score[position], best.row[position] = score, row
    if not is_single:
        best.is_best[row] = 1
