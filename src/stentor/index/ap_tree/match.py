"""Algorithm 1: the leaves that an event visits, then their slots.

Each cut is visited once, and all dummies; a signature and a box rule most slots out, and the
verifier tests the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
)
from stentor.index.ap_tree.keywords import bloom_has, most_keywords, ranks_of_event
from stentor.index.ap_tree.layout import (
    BRANCH,
    CAPACITY,
    COUNT,
    DEPTH,
    DIRTY,
    FIELDS,
    FLAGS,
    KEYWORDS,
    KIND,
    LEAF,
    LINES,
    LIST_CAPACITY,
    LIST_SIZE,
    LIST_START,
    MAY_CUT,
    MAY_GRID,
    MOST_DEPTH,
    MOVED,
    NONE,
    OFFSET,
    PARENT,
    ROOT,
    SIZE,
    SPLIT_ABOVE,
    START,
    ApTreeArrays,
    Float32,
    Vocabulary,
    X,
    Y,
)
from stentor.index.ap_tree.nodes import new_node
from stentor.index.live import SIGN_ALL_ATTRIBUTES
from stentor.index.signature import event_signature
from stentor.index.sort import NO_VALUE, find_value
from stentor.index.table import RowSpans
from stentor.index.verify.scratch import EventScratch
from stentor.index.verify.single import NOTHING_PROVED, SingleMatch, verify_one

#: Most cells of one grid with copies of an entry; what touches more is in its dummy, as what
#: contains the whole region is: most events would compare it anyway, and copies stay bounded.
MOST_CELLS = 64

#: The location of an event that has none: in no box but those that are everywhere.
NOWHERE = np.inf

_NO_BITS = np.uint64(0)


@kernel_inline
def cut_of(bound: Int32, start: int, cuts: int, rank: int) -> int:
    """The branch of the cut that *rank* is in: the last whose bound does not exceed it."""
    low, high = start, start + cuts
    while high - low > 1:
        middle = (low + high) >> 1
        if bound[middle] <= rank:
            low = middle
        else:
            high = middle
    return low


@kernel_inline
def cell_along(line: Float64, start: int, lines: int, value: float) -> int:
    """The number of lines that do not exceed *value*: its column or row."""
    low, high = start, start + lines
    while low < high:
        middle = (low + high) >> 1
        if line[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low - start


@kernel_inline
def contains_region(box: Float32, region: Float64) -> bool:
    """Whether *box* contains all of *region*."""
    return bool(
        box[0] <= region[0] and box[1] <= region[1] and box[2] >= region[2] and box[3] >= region[3]
    )


@kernel_inline
def is_wide(west: int, east: int, south: int, north: int) -> bool:
    """Whether a box that touches these columns and rows goes to the dummy, not into each cell."""
    return (east - west + 1) * (north - south + 1) > MOST_CELLS


@kernel_inline
def make_node(tree: ApTreeArrays, position: int, parent: int) -> int:
    """A leaf without entries at *position* of *parent*: region, offset and flags follow from it."""
    node = new_node(tree)
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    fields[KIND], fields[START], fields[SIZE], fields[CAPACITY] = LEAF, 0, 0, 0
    fields[SPLIT_ABOVE], fields[MOVED], fields[COUNT] = 0, 0, 0
    fields[LIST_START], fields[LIST_SIZE], fields[LIST_CAPACITY] = 0, 0, 0
    fields[PARENT], fields[BRANCH] = parent, position
    tree.child[position] = node
    above = tree.node[parent * FIELDS : (parent + 1) * FIELDS]
    region = tree.region[4 * node : 4 * node + 4]
    around = tree.region[4 * parent : 4 * parent + 4]
    for side in range(4):
        region[side] = around[side]
    flags = above[FLAGS] & ~DIRTY
    offset = above[OFFSET]
    number = position - above[START]
    is_dummy = number == above[SIZE]
    if above[KIND] == KEYWORDS:
        if is_dummy:
            flags &= ~MAY_CUT
        else:
            offset += 1
    elif is_dummy:
        flags &= ~MAY_GRID
    else:
        cell_region(tree, parent, number, region)
    fields[OFFSET], fields[FLAGS], fields[DEPTH] = offset, flags, above[DEPTH] + 1
    return node


@kernel_inline
def cell_region(tree: ApTreeArrays, node: int, number: int, region: Float64) -> None:
    """Narrow *region*, that of the s-node *node*, to its cell *number*."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    columns, rows, lines = fields[X], fields[Y], fields[LINES]
    column, row = number % columns, number // columns
    if column > 0:
        region[0] = tree.line[lines + column - 1]
    if column < columns - 1:
        region[2] = tree.line[lines + column]
    if row > 0:
        region[1] = tree.line[lines + columns - 1 + row - 1]
    if row < rows - 1:
        region[3] = tree.line[lines + columns - 1 + row]


