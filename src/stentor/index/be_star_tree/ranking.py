"""Which attribute a record is inserted under, and which one a leaf is partitioned by (V-B).

rank = gain − loss. The gain of a p-node is a predicate shared by each record beneath it; its loss,
the predicates that events of the last window tested there in vain. Before anything was measured the
loss is 0 (popularity) or the average bin of a histogram (selectivity).
"""

from __future__ import annotations

import math

from stentor._jit import inner_kernel, kernel_inline
from stentor.index.be_star_tree.buckets import partition_on
from stentor.index.be_star_tree.layout import (
    DIMENSION,
    LEAF,
    LEAF_COUNT,
    LOSS,
    NONE,
    PARENT,
    PARTITION,
    RECORD_WORDS,
    SIZE,
    BEKernelSettings,
    BEStarTreeArrays,
    SplitScratch,
)
from stentor.index.be_star_tree.records import (
    box_count,
    box_on,
    box_words,
    dimension_at,
    high_at,
    low_at,
    words_of,
)

#: Of a histogram that estimates how selective an attribute is.
BINS = 8
#: What makes the larger of two p-nodes with the same mean rank preferable.
_LARGER = 1e-9


@kernel_inline
def rank_of(tree: BEStarTreeArrays, partition: int, settings: BEKernelSettings) -> float:
    """The rank of *partition*: of all its records, or on average of each."""
    size, loss = float(tree.word[partition + SIZE]), tree.number[partition + LOSS]
    if settings.by_sum:
        return float(size - loss)
    return float(1.0 - loss / max(1.0, size) / settings.recycle + _LARGER * size)


@kernel_inline
def dimension_rank(count: int, waste: float, settings: BEKernelSettings) -> float:
    """The rank of a dimension that *count* records have, each of which it costs *waste*.

    A dimension that wastes more than is allowed comes after all others, by what it wastes.
    """
    if settings.by_sum:
        return count * (1.0 - waste)
    saved = 1.0 - waste / settings.recycle
    return count * saved if saved > 0.0 else saved


@inner_kernel
def best_partition(
    tree: BEStarTreeArrays, node: int, record: int, settings: BEKernelSettings
) -> int:
    """The p-node of *node* with the highest rank that *record* fits into, or NONE."""
    best, best_rank = NONE, -math.inf
    box, step = record + RECORD_WORDS, box_words(tree, record)
    for _ in range(box_count(tree, record)):
        dimension = dimension_at(tree, record, box)
        box += step
        partition = partition_on(tree, node, dimension)
        if partition != NONE:
            rank = rank_of(tree, partition, settings)
            if rank > best_rank:
                best, best_rank = partition, rank
    return best


@inner_kernel
def best_dimension(
    tree: BEStarTreeArrays, node: int, scratch: SplitScratch, settings: BEKernelSettings
) -> int:
    """The dimension with the highest rank among the records in the leaf of *node*, or NONE.

    Those that led to *node* are used up.
    """
    word, seen = tree.word, 0
    record = word[node + LEAF]
    for _ in range(word[node + LEAF_COUNT]):
        box, step = record + RECORD_WORDS, box_words(tree, record)
        for _ in range(box_count(tree, record)):
            dimension = dimension_at(tree, record, box)
            if scratch.tally[dimension] == 0:
                scratch.seen[seen] = dimension
                seen += 1
            scratch.tally[dimension] += 1
            box += step
        record += words_of(tree, record)
    owner = word[node + PARTITION]
    while owner != NONE:
        scratch.tally[word[owner + DIMENSION]] = 0
        owner = word[word[owner + PARENT] + PARTITION]
    best, best_rank = NONE, -math.inf
    for position in range(seen):
        dimension = scratch.seen[position]
        count = scratch.tally[dimension]
        scratch.tally[dimension] = 0
        if count == 0:
            continue
        rank = dimension_rank(count, tree.waste[dimension], settings)
        if settings.histogram and tree.waste[dimension] == 0.0:
            rank = count - average_bin(tree, node, dimension, scratch)
        if rank > best_rank:
            best, best_rank = dimension, rank
    return best


@inner_kernel
def average_bin(tree: BEStarTreeArrays, node: int, dimension: int, scratch: SplitScratch) -> float:
    """How many records in the leaf of *node* an average bin of values on *dimension* meets."""
    low, high = math.inf, -math.inf
    for fill in range(2):
        record = tree.word[node + LEAF]
        width = (high - low) / BINS
        if fill:
            scratch.bins[:BINS] = 0.0
        for _ in range(tree.word[node + LEAF_COUNT]):
            box = box_on(tree, record, dimension)
            start = stop = 0.0
            if box != NONE:
                start, stop = low_at(tree, box), high_at(tree, record, box)
            record += words_of(tree, record)
            if box == NONE:
                continue
            if fill:
                first = 0 if start <= low or width <= 0.0 else int((start - low) / width)
                last = BINS - 1 if stop >= high or width <= 0.0 else int((stop - low) / width)
                for position in range(first, min(last, BINS - 1) + 1):
                    scratch.bins[position] += 1.0
            else:
                if start > -math.inf:
                    low, high = min(low, start), max(high, start)
                if stop < math.inf:
                    low, high = min(low, stop), max(high, stop)
    total = 0.0
    for position in range(BINS):
        total += scratch.bins[position]
    return total / BINS
