"""Events → alternatives: from the roots of an event's axes down to leaves, 32 lanes at a time."""

from __future__ import annotations

from typing import Final

import numpy as np

from stentor._intrinsics import prefetch, trailing_zeros
from stentor._jit import kernel, kernel_inline
from stentor._tables import LANES, lanes_meeting
from stentor.encoding.columns import EventColumns
from stentor.index.bounds import VALUE, X, Y
from stentor.index.packed.homes import Found
from stentor.index.packed.lists.axes import axis_at, cell_at
from stentor.index.packed.lists.layout import NO_AXIS, ListAxes, whole
from stentor.index.packed.nodes.entries import framed
from stentor.index.packed.nodes.layout import (
    ABOVE,
    ALL_LANES,
    BELOW,
    BELOW_IT,
    CLASSES,
    COUNT,
    COVERED,
    DICTIONARY,
    FIELDS,
    HEIGHT,
    IS_EXACT,
    LACKING,
    NO_CELL,
    NO_ROOT,
    START,
    WIDTH,
    NodeArrays,
    NodeScratch,
)

_NO_LANES: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_LINE: Final = 64  # bytes that are prefetched at once
#: Leaves ahead that are prefetched.
AHEAD: Final = 3


@kernel
def match_nodes(
    axes: ListAxes, nodes: NodeArrays, events: EventColumns, scratch: NodeScratch, found: Found
) -> int:
    """The number of pairs; those that do not fit into *found* are only counted."""
    count = 0
    for event in range(len(events.value_start) - 1):
        load_cells(axes, events, event, scratch)
        leaves = find_leaves(nodes, scratch)
        count = match_leaves(nodes, leaves, event, scratch, found, count)
        unload_cells(scratch)
    return count


@kernel_inline
def load_cells(axes: ListAxes, events: EventColumns, event: int, scratch: NodeScratch) -> None:
    """Find the cells of the event's values along all axes that they are on."""
    count, is_ranged = 0, False
    for value in range(events.value_start[event], events.value_start[event + 1]):
        attribute = whole(events.attribute[value])
        low, high = events.low[value], events.high[value]
        axis = axis_at(axes, attribute, VALUE)
        if axis != NO_AXIS:
            count = add_axis(axes, axis, low, scratch, count)
            is_ranged |= low != high
        axis = axis_at(axes, attribute, X)
        if axis != NO_AXIS:
            count = add_axis(axes, axis, low, scratch, count)
            count = add_axis(axes, axis_at(axes, attribute, Y), high, scratch, count)
    scratch.used[0] = count
    find_cells(axes, scratch)
    if not is_ranged:
        return
    for value in range(events.value_start[event], events.value_start[event + 1]):
        axis = axis_at(axes, whole(events.attribute[value]), VALUE)
        if axis != NO_AXIS and events.low[value] != events.high[value]:
            scratch.high[axis] = cell_at(axes, axis, events.high[value])


@kernel_inline
def add_axis(axes: ListAxes, axis: int, value: float, scratch: NodeScratch, count: int) -> int:
    """Let the event have *value* along *axis*; its cell is still to be found."""
    scratch.axis[count], scratch.value[count] = axis, value
    scratch.low[axis] = axes.cut_start[axis]
    scratch.size[count] = axes.cut_start[axis + 1] - axes.cut_start[axis]
    return count + 1


@kernel_inline
def find_cells(axes: ListAxes, scratch: NodeScratch) -> None:
    """Find the cells of all values: one step of each search in turn, so that all wait together."""
    is_open = True
    while is_open:
        is_open = False
        for position in range(scratch.used[0]):
            axis, size = scratch.axis[position], scratch.size[position]
            half, start = size >> 1, scratch.low[axis]
            scratch.low[axis] = start + half * (axes.cut[start + half] <= scratch.value[position])
            scratch.size[position] = size - half
            is_open |= size - half > 1
    for position in range(scratch.used[0]):
        axis = scratch.axis[position]
        cell = scratch.low[axis] - axes.cut_start[axis] + 1
        scratch.low[axis] = scratch.high[axis] = cell


@kernel_inline
def unload_cells(scratch: NodeScratch) -> None:
    """Forget the cells of the event."""
    for position in range(scratch.used[0]):
        axis = scratch.axis[position]
        scratch.low[axis] = scratch.high[axis] = NO_CELL


@kernel_inline
def load_table(nodes: NodeArrays, dictionary: int, scratch: NodeScratch) -> None:
    """Fill the table of the event for the slots of *dictionary*."""
    first = nodes.slot_start[dictionary]
    for number in range(nodes.slot_start[dictionary + 1] - first):
        axis, base = nodes.slot_axis[first + number], whole(nodes.slot_base[first + number])
        shift = whole(nodes.slot_shift[first + number])
        scratch.table[number] = framed(scratch.low[axis], base, shift)
        scratch.table[LANES + number] = framed(scratch.high[axis], base, shift)


@kernel_inline
def load_proof(nodes: NodeArrays, dictionary: int, scratch: NodeScratch) -> None:
    """Fill the table that bounds must meet to be proved: where a byte decides nothing, beyond it.

    What an event has below the frame or above it is certain: it meets no bound inside.
    """
    first, table = nodes.slot_start[dictionary], scratch.table
    for number in range(nodes.slot_start[dictionary + 1] - first):
        low, high = whole(table[number]), whole(table[LANES + number])
        if nodes.is_inexact[first + number] != 0:
            low += BELOW <= low < ABOVE
            high -= high > BELOW
        table[2 * LANES + number], table[3 * LANES + number] = low, high


