"""The two heaps of the search for the k best: what may still hold one, and the best so far."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stentor._jit import kernel_inline, kernel_part
from stentor.encoding.columns import Float64, Int64
from stentor.index.be_star_tree.layout import NONE, SLOTS

# Entries of `Search.size`.
FRONTIER, BEST = 0, 1


class Search(NamedTuple):
    """Scratch of one call."""

    bound: Float64  # (p-nodes + leaves,) a heap, the frontier: the highest first
    bucket: Int64  # (p-nodes + leaves,) a p-node's first bucket, or −1 − the bucket of a leaf
    score: Float64  # (k,) a heap: the least first
    row: Int64  # (k,)
    size: Int64  # (2,) of both heaps
    weight: Float64  # (SLOTS + 2,) the event's greatest by slot, of what it has, of all


def search_for(k: int, buckets: int) -> Search:
    """Scratch for a search of the *k* best among so many *buckets*."""
    return Search(
        np.empty(2 * buckets + 1),
        np.empty(2 * buckets + 1, np.int64),
        np.empty(k),
        np.empty(k, np.int64),
        np.zeros(2, np.int64),
        np.empty(SLOTS + 2),
    )


@kernel_inline
def least_score(search: Search) -> float:
    """What a row must score to be among the k best so far; −∞ while there are fewer."""
    if search.size[BEST] < len(search.score):
        return -math.inf
    return float(search.score[0])


@kernel_part
def add_to_frontier(search: Search, bound: float, bucket: int) -> None:
    """Put *bucket* on the frontier, unless it is hopeless."""
    if bound < least_score(search):
        return
    if math.isnan(bound):
        bound = math.inf
    place = search.size[FRONTIER]
    search.size[FRONTIER] = place + 1
    while place > 0 and search.bound[(place - 1) >> 1] < bound:
        above = (place - 1) >> 1
        search.bound[place], search.bucket[place] = search.bound[above], search.bucket[above]
        place = above
    search.bound[place], search.bucket[place] = bound, bucket


@kernel_inline
def is_promising(search: Search) -> bool:
    """Whether anything on the frontier may hold one of the k best."""
    return search.size[FRONTIER] > 0 and not search.bound[0] < least_score(search)


@kernel_part
def take_most_promising(search: Search) -> int:
    """The most promising bucket, taken off the frontier."""
    top = int(search.bucket[0])
    size = search.size[FRONTIER] - 1
    search.size[FRONTIER] = size
    bound, bucket, place = search.bound[size], search.bucket[size], 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and search.bound[child + 1] > search.bound[child]:
            child += 1
        if search.bound[child] <= bound:
            break
        search.bound[place], search.bucket[place] = search.bound[child], search.bucket[child]
        place = child
    search.bound[place], search.bucket[place] = bound, bucket
    return top


@kernel_part
def offer(search: Search, row: int, score: float, is_single: bool) -> None:
    """Let *row* with *score* be among the k best, each row once with its best score."""
    size = search.size[BEST]
    place = NONE
    if not is_single:
        for other in range(size):
            if search.row[other] == row:
                if search.score[other] >= score:
                    return
                place = other
                break
    if place == NONE:
        if size < len(search.score):
            search.size[BEST] = size + 1
            place = size
            while place > 0 and search.score[(place - 1) >> 1] > score:
                above = (place - 1) >> 1
                search.score[place], search.row[place] = search.score[above], search.row[above]
                place = above
            search.score[place], search.row[place] = score, row
            return
        if score <= search.score[0]:
            return
        place = 0
    size = search.size[BEST]
    while 2 * place + 1 < size:  # its score has grown: it sinks
        child = 2 * place + 1
        if child + 1 < size and search.score[child + 1] < search.score[child]:
            child += 1
        if search.score[child] >= score:
            break
        search.score[place], search.row[place] = search.score[child], search.row[child]
        place = child
    search.score[place], search.row[place] = score, row
