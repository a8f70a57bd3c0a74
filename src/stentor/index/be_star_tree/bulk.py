"""All subscriptions known in advance: the tree built from the top (BE*-B).

The first attribute of each record is chosen with everything in view: how many records each
attribute has and, from a history of events, what filing under it would waste. Records of one
attribute are filed one after the other, which keeps what they touch in the cache.
"""

from __future__ import annotations

import math

from stentor._jit import kernel
from stentor.encoding.columns import Int64, SubscriptionColumns
from stentor.index.be_star_tree.filing import file_record, has_room
from stentor.index.be_star_tree.layout import (
    DESK,
    DIMENSIONS,
    NONE,
    PENDING,
    RECORD_WORDS,
    ROOT_NODE,
    Desk,
    Knobs,
    Tree,
)
from stentor.index.be_star_tree.matching import Spread, Values, clear, spread_event
from stentor.index.be_star_tree.nodes import new_partition, partition_on
from stentor.index.be_star_tree.overflow import relieve
from stentor.index.be_star_tree.ranking import dimension_rank
from stentor.index.be_star_tree.records import (
    box_count,
    box_words,
    dimension_at,
    high_at,
    low_at,
    write_record,
)


@kernel
def count_dimensions(
    columns: SubscriptionColumns, alternatives: Int64, tree: Tree, desk: Desk, knobs: Knobs
) -> None:
    """Fill `desk.tally`: how many of *alternatives* have a box on each dimension."""
    for alternative in alternatives:
        write_record(columns, alternative, tree, knobs.width)
        box, step = DESK + RECORD_WORDS, box_words(tree, DESK)
        for _ in range(box_count(tree, DESK)):
            desk.tally[dimension_at(tree, DESK, box)] += 1
            box += step


@kernel
def estimate_waste(
    columns: SubscriptionColumns,
    alternatives: Int64,
    tree: Tree,
    events: Values,
    spread: Spread,
    desk: Desk,
    knobs: Knobs,
) -> None:
    """Set the waste of each dimension to the share of *events* that meet a box on it.

    It is an average over some *alternatives*. Cost: both are multiplied.
    """
    dimensions = tree.state[DIMENSIONS]
    tree.waste[:dimensions] = 0.0
    desk.tally[:dimensions] = 0
    for event in range(len(events.value_start) - 1):
        width = spread_event(tree, events, event, spread)
        for alternative in alternatives:
            write_record(columns, alternative, tree, knobs.width)
            box, step = DESK + RECORD_WORDS, box_words(tree, DESK)
            for _ in range(box_count(tree, DESK)):
                dimension = dimension_at(tree, DESK, box)
                low, high = spread.value[2 * dimension], spread.value[2 * dimension + 1]
                desk.tally[dimension] += 1
                if low <= high_at(tree, DESK, box) and high >= low_at(tree, box):
                    tree.waste[dimension] += 1.0
                box += step
        clear(spread, width)
    for dimension in range(dimensions):
        tree.waste[dimension] /= max(1, desk.tally[dimension])
        desk.tally[dimension] = 0


@kernel
def choose_dimensions(
    columns: SubscriptionColumns,
    alternatives: Int64,
    tree: Tree,
    desk: Desk,
    knobs: Knobs,
    chosen: Int64,
) -> None:
    """Fill *chosen*: for each of *alternatives* the dimension that ranks highest, or NONE.

    `desk.tally` says how many records each dimension has.
    """
    for place in range(len(alternatives)):
        write_record(columns, alternatives[place], tree, knobs.width)
        chosen[place] = NONE
        best = -math.inf
        box, step = DESK + RECORD_WORDS, box_words(tree, DESK)
        for _ in range(box_count(tree, DESK)):
            dimension = dimension_at(tree, DESK, box)
            box += step
            rank = dimension_rank(desk.tally[dimension], tree.waste[dimension], knobs)
            if rank > best:
                best = rank
                chosen[place] = dimension


@kernel
def file_together(
    columns: SubscriptionColumns,
    alternatives: Int64,
    chosen: Int64,
    start: int,
    tree: Tree,
    desk: Desk,
    knobs: Knobs,
) -> int:
    """File *alternatives* from *start* on, each under the dimension that was *chosen* for it.

    Those for which none was come last. Stops as `file_alternatives` does.
    """
    place = start
    while True:
        while tree.state[PENDING] > 0:
            if not has_room(tree, desk):
                return place
            tree.state[PENDING] -= 1
            relieve(tree, tree.pending[tree.state[PENDING]], desk, knobs)
        if place == len(alternatives) or not has_room(tree, desk):
            return place
        write_record(columns, alternatives[place], tree, knobs.width)
        first = NONE
        if chosen[place] != NONE:
            first = partition_on(tree, ROOT_NODE, chosen[place])
            if first == NONE:
                first = new_partition(tree, ROOT_NODE, chosen[place], knobs.capacity)
        file_record(tree, DESK, first, desk, knobs)
        place += 1
