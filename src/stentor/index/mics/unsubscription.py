"""How ranges go: the reverse of Algorithm 1, which the paper leaves out.

told   ├─────leaving─────┤     holes are what no other told range fills: they are cut out
         ├─told─┤              of the union, and passive ranges that reach into one are told
passive            ├───┤
"""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import Int64, UInt64
from stentor.index.mics.algorithms import (
    GONE,
    PASSIVE,
    ROOM_FOR_ONE,
    TOLD,
    Entries,
    merge_entry,
)
from stentor.index.mics.ordered import (
    BLOCK,
    NOWHERE,
    ONE,
    ORDERED,
    Ordered,
    after,
    end_at,
    first_from,
    predecessor,
    put,
    room_of,
    slot_of,
    take_away,
)


@kernel
def remove_entries(
    union: Ordered,
    told: Ordered,
    passive: Ordered,
    entries: Entries,
    leaving: Int64,
    hull: UInt64,
    gap: np.uint64,
    promoted: Int64,
    progress: Int64,
) -> bool:
    """Let the entries *leaving* go, and tell passive ranges that are needed now.

    *hull* has room for a number for each. *promoted* gets the entries that were told. Returns
    whether it came to the end: else it wants room, and goes on when it is called again. *progress*:
    how far it came, how many were promoted, how many blocks `union` must have to spare.
    """
    count = len(leaving)
    while progress[0] < count:
        entry = leaving[progress[0]]
        if entries.state[entry] == PASSIVE:
            _take_passive(passive, entries.low[entry], entry)
            entries.state[entry] = GONE
        else:
            # Before anything is cut out: what it covers, or others with it, begins here or later.
            position = predecessor(union, entries.told_low[entry])
            hull[progress[0]] = union.low[slot_of(union, position)]
        progress[0] += 1
    while progress[0] < 2 * count:
        entry = leaving[progress[0] - count]
        if entries.state[entry] == TOLD:
            low, high = entries.told_low[entry], entries.told_high[entry]
            start = union.low[slot_of(union, predecessor(union, low))]
            holes = _holes(told, start, low, high, entry, union, False)
            # One after the other, so that half of each block that is cut in half is filled.
            progress[2] = ROOM_FOR_ONE + holes // (BLOCK // 2)
            if room_of(union) < progress[2]:
                return False
            _holes(told, start, low, high, entry, union, True)
            _take_told(told, low, entry)
        progress[0] += 1
    while progress[0] < 3 * count:
        entry = leaving[progress[0] - 2 * count]
        if entries.state[entry] == TOLD:
            start = hull[progress[0] - 2 * count]
            if not _promote(union, told, passive, entries, entry, start, gap, promoted, progress):
                return False
            entries.state[entry] = GONE
        progress[0] += 1
    return True


@kernel_part
def _take_told(told: Ordered, low: np.uint64, entry: int) -> None:
    """Remove the range of *entry*, which begins at *low*; few others do."""
    position = first_from(told, low)
    while told.entry[slot_of(told, position)] != entry:
        position = after(told, position)
    take_away(told, position)


@kernel_part
def _take_passive(passive: Ordered, low: np.uint64, entry: int) -> None:
    """Remove the range of *entry*, which begins at *low*, as many others may.

    Those stand in the order of their entries: they come in that order, and none comes back.
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
    take_away(passive, position)


@kernel_part
def _holes(
    told: Ordered,
    start: np.uint64,
    low: np.uint64,
    high: np.uint64,
    leaving: int,
    union: Ordered,
    cuts: bool,
) -> int:
    """The holes in *low* … *high* that only *leaving* filled; counted, or cut out of *union*.

    What else is told there begins at *start* or after.
    """
    holes, reached = 0, low
    position = first_from(told, start)
    while position != NOWHERE:
        if told.highest[told.order[position // BLOCK]] < reached:
            position = next_block(told, position)
            continue
        slot = slot_of(told, position)
        if told.low[slot] > high:
            break
        if told.entry[slot] != leaving and told.high[slot] >= reached:
            if told.low[slot] > reached:
                holes += 1
                if cuts:
                    _cut_out(union, reached, told.low[slot] - ONE)
            if told.high[slot] >= high:
                return holes
            reached = told.high[slot] + ONE
        position = after(told, position)
    if cuts:
        _cut_out(union, reached, high)
    return holes + 1


@kernel_inline
def next_block(ordered: Ordered, position: int) -> int:
    """The first position of the block after that of *position*, or NOWHERE."""
    place = position // BLOCK + 1
    return place * BLOCK if place < ordered.used[ORDERED] else NOWHERE


@kernel_part
def _cut_out(union: Ordered, low: np.uint64, high: np.uint64) -> None:
    """Take *low* … *high* out of the range of *union* that holds it."""
    position = predecessor(union, low)
    slot = slot_of(union, position)
    start, stop = union.low[slot], union.high[slot]
    if start < low:
        end_at(union, position, low - ONE)
    else:
        take_away(union, position)
    if stop > high:
        put(union, high + ONE, stop, 0)


@kernel_part
def _promote(
    union: Ordered,
    told: Ordered,
    passive: Ordered,
    entries: Entries,
    entry: int,
    start: np.uint64,
    gap: np.uint64,
    promoted: Int64,
    progress: Int64,
) -> bool:
    """Tell passive ranges that reach into what *entry* left; whether there was room for all.

    *reached* is the first number that may want one of those that come: as soon as it and all after
    it are covered, so are all others, which may be many.
    """
    low, high = entries.told_low[entry], entries.told_high[entry]
    position = first_from(passive, start)
    reached = low
    while position != NOWHERE:
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
        if holder != NOWHERE and union.high[slot_of(union, holder)] >= reached:
            if union.high[slot_of(union, holder)] >= high:
                break
            reached = union.high[slot_of(union, holder)] + ONE
            continue
        if min(room_of(union), room_of(told)) < ROOM_FOR_ONE or progress[1] == len(promoted):
            return False
        one = passive.entry[slot]
        position = take_away(passive, position)
        merge_entry(union, told, entries, one, gap)
        promoted[progress[1]] = one
        progress[1] += 1
    return True
