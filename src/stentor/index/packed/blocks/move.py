"""Removals and short moves, in location.

A record that moves far would stretch the box of its block, which every event then visits (at 10 %
of such moves matching takes 17 times as long): it is removed, and the caller keeps it elsewhere.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from stentor._intrinsics import prefetch
from stentor._jit import kernel, kernel_inline
from stentor._lines import cuts_up_to
from stentor.encoding.columns import Int32, Int64, SubscriptionColumns, UInt8, UInt64
from stentor.index.packed.blocks.encode import write_bounds
from stentor.index.packed.blocks.layout import (
    BLOCK,
    BOX_FLOAT,
    FANOUT,
    LIVE,
    LOCATION_CELLS,
    LOCATION_CUTS,
    RECORD,
    WORDS,
    BlockArrays,
    BlockDimensions,
    Float32,
    real,
    whole,
)

#: How much wider and taller, in all, the box of a block may become by one move.
MOST_GROWTH: Final = 0.02
#: How many slots ahead memory is prefetched.
AHEAD: Final = 8
_FLOATS: Final = RECORD // 4
_ONE = np.uint64(1)
_NONE = np.uint64(0)


@kernel
def remove_slots(line: UInt64, lines: int, slots: Int64) -> int:
    """Clear the live bits of *slots*; how many were set."""
    removed = 0
    for position in range(len(slots)):
        if position + AHEAD < len(slots):
            prefetch(line, live_position(slots[position + AHEAD], lines))
        at, bit = live_position(slots[position], lines), _ONE << np.uint64(slots[position] & 63)
        removed += line[at] & bit != _NONE
        line[at] &= ~bit
    return removed


@kernel_inline
def live_position(slot: int, lines: int) -> int:
    """The word with the live bit of *slot*."""
    return slot // BLOCK * (lines * WORDS) + LIVE * WORDS + (slot % BLOCK >> 6)


@kernel
def move_slots(
    columns: SubscriptionColumns,
    alternatives: Int64,
    slots: Int64,
    dimensions: BlockDimensions,
    blocks: BlockArrays,
    code: UInt8,
    box: Float32,
    is_moved: UInt8,
) -> None:
    """Write the boxes of *alternatives* anew where their blocks nearly have them.

    *is_moved* gets 1 there. *code* and *box* are scratch for one record. Codes never change by
    moving: only the pairs of a circle around its subscriber do.
    """
    lines = dimensions.line_start[len(dimensions.line_start) - 1]
    for position in range(len(slots)):
        slot = slots[position]
        write_bounds(columns, alternatives[position], dimensions, code, box)
        is_moved[position] = 0
        if fits(blocks, slot // BLOCK, box):
            is_moved[position] = 1
            sides = blocks.record_float[slot * _FLOATS + BOX_FLOAT : (slot + 1) * _FLOATS]
            if dimensions.line_start[0] > 1:
                for axis in range(2):
                    move_in_lines(blocks, lines, slot, axis, sides, box)
            for side in range(4):
                sides[side] = box[side]
            widen(blocks, slot // BLOCK, box)


@kernel_inline
def box_position(blocks: BlockArrays, block: int) -> int:
    """Where x1 of the box of *block* is; y1, x2 and y2 follow, eight further each."""
    levels = len(blocks.level_start) - 2
    node = blocks.level_start[levels - 1] + block // FANOUT
    return whole(node) * 4 * FANOUT + block % FANOUT


@kernel_inline
def fits(blocks: BlockArrays, block: int, box: Float32) -> bool:
    """Whether the box of *block* grows little, or not at all, by *box*."""
    at = box_position(blocks, block)
    x1, y1 = real(blocks.box[at]), real(blocks.box[at + FANOUT])
    x2, y2 = real(blocks.box[at + 2 * FANOUT]), real(blocks.box[at + 3 * FANOUT])
    wide = max(x2, -real(box[2])) - min(x1, real(box[0]))
    tall = max(y2, -real(box[3])) - min(y1, real(box[1]))
    if wide == x2 - x1 and tall == y2 - y1:
        return True
    return bool(wide + tall <= (1.0 + MOST_GROWTH) * (x2 - x1 + y2 - y1))


@kernel_inline
def widen(blocks: BlockArrays, block: int, box: Float32) -> None:
    """Let the boxes of *block*, and of the nodes above it, have *box* in them."""
    child = block
    for level in range(len(blocks.level_start) - 3, -1, -1):
        at = (blocks.level_start[level] + child // FANOUT) * 4 * FANOUT + child % FANOUT
        blocks.box[at] = min(blocks.box[at], box[0])
        blocks.box[at + FANOUT] = min(blocks.box[at + FANOUT], box[1])
        blocks.box[at + 2 * FANOUT] = max(blocks.box[at + 2 * FANOUT], -box[2])
        blocks.box[at + 3 * FANOUT] = max(blocks.box[at + 3 * FANOUT], -box[3])
        child = child // FANOUT


@kernel_inline
def move_in_lines(
    blocks: BlockArrays, lines: int, slot: int, axis: int, before: Float32, after: Float32
) -> None:
    """Change the bits of *slot* in the lines of cells of x (*axis* 0) or y."""
    block, cuts = slot // BLOCK, slot // BLOCK * LOCATION_CUTS + axis * LOCATION_CELLS
    old_first = cuts_up_to(blocks.location_cut, cuts, before[axis])
    old_last = cuts_up_to(blocks.location_cut, cuts, -before[2 + axis])
    first = cuts_up_to(blocks.location_cut, cuts, after[axis])
    last = cuts_up_to(blocks.location_cut, cuts, -after[2 + axis])
    bit = _ONE << np.uint64(slot & 63)
    at = (block * lines + 1 + axis * LOCATION_CELLS) * WORDS + (slot % BLOCK >> 6)
    for cell in range(min(old_first, first), max(old_last, last) + 1):
        was, is_now = old_first <= cell <= old_last, first <= cell <= last
        if was != is_now:
            blocks.line[at + cell * WORDS] ^= bit


@kernel
def live_slots(line: UInt64, lines: int, slots: Int64, is_live: UInt8) -> None:
    """Whether each of *slots* is live."""
    for position in range(len(slots)):
        bit = _ONE << np.uint64(slots[position] & 63)
        is_live[position] = line[live_position(slots[position], lines)] & bit != _NONE


@kernel
def find_slots(member: Int32, slot_of: Int32, alternatives: Int64, slots: Int64) -> int:
    """The slots of *alternatives*, −1 where one is not in *member*; how many there are."""
    known = 0
    is_dense = len(member) > 0 and whole(member[len(member) - 1]) - member[0] + 1 == len(member)
    for position in range(len(alternatives)):
        alternative = alternatives[position]
        start, stop = 0, len(member)
        if is_dense:
            start = min(max(alternative - member[0], 0), len(member) - 1)
            stop = start
        while start < stop:
            middle = (start + stop) >> 1
            if member[middle] < alternative:
                start = middle + 1
            else:
                stop = middle
        slots[position] = -1
        if start < len(member) and member[start] == alternative:
            slots[position] = slot_of[start]
            known += 1
    return known
