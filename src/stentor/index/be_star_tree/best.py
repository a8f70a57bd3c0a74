"""The k best of each event: Algorithms 6 and 7.

One heap of p-nodes and leaves by the most that anything in them may score, the highest first,
serves the whole search; another holds the k best rows so far. Where k are known, whatever cannot
reach the least of them is passed over: records, leaves, buckets, p-nodes; and with the first on the
heap that cannot, all is done.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import EventColumns, Float64, Int32, Int64, SubscriptionColumns
from stentor.index.be_star_tree.heaps import (
    BEST,
    FRONTIER,
    Search,
    add_to_frontier,
    is_promising,
    least_score,
    offer,
    take_most_promising,
)
from stentor.index.be_star_tree.layout import (
    ALL_SUMMARY,
    AXES,
    COUNT_MASK,
    COVERED,
    DIRECTORY,
    LEAF,
    LEAF_COUNT,
    LEAF_SUMMARY,
    LEFT,
    NARROW,
    NARROW_BOX,
    NONE,
    OTHER,
    PARTITIONS,
    RECORD_WORDS,
    RIGHT,
    ROOT,
    ROOT_NODE,
    SLOTS,
    TOTAL,
    WIDE_BOX,
    Reading,
)
from stentor.index.be_star_tree.matching import (
    MUCH_LONGER,
    NODES,
    TESTED,
    Spread,
    Values,
    clear,
    meets_all,
    meets_narrow,
    meets_own,
    meets_wide,
    own_dimension,
    spread_event,
)
from stentor.index.be_star_tree.nodes import partition_on
from stentor.index.table import Validity
from stentor.index.verify.alternatives import (
    alternative_holds,
    alternative_score,
    combine,
    holds_at,
)
from stentor.index.verify.candidates import row_of
from stentor.index.verify.scratch import EventScratch, scatter, weight_of

#: Scores are added up in another order than bounds are: this is more than both are rounded by.
_ROUNDING = 1.0 + 1e-9


class Scored(NamedTuple):
    """Rows that were among the k best when they were found."""

    event: Int64
    row: Int64
    score: Float64


PRESENT_WEIGHT, ANY_WEIGHT = SLOTS, SLOTS + 1


class Exact(NamedTuple):
    """What the verifier takes, and what it need not be asked."""

    columns: SubscriptionColumns
    validity: Validity
    events: EventColumns
    scratch: EventScratch
    is_single: bool  # alternative i is the only one of row i
    is_always: bool  # every filed row holds whenever an event comes


@kernel
def find_best(
    tree: Reading,
    key_of: Int32,
    values: Values,
    exact: Exact,
    scoring: int,
    spread: Spread,
    search: Search,
    found: Scored,
) -> int:
    """The number of rows that may be among the k best; those that do not fit are only counted."""
    count = 0
    spread.effort[:] = 0
    for event in range(len(exact.events.value_start) - 1):
        width = spread_event(tree, values, event, spread)
        scatter(exact.events, event, exact.scratch)
        weigh_event(key_of, exact, event, spread, width, search)
        search.size[FRONTIER] = search.size[BEST] = 0
        search_directory(tree, ROOT_NODE, scoring, spread, width, search)
        while is_promising(search):
            bucket = take_most_promising(search)
            if bucket >= 0:
                search_directory(tree, bucket, scoring, spread, width, search)
            else:
                count = scan_best(
                    tree, -1 - bucket, exact, event, scoring, spread, search, found, count
                )
        clear(spread, width)
    return count


@kernel_part
def weigh_event(
    key_of: Int32, exact: Exact, event: int, spread: Spread, width: int, search: Search
) -> None:
    """Fill `search.weight` for the event that is spread out."""
    weight, events = search.weight, exact.events
    weight[: SLOTS + 1] = 0.0
    weight[ANY_WEIGHT] = 1.0
    for place in range(width):
        dimension = spread.dimension[place]
        own = weight_of(exact.scratch, key_of[dimension] // AXES)
        weight[dimension % SLOTS] = max(weight[dimension % SLOTS], own)
        weight[PRESENT_WEIGHT] = max(weight[PRESENT_WEIGHT], own)
    for place in range(events.weight_start[event], events.weight_start[event + 1]):
        weight[ANY_WEIGHT] = max(weight[ANY_WEIGHT], events.weight[place])


@kernel_inline
def bound_of(tree: Reading, summary: int, scoring: int, weight: Float64) -> float:
    """The most that anything within *summary* scores; NaN where nobody knows."""
    half = tree.half[2 * summary : 2 * summary + TOTAL + 1]
    other = weight[ANY_WEIGHT] * half[OTHER]
    whole = weight[PRESENT_WEIGHT] * half[TOTAL] + other
    by_slots = combine(scoring, 0.0, other)
    for slot in range(SLOTS):
        by_slots = combine(scoring, by_slots, weight[slot] * half[slot])
    return float(_ROUNDING * min(whole, by_slots))


@kernel_part
def search_directory(
    tree: Reading, bucket: int, scoring: int, spread: Spread, width: int, search: Search
) -> None:
    """Look through a directory of clusters from *bucket* on (Algorithm 7).

    Leaves and p-nodes of the buckets that the event meets go to the frontier.
    """
    word = tree.word
    spread.stack[0] = bucket
    height = 1
    while height > 0:
        height -= 1
        node = spread.stack[height]
        spread.effort[NODES] += 1
        for side in (LEFT, RIGHT):
            child = word[node + side]
            if child != NONE:
                dimension = own_dimension(tree, node)
                low, high = spread.value[2 * dimension], spread.value[2 * dimension + 1]
                bound = bound_of(tree, child + ALL_SUMMARY, scoring, search.weight)
                if meets_all(tree, child, low, high) and not bound < least_score(search):
                    spread.stack[height] = child
                    height += 1
        if not meets_own(tree, node, spread):
            continue
        if word[node + LEAF_COUNT] > 0:
            bound = bound_of(tree, node + LEAF_SUMMARY, scoring, search.weight)
            add_to_frontier(search, bound, -1 - node)
        add_partitions(tree, node, scoring, spread, width, search)


@kernel_inline
def add_partitions(
    tree: Reading, node: int, scoring: int, spread: Spread, width: int, search: Search
) -> None:
    """Put the p-nodes of *node* that the event meets on the frontier, unless they are hopeless."""
    partitions = tree.word[node + PARTITIONS]
    if partitions > MUCH_LONGER * width:
        for place in range(width):
            dimension = spread.dimension[place]
            partition = partition_on(tree, node, dimension)
            if partition != NONE:
                consider(tree, partition, dimension, scoring, spread, search)
        return
    directory = tree.word[node + DIRECTORY]
    for place in range(directory, directory + partitions):
        dimension = tree.code[2 * place]
        if not math.isnan(spread.value[2 * dimension]):
            consider(tree, tree.code[2 * place + 1], dimension, scoring, spread, search)


@kernel_part
def consider(
    tree: Reading, partition: int, dimension: int, scoring: int, spread: Spread, search: Search
) -> None:
    """Put *partition* on the frontier where the event meets it and it may matter."""
    root = tree.word[partition + ROOT]
    low, high = spread.value[2 * dimension], spread.value[2 * dimension + 1]
    if not meets_all(tree, root, low, high):
        return
    add_to_frontier(search, bound_of(tree, root + ALL_SUMMARY, scoring, search.weight), root)


@kernel_inline
def scan_best(
    tree: Reading,
    node: int,
    exact: Exact,
    event: int,
    scoring: int,
    spread: Spread,
    search: Search,
    found: Scored,
    count: int,
) -> int:
    """Offer the records in the leaf of *node* that want the event and may be among the best."""
    record, value = tree.word[node + LEAF], spread.value
    for _ in range(tree.word[node + LEAF_COUNT]):
        head = tree.code[2 * record + 1]
        boxes = head & COUNT_MASK
        words = RECORD_WORDS + (NARROW_BOX if head & NARROW else WIDE_BOX) * boxes
        # A record's own total says most of the time that it cannot be among the best.
        half = tree.half[2 * record + 2 : 2 * record + 4]
        most = search.weight[PRESENT_WEIGHT] * half[0] + search.weight[ANY_WEIGHT] * half[1]
        if not _ROUNDING * most < least_score(search):
            spread.effort[TESTED] += 1
            if head & NARROW:
                is_met = meets_narrow(tree, record, boxes, value)
            else:
                is_met = meets_wide(tree, record, boxes, value)
            if is_met:
                alternative = tree.code[2 * record]
                score = alternative_score(exact.columns, alternative, exact.scratch, scoring)
                if not score < least_score(search):
                    row = settled_row(exact, event, alternative, head)
                    if row != NONE:
                        if count < len(found.row):
                            found.event[count], found.row[count] = event, row
                            found.score[count] = score
                        count += 1
                        offer(search, row, score, exact.is_single)
        record += words
    return count


@kernel_part
def settled_row(exact: Exact, event: int, alternative: int, head: int) -> int:
    """The row of *alternative*, all of whose boxes the event meets, if it wants it, or NONE."""
    row = alternative
    if not exact.is_single:
        row = row_of(exact.columns.alternative_start, alternative)
    if not exact.is_always and not holds_at(
        exact.columns, exact.validity, row, exact.events, event
    ):
        return NONE
    if not head & COVERED and not alternative_holds(exact.columns, alternative, exact.scratch):
        return NONE
    return row
