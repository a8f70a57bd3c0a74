"""Losses of p-nodes over a window of events, and which records are reinserted for them (V-B).

A loss is predicates tested for records that did not match; the records of a p-node whose loss is
high are reinserted.
"""

from __future__ import annotations

import math

from stentor._jit import inner_kernel, kernel
from stentor.encoding.columns import Int64
from stentor.index.be_star_tree.layout import (
    AXES,
    COUNT_MASK,
    DEAD,
    DIMENSION,
    DIMENSIONS,
    DIRECTORY,
    LARGEST_LEAF,
    LEAF,
    LEAF_COUNT,
    LEAF_WORDS,
    LEFT,
    LOSS,
    NO_PROMISES,
    NONE,
    PARENT,
    PARTITION,
    PARTITIONS,
    RECORD_WORDS,
    RIGHT,
    ROOT,
    ROOT_NODE,
    SIZE,
    VALUE,
    BEKernelSettings,
    BEStarTreeArrays,
    SplitScratch,
    capacity_of_class,
)
from stentor.index.be_star_tree.match import (
    BEMatchScratch,
    Values,
    clear,
    load_values,
    meets_own,
    push_children,
    push_partitions,
)
from stentor.index.be_star_tree.promises import promises_of
from stentor.index.be_star_tree.records import (
    alternative_of,
    box_count,
    box_words,
    dimension_at,
    high_at,
    low_at,
    words_of,
)

#: A record is reinserted only for a dimension that wastes less than this share.
_MUCH_BETTER = 0.5
#: What is left, after a window, of a waste that was not measured in it.
_FADING = 0.95


@kernel
def measure_losses(
    tree: BEStarTreeArrays, events: Values, spread: BEMatchScratch, scratch: SplitScratch
) -> None:
    """Set the loss of every p-node and the waste of every dimension to what *events* cost.

    Cost: a walk through the tree, and that of matching *events*.
    """
    count = len(events.value_start) - 1
    reset_losses(tree, spread)
    for event in range(count):
        width = load_values(tree, events, event, spread)
        spread.stack[0] = ROOT_NODE
        height = 1
        while height > 0:
            height -= 1
            node = spread.stack[height]
            height = push_children(tree, node, spread, height)
            if meets_own(tree, node, spread):
                height = push_partitions(tree, node, spread, width, height)
                vain = false_candidates(tree, node, spread) / count
                owner = tree.word[node + PARTITION]
                while owner != NONE:
                    tree.number[owner + LOSS] += vain
                    owner = tree.word[tree.word[owner + PARENT] + PARTITION]
        clear(spread, width)
    sum_losses(tree, spread, scratch)


@inner_kernel
def false_candidates(tree: BEStarTreeArrays, node: int, spread: BEMatchScratch) -> float:
    """How many boxes in the leaf of *node* the event is compared with for records it misses."""
    vain, record = 0, tree.word[node + LEAF]
    for _ in range(tree.word[node + LEAF_COUNT]):
        boxes, step = tree.code[2 * record + 1] & COUNT_MASK, box_words(tree, record)
        box = record + RECORD_WORDS
        for position in range(boxes):
            dimension = dimension_at(tree, record, box)
            low, high = spread.value[2 * dimension], spread.value[2 * dimension + 1]
            if not (low <= high_at(tree, record, box) and high >= low_at(tree, box)):
                vain += position + 1
                break
            box += step
        record += RECORD_WORDS + step * boxes
    return float(vain)


@inner_kernel
def push_all(tree: BEStarTreeArrays, node: int, stack: Int64, height: int) -> int:
    """Push every bucket right beneath *node*; the height of the *stack*."""
    word = tree.word
    for side in (LEFT, RIGHT):
        if word[node + side] != NONE:
            stack[height] = word[node + side]
            height += 1
    directory = word[node + DIRECTORY]
    for position in range(directory, directory + word[node + PARTITIONS]):
        stack[height] = word[tree.code[2 * position + 1] + ROOT]
        height += 1
    return height


@inner_kernel
def reset_losses(tree: BEStarTreeArrays, spread: BEMatchScratch) -> None:
    """Set the loss of every p-node to 0, and `LARGEST_LEAF` to what it is now."""
    spread.stack[0] = ROOT_NODE
    height, largest = 1, 0
    while height > 0:
        height -= 1
        node = spread.stack[height]
        largest = max(largest, tree.word[node + LEAF_WORDS])
        if promises_of(tree, node) != NO_PROMISES:
            largest = max(largest, capacity_of_class(tree, promises_of(tree, node)))
        if node != ROOT_NODE:
            tree.number[tree.word[node + PARTITION] + LOSS] = 0.0
        height = push_all(tree, node, spread.stack, height)
    tree.state[LARGEST_LEAF] = largest