class ApMatchScratch(NamedTuple):
    """Scratch for one event at a time."""

    rank: Int32  # (keywords,) of the event
    node: Int32  # nodes still to be visited
    start: Int32  # and with which keyword to start there
    point: Float64  # (2,) the location of the event
    ancestors: Int32  # (MOST_DEPTH + 2,) from a node up to the root


def match_scratch(events: EventColumns) -> ApMatchScratch:
    """Scratch that each of *events* fits into."""
    return match_scratch_for(most_keywords(events))


def match_scratch_for(keywords: int) -> ApMatchScratch:
    """Scratch for events of so many *keywords*."""
    depth = (MOST_DEPTH + 1) * (keywords + 2)
    return ApMatchScratch(
        rank=np.empty(keywords, np.int32),
        node=np.empty(depth, np.int32),
        start=np.empty(depth, np.int32),
        point=np.empty(2),
        ancestors=np.empty(MOST_DEPTH + 2, np.int32),
    )


@kernel_inline
def point_of(events: EventColumns, event: int, attribute: int, point: Float64) -> bool:
    """Whether the event has a location; *point* gets it, or NOWHERE."""
    value = find_value(events, event, attribute)
    if value != NO_VALUE and events.string[value] < 0:
        point[0], point[1] = events.low[value], events.high[value]
        return True
    point[0] = point[1] = NOWHERE
    return False


def points_of(events: EventColumns, attribute: int) -> Float64:
    """The location of each event (n × 2), or NOWHERE."""
    points = np.empty((len(events.until), 2))
    fill_points(events, attribute, points.reshape(-1))
    return points


