"""Entries → leaves, and the inner nodes above them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_inline
from stentor._tables import LANES
from stentor.encoding.columns import Int32, Int64, UInt8
from stentor.index.packed.lists.layout import LEAST, MOST_CELL, ListAxes, whole
from stentor.index.packed.nodes.entries import NodeEntries, framed_high, framed_low
from stentor.index.packed.nodes.layout import (
    ALWAYS,
    ANY_HIGH,
    ANY_LOW,
    BELOW_IT,
    COLUMN_BYTES,
    COUNT,
    COVERED,
    DICTIONARY,
    FIELDS,
    FRAME,
    HEIGHT,
    IS_EXACT,
    START,
    WIDTH,
    NodeArrays,
)
from stentor.index.packed.nodes.order import LeafCuts, Scores

#: Bounds are added up in another order than scores are, and rounded to 32 bits.
COARSE = 1.0 + 1e-6
#: Columns of an inner node.
HULLS = 2


class NodeHulls(NamedTuple):
    """What inner nodes know of the nodes below: hulls of both columns that entries go by."""

    run: Int64  # (nodes,)
    axis: Int32  # (nodes × HULLS,) or −1
    low: Int32  # (nodes × HULLS,)
    high: Int32  # (nodes × HULLS,)


@kernel_inline
def shift_for(base: int, top: int) -> int:
    """How far cells are shifted, so that base … top fits into a frame."""
    shift = 0
    while (top - base) >> shift >= FRAME:
        shift += 1
    return shift


@kernel
def frame_slots(cuts: LeafCuts, axes: ListAxes, base: Int32, shift: UInt8, inexact: UInt8) -> None:
    """Fill *base*, *shift* and *inexact* of all slots."""
    for slot in range(len(cuts.slot_axis)):
        first, last = whole(cuts.slot_base[slot]), whole(cuts.slot_top[slot])
        if first > last:  # no bound at all
            first = last = whole(1)
        base[slot] = first
        shift[slot] = shift_for(first, last)
        inexact[slot] = shift[slot] > 0 or axes.is_exact[cuts.slot_axis[slot]] == 0


@kernel
def head_leaves(entries: NodeEntries, order: Int64, cuts: LeafCuts, nodes: NodeArrays) -> int:
    """Write the heads of leaves, but for what their lanes say; how many bytes these take."""
    used = 0
    for leaf in range(len(cuts.leaf_dictionary)):
        start, stop = cuts.leaf_start[leaf], cuts.leaf_start[leaf + 1]
        width = 0
        for position in range(start, stop):
            entry = order[position]
            width = max(width, entries.start[entry + 1] - entries.start[entry])
        at, dictionary = FIELDS * leaf, cuts.leaf_dictionary[leaf]
        nodes.head[at + START] = used
        nodes.head[at + COUNT] = stop - start
        nodes.head[at + WIDTH] = width
        nodes.head[at + DICTIONARY] = dictionary
        nodes.head[at + BELOW_IT] = start
        nodes.head[at + HEIGHT] = 0
        exact = 1
        for slot in range(nodes.slot_start[dictionary], nodes.slot_start[dictionary + 1]):
            if nodes.is_inexact[slot] != 0:
                exact = 0
        nodes.head[at + IS_EXACT] = exact
        used += COLUMN_BYTES * width * (stop - start)
    return used


@kernel
def pack_leaves(
    entries: NodeEntries,
    order: Int64,
    scores: Scores,
    slot_of: Int64,
    nodes: NodeArrays,
    hulls: NodeHulls,
) -> None:
    """Write the lanes of all leaves, what bounds their scores, and their hulls."""
    dictionary = whole(-1)
    for leaf in range(len(hulls.run)):
        at = FIELDS * leaf
        if nodes.head[at + DICTIONARY] != dictionary:
            dictionary = nodes.head[at + DICTIONARY]
            for slot in range(nodes.slot_start[dictionary], nodes.slot_start[dictionary + 1]):
                slot_of[nodes.slot_axis[slot]] = slot
        start, stride = nodes.head[at + START], nodes.head[at + COUNT]
        width, first = nodes.head[at + WIDTH], nodes.head[at + BELOW_IT]
        covered, promise, total = whole(0), 0.0, 0.0
        for lane in range(stride):
            entry = order[first + lane]
            put_lane(
                entries, entry, scores, slot_of, nodes, dictionary, start + lane, stride, width
            )
            covered |= whole(entries.covered[entry]) << lane
            promise = max(promise, scores.promise[entry])
            total = max(total, scores.total[entry])
        nodes.head[at + COVERED] = covered
        nodes.promise[leaf], nodes.total[leaf] = COARSE * promise, COARSE * total
        hulls.run[leaf] = entries.run[order[first]]
        put_leaf_hull(entries, order, first, first + stride, hulls, leaf)


@kernel_inline
def put_lane(
    entries: NodeEntries,
    entry: int,
    scores: Scores,
    slot_of: Int64,
    nodes: NodeArrays,
    dictionary: int,
    lane: int,
    stride: int,
    width: int,
) -> None:
    """Write the columns of *entry*: slots, weights, then bounds; *lane* is where the first is."""
    begin = entries.start[entry]
    used = entries.start[entry + 1] - begin
    weights, bounds = lane + width * stride, lane + 2 * width * stride
    for column in range(width):
        at = bounds + 2 * column * stride
        if column >= used:
            nodes.lane[lane + column * stride] = ALWAYS
            nodes.lane[weights + column * stride] = 0
            nodes.lane[at], nodes.lane[at + stride] = ANY_LOW, ANY_HIGH
            continue
        axis = entries.axis[begin + column]
        slot = slot_of[axis]
        base, shift = whole(nodes.slot_base[slot]), whole(nodes.slot_shift[slot])
        nodes.lane[lane + column * stride] = slot - nodes.slot_start[dictionary]
        most, share = scores.heaviest[axis], 0.0
        if most > 0.0:
            share = np.ceil(entries.weight[begin + column] / most * 255.0)
        nodes.lane[weights + column * stride] = np.uint8(min(share, 255.0))
        nodes.lane[at] = framed_low(entries.low[begin + column], base, shift)
        nodes.lane[at + stride] = framed_high(entries.high[begin + column], base, shift)


@kernel_inline
def put_leaf_hull(
    entries: NodeEntries, order: Int64, start: int, stop: int, hulls: NodeHulls, leaf: int
) -> None:
    """Write the hulls of a leaf's entries along the axes that they go by, where these agree."""
    for number in range(HULLS):
        axis, low, high = whole(-2), whole(MOST_CELL), whole(LEAST)
        for position in range(start, stop):
            entry = order[position]
            chosen = entries.first[entry] if number == 0 else entries.second[entry]
            column = entries.start[entry] + chosen
            own = whole(entries.axis[column]) if chosen >= 0 else whole(-1)
            axis = own if axis in (-2, own) else whole(-1)
            if axis == -1:
                break
            low = min(low, whole(entries.low[column]))
            high = max(high, whole(entries.high[column]))
        hulls.axis[HULLS * leaf + number] = axis
        hulls.low[HULLS * leaf + number] = low
        hulls.high[HULLS * leaf + number] = high