@inner_kernel
def sum_losses(tree: BEStarTreeArrays, spread: BEMatchScratch, scratch: SplitScratch) -> None:
    """Set the waste of each dimension to the losses of its p-nodes by record."""
    dimensions = tree.state[DIMENSIONS]
    for dimension in range(dimensions):
        scratch.tally[dimension] = 0
        tree.waste[dimension] *= _FADING
    spread.stack[0] = ROOT_NODE
    height = 1
    while height > 0:
        height -= 1
        node = spread.stack[height]
        directory = tree.word[node + DIRECTORY]
        for position in range(directory, directory + tree.word[node + PARTITIONS]):
            partition = tree.code[2 * position + 1]
            dimension, size = tree.code[2 * position], tree.word[partition + SIZE]
            if scratch.tally[dimension] == 0:
                tree.waste[dimension] = 0.0
            scratch.tally[dimension] += size
            tree.waste[dimension] += tree.number[partition + LOSS]
        height = push_all(tree, node, spread.stack, height)
    for dimension in range(dimensions):
        if scratch.tally[dimension] > 0:
            tree.waste[dimension] /= scratch.tally[dimension]
            scratch.tally[dimension] = 0


@kernel
def measure_extensions(tree: BEStarTreeArrays, events: Values, scratch: SplitScratch) -> None:
    """Set each dimension's extension to the average width of what *events* have on it."""
    for dimension in range(tree.state[DIMENSIONS]):
        tree.extension[dimension] = 0.0
        scratch.tally[dimension] = 0
    attributes = len(tree.dimension_of) // AXES
    for event in range(len(events.value_start) - 1):
        for value in range(events.value_start[event], events.value_start[event + 1]):
            attribute = events.attribute[value]
            if attribute >= attributes:
                continue
            dimension = tree.dimension_of[AXES * attribute + VALUE]
            extension = events.high[value] - events.low[value]
            if dimension != NONE and extension < math.inf:
                tree.extension[dimension] += extension
                scratch.tally[dimension] += 1
    for dimension in range(tree.state[DIMENSIONS]):
        tree.extension[dimension] /= max(1, scratch.tally[dimension])
        scratch.tally[dimension] = 0


@kernel
def find_recycled(
    tree: BEStarTreeArrays, spread: BEMatchScratch, settings: BEKernelSettings, found: Int64
) -> int:
    """The number of alternatives under p-nodes whose rank has fallen; *found* gets them.

    A p-node is recycled as a whole where per record it wastes more than is allowed, and at least
    half of its records have a dimension that wastes much less.
    """
    spread.stack[0] = ROOT_NODE
    height, count = 1, 0
    while height > 0:
        height -= 1
        node = spread.stack[height]
        for side in (LEFT, RIGHT):
            if tree.word[node + side] != NONE:
                spread.stack[height] = tree.word[node + side]
                height += 1
        directory = tree.word[node + DIRECTORY]
        for position in range(directory, directory + tree.word[node + PARTITIONS]):
            partition = tree.code[2 * position + 1]
            size = tree.word[partition + SIZE]
            waste = tree.number[partition + LOSS] / max(1, size)
            root = tree.word[partition + ROOT]
            # Two leaves scanned in vain may be the cost under any dimension.
            if waste > settings.recycle + 2.0 * settings.capacity / max(1, size):
                better, stop = collect(tree, root, waste, spread.stack, height, found, count)
                if 2 * better >= size:
                    count = stop
                    continue
            spread.stack[height] = root
            height += 1
    return count


@inner_kernel
def collect(
    tree: BEStarTreeArrays,
    root: int,
    waste: float,
    stack: Int64,
    height: int,
    found: Int64,
    count: int,
) -> tuple[int, int]:
    """Of the records beneath *root*: how many have a better dimension, where *found* stops."""
    bottom, better = height, 0
    stack[height] = root
    height += 1
    while height > bottom:
        height -= 1
        node = stack[height]
        record = tree.word[node + LEAF]
        for _ in range(tree.word[node + LEAF_COUNT]):
            if not tree.code[2 * record + 1] & DEAD:
                found[count] = alternative_of(tree, record)
                count += 1
                better += has_better(tree, root, record, waste)
            record += words_of(tree, record)
        height = push_all(tree, node, stack, height)
    return better, count


@inner_kernel
def has_better(tree: BEStarTreeArrays, root: int, record: int, waste: float) -> bool:
    """Whether *record* has a dimension, none that led to *root*, that wastes much less."""
    box, step = record + RECORD_WORDS, box_words(tree, record)
    for _ in range(box_count(tree, record)):
        dimension = dimension_at(tree, record, box)
        box += step
        if tree.waste[dimension] < _MUCH_BETTER * waste:
            owner = tree.word[root + PARTITION]
            while owner != NONE and tree.word[owner + DIMENSION] != dimension:
                owner = tree.word[tree.word[owner + PARENT] + PARTITION]
            if owner == NONE:
                return True
    return False