@kernel_inline
def find_leaves(nodes: NodeArrays, scratch: NodeScratch) -> int:
    """Fill `scratch.leaf` with the leaves that the event may meet; how many there are."""
    waiting, leaves = 0, 0
    for position in range(scratch.used[0]):
        for width in range(CLASSES):
            root = nodes.root[CLASSES * scratch.axis[position] + width]
            if root != NO_ROOT:
                prefetch(nodes.head, FIELDS * root)
                scratch.waiting[waiting] = root
                waiting += 1
    done = 0
    while done < waiting:
        if done + AHEAD < waiting:
            prefetch_node(nodes, scratch.waiting[done + AHEAD])
        node = scratch.waiting[done]
        done += 1
        head = nodes.head[FIELDS * node : FIELDS * node + FIELDS]
        if head[HEIGHT] == 0:  # a root that is a leaf
            scratch.leaf[leaves] = node
            leaves += 1
            continue
        lanes = met_lanes(nodes, node, scratch)
        below, is_last = head[BELOW_IT], head[HEIGHT] == 1
        while lanes != _NO_LANES:
            child = below + whole(trailing_zeros(lanes))
            lanes &= lanes - _ONE
            prefetch(nodes.head, FIELDS * child)
            scratch.leaf[leaves] = child
            scratch.waiting[waiting] = child
            leaves += is_last
            waiting += not is_last
    return leaves


@kernel_inline
def prefetch_node(nodes: NodeArrays, node: int) -> None:
    """Prefetch what an inner *node*, whose head is there, is read for."""
    at = FIELDS * node
    prefetch(nodes.lane, nodes.head[at + START])
    prefetch(nodes.lane, nodes.head[at + START] + 2 * nodes.head[at + COUNT])
    prefetch(nodes.slot_start, nodes.head[at + DICTIONARY])
    prefetch(nodes.promise, nodes.head[at + BELOW_IT])


@kernel_inline
def met_lanes(nodes: NodeArrays, node: int, scratch: NodeScratch) -> np.uint64:
    """The nodes below *node* whose hulls the event meets."""
    head = nodes.head[FIELDS * node : FIELDS * node + FIELDS]
    load_table(nodes, head[DICTIONARY], scratch)
    start, stride, width = head[START], head[COUNT], head[WIDTH]
    bounds = start + 2 * width * stride
    table = scratch.table
    lanes = lanes_meeting(
        nodes.lane, start, bounds, stride, width, table[:LANES], table[LANES : 2 * LANES]
    )
    return lanes & np.uint64(ALL_LANES >> (LANES - stride))


@kernel_inline
def prefetch_leaf(nodes: NodeArrays, leaf: int) -> None:
    """Prefetch the slots and bounds of *leaf*."""
    head = nodes.head[FIELDS * leaf : FIELDS * leaf + FIELDS]
    size = head[COUNT] * head[WIDTH]
    for at in range(head[START], head[START] + size, _LINE):
        prefetch(nodes.lane, at)
    for at in range(head[START] + 2 * size, head[START] + 4 * size, _LINE):
        prefetch(nodes.lane, at)


@kernel_inline
def match_leaves(
    nodes: NodeArrays, leaves: int, event: int, scratch: NodeScratch, found: Found, count: int
) -> int:
    """Append the pairs of the first *leaves* of `scratch.leaf`."""
    loaded, table = whole(-1), scratch.table
    for position in range(min(AHEAD, leaves)):
        prefetch_leaf(nodes, scratch.leaf[position])
    for position in range(leaves):
        if position + AHEAD < leaves:
            prefetch_leaf(nodes, scratch.leaf[position + AHEAD])
        at = FIELDS * scratch.leaf[position]
        head = nodes.head[at : at + FIELDS]
        dictionary, start, stride, width = head[DICTIONARY], head[START], head[COUNT], head[WIDTH]
        if dictionary != loaded:
            load_table(nodes, dictionary, scratch)
            loaded = dictionary
        bounds = start + 2 * width * stride
        lanes = lanes_meeting(
            nodes.lane, start, bounds, stride, width, table[:LANES], table[LANES : 2 * LANES]
        )
        lanes &= np.uint64(ALL_LANES >> (LANES - stride))
        if lanes == _NO_LANES:
            continue
        covered = proved_lanes(nodes, scratch.leaf[position], scratch)
        first = head[BELOW_IT]
        while lanes != _NO_LANES:
            lane = whole(trailing_zeros(lanes))
            lanes &= lanes - _ONE
            if count < len(found.event):
                found.event[count] = event
                found.alternative[count] = nodes.alternative[first + lane]
                found.covered[count] = (covered >> lane) & 1
            count += 1
    return count


@kernel_inline
def proved_lanes(nodes: NodeArrays, leaf: int, scratch: NodeScratch) -> int:
    """The lanes of *leaf* that match if they are met, a bit each; its table is loaded."""
    head = nodes.head[FIELDS * leaf : FIELDS * leaf + FIELDS]
    covered = head[COVERED]
    if head[IS_EXACT] != 0 or covered == LACKING:
        return int(covered)
    load_proof(nodes, head[DICTIONARY], scratch)
    start, stride, width, table = head[START], head[COUNT], head[WIDTH], scratch.table
    proved = lanes_meeting(
        nodes.lane,
        start,
        start + 2 * width * stride,
        stride,
        width,
        table[2 * LANES : 3 * LANES],
        table[3 * LANES :],
    )
    return int(covered & whole(proved))
