"""The k best of each event: Algorithms 6 and 7.

One heap of p-nodes and leaves by the most that anything in them may score, the highest first,
serves the whole event; another holds the k best rows so far. Once k are known, whatever cannot
reach the least of them is pruned: records, leaves, buckets, p-nodes; and when the highest bound on
the frontier cannot, the search is over.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stentor._intrinsics import prefetch
from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import EventColumns, Float64, Int32, Int64, SubscriptionColumns
from stentor.index.be_star_tree.buckets import partition_on
from stentor.index.be_star_tree.heaps import (
    BEST,
    BY_PROMISE,
    BY_TOTAL,
    CHUNK,
    FRONTIER,
    LACKED,
    LACKING,
    LINES,
    TopScratch,
    add_candidate,
    add_to_frontier,
    bring_forward,
    find_candidates,
    has_candidates,
    least_score,
    take_most_promising,
)
from stentor.index.be_star_tree.layout import (
    ALL_SUMMARY,
    AXES,
    COUNT_MASK,
    COVERED,
    DEAD,
    DIMENSION,
    DIRECTORY,
    LEAF,
    LEAF_COUNT,
    LEAF_SUMMARY,
    LEFT,
    NARROW,
    NONE,
    OTHER,
    PARTITIONS,
    PROMISE,
    RECORD_WORDS,
    RIGHT,
    ROOT,
    ROOT_NODE,
    SLOTS,
    TOTAL,
    BEReadArrays,
)
from stentor.index.be_star_tree.match import (
    MUCH_LONGER,
    NODES,
    TESTED,
    BEMatchScratch,
    Values,
    clear,
    load_values,
    meets_all,
    meets_narrow,
    meets_own,
    meets_wide,
    own_dimension,
)
from stentor.index.be_star_tree.promises import (
    offsets_in,
    promises_in,
    promises_of,
    signature_bit,
    signatures_in,
    totals_in,
)
from stentor.index.be_star_tree.records import box_count, box_words, dimension_at, weight_at
from stentor.index.table import RowSpans
from stentor.index.verify.candidates import row_of
from stentor.index.verify.predicates import (
    alternative_holds,
    alternative_score,
    combine,
    is_valid_at,
)
from stentor.index.verify.scratch import EventScratch, load_event, weight_of

#: Scores are added up in another order than bounds are: this is more than both are rounded by.
_ROUNDING = 1.0 + 1e-9
#: The same for what is compared as float32.
_COARSE = 1.0 + 1e-6
#: Slopes of lines are between: their products with promises and totals are numbers.
_LEAST_SLOPE, _MOST_SLOPE = 1e-150, 1e150
#: Cache lines that are prefetched of a leaf's sketch, and of a c-node.
SKETCH_LINES, NODE_LINES = 6, 4
#: So many records of a chunk are taken in the order of what they may score.
PICKED = 4


class Scored(NamedTuple):
    """Rows that were among the k best when they were found."""

    event: Int64
    row: Int64
    score: Float64


class Weights(NamedTuple):
    """The weights of the tree's dimensions: as in `BEStarTreeArrays`."""

    key_of: Int32
    usual: Float64
    heaviest: Float64


ANY_WEIGHT = SLOTS


class VerifierInputs(NamedTuple):
    """What the verifier takes, and what it need not test."""

    columns: SubscriptionColumns
    validity: RowSpans
    events: EventColumns
    scratch: EventScratch
    is_single: bool  # alternative i is the only one of row i
    is_always: bool  # every row in the tree is valid at each of the events


@kernel
def find_best(
    tree: BEReadArrays,
    known: Weights,
    values: Values,
    exact: VerifierInputs,
    scoring: int,
    spread: BEMatchScratch,
    heaps: TopScratch,
    found: Scored,
) -> int:
    """The number of rows that may be among the k best; those that do not fit are only counted."""
    count = 0
    spread.counted_work[:] = 0
    for event in range(len(exact.events.value_start) - 1):
        width = load_values(tree, values, event, spread)
        load_event(exact.events, event, exact.scratch)
        weigh_event(known, exact, event, spread, width, heaps)
        heaps.size[FRONTIER] = heaps.size[BEST] = 0
        heaps.needed[:] = 0.0
        choose_lines(tree, heaps)
        walk_directory(tree, ROOT_NODE, scoring, spread, width, heaps)
        while has_candidates(heaps):
            bucket = take_most_promising(heaps)
            if bucket >= 0:
                walk_directory(tree, bucket, scoring, spread, width, heaps)
            else:
                count = scan_best(
                    tree, -1 - bucket, exact, event, scoring, spread, heaps, found, count
                )
        for position in range(width):
            heaps.own_weight[spread.dimension[position]] = LACKING
        clear(spread, width)
    return count


