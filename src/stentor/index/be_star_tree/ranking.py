"""Which attribute a record is filed under, and which one a leaf is partitioned by (V-B).

rank = gain − loss. The gain of a p-node is a predicate shared by each record beneath it; its loss,
the predicates that events of the last window tested there in vain. Before anything was measured the
loss is 0 (popularity) or the average bin of a histogram (selectivity).
"""

from __future__ import annotations

import math

from stentor._jit import kernel_inline, kernel_part
from stentor.index.be_star_tree.layout import (
    DIMENSION,
    LEAF,
    LEAF_COUNT,
    LOSS,
    NONE,
    OWNER,
    PARENT,
    RECORD_WORDS,
    SIZE,
    Desk,
    Knobs,
    Tree,
)
from stentor.index.be_star_tree.nodes import partition_on
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
def rank_of(tree: Tree, partition: int, knobs: Knobs) -> float:
    """The rank of *partition*: of all its records, or on average of each."""
    size, loss = float(tree.word[partition + SIZE]), tree.number[partition + LOSS]
    if knobs.by_sum:
        return float(size - loss)
    return float(1.0 - loss / max(1.0, size) / knobs.recycle + _LARGER * size)


@kernel_inline
def dimension_rank(count: int, waste: float, knobs: Knobs) -> float:
    """The rank of a dimension that *count* records have, each of which it costs *waste*.

    A dimension that wastes more than is allowed comes after all others, by what it wastes.
    """
    if knobs.by_sum:
        return count * (1.0 - waste)
    saved = 1.0 - waste / knobs.recycle
    return count * saved if saved > 0.0 else saved


@kernel_part
def best_partition(tree: Tree, node: int, record: int, knobs: Knobs) -> int:
    """The p-node of *node* with the highest rank that *record* fits into, or NONE."""
    best, best_rank = NONE, -math.inf
    box, step = record + RECORD_WORDS, box_words(tree, record)
    for _ in range(box_count(tree, record)):
        dimension = dimension_at(tree, record, box)
        box += step
        partition = partition_on(tree, node, dimension)
        if partition != NONE:
            rank = rank_of(tree, partition, knobs)
            if rank > best_rank:
                best, best_rank = partition, rank
    return best


@kernel_part
def best_dimension(tree: Tree, node: int, desk: Desk, knobs: Knobs) -> int:
    """The dimension with the highest rank among the records in the leaf of *node*, or NONE.

    Those that led to *node* are used up.
    """
    word, seen = tree.word, 0
    record = word[node + LEAF]
    for _ in range(word[node + LEAF_COUNT]):
        box, step = record + RECORD_WORDS, box_words(tree, record)
        for _ in range(box_count(tree, record)):
            dimension = dimension_at(tree, record, box)
            if desk.tally[dimension] == 0:
                desk.seen[seen] = dimension
                seen += 1
            desk.tally[dimension] += 1
            box += step
        record += words_of(tree, record)
    owner = word[node + OWNER]
    while owner != NONE:
        desk.tally[word[owner + DIMENSION]] = 0
        owner = word[word[owner + PARENT] + OWNER]
    best, best_rank = NONE, -math.inf
    for place in range(seen):
        dimension = desk.seen[place]
        count = desk.tally[dimension]
        desk.tally[dimension] = 0
        if count == 0:
            continue
        rank = dimension_rank(count, tree.waste[dimension], knobs)
        if knobs.histogram and tree.waste[dimension] == 0.0:
            rank = count - average_bin(tree, node, dimension, desk)
        if rank > best_rank:
            best, best_rank = dimension, rank
    return best


@kernel_part
def average_bin(tree: Tree, node: int, dimension: int, desk: Desk) -> float:
    """How many records in the leaf of *node* an average bin of values on *dimension* meets."""
    low, high = math.inf, -math.inf
    for fill in range(2):
        record = tree.word[node + LEAF]
        width = (high - low) / BINS
        if fill:
            desk.bins[:BINS] = 0.0
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
                for place in range(first, min(last, BINS - 1) + 1):
                    desk.bins[place] += 1.0
            else:
                if start > -math.inf:
                    low, high = min(low, start), max(high, start)
                if stop < math.inf:
                    low, high = min(low, stop), max(high, stop)
    total = 0.0
    for place in range(BINS):
        total += desk.bins[place]
    return total / BINS