@kernel
def pack_level(
    begins: Int64,
    sizes: Int64,
    below: int,
    node: int,
    dictionary: int,
    lanes: int,
    height: int,
    nodes: NodeArrays,
    hulls: NodeHulls,
    above: NodeHulls,
) -> int:
    """Write inner nodes from *node* on over groups of the nodes from *below* on.

    *begins* and *sizes* are of the groups; *hulls* is of the nodes below, *above* of what is
    written. Each has the next *dictionary*, of two slots; how many bytes lanes take then.
    """
    for group in range(len(begins)):
        begin, stride = begins[group], sizes[group]
        at = FIELDS * (node + group)
        nodes.head[at + START] = lanes
        nodes.head[at + COUNT], nodes.head[at + WIDTH] = stride, HULLS
        nodes.head[at + DICTIONARY] = dictionary + group
        nodes.head[at + BELOW_IT] = below + begin
        nodes.head[at + COVERED] = nodes.head[at + IS_EXACT] = 0
        nodes.head[at + HEIGHT] = height
        above.run[group] = hulls.run[begin]
        promise, total = np.float32(0.0), np.float32(0.0)
        for one in range(begin, begin + stride):
            promise = max(promise, nodes.promise[below + one])
            total = max(total, nodes.total[below + one])
        nodes.promise[node + group], nodes.total[node + group] = promise, total
        for number in range(HULLS):
            put_hull_column(hulls, begin, stride, number, nodes, dictionary + group, lanes)
            column = HULLS * group + number
            slot = nodes.slot_start[dictionary + group] + number
            above.axis[column] = (
                nodes.slot_axis[slot] if is_common(hulls, begin, stride, number) else -1
            )
            low, high = whole(MOST_CELL), whole(LEAST)
            for one in range(begin, begin + stride):
                low = min(low, whole(hulls.low[HULLS * one + number]))
                high = max(high, whole(hulls.high[HULLS * one + number]))
            above.low[column], above.high[column] = low, high
        lanes += COLUMN_BYTES * HULLS * stride
    return lanes


