"""Events → the alternatives all of whose boxes they meet: one kernel for the whole walk.

An event is spread out over the dimensions that the tree knows; what it lacks is NaN, which meets
no box. A c-node is looked at where the event meets the hull of all beneath it, its leaf and
p-directory where the event meets its own bucket.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import EventColumns, Float64, Int32, Int64
from stentor.index.be_star_tree.layout import (
    AXES,
    BOXES,
    COUNT_MASK,
    DIRECTORY,
    HIGH,
    LEAF,
    LEAF_COUNT,
    LEFT,
    LOW,
    NARROW,
    NARROW_BOX,
    NONE,
    OWN_HIGH,
    OWN_LOW,
    OWNER,
    PARTITIONS,
    RECORD_WORDS,
    RIGHT,
    ROOT,
    ROOT_NODE,
    WIDE_BOX,
    Readable,
    Reading,
    X,
    Y,
)
from stentor.index.be_star_tree.nodes import partition_on
from stentor.index.row_marks import RowMarks, mark, read_out

# Entries of `Spread.effort`: c-nodes looked at, records tested, records whose boxes were all met.
NODES, TESTED, MET = 0, 1, 2
EFFORTS = 3
#: A directory so many times as long as the event is searched; a shorter one is read through.
MUCH_LONGER = 4
_SIXTEEN_BITS = (1 << 16) - 1


class Spread(NamedTuple):
    """One event over the tree's dimensions, and the walk's stack: scratch of one call."""

    value: Float64  # (2 × dimensions,) low, high; NaN where the event has none
    dimension: Int32  # (dimensions,) those that it has
    stack: Int64  # (c-nodes,)
    effort: Int64  # (EFFORTS,)


class Values(NamedTuple):
    """What the walk takes of events: as in `EventColumns`."""

    value_start: Int64
    attribute: Int32
    low: Float64
    high: Float64


@kernel
def find_alternatives(
    tree: Reading, events: Values, spread: Spread, marks: RowMarks, starts: Int64, found: Int64
) -> int:
    """The number of alternatives all of whose boxes an event meets; *found* gets each event's.

    They ascend; *starts* says where each event's start. Those that do not fit are only counted.
    """
    count = 0
    spread.effort[:] = 0
    for event in range(len(starts) - 1):
        starts[event] = count
        width = spread_event(tree, events, event, spread)
        spread.stack[0] = ROOT_NODE
        height = 1
        while height > 0:
            height -= 1
            node = spread.stack[height]
            spread.effort[NODES] += 1
            height = push_children(tree, node, spread, height)
            if meets_own(tree, node, spread):
                height = push_partitions(tree, node, spread, width, height)
                scan_leaf(tree, node, spread, marks)
        clear(spread, width)
        count = read_out(marks, found, count)
    starts[len(starts) - 1] = count
    return count


@kernel_part
def spread_event(tree: Readable, events: Values, event: int, spread: Spread) -> int:
    """Write *event* to *spread*; on how many dimensions it has something."""
    width, attributes = 0, len(tree.dimension_of) // AXES
    for value in range(events.value_start[event], events.value_start[event + 1]):
        attribute = events.attribute[value]
        if attribute >= attributes:
            break  # they ascend
        low, high = events.low[value], events.high[value]
        for axis in range(AXES):
            dimension = tree.dimension_of[AXES * attribute + axis]
            if dimension != NONE:
                spread.dimension[width] = dimension
                width += 1
                spread.value[2 * dimension] = high if axis == Y else low
                spread.value[2 * dimension + 1] = low if axis == X else high
    return width


@kernel_inline
def clear(spread: Spread, width: int) -> None:
    """Take the event out of *spread* again."""
    for place in range(width):
        dimension = spread.dimension[place]
        spread.value[2 * dimension] = spread.value[2 * dimension + 1] = math.nan


@kernel_inline
def meets_all(tree: Readable, node: int, low: float, high: float) -> bool:
    """Whether low … high meets the hull of all beneath *node*."""
    box = node + BOXES
    return bool(low <= tree.number[box + HIGH] and high >= tree.number[box + LOW])


@kernel_inline
def own_dimension(tree: Readable, node: int) -> int:
    """The dimension of the directory that *node* stands in."""
    return int(tree.word[tree.word[node + OWNER]])


@kernel_inline
def meets_own(tree: Readable, node: int, spread: Spread) -> bool:
    """Whether the event meets the own bucket of *node*; the root's has no bounds."""
    if node == ROOT_NODE:
        return True
    dimension = own_dimension(tree, node)
    low, high = spread.value[2 * dimension], spread.value[2 * dimension + 1]
    return bool(low <= tree.number[node + OWN_HIGH] and high >= tree.number[node + OWN_LOW])