@kernel
def fill_points(events: EventColumns, attribute: int, points: Float64) -> None:
    """Fill *points* (n × 2, flat)."""
    for event in range(len(points) // 2):
        point_of(events, event, attribute, points[2 * event : 2 * event + 2])


@kernel
def find_leaves(
    tree: ApTreeArrays,
    vocabulary: Vocabulary,
    events: EventColumns,
    attribute: int,
    path: ApMatchScratch,
    starts: Int64,
    leaves: Int32,
    visited: Int64,
) -> int:
    """How many leaves *events* visit; those that fit are in *leaves*, by event from *starts*.

    *visited* counts the nodes.
    """
    found = 0
    point = path.point
    for event in range(len(starts) - 1):
        starts[event] = found
        keywords = ranks_of_event(events, event, vocabulary, False, path.rank)
        has_location = point_of(events, event, attribute, point)
        top = 0
        if len(tree.node) > 0:
            path.node[0], path.start[0] = ROOT, 0
            top = 1
        while top > 0:
            top -= 1
            node, first = path.node[top], path.start[top]
            visited[0] += 1
            fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
            if fields[KIND] == LEAF:
                if fields[SIZE] > 0:
                    if found < len(leaves):
                        leaves[found] = node
                    found += 1
                continue
            start, size = fields[START], fields[SIZE]
            dummy = tree.child[start + size]
            if dummy != NONE:
                path.node[top], path.start[top] = dummy, first
                top += 1
            if fields[KIND] == KEYWORDS:
                last = NONE
                for position in range(first, keywords):
                    if not bloom_has(tree.present, node, path.rank[position]):
                        continue
                    cut = cut_of(tree.bound, start, size, path.rank[position])
                    if cut != last:
                        last = cut
                        child = tree.child[cut]
                        if child != NONE:
                            path.node[top], path.start[top] = child, position + 1
                            top += 1
            elif has_location:
                child = tree.child[cell_at(tree, node, point[0], point[1])]
                if child != NONE:
                    path.node[top], path.start[top] = child, first
                    top += 1
    starts[len(starts) - 1] = found
    return found


@kernel_inline
def cell_at(tree: ApTreeArrays, node: int, x: float, y: float) -> int:
    """The branch of the cell of the s-node *node* that (x, y) is in."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    columns, lines = fields[X], fields[LINES]
    column = cell_along(tree.line, lines, columns - 1, x)
    row = cell_along(tree.line, lines + columns - 1, fields[Y] - 1, y)
    return int(fields[START] + row * columns + column)


@inner_kernel
def branches_of_event(
    tree: ApTreeArrays,
    keywords: int,
    point: Float64,
    has_location: bool,
    most: int,
    node: int,
    first: int,
    path: ApMatchScratch,
    found: Int32,
    parents: Int32,
    used: int,
) -> int:
    """Where an event is listed that visits *node* with keyword *first*: branches and their parents.

    Returns how many of *found* are used then, from *used* on; those that do not fit are counted.
    """
    path.node[0], path.start[0] = node, first
    top = 1
    begun = used
    while top > 0:
        top -= 1
        node, first = path.node[top], path.start[top]
        fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
        is_enough = used - begun + top >= most
        if fields[KIND] == LEAF or is_enough:
            if used < len(found):
                found[used], parents[used] = fields[BRANCH], NONE
            used += 1
            continue
        start, size = fields[START], fields[SIZE]
        used, top = push_branch(tree, node, start + size, first, path, top, found, parents, used)
        if fields[KIND] == KEYWORDS:
            last = NONE
            for position in range(first, keywords):
                cut = cut_of(tree.bound, start, size, path.rank[position])
                if cut != last:
                    last = cut
                    used, top = push_branch(
                        tree, node, cut, position + 1, path, top, found, parents, used
                    )
        elif has_location:
            cell = cell_at(tree, node, point[0], point[1])
            used, top = push_branch(tree, node, cell, first, path, top, found, parents, used)
    return used


@kernel_inline
def push_branch(
    tree: ApTreeArrays,
    node: int,
    position: int,
    first: int,
    path: ApMatchScratch,
    top: int,
    found: Int32,
    parents: Int32,
    used: int,
) -> tuple[int, int]:
    """Go on to the child at *position* of *node*; where there is none, the path ends there."""
    child = tree.child[position]
    if child == NONE:
        if used < len(found):
            found[used], parents[used] = position, node
        return used + 1, top
    path.node[top], path.start[top] = child, first
    return used, top + 1


@inner_kernel
def keyword_at(tree: ApTreeArrays, keywords: int, rank: Int32, node: int, ancestors: Int32) -> int:
    """With which keyword an event that visits *node* starts there; NONE if it does not visit it.

    Only cuts are compared. *ancestors* is scratch.
    """
    length = 0
    above = np.int32(node)
    while above != NONE:
        ancestors[length] = above
        length += 1
        above = tree.node[above * FIELDS + PARENT]
    first = 0
    for step in range(length - 1, 0, -1):
        fields = tree.node[ancestors[step] * FIELDS : (ancestors[step] + 1) * FIELDS]
        if fields[KIND] != KEYWORDS:
            continue
        start, size = fields[START], fields[SIZE]
        wanted = tree.node[ancestors[step - 1] * FIELDS + BRANCH]
        if wanted == start + size:
            continue
        position = first
        while position < keywords and cut_of(tree.bound, start, size, rank[position]) != wanted:
            position += 1
        if position == keywords:
            return NONE
        first = position + 1
    return first


@kernel
def match_leaves(
    tree: ApTreeArrays,
    events: EventColumns,
    attribute: int,
    starts: Int64,
    leaves: Int32,
    point: Float64,
    found_event: Int64,
    found_alternative: Int64,
) -> int:
    """The number of candidates; those that do not fit are only counted. *point* is scratch."""
    found = 0
    for event in range(len(starts) - 1):
        point_of(events, event, attribute, point)
        x, y = point[0], point[1]
        lacking = ~event_signature(events, event, SIGN_ALL_ATTRIBUTES)
        for leaf in leaves[starts[event] : starts[event + 1]]:
            start, size = tree.node[leaf * FIELDS + START], tree.node[leaf * FIELDS + SIZE]
            signature = tree.signature[start : start + size]
            box = tree.box[4 * start : 4 * (start + size)]
            alternative = tree.alternative[start : start + size]
            for slot in range(size):
                if signature[slot] & lacking != _NO_BITS:
                    continue
                if (
                    (box[4 * slot] <= x)
                    & (box[4 * slot + 1] <= y)
                    & (box[4 * slot + 2] >= x)
                    & (box[4 * slot + 3] >= y)
                ):
                    if found < len(found_event):
                        found_event[found] = event
                        found_alternative[found] = alternative[slot]
                    found += 1
    return found


@kernel
def match_event(
    tree: ApTreeArrays,
    vocabulary: Vocabulary,
    attribute: int,
    path: ApMatchScratch,
    starts: Int64,
    leaves: Int32,
    visited: Int64,
    read_starts: Int64,
    read_leaves: Int32,
    columns: SubscriptionColumns,
    validity: RowSpans,
    event: EventColumns,
    scratch: EventScratch,
    scoring: int,
    found: SingleMatch,
) -> int:
    """The rows that match the first event: see `verify_one`; so too where *leaves* are too few.

    *starts*, *leaves* and *read_…* are the same memory, to be written and read.
    """
    count = find_leaves(tree, vocabulary, event, attribute, path, starts, leaves, visited)
    if count > len(leaves):
        return ~count
    count = match_leaves(
        tree,
        event,
        attribute,
        read_starts,
        read_leaves,
        path.point,
        found.event,
        found.alternative,
    )
    return verify_one(columns, validity, event, scratch, NOTHING_PROVED, scoring, count, found)
