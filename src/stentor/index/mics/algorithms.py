"""Algorithms 1 and 2: ranges come, and are looked up. How they go is in `unsubscription.py`.

    given      every range of every subscription: an *entry*
    told       those that were not covered when they came, which whoever listens was told of
    passive    those that were
    union      what is told, merged: disjoint ranges that do not touch

Paper: sections 4.2 and 4.3.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import Int64, UInt8, UInt64
from stentor.index.mics.ordered import (
    NOWHERE,
    ONE,
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
_ZERO: Final = np.uint64(0)


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
            merge_entry(union, told, entries, entry, gap)
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
def merge_entry(
    union: Ordered, told: Ordered, entries: Entries, entry: int, gap: np.uint64
) -> None:
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
        elif low - left_high - ONE <= gap:
            merges_left = True
            told_low = left_high + ONE
    right = first_from(union, _ZERO) if left == NOWHERE else after(union, left)
    end = high
    while right != NOWHERE and union.low[slot_of(union, right)] <= high:
        end = max(end, union.high[slot_of(union, right)])
        right = take_away(union, right)
    if right != NOWHERE and end == high:
        right_low = union.low[slot_of(union, right)]
        if right_low - high - ONE <= gap:
            told_high = right_low - ONE
            end = union.high[slot_of(union, right)]
            take_away(union, right)
    _tell(told, entries, entry, told_low, told_high)
    if merges_left:
        end_at(union, left, end)
    else:
        put(union, told_low, end, 0)


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
