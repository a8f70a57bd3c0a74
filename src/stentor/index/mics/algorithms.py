"""Algorithms 1 and 2, and their reverse: ranges come, are looked up, and go.

    given      every range of every subscription: an *entry*
    told       those that were not covered when they came, which whoever listens was told of
    passive    those that were
    union      what is told, merged: disjoint ranges that do not touch

Paper: sections 4.2 and 4.3. It has no unsubscription; here the holes that a told range leaves are
cut out of the union, and passive ranges that reach into them are told.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import Int64, UInt8, UInt64
from stentor.index.mics.ordered import (
    BLOCK,
    NOWHERE,
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

# The states of an entry.
PASSIVE, TOLD, GONE = 0, 1, 2
#: Blocks that adding one range may take of each of the ordered sets.
ROOM_FOR_ONE: Final = 2
#: A hole adds a range to a block; a full one is halved.
HOLES_IN_A_BLOCK: Final = BLOCK // 4
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)


class Entries(NamedTuple):
    """The ranges as they were given, and as they were told: imperfect merging fills gaps."""

    low: UInt64  # (entries,)
    high: UInt64  # (entries,)
    told_low: UInt64  # (entries,)
    told_high: UInt64  # (entries,)
    state: UInt8  # (entries,)


@kernel
def add_entries(
    union: Ordered,
    told: Ordered,
    passive: Ordered,
    entries: Entries,
    first: int,
    stop: int,
    gap: np.uint64,
) -> int:
    """Algorithm 1 for the entries from *first* to *stop*; where it stopped for want of room."""
    for entry in range(first, stop):
        room = min(room_of(union), room_of(told), room_of(passive))
        if room < ROOM_FOR_ONE:
            return entry
        if is_covered(union, entries.low[entry], entries.high[entry]):
            entries.state[entry] = PASSIVE
            put(passive, entries.low[entry], entries.high[entry], entry)
        else:
            _merge(union, told, entries, entry, gap)
    return stop


@kernel_inline
def is_covered(union: Ordered, low: np.uint64, high: np.uint64) -> bool:
    """Step 1: whether one range of *union* holds all of *low* … *high*. Cost: O(log ranges)."""
    position = predecessor(union, low)
    return position != NOWHERE and union.high[slot_of(union, position)] >= high


@kernel_inline
def _tell(told: Ordered, entries: Entries, entry: int, low: np.uint64, high: np.uint64) -> None:
    entries.state[entry] = TOLD
    entries.told_low[entry], entries.told_high[entry] = low, high
    put(told, low, high, entry)


@kernel_part
def _merge(union: Ordered, told: Ordered, entries: Entries, entry: int, gap: np.uint64) -> None:
    """Steps 2 and 3: drop what *entry* covers, merge it with its neighbours, and tell it.

    A gap of at most *gap* numbers to a neighbour is filled, and told as a part of it.
    """
    low, high = entries.low[entry], entries.high[entry]
    told_low, told_high = low, high
    left = predecessor(union, low)
    merges_left = False
    if left != NOWHERE:
        left_high = union.high[slot_of(union, left)]
        if left_high >= low:
            merges_left = True
        elif low - left_high - _ONE <= gap:
            merges_left = True
            told_low = left_high + _ONE
    right = first_from(union, _ZERO) if left == NOWHERE else after(union, left)
    end = high
    while right != NOWHERE and union.low[slot_of(union, right)] <= high:
        end = max(end, union.high[slot_of(union, right)])
        right = take_away(union, right)
    if right != NOWHERE and end == high:
        right_low = union.low[slot_of(union, right)]
        if right_low - high - _ONE <= gap:
            told_high = right_low - _ONE
            end = union.high[slot_of(union, right)]
            take_away(union, right)
    _tell(told, entries, entry, told_low, told_high)
    if merges_left:
        end_at(union, left, end)
    else:
        put(union, told_low, end, 0)


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

    *hull* has room for a number for each. *promoted* gets the entries that were told, counted in
    progress[1]; progress[0] is how far this came. Returns whether it came to the end: else it wants
    room, progress[2] blocks of the union, and goes on when it is called again.
    """
    count = len(leaving)
    while progress[0] < count:
        entry = leaving[progress[0]]
        if entries.state[entry] == PASSIVE:
            _take_entry(passive, entries.low[entry], entry)
            entries.state[entry] = GONE
        else:  # before anything is cut: what reaches into several holes begins before all of them
            before = predecessor(union, entries.told_low[entry])
            hull[progress[0]] = union.low[slot_of(union, before)]
        progress[0] += 1
    while progress[0] < 2 * count:
        entry = leaving[progress[0] - count]
        if entries.state[entry] == TOLD:
            low, high = entries.told_low[entry], entries.told_high[entry]
            start = hull[progress[0] - count]
            holes = _holes(told, start, low, high, entry, union, False)
            progress[2] = ROOM_FOR_ONE + holes // HOLES_IN_A_BLOCK
            if room_of(union) < progress[2]:
                return False
            _holes(told, start, low, high, entry, union, True)
            _take_entry(told, low, entry)
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
def _take_entry(ordered: Ordered, low: np.uint64, entry: int) -> None:
    """Remove the range of *entry*, which begins at *low*."""
    position = first_from(ordered, low)
    while ordered.entry[slot_of(ordered, position)] != entry:
        position = after(ordered, position)
    take_away(ordered, position)


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
                    _cut_out(union, reached, told.low[slot] - _ONE)
            if told.high[slot] >= high:
                return holes
            reached = told.high[slot] + _ONE
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
        end_at(union, position, low - _ONE)
    else:
        take_away(union, position)
    if stop > high:
        put(union, high + _ONE, stop, 0)


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

    Once all that it left is covered again, so is every passive range: of many equal ones the first
    suffices, and the others are not looked at.
    """
    low, high = entries.told_low[entry], entries.told_high[entry]
    position = first_from(passive, start)
    if is_covered(union, low, high):
        return True
    while position != NOWHERE:
        if passive.highest[passive.order[position // BLOCK]] < low:
            position = next_block(passive, position)
            continue
        slot = slot_of(passive, position)
        if passive.low[slot] > high:
            break
        if passive.high[slot] < low or is_covered(union, passive.low[slot], passive.high[slot]):
            position = after(passive, position)
            continue
        if min(room_of(union), room_of(told)) < ROOM_FOR_ONE or progress[1] == len(promoted):
            return False
        one = passive.entry[slot]
        position = take_away(passive, position)
        _merge(union, told, entries, one, gap)
        promoted[progress[1]] = one
        progress[1] += 1
        if is_covered(union, low, high):
            return True
    return True


@kernel
def look_up(union: Ordered, numbers: UInt64, found: UInt8) -> None:
    """Algorithm 2: 1 in *found* where one of *numbers* is in *union*."""
    for place in range(len(numbers)):
        found[place] = is_covered(union, numbers[place], numbers[place])


@kernel
def covered_ranges(union: Ordered, low: UInt64, high: UInt64, found: UInt8) -> None:
    """1 in *found* where one of the ranges is subsumed by *union*; nothing changes."""
    for place in range(len(low)):
        found[place] = is_covered(union, low[place], high[place])


@kernel
def meet_union(union: Ordered, starts: Int64, low: UInt64, high: UInt64, found: UInt8) -> None:
    """1 in *found* where a range of an item shares a number with *union*. Cost: O(log) each."""
    for item in range(len(found)):
        found[item] = 0
        for place in range(starts[item], starts[item + 1]):
            position = predecessor(union, high[place])
            if position != NOWHERE and union.high[slot_of(union, position)] >= low[place]:
                found[item] = 1
                break
