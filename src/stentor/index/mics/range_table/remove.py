"""Ranges are removed: the reverse of Algorithm 1, which the paper leaves out.

leaving    ├───────────────┤     holes are what no other announced range fills: they are cut
announced    ├────┤              out of the union, and passive ranges that reach into one are
passive              ├───┤       announced
"""

from __future__ import annotations

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import Int64, UInt64
from stentor.index.mics.range_table.insert import (
    ANNOUNCED,
    BLOCKS_FOR_ONE,
    GONE,
    PASSIVE,
    GivenRanges,
    merge_entry,
)
from stentor.index.mics.range_table.layout import (
    BLOCK,
    NONE,
    ONE,
    ORDERED,
    RangeBlocks,
    after,
    capacity_of,
    first_from,
    insert,
    predecessor,
    remove,
    set_high,
    slot_of,
)


@kernel
def remove_entries(
    union: RangeBlocks,
    announced: RangeBlocks,
    passive: RangeBlocks,
    entries: GivenRanges,
    leaving: Int64,
    hull: UInt64,
    gap: np.uint64,
    promoted: Int64,
    progress: Int64,
) -> bool:
    """Remove the entries *leaving*, and announce passive ranges that are needed now.

    *hull* is scratch, a number for each. *promoted* gets the entries that were announced. Returns
    whether it is done: else it needs more blocks, and continues when called again. *progress*:
    how far it came, how many were promoted, how many free blocks `union` needs.
    """
    count = len(leaving)
    while progress[0] < count:
        entry = leaving[progress[0]]
        if entries.state[entry] == PASSIVE:
            _remove_passive(passive, entries.low[entry], entry)
            entries.state[entry] = GONE
        else:
            # Before anything is cut out: what it covers, or others with it, begins here or later.
            position = predecessor(union, entries.announced_low[entry])
            hull[progress[0]] = union.low[slot_of(union, position)]
        progress[0] += 1
    while progress[0] < 2 * count:
        entry = leaving[progress[0] - count]
        if entries.state[entry] == ANNOUNCED:
            low, high = entries.announced_low[entry], entries.announced_high[entry]
            start = union.low[slot_of(union, predecessor(union, low))]
            holes = _holes(announced, start, low, high, entry, union, False)
            # One after the other, so that half of each block that is cut in half is filled.
            progress[2] = BLOCKS_FOR_ONE + holes // (BLOCK // 2)
            if capacity_of(union) < progress[2]:
                return False
            _holes(announced, start, low, high, entry, union, True)
            _remove_announced(announced, low, entry)
        progress[0] += 1
    while progress[0] < 3 * count:
        entry = leaving[progress[0] - 2 * count]
        if entries.state[entry] == ANNOUNCED:
            start = hull[progress[0] - 2 * count]
            if not _announce_uncovered(
                union, announced, passive, entries, entry, start, gap, promoted, progress
            ):
                return False
            entries.state[entry] = GONE
        progress[0] += 1
    return True


@inner_kernel
def _remove_announced(announced: RangeBlocks, low: np.uint64, entry: int) -> None:
    """Remove the range of *entry*, which begins at *low*; few others do."""
    position = first_from(announced, low)
    while announced.entry[slot_of(announced, position)] != entry:
        position = after(announced, position)
    remove(announced, position)


@inner_kernel
def _remove_passive(passive: RangeBlocks, low: np.uint64, entry: int) -> None:
    """Remove the range of *entry*, which begins at *low*, as many others may.

    Those are in the order of their entries: they were inserted in that order, and never again.
    """
    position = first_from(passive, low)
    start, stop = position // BLOCK, passive.used[ORDERED]
    while start + 1 < stop:  # the last block that begins with it or before
        middle = (start + stop) >> 1
        first = passive.entry[passive.order[middle] * BLOCK]
        if passive.first[middle] > low or first > entry:
            stop = middle
        else:
            start = middle
    position = max(position, start * BLOCK)
    while passive.entry[slot_of(passive, position)] != entry:
        position = after(passive, position)
    remove(passive, position)


@inner_kernel
def _holes(
    announced: RangeBlocks,
    start: np.uint64,
    low: np.uint64,
    high: np.uint64,
    leaving: int,
    union: RangeBlocks,
    cuts: bool,
) -> int:
    """The holes in *low* … *high* that only *leaving* filled; counted, or cut out of *union*.

    What else is announced there begins at *start* or after.
    """
    holes, reached = 0, low
    position = first_from(announced, start)
    while position != NONE:
        if announced.highest[announced.order[position // BLOCK]] < reached:
            position = next_block(announced, position)
            continue
        slot = slot_of(announced, position)
        if announced.low[slot] > high:
            break
        if announced.entry[slot] != leaving and announced.high[slot] >= reached:
            if announced.low[slot] > reached:
                holes += 1
                if cuts:
                    _cut_out(union, reached, announced.low[slot] - ONE)
            if announced.high[slot] >= high:
                return holes
            reached = announced.high[slot] + ONE
        position = after(announced, position)
    if cuts:
        _cut_out(union, reached, high)
    return holes + 1


@kernel_inline
def next_block(ordered: RangeBlocks, position: int) -> int:
    """The first position of the block after that of *position*, or NONE."""
    ordinal = position // BLOCK + 1
    return ordinal * BLOCK if ordinal < ordered.used[ORDERED] else NONE


@inner_kernel
def _cut_out(union: RangeBlocks, low: np.uint64, high: np.uint64) -> None:
    """Cut *low* … *high* out of the range of *union* that contains it."""
    position = predecessor(union, low)
    slot = slot_of(union, position)
    start, stop = union.low[slot], union.high[slot]
    if start < low:
        set_high(union, position, low - ONE)
    else:
        remove(union, position)
    if stop > high:
        insert(union, high + ONE, stop, 0)


@inner_kernel
def _announce_uncovered(
    union: RangeBlocks,
    announced: RangeBlocks,
    passive: RangeBlocks,
    entries: GivenRanges,
    entry: int,
    start: np.uint64,
    gap: np.uint64,
    promoted: Int64,
    progress: Int64,
) -> bool:
    """Announce passive ranges that reach into what *entry* left; whether blocks sufficed for all.

    *reached* is the first number that may still be uncovered: as soon as it and all numbers after
    it are covered, so are all later ranges, which may be many.
    """
    low, high = entries.announced_low[entry], entries.announced_high[entry]
    position = first_from(passive, start)
    reached = low
    while position != NONE:
        if passive.highest[passive.order[position // BLOCK]] < reached:
            position = next_block(passive, position)
            continue
        slot = slot_of(passive, position)
        if passive.low[slot] > high:
            break
        if passive.high[slot] < reached:
            position = after(passive, position)
            continue
        reached = max(reached, passive.low[slot])
        holder = predecessor(union, reached)
        if holder != NONE and union.high[slot_of(union, holder)] >= reached:
            if union.high[slot_of(union, holder)] >= high:
                break
            reached = union.high[slot_of(union, holder)] + ONE
            continue
        if min(capacity_of(union), capacity_of(announced)) < BLOCKS_FOR_ONE or progress[1] == len(
            promoted
        ):
            return False
        one = passive.entry[slot]
        position = remove(passive, position)
        left = predecessor(union, entries.low[one])
        merge_entry(union, announced, entries, one, left, gap)
        promoted[progress[1]] = one
        progress[1] += 1
    return True