@inner_kernel
def weigh_event(
    known: Weights,
    exact: VerifierInputs,
    event: int,
    spread: BEMatchScratch,
    width: int,
    heaps: TopScratch,
) -> None:
    """Fill `heaps.weight`, `own_weight`, `slope` and `base` for the event in *spread*."""
    weight, events = heaps.weight, exact.events
    lacked = np.int64(-1)
    weight[:SLOTS] = 0.0
    weight[ANY_WEIGHT] = 1.0
    for position in range(events.weight_start[event], events.weight_start[event + 1]):
        weight[ANY_WEIGHT] = max(weight[ANY_WEIGHT], events.weight[position])
    heaps.slope[:] = 1.0
    heaps.base[:] = math.inf
    for position in range(width):
        dimension = spread.dimension[position]
        own = weight_of(exact.scratch, known.key_of[dimension] // AXES)
        heaps.own_weight[dimension] = own
        lacked &= ~np.int64(signature_bit(dimension))
        weight[dimension % SLOTS] = max(weight[dimension % SLOTS], own)
    for line in range(min(LINES, width)):
        dimension = spread.dimension[line if width <= LINES else line * width // LINES]
        own, usual = heaps.own_weight[dimension], known.usual[dimension]
        if usual > 0.0:
            draw_line(heaps, BY_PROMISE + line, own / usual)
        draw_line(heaps, BY_TOTAL + line, own)
    heaps.size[LACKED] = lacked
    slope, base = heaps.slope, heaps.base
    for position in range(width):
        dimension = spread.dimension[position]
        own, usual = heaps.own_weight[dimension], known.usual[dimension]
        heaviest = _ROUNDING * known.heaviest[dimension]
        for line in range(LINES):
            surplus = own - slope[BY_PROMISE + line] * usual
            base[BY_PROMISE + line] += heaviest * surplus if surplus > 0.0 else 0.0
            surplus = own - slope[BY_TOTAL + line]
            base[BY_TOTAL + line] += heaviest * surplus if surplus > 0.0 else 0.0


@kernel_inline
def draw_line(heaps: TopScratch, line: int, slope: float) -> None:
    """Set the slope of *line*, unless products with it might not be numbers."""
    if _LEAST_SLOPE < slope < _MOST_SLOPE:
        heaps.slope[line], heaps.base[line] = slope, 0.0


@inner_kernel
def choose_lines(tree: BEReadArrays, heaps: TopScratch) -> None:
    """Fill `heaps.line` with the lines that are lowest for the greatest promise and total."""
    half = tree.half[2 * (ROOT_NODE + ALL_SUMMARY) : 2 * (ROOT_NODE + ALL_SUMMARY) + TOTAL + 1]
    for kind in range(2):
        greatest, least = np.float64(half[TOTAL if kind else PROMISE]), math.inf
        heaps.line[kind] = kind * LINES
        for line in range(kind * LINES, (kind + 1) * LINES):
            most = heaps.slope[line] * greatest + heaps.base[line]
            if most < least:
                least, heaps.line[kind] = most, line


@kernel_inline
def bound_of(tree: BEReadArrays, summary: int, scoring: int, heaps: TopScratch) -> float:
    """The most that anything within *summary* scores; −∞ where it lacks what is needed."""
    half, weight = tree.half[2 * summary : 2 * summary + TOTAL + 1], heaps.weight
    if half[PROMISE] < heaps.needed[0] or half[TOTAL] < heaps.needed[1]:
        return -math.inf
    other = weight[ANY_WEIGHT] * half[OTHER]
    by_slots = combine(scoring, 0.0, other)
    for slot in range(SLOTS):
        by_slots = combine(scoring, by_slots, weight[slot] * half[slot])
    line = heaps.line[0]
    by_promise = heaps.slope[line] * half[PROMISE] + heaps.base[line]
    line = heaps.line[1]
    by_total = heaps.slope[line] * half[TOTAL] + heaps.base[line]
    return float(_ROUNDING * min(by_slots, other + min(by_promise, by_total)))


@inner_kernel
def find_needed(tree: BEReadArrays, heaps: TopScratch) -> None:
    """Fill `heaps.needed` for the score that must be reached now."""
    other = heaps.weight[ANY_WEIGHT] * tree.half[2 * (ROOT_NODE + ALL_SUMMARY) + OTHER]
    wanted = least_score(heaps) / _ROUNDING - _ROUNDING * other
    for kind in range(2):
        needed = 0.0
        for line in range(kind * LINES, (kind + 1) * LINES):
            least = (wanted - heaps.base[line]) / heaps.slope[line]
            needed = max(needed, least)  # which stays as it is where that is no number
        heaps.needed[kind] = np.float32(needed / _COARSE)


@inner_kernel
def walk_directory(
    tree: BEReadArrays,
    bucket: int,
    scoring: int,
    spread: BEMatchScratch,
    width: int,
    heaps: TopScratch,
) -> None:
    """Search a directory of clusters from *bucket* on (Algorithm 7).

    Leaves and p-nodes of the buckets that the event meets go to the frontier.
    """
    word = tree.word
    spread.stack[0] = bucket
    height = 1
    while height > 0:
        height -= 1
        node = spread.stack[height]
        spread.counted_work[NODES] += 1
        for side in (LEFT, RIGHT):
            child = word[node + side]
            if child != NONE:
                dimension = own_dimension(tree, node)
                low, high = spread.value[2 * dimension], spread.value[2 * dimension + 1]
                if meets_all(tree, child, low, high):
                    bound = bound_of(tree, child + ALL_SUMMARY, scoring, heaps)
                    if not bound < least_score(heaps):
                        prefetch_node(tree, child)
                        spread.stack[height] = child
                        height += 1
        if not meets_own(tree, node, spread):
            continue
        if word[node + LEAF_COUNT] > 0:
            bound = bound_of(tree, node + LEAF_SUMMARY, scoring, heaps)
            if not bound < least_score(heaps):
                prefetch_sketch(tree, promises_of(tree, node))
                add_to_frontier(heaps, bound, -1 - node)
        add_partitions(tree, node, scoring, spread, width, heaps, height)


@kernel_inline
def prefetch_sketch(tree: BEReadArrays, sketch: int) -> None:
    """Prefetch the first lines of *sketch*: it is read when its leaf leaves the frontier."""
    for line in range(SKETCH_LINES):
        prefetch(tree.word, min(sketch + 8 * line, len(tree.word) - 1))


@kernel_inline
def prefetch_node(tree: BEReadArrays, node: int) -> None:
    """Prefetch the first lines of *node*, which is visited later."""
    for line in range(NODE_LINES):
        prefetch(tree.word, min(node + 8 * line, len(tree.word) - 1))


@kernel_inline
def add_partitions(
    tree: BEReadArrays,
    node: int,
    scoring: int,
    spread: BEMatchScratch,
    width: int,
    heaps: TopScratch,
    height: int,
) -> None:
    """Add the p-nodes of *node* that the event meets to the frontier, unless a bound is too low.

    First all p-nodes are prefetched, then their first buckets, then these are read: all wait for
    memory together. Above *height* the stack is free.
    """
    partitions, top = tree.word[node + PARTITIONS], height
    if partitions > MUCH_LONGER * width:
        for position in range(width):
            partition = partition_on(tree, node, spread.dimension[position])
            if partition != NONE:
                prefetch(tree.word, partition)
                spread.stack[top] = partition
                top += 1
    else:
        directory = tree.word[node + DIRECTORY]
        for position in range(directory, directory + partitions):
            if not math.isnan(spread.value[2 * tree.code[2 * position]]):
                partition = tree.code[2 * position + 1]
                prefetch(tree.word, partition)
                spread.stack[top] = partition
                top += 1
    for position in range(height, top):
        prefetch_node(tree, tree.word[spread.stack[position] + ROOT])
    for position in range(height, top):
        push_partition(tree, spread.stack[position], scoring, spread, heaps)


@inner_kernel
def push_partition(
    tree: BEReadArrays, partition: int, scoring: int, spread: BEMatchScratch, heaps: TopScratch
) -> None:
    """Add *partition* to the frontier where the event meets it, unless its bound is too low."""
    root, dimension = tree.word[partition + ROOT], tree.word[partition + DIMENSION]
    low, high = spread.value[2 * dimension], spread.value[2 * dimension + 1]
    if not meets_all(tree, root, low, high):
        return
    add_to_frontier(heaps, bound_of(tree, root + ALL_SUMMARY, scoring, heaps), root)


@kernel_inline
def scan_best(
    tree: BEReadArrays,
    node: int,
    exact: VerifierInputs,
    event: int,
    scoring: int,
    spread: BEMatchScratch,
    heaps: TopScratch,
    found: Scored,
    count: int,
) -> int:
    """Add the records in the leaf of *node* that match to the best; how many are *found* then."""
    records, leaf, sketch = (
        tree.word[node + LEAF_COUNT],
        tree.word[node + LEAF],
        promises_of(tree, node),
    )
    summary, needed, least = 2 * (node + LEAF_SUMMARY), heaps.needed, least_score(heaps)
    if tree.half[summary + PROMISE] < needed[0] or tree.half[summary + TOTAL] < needed[1]:
        return count
    for start in range(0, records, CHUNK):
        size = min(CHUNK, records - start)
        promise = tree.half[promises_in(sketch) + start : promises_in(sketch) + start + size]
        total = tree.half[totals_in(tree, sketch) + start : totals_in(tree, sketch) + start + size]
        offset = tree.code[
            offsets_in(tree, sketch) + start : offsets_in(tree, sketch) + start + size
        ]
        first = signatures_in(tree, sketch) + start
        candidates = find_candidates(promise, total, tree.code[first : first + size], heaps)
        # The highest promises first: they raise the score that the others must reach.
        for turn in range(candidates):
            if turn < PICKED:
                bring_forward(promise, turn, candidates, heaps)
            row = heaps.candidate[turn]
            if promise[row] < needed[0] or total[row] < needed[1]:
                continue
            count = consider_record(
                tree, leaf + offset[row], exact, event, scoring, spread, heaps, found, count
            )
            if least_score(heaps) > least:
                least = least_score(heaps)
                find_needed(tree, heaps)
    return count


@kernel_inline
def most_of(tree: BEReadArrays, record: int, heaps: TopScratch) -> float:
    """The most that *record* scores if it matches the event, by its own weights."""
    box, step = record + RECORD_WORDS, box_words(tree, record)
    most = heaps.weight[ANY_WEIGHT] * tree.half[2 * record + 3]
    for _ in range(box_count(tree, record)):
        most += weight_at(tree, record, box) * heaps.own_weight[dimension_at(tree, record, box)]
        box += step
    return float(_ROUNDING * most)


@kernel_inline
def consider_record(
    tree: BEReadArrays,
    record: int,
    exact: VerifierInputs,
    event: int,
    scoring: int,
    spread: BEMatchScratch,
    heaps: TopScratch,
    found: Scored,
    count: int,
) -> int:
    """Add *record* to the best where it matches; how many are *found* then."""
    head, value = tree.code[2 * record + 1], spread.value
    boxes = head & COUNT_MASK
    spread.counted_work[TESTED] += 1
    if most_of(tree, record, heaps) < max(0.0, least_score(heaps)):
        return count
    if head & NARROW:
        is_met = meets_narrow(tree, record, boxes, value)
    else:
        is_met = meets_wide(tree, record, boxes, value)
    if not is_met or head & DEAD:
        return count
    alternative = tree.code[2 * record]
    score = alternative_score(exact.columns, alternative, exact.scratch, scoring)
    if score < least_score(heaps):
        return count
    row = verified_row(exact, event, alternative, head)
    if row == NONE:
        return count
    if count < len(found.row):
        found.event[count], found.row[count] = event, row
        found.score[count] = score
    add_candidate(heaps, row, score, exact.is_single)
    return count + 1


@inner_kernel
def verified_row(exact: VerifierInputs, event: int, alternative: int, head: int) -> int:
    """The row of *alternative*, all of whose boxes the event meets, if it matches, else NONE."""
    row = alternative
    if not exact.is_single:
        row = row_of(exact.columns.alternative_start, alternative)
    if not exact.is_always and not is_valid_at(
        exact.columns, exact.validity, row, exact.events, event
    ):
        return NONE
    if not head & COVERED and not alternative_holds(exact.columns, alternative, exact.scratch):
        return NONE
    return row
