"""All subscriptions known in advance: the tree built from the top (BE*-B).

The first attribute of each record is chosen with all records in view: how many records each
attribute has and, from a history of events, what inserting under it would waste. Records of one
attribute are inserted one after the other, which keeps what they touch in the cache.
"""

from __future__ import annotations

import math

from stentor._jit import kernel
from stentor.encoding.columns import Int64, SubscriptionColumns
from stentor.index.be_star_tree.buckets import new_partition, partition_on
from stentor.index.be_star_tree.insert import insert_record, resolve_overflows
from stentor.index.be_star_tree.layout import (
    DIMENSIONS,
    NONE,
    RECORD_WORDS,
    ROOT_NODE,
    STAGED,
    BEKernelSettings,
    BEStarTreeArrays,
    SplitScratch,
    has_capacity,
)
from stentor.index.be_star_tree.match import BEMatchScratch, Values, clear, load_values
from stentor.index.be_star_tree.ranking import dimension_rank
from stentor.index.be_star_tree.records import (
    LEAST_USUAL,
    MOST_USUAL,
    box_count,
    box_words,
    dimension_at,
    high_at,
    low_at,
    stage_record,
    weight_at,
)


@kernel
def count_dimensions(
    columns: SubscriptionColumns,
    alternatives: Int64,
    tree: BEStarTreeArrays,
    scratch: SplitScratch,
    settings: BEKernelSettings,
) -> None:
    """Fill `scratch.tally`: how many of *alternatives* have a box on each dimension."""
    for alternative in alternatives:
        stage_record(columns, alternative, tree, settings.width)
        box, step = STAGED + RECORD_WORDS, box_words(tree, STAGED)
        for _ in range(box_count(tree, STAGED)):
            scratch.tally[dimension_at(tree, STAGED, box)] += 1
            box += step


@kernel
def average_weights(
    columns: SubscriptionColumns,
    alternatives: Int64,
    tree: BEStarTreeArrays,
    scratch: SplitScratch,
    settings: BEKernelSettings,
) -> None:
    """Set the usual weights to averages over *alternatives*; the tree is still empty."""
    for alternative in alternatives:
        stage_record(columns, alternative, tree, settings.width)
        box, step = STAGED + RECORD_WORDS, box_words(tree, STAGED)
        for _ in range(box_count(tree, STAGED)):
            dimension, weight = dimension_at(tree, STAGED, box), weight_at(tree, STAGED, box)
            if weight > 0.0:
                scratch.tally[dimension] += 1
                usual = tree.usual[dimension]
                usual += (min(weight, MOST_USUAL) - usual) / scratch.tally[dimension]
                tree.usual[dimension] = max(usual, LEAST_USUAL)
            box += step
    scratch.tally[: tree.state[DIMENSIONS]] = 0


@kernel
def estimate_loss(
    columns: SubscriptionColumns,
    alternatives: Int64,
    tree: BEStarTreeArrays,
    events: Values,
    spread: BEMatchScratch,
    scratch: SplitScratch,
    settings: BEKernelSettings,
) -> None:
    """Set the waste of each dimension to the share of *events* that meet a box on it.

    It is an average over some *alternatives*. Cost: both are multiplied.
    """
    dimensions = tree.state[DIMENSIONS]
    tree.waste[:dimensions] = 0.0
    scratch.tally[:dimensions] = 0
    for event in range(len(events.value_start) - 1):
        width = load_values(tree, events, event, spread)
        for alternative in alternatives:
            stage_record(columns, alternative, tree, settings.width)
            box, step = STAGED + RECORD_WORDS, box_words(tree, STAGED)
            for _ in range(box_count(tree, STAGED)):
                dimension = dimension_at(tree, STAGED, box)
                low, high = spread.value[2 * dimension], spread.value[2 * dimension + 1]
                scratch.tally[dimension] += 1
                if low <= high_at(tree, STAGED, box) and high >= low_at(tree, box):
                    tree.waste[dimension] += 1.0
                box += step
        clear(spread, width)
    for dimension in range(dimensions):
        tree.waste[dimension] /= max(1, scratch.tally[dimension])
        scratch.tally[dimension] = 0


@kernel
def choose_dimensions(
    columns: SubscriptionColumns,
    alternatives: Int64,
    tree: BEStarTreeArrays,
    scratch: SplitScratch,
    settings: BEKernelSettings,
    chosen: Int64,
) -> None:
    """Fill *chosen*: for each of *alternatives* the dimension that ranks highest, or NONE.

    `scratch.tally` says how many records each dimension has.
    """
    for position in range(len(alternatives)):
        stage_record(columns, alternatives[position], tree, settings.width)
        chosen[position] = NONE
        best = -math.inf
        box, step = STAGED + RECORD_WORDS, box_words(tree, STAGED)
        for _ in range(box_count(tree, STAGED)):
            dimension = dimension_at(tree, STAGED, box)
            box += step
            rank = dimension_rank(scratch.tally[dimension], tree.waste[dimension], settings)
            if rank > best:
                best = rank
                chosen[position] = dimension


@kernel
def insert_together(
    columns: SubscriptionColumns,
    alternatives: Int64,
    chosen: Int64,
    start: int,
    tree: BEStarTreeArrays,
    scratch: SplitScratch,
    settings: BEKernelSettings,
) -> int:
    """Insert *alternatives* from *start* on, each under the dimension that was *chosen* for it.

    Those for which none was come last. Stops as `insert_alternatives` does.
    """
    position = start
    while True:
        if not resolve_overflows(tree, scratch, settings):
            return position
        if position == len(alternatives) or not has_capacity(tree):
            return position
        stage_record(columns, alternatives[position], tree, settings.width)
        first = NONE
        if chosen[position] != NONE:
            first = partition_on(tree, ROOT_NODE, chosen[position])
            if first == NONE:
                first = new_partition(tree, ROOT_NODE, chosen[position], settings.capacity)
        insert_record(tree, STAGED, first, scratch, settings)
        position += 1
