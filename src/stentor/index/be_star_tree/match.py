"""Events → the alternatives all of whose boxes they meet: one kernel for the whole walk.

An event is written to an array over the tree's dimensions; what it lacks is NaN, which meets no
box. A c-node is visited where the event meets the hull of all beneath it, its leaf and
p-directory where the event meets its own bucket.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
)
from stentor.index.be_star_tree.buckets import partition_on
from stentor.index.be_star_tree.layout import (
    AXES,
    BOXES,
    COUNT_MASK,
    DEAD,
    DIRECTORY,
    HASH,
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
    PARTITION,
    PARTITIONS,
    RECORD_WORDS,
    RIGHT,
    ROOT,
    ROOT_NODE,
    WIDE_BOX,
    BEReadArrays,
    Readable,
    X,
    Y,
)
from stentor.index.be_star_tree.records import hash_number
from stentor.index.row_set import RowSet, add_row, take_rows
from stentor.index.table import RowSpans
from stentor.index.verify.scratch import EventScratch
from stentor.index.verify.single import SingleMatch, verify_one

# Positions in `counted_work`: c-nodes visited, records tested, records whose boxes were all met.
NODES, TESTED, MET = 0, 1, 2
EFFORTS = 3
#: A directory so many times as long as the event is searched; a shorter one is read through.
MUCH_LONGER = 4
_SIXTEEN_BITS = (1 << 16) - 1


class BEMatchScratch(NamedTuple):
    """One event over the tree's dimensions, and the walk's stack: scratch of one call."""

    value: Float64  # (2 × dimensions,) low, high; NaN where the event has none
    dimension: Int32  # (dimensions,) those that it has
    stack: Int64  # (c-nodes,)
    counted_work: Int64  # (EFFORTS,)


class Values(NamedTuple):
    """The columns of events that matching takes: as in `EventColumns`."""

    value_start: Int64
    attribute: Int32
    low: Float64
    high: Float64
    string: Int32
    string_hash: UInt64


@kernel
def find_alternatives(
    tree: BEReadArrays,
    events: Values,
    spread: BEMatchScratch,
    marks: RowSet,
    starts: Int64,
    found: Int64,
) -> int:
    """The number of alternatives all of whose boxes an event meets; *found* gets each event's.

    They ascend; *starts* says where each event's start. Those that do not fit are only counted.
    """
    count = 0
    spread.counted_work[:] = 0
    for event in range(len(starts) - 1):
        starts[event] = count
        width = load_values(tree, events, event, spread)
        spread.stack[0] = ROOT_NODE
        height = 1
        while height > 0:
            height -= 1
            node = spread.stack[height]
            spread.counted_work[NODES] += 1
            height = push_children(tree, node, spread, height)
            if meets_own(tree, node, spread):
                height = push_partitions(tree, node, spread, width, height)
                scan_leaf(tree, node, spread, marks)
        clear(spread, width)
        count = take_rows(marks, found, count)
    starts[len(starts) - 1] = count
    return count


@kernel
def match_event(
    tree: BEReadArrays,
    values: Values,
    spread: BEMatchScratch,
    marks: RowSet,
    starts: Int64,
    is_covered: bool,
    proved: UInt8,
    columns: SubscriptionColumns,
    validity: RowSpans,
    event: EventColumns,
    scratch: EventScratch,
    scoring: int,
    found: SingleMatch,
) -> int:
    """The rows that match the first event: see `verify_one`.

    Where *is_covered*, every alternative that is found is a row that matches.
    """
    if is_covered and scoring < 0:
        count = find_alternatives(tree, values, spread, marks, starts, found.row)
        return count if count <= len(found.row) else ~count
    count = find_alternatives(tree, values, spread, marks, starts, found.alternative)
    return verify_one(columns, validity, event, scratch, proved, scoring, count, found)


@inner_kernel
def load_values(tree: Readable, events: Values, event: int, spread: BEMatchScratch) -> int:
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
                if axis == HASH:
                    if events.string[value] < 0:
                        continue
                    low = high = hash_number(events.string_hash[events.string[value]])
                spread.dimension[width] = dimension
                width += 1
                spread.value[2 * dimension] = high if axis == Y else low
                spread.value[2 * dimension + 1] = low if axis == X else high
    return width


@kernel_inline
def clear(spread: BEMatchScratch, width: int) -> None:
    """Remove the event from *spread*."""
    for position in range(width):
        dimension = spread.dimension[position]
        spread.value[2 * dimension] = spread.value[2 * dimension + 1] = math.nan


@kernel_inline
def meets_all(tree: Readable, node: int, low: float, high: float) -> bool:
    """Whether low … high meets the hull of all beneath *node*."""
    box = node + BOXES
    return bool(low <= tree.number[box + HIGH] and high >= tree.number[box + LOW])


@kernel_inline
def own_dimension(tree: Readable, node: int) -> int:
    """The dimension of the directory that *node* is in."""
    return int(tree.word[tree.word[node + PARTITION]])


@kernel_inline
def meets_own(tree: Readable, node: int, spread: BEMatchScratch) -> bool:
    """Whether the event meets the own bucket of *node*; the root's has no bounds."""
    if node == ROOT_NODE:
        return True
    dimension = own_dimension(tree, node)
    low, high = spread.value[2 * dimension], spread.value[2 * dimension + 1]
    return bool(low <= tree.number[node + OWN_HIGH] and high >= tree.number[node + OWN_LOW])