@kernel_inline
def is_common(hulls: NodeHulls, begin: int, stride: int, number: int) -> bool:
    """Whether all of some nodes have a hull along the same axis."""
    axis = hulls.axis[HULLS * begin + number]
    for one in range(begin, begin + stride):
        if hulls.axis[HULLS * one + number] != axis:
            return False
    return bool(axis >= 0)


@kernel_inline
def put_hull_column(
    hulls: NodeHulls,
    begin: int,
    stride: int,
    number: int,
    nodes: NodeArrays,
    dictionary: int,
    lanes: int,
) -> None:
    """Write column *number* of an inner node, and its slot."""
    common = is_common(hulls, begin, stride, number)
    base, top = whole(MOST_CELL), whole(LEAST)
    for one in range(HULLS * begin + number, HULLS * (begin + stride) + number, HULLS):
        if common and hulls.low[one] != LEAST:
            base, top = min(base, whole(hulls.low[one])), max(top, whole(hulls.low[one]))
        if common and hulls.high[one] < MOST_CELL:
            base, top = min(base, whole(hulls.high[one])), max(top, whole(hulls.high[one]))
    if base > top:
        base = top = whole(1)
    shift = shift_for(base, top)
    slot = nodes.slot_start[dictionary] + number
    nodes.slot_axis[slot] = hulls.axis[HULLS * begin + number] if common else 0
    nodes.slot_base[slot], nodes.slot_shift[slot] = base, shift
    nodes.is_inexact[slot] = 1
    for lane in range(stride):
        bounds = lanes + lane + 2 * (HULLS + number) * stride
        one = HULLS * (begin + lane) + number
        nodes.lane[lanes + lane + number * stride] = number if common else ALWAYS
        nodes.lane[lanes + lane + (HULLS + number) * stride] = 0
        nodes.lane[bounds] = framed_low(hulls.low[one], base, shift) if common else ANY_LOW
        nodes.lane[bounds + stride] = (
            framed_high(hulls.high[one], base, shift) if common else ANY_HIGH
        )


def groups_of(run: Int64) -> Int64:
    """Where groups of at most 32 neighbours of one *run* begin, as even as can be; and the end."""
    begins = np.flatnonzero(np.append(True, run[1:] != run[:-1]))
    counts = np.diff(np.append(begins, len(run)))
    groups = -(-counts // LANES)
    number = np.arange(groups.sum()) - np.repeat(np.cumsum(groups) - groups, groups)
    starts = np.repeat(begins, groups) + number * np.repeat(counts, groups) // np.repeat(
        groups, groups
    )
    return np.append(starts, len(run)).astype(np.int64)
