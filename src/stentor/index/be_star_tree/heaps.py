"""The heaps of `top.py`: the frontier, nodes that may hold one of the k best, and the best rows.

Also the scratch of finding them, and which records of a chunk are candidates.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel_inline
from stentor.encoding.columns import Float64, Int32, Int64
from stentor.index.be_star_tree.layout import NONE, SLOTS, Float32

#: Records whose sketches are read at once.
CHUNK = 64
#: The weight of what an event lacks: a record that needs it does not match.
LACKING = -math.inf
#: Lines that bound scores by promises, and as many by totals.
LINES = 16
BY_PROMISE, BY_TOTAL = 0, LINES
# Positions in `TopScratch.size`.
FRONTIER, BEST, LACKED = 0, 1, 2


class TopScratch(NamedTuple):
    """Scratch of one call."""

    bound: Float64  # (p-nodes + leaves,) a heap, the frontier: the highest first
    bucket: Int64  # (p-nodes + leaves,) a p-node's first bucket, or −1 − the bucket of a leaf
    score: Float64  # (k,) a heap: the least first
    row: Int64  # (k,)
    size: Int64  # (3,) of both heaps; the signature of what the event lacks
    weight: Float64  # (SLOTS + 1,) the event's greatest by slot, and of all
    own_weight: Float64  # (dimensions,) the event's; LACKING where it has none
    slope: Float64  # (2 × LINES,) no score is above slope · promise + base, nor of the total
    base: Float64  # (2 × LINES,)
    line: Int64  # (2,) the lines that bound the whole tree best
    needed: Float32  # (2,) the promise and the total that a record must have
    candidate: Int64  # (CHUNK,) rows of a sketch that have both


def heaps_for(k: int, buckets: int, dimensions: int) -> TopScratch:
    """Scratch for a search of the *k* best among so many *buckets*."""
    return TopScratch(
        np.empty(2 * buckets + 1),
        np.empty(2 * buckets + 1, np.int64),
        np.empty(k),
        np.empty(k, np.int64),
        np.zeros(3, np.int64),
        np.empty(SLOTS + 1),
        np.full(dimensions, LACKING),
        np.empty(2 * LINES),
        np.empty(2 * LINES),
        np.empty(2, np.int64),
        np.empty(2, np.float32),
        np.empty(CHUNK, np.int64),
    )


@kernel_inline
def least_score(heaps: TopScratch) -> float:
    """What a row must score to be among the k best so far; −∞ while there are fewer."""
    if heaps.size[BEST] < len(heaps.score):
        return -math.inf
    return float(heaps.score[0])


@inner_kernel
def add_to_frontier(heaps: TopScratch, bound: float, bucket: int) -> None:
    """Add *bucket* to the frontier, unless its bound is below the k-th best score."""
    if bound < least_score(heaps):
        return
    if math.isnan(bound):
        bound = math.inf
    position = heaps.size[FRONTIER]
    heaps.size[FRONTIER] = position + 1
    while position > 0 and heaps.bound[(position - 1) >> 1] < bound:
        above = (position - 1) >> 1
        heaps.bound[position], heaps.bucket[position] = heaps.bound[above], heaps.bucket[above]
        position = above
    heaps.bound[position], heaps.bucket[position] = bound, bucket


@kernel_inline
def has_candidates(heaps: TopScratch) -> bool:
    """Whether anything on the frontier may hold one of the k best."""
    return heaps.size[FRONTIER] > 0 and not heaps.bound[0] < least_score(heaps)


@inner_kernel
def take_most_promising(heaps: TopScratch) -> int:
    """Remove the bucket with the highest bound from the frontier and return it."""
    top = int(heaps.bucket[0])
    size = heaps.size[FRONTIER] - 1
    heaps.size[FRONTIER] = size
    bound, bucket, position = heaps.bound[size], heaps.bucket[size], 0
    while 2 * position + 1 < size:
        child = 2 * position + 1
        if child + 1 < size and heaps.bound[child + 1] > heaps.bound[child]:
            child += 1
        if heaps.bound[child] <= bound:
            break
        heaps.bound[position], heaps.bucket[position] = heaps.bound[child], heaps.bucket[child]
        position = child
    heaps.bound[position], heaps.bucket[position] = bound, bucket
    return top


@inner_kernel
def add_candidate(heaps: TopScratch, row: int, score: float, is_single: bool) -> None:
    """Add *row* with *score* to the k best so far, each row once with its best score."""
    size = heaps.size[BEST]
    position = NONE
    if not is_single:
        for other in range(size):
            if heaps.row[other] == row:
                if heaps.score[other] >= score:
                    return
                position = other
                break
    if position == NONE:
        if size < len(heaps.score):
            heaps.size[BEST] = size + 1
            position = size
            while position > 0 and heaps.score[(position - 1) >> 1] > score:
                above = (position - 1) >> 1
                heaps.score[position], heaps.row[position] = (
                    heaps.score[above],
                    heaps.row[above],
                )
                position = above
            heaps.score[position], heaps.row[position] = score, row
            return
        if score <= heaps.score[0]:
            return
        position = 0
    size = heaps.size[BEST]
    while 2 * position + 1 < size:  # its score has grown: it sinks
        child = 2 * position + 1
        if child + 1 < size and heaps.score[child + 1] < heaps.score[child]:
            child += 1
        if heaps.score[child] >= score:
            break
        heaps.score[position], heaps.row[position] = heaps.score[child], heaps.row[child]
        position = child
    heaps.score[position], heaps.row[position] = score, row


@kernel_inline
def find_candidates(promise: Float32, total: Float32, signature: Int32, heaps: TopScratch) -> int:
    """Fill `heaps.candidate` with the rows that have what is needed; how many there are."""
    least_promise, least_total, count = heaps.needed[0], heaps.needed[1], 0
    lacked = np.int32(heaps.size[LACKED])
    for row in range(len(promise)):
        count += (
            (promise[row] >= least_promise)
            & (total[row] >= least_total)
            & (signature[row] & lacked == 0)
        )
    if count == 0:
        return 0
    count = 0
    for row in range(len(promise)):
        heaps.candidate[count] = row
        count += (
            (promise[row] >= least_promise)
            & (total[row] >= least_total)
            & (signature[row] & lacked == 0)
        )
    return count


@kernel_inline
def bring_forward(promise: Float32, turn: int, candidates: int, heaps: TopScratch) -> None:
    """Swap the candidate with the highest promise from *turn* on to *turn*."""
    best = turn
    for position in range(turn + 1, candidates):
        if promise[heaps.candidate[position]] > promise[heaps.candidate[best]]:
            best = position
    row = heaps.candidate[best]
    heaps.candidate[best] = heaps.candidate[turn]
    heaps.candidate[turn] = row