@kernel_inline
def push_children(tree: Readable, node: int, spread: BEMatchScratch, height: int) -> int:
    """Push the left and right buckets that the event meets; the height of the stack."""
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
def push_partitions(
    tree: Readable, node: int, spread: BEMatchScratch, width: int, height: int
) -> int:
    """Push the first buckets of the p-nodes of *node* that the event meets; the stack's height."""
    count = tree.word[node + PARTITIONS]
    if count == 0:
        return height
    if count > MUCH_LONGER * width:
        for position in range(width):
            dimension = spread.dimension[position]
            partition = partition_on(tree, node, dimension)
            if partition != NONE:
                height = push_root(tree, partition, dimension, spread, height)
        return height
    directory = tree.word[node + DIRECTORY]
    for position in range(directory, directory + count):
        dimension = tree.code[2 * position]
        if not math.isnan(spread.value[2 * dimension]):
            height = push_root(tree, tree.code[2 * position + 1], dimension, spread, height)
    return height


@kernel_inline
def push_root(
    tree: Readable, partition: int, dimension: int, spread: BEMatchScratch, height: int
) -> int:
    """Push the first bucket of *partition* where the event meets it; the height of the stack."""
    root = tree.word[partition + ROOT]
    low, high = spread.value[2 * dimension], spread.value[2 * dimension + 1]
    if meets_all(tree, root, low, high):
        spread.stack[height] = root
        height += 1
    return height


@kernel_inline
def scan_leaf(tree: Readable, node: int, spread: BEMatchScratch, marks: RowSet) -> None:
    """Add the alternatives in the leaf of *node* all of whose boxes the event meets to *marks*."""
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
        if is_met and not head & DEAD:
            add_row(marks, tree.code[2 * record])
            met += 1
        record += words
    spread.counted_work[TESTED] += records
    spread.counted_work[MET] += met


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
    """The columns of *events* that matching takes."""
    return Values(
        events.value_start,
        events.attribute,
        events.low,
        events.high,
        events.string,
        events.string_hash,
    )


def match_scratch(dimensions: int, buckets: int) -> BEMatchScratch:
    """Scratch for a tree with so many *dimensions* and *buckets*."""
    return BEMatchScratch(
        np.full(2 * dimensions, math.nan),
        np.empty(dimensions, np.int32),
        np.empty(buckets + 1, np.int64),
        np.zeros(EFFORTS, np.int64),
    )
