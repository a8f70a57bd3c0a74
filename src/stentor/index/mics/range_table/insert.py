"""Algorithms 1 and 2: ranges are inserted, and looked up.

    given      every range of every subscription: an *entry*
    announced  those that were not covered when they came: the listener knows them
    passive    those that were
    union      what is announced, merged: disjoint ranges that do not touch

Paper: sections 4.2 and 4.3.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import Int64, UInt8, UInt64
from stentor.index.mics.range_table.layout import (
    NONE,
    ONE,
    RangeBlocks,
    after,
    capacity_of,
    first_from,
    insert,
    predecessor,
    put_after,
    remove,
    set_high,
    slot_of,
)

# The states of an entry.
PASSIVE, ANNOUNCED, GONE = 0, 1, 2
#: Blocks that inserting one range may take in each of the ordered sets.
BLOCKS_FOR_ONE: Final = 2
_ZERO: Final = np.uint64(0)


class GivenRanges(NamedTuple):
    """The ranges as they were given, and as they were announced: imperfect merging fills gaps."""

    low: UInt64  # (entries,)
    high: UInt64  # (entries,)
    announced_low: UInt64  # (entries,)
    announced_high: UInt64  # (entries,)
    state: UInt8  # (entries,)


@kernel
def add_entries(
    union: RangeBlocks,
    announced: RangeBlocks,
    passive: RangeBlocks,
    entries: GivenRanges,
    first: int,
    stop: int,
    gap: np.uint64,
) -> int:
    """Algorithm 1 for the entries from *first* to *stop*; where it stopped, if blocks ran out."""
    for entry in range(first, stop):
        capacity = min(capacity_of(union), capacity_of(announced), capacity_of(passive))
        if capacity < BLOCKS_FOR_ONE:
            return entry
        left = predecessor(union, entries.low[entry])
        if left != NONE and union.high[slot_of(union, left)] >= entries.high[entry]:
            entries.state[entry] = PASSIVE
            insert(passive, entries.low[entry], entries.high[entry], entry)
        else:
            merge_entry(union, announced, entries, entry, left, gap)
    return stop


@kernel_inline
def is_covered(union: RangeBlocks, low: np.uint64, high: np.uint64) -> bool:
    """Step 1: whether one range of *union* holds all of *low* … *high*. Cost: O(log ranges)."""
    position = predecessor(union, low)
    return position != NONE and union.high[slot_of(union, position)] >= high


@kernel_inline
def _announce(
    announced: RangeBlocks, entries: GivenRanges, entry: int, low: np.uint64, high: np.uint64
) -> None:
    entries.state[entry] = ANNOUNCED
    entries.announced_low[entry], entries.announced_high[entry] = low, high
    insert(announced, low, high, entry)


@inner_kernel
def merge_entry(
    union: RangeBlocks,
    announced: RangeBlocks,
    entries: GivenRanges,
    entry: int,
    left: int,
    gap: np.uint64,
) -> None:
    """Steps 2 and 3: drop what *entry* covers, merge it with its neighbours, and announce it.

    Its predecessor is at *left*. A gap of at most *gap* numbers to a neighbour is filled, and
    announced as a part of it.
    """
    low, high = entries.low[entry], entries.high[entry]
    announced_low, announced_high = low, high
    merges_left = False
    if left != NONE:
        left_high = union.high[slot_of(union, left)]
        if left_high >= low:
            merges_left = True
        elif low - left_high - ONE <= gap:
            merges_left = True
            announced_low = left_high + ONE
    right = first_from(union, _ZERO) if left == NONE else after(union, left)
    end = high
    while right != NONE and union.low[slot_of(union, right)] <= high:
        end = max(end, union.high[slot_of(union, right)])
        right = remove(union, right)
    if right != NONE and end == high:
        right_low = union.low[slot_of(union, right)]
        if right_low - high - ONE <= gap:
            announced_high = right_low - ONE
            end = union.high[slot_of(union, right)]
            remove(union, right)
    _announce(announced, entries, entry, announced_low, announced_high)
    if merges_left:
        set_high(union, left, end)
    else:
        put_after(union, left, announced_low, end, 0)


@kernel
def contains(union: RangeBlocks, numbers: UInt64, found: UInt8) -> None:
    """Algorithm 2: 1 in *found* where one of *numbers* is in *union*."""
    for position in range(len(numbers)):
        found[position] = is_covered(union, numbers[position], numbers[position])


@kernel
def covered_ranges(union: RangeBlocks, low: UInt64, high: UInt64, found: UInt8) -> None:
    """1 in *found* where one of the ranges is subsumed by *union*; nothing changes."""
    for position in range(len(low)):
        found[position] = is_covered(union, low[position], high[position])


@kernel
def overlaps_union(
    union: RangeBlocks, starts: Int64, low: UInt64, high: UInt64, found: UInt8
) -> None:
    """1 in *found* where a range of an item shares a number with *union*. Cost: O(log) each."""
    for item in range(len(found)):
        found[item] = 0
        for piece in range(starts[item], starts[item + 1]):
            position = predecessor(union, high[piece])
            if position != NONE and union.high[slot_of(union, position)] >= low[piece]:
                found[item] = 1
                break