@kernel_inline
def push_children(tree: Readable, node: int, spread: Spread, height: int) -> int:
    """Put the left and right buckets that the event meets on the stack; its height."""
    left, right = tree.word[node + LEFT], tree.word[node + RIGHT]
    if left == NONE and right == NONE:
        return height
    dimension = own_dimension(tree, node)
    low, high = spread.value[2 * dimension], spread.value[2 * dimension + 1]
    if left != NONE and meets_all(tree, left, low, high):
        spread.stack[height] = left
        height += 1
    if right != NONE and meets_all(tree, right, low, high):
        spread.stack[height] = right
        height += 1
    return height


@kernel_inline
def push_partitions(tree: Readable, node: int, spread: Spread, width: int, height: int) -> int:
    """Put the directories of *node* that the event meets on the stack; its height."""
    count = tree.word[node + PARTITIONS]
    if count == 0:
        return height
    if count > MUCH_LONGER * width:
        for place in range(width):
            dimension = spread.dimension[place]
            partition = partition_on(tree, node, dimension)
            if partition != NONE:
                height = push_root(tree, partition, dimension, spread, height)
        return height
    directory = tree.word[node + DIRECTORY]
    for place in range(directory, directory + count):
        dimension = tree.code[2 * place]
        if not math.isnan(spread.value[2 * dimension]):
            height = push_root(tree, tree.code[2 * place + 1], dimension, spread, height)
    return height


@kernel_inline
def push_root(tree: Readable, partition: int, dimension: int, spread: Spread, height: int) -> int:
    """Put the first bucket of *partition* on the stack where the event meets it."""
    root = tree.word[partition + ROOT]
    low, high = spread.value[2 * dimension], spread.value[2 * dimension + 1]
    if meets_all(tree, root, low, high):
        spread.stack[height] = root
        height += 1
    return height


@kernel_inline
def scan_leaf(tree: Readable, node: int, spread: Spread, marks: RowMarks) -> None:
    """Mark the alternatives in the leaf of *node* all of whose boxes the event meets."""
    record, value = tree.word[node + LEAF], spread.value
    records, met = tree.word[node + LEAF_COUNT], 0
    for _ in range(records):
        head = tree.code[2 * record + 1]
        boxes = head & COUNT_MASK
        if head & NARROW:
            is_met = meets_narrow(tree, record, boxes, value)
            words = RECORD_WORDS + NARROW_BOX * boxes
        else:
            is_met = meets_wide(tree, record, boxes, value)
            words = RECORD_WORDS + WIDE_BOX * boxes
        if is_met:
            mark(marks, tree.code[2 * record])
            met += 1
        record += words
    spread.effort[TESTED] += records
    spread.effort[MET] += met


@kernel_inline
def meets_narrow(tree: Readable, record: int, boxes: int, value: Float64) -> bool:
    """Whether the event meets all *boxes* of a narrow *record*."""
    box = record + RECORD_WORDS
    for _ in range(boxes):
        dimension = tree.code[2 * box] & _SIXTEEN_BITS
        low = tree.number[box + 1]
        high = low + np.float64(tree.half[2 * box + 1])
        if not (value[2 * dimension] <= high and value[2 * dimension + 1] >= low):
            return False
        box += NARROW_BOX
    return True


@kernel_inline
def meets_wide(tree: Readable, record: int, boxes: int, value: Float64) -> bool:
    """Whether the event meets all *boxes* of a wide *record*."""
    box = record + RECORD_WORDS
    for _ in range(boxes):
        dimension = tree.code[2 * box]
        low, high = tree.number[box + 1], tree.number[box + 2]
        if not (value[2 * dimension] <= high and value[2 * dimension + 1] >= low):
            return False
        box += WIDE_BOX
    return True


def values_of(events: EventColumns) -> Values:
    """What the walk takes of *events*."""
    return Values(events.value_start, events.attribute, events.low, events.high)


def spread_for(dimensions: int, buckets: int) -> Spread:
    """Scratch for a tree with so many *dimensions* and *buckets*."""
    return Spread(
        np.full(2 * dimensions, math.nan),
        np.empty(dimensions, np.int32),
        np.empty(buckets + 1, np.int64),
        np.zeros(EFFORTS, np.int64),
    )
