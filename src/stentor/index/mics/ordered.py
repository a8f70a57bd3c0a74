"""Ranges in the order of their low ends, in blocks: what the paper keeps in a B+-tree.

    order   ─▶ 4        0        7              block numbers, ascending by their first low end
    first   ─▶ 12       96       310            those low ends
    block      ├ low │ high │ entry ┤ …         up to BLOCK ranges each, `filled` of them used
    highest    the greatest high end of each    whoever looks for a number passes over a block below

A full block is cut in half, an empty one is freed. A position is a place in `order` times BLOCK
plus a place in that block. Equal low ends stand in the order in which they came.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from stentor._jit import kernel_inline, kernel_part
from stentor.encoding.columns import Int64, UInt64

#: Ranges of a block.
BLOCK: Final = 64
ONE: Final = np.uint64(1)
#: What stands where no range begins.
NEVER: Final = np.uint64(2**64 - 1)
#: The position of no range.
NOWHERE: Final = -1
# What `used` counts: blocks in order, blocks that were ever used, the first free one, free ones.
ORDERED, TOUCHED, FREE_BLOCK, FREED, RANGES = range(5)


class Ordered(NamedTuple):
    """Ranges in blocks."""

    low: UInt64  # (blocks × BLOCK)
    high: UInt64  # (blocks × BLOCK)
    entry: Int64  # (blocks × BLOCK) what the range belongs to
    filled: Int64  # (blocks,) ranges of each; of a free block: the next free one
    highest: UInt64  # (blocks,)
    order: Int64  # (blocks,)
    first: UInt64  # (blocks, rounded up to BLOCK) in that order: where each begins
    used: Int64  # (5,)


def new_ordered(blocks: int = 4) -> Ordered:
    """No ranges, and room for a few."""
    return Ordered(
        low=np.full(blocks * BLOCK, NEVER),
        high=np.zeros(blocks * BLOCK, np.uint64),
        entry=np.zeros(blocks * BLOCK, np.int64),
        filled=np.zeros(blocks, np.int64),
        highest=np.zeros(blocks, np.uint64),
        order=np.zeros(blocks, np.int64),
        first=np.full(-(-blocks // BLOCK) * BLOCK, NEVER),
        used=np.array([0, 0, NOWHERE, 0, 0]),
    )


def with_room(ordered: Ordered, blocks: int) -> Ordered:
    """*ordered* with at least so many spare *blocks*; itself where it has them."""
    spare = len(ordered.filled) - ordered.used[TOUCHED] + ordered.used[FREED]
    if spare >= blocks:
        return ordered
    grown = new_ordered(2 * len(ordered.filled) + blocks)
    for old, new in zip(ordered, grown, strict=True):
        new[: len(old)] = old
    return grown


@kernel_inline
def room_of(ordered: Ordered) -> int:
    """How many blocks can still be taken."""
    return int(len(ordered.filled) - ordered.used[TOUCHED] + ordered.used[FREED])


@kernel_inline
def slot_of(ordered: Ordered, position: int) -> int:
    """Where the arrays hold the range at *position*."""
    return int(ordered.order[position // BLOCK] * BLOCK + position % BLOCK)


@kernel_inline
def after(ordered: Ordered, position: int) -> int:
    """The position after *position*, or NOWHERE."""
    place = position // BLOCK
    if position % BLOCK + 1 < ordered.filled[ordered.order[place]]:
        return position + 1
    return (place + 1) * BLOCK if place + 1 < ordered.used[ORDERED] else NOWHERE


@kernel_inline
def predecessor(ordered: Ordered, low: np.uint64) -> int:
    """The position of the last range that begins at *low* or before, or NOWHERE.

    Cost: O(log ranges).
    """
    start, stop = 0, (ordered.used[ORDERED] + BLOCK - 1) // BLOCK
    while start < stop:  # the first BLOCK blocks that all begin after low
        middle = (start + stop) >> 1
        if ordered.first[middle * BLOCK] <= low:
            start = middle + 1
        else:
            stop = middle
    if start == 0:
        return NOWHERE
    start = (start - 1) * BLOCK
    place = start + _count_to(ordered.first[start : start + BLOCK], low) - 1
    place = min(place, ordered.used[ORDERED] - 1)
    block = ordered.order[place]
    count = _count_to(ordered.low[block * BLOCK : (block + 1) * BLOCK], low)
    return int(place * BLOCK + min(count, ordered.filled[block]) - 1)


@kernel_inline
def _count_to(ascending: UInt64, most: np.uint64) -> int:
    """How many of the BLOCK numbers in *ascending* are *most* or less.

    All are compared, several with one instruction: a search by halves guesses wrong at every other
    step. What is unused has to be NEVER, which may be *most* too: then more are counted.
    """
    count = 0
    for place in range(BLOCK):
        count += ascending[place] <= most
    return count


@kernel_part
def first_from(ordered: Ordered, low: np.uint64) -> int:
    """The position of the first range that begins at *low* or after, or NOWHERE."""
    if ordered.used[ORDERED] == 0:
        return NOWHERE
    if low == np.uint64(0):
        return 0
    before = predecessor(ordered, low - ONE)
    return 0 if before == NOWHERE else after(ordered, before)


@kernel_part
def put(ordered: Ordered, low: np.uint64, high: np.uint64, entry: int) -> None:
    """Add a range; there must be a block to spare. Cost: O(log ranges + BLOCK), amortised."""
    ordered.used[RANGES] += 1
    position = predecessor(ordered, low)
    if ordered.used[ORDERED] == 0:
        _open_block(ordered, 0)
    place = max(position, 0) // BLOCK
    offset = position % BLOCK + 1 if position != NOWHERE else 0
    block = ordered.order[place]
    if ordered.filled[block] == BLOCK:
        _cut(ordered, place)
        if offset > BLOCK // 2:
            place, offset = place + 1, offset - BLOCK // 2
            block = ordered.order[place]
    start = block * BLOCK
    for hole in range(start + ordered.filled[block], start + offset, -1):
        ordered.low[hole] = ordered.low[hole - 1]
        ordered.high[hole] = ordered.high[hole - 1]
        ordered.entry[hole] = ordered.entry[hole - 1]
    ordered.low[start + offset] = low
    ordered.high[start + offset] = high
    ordered.entry[start + offset] = entry
    ordered.filled[block] += 1
    ordered.first[place] = ordered.low[start]
    ordered.highest[block] = max(ordered.highest[block], high)


@kernel_part
def take_away(ordered: Ordered, position: int) -> int:
    """Remove the range at *position*; the position of the one after it, or NOWHERE."""
    ordered.used[RANGES] -= 1
    place, offset = position // BLOCK, position % BLOCK
    block = ordered.order[place]
    start = block * BLOCK
    gone = ordered.high[start + offset]
    ordered.filled[block] -= 1
    filled = ordered.filled[block]
    for hole in range(start + offset, start + filled):
        ordered.low[hole] = ordered.low[hole + 1]
        ordered.high[hole] = ordered.high[hole + 1]
        ordered.entry[hole] = ordered.entry[hole + 1]
    ordered.low[start + filled] = NEVER
    if filled == 0:
        _free_block(ordered, place)
        return place * BLOCK if place < ordered.used[ORDERED] else NOWHERE
    ordered.first[place] = ordered.low[start]
    if gone == ordered.highest[block]:
        _measure(ordered, block)
    if offset < filled:
        return position
    return (place + 1) * BLOCK if place + 1 < ordered.used[ORDERED] else NOWHERE


@kernel_inline
def end_at(ordered: Ordered, position: int, high: np.uint64) -> None:
    """Let the range at *position* end at *high*."""
    slot = slot_of(ordered, position)
    block = slot // BLOCK
    before = ordered.high[slot]
    ordered.high[slot] = high
    if high > ordered.highest[block]:
        ordered.highest[block] = high
    elif before == ordered.highest[block]:
        _measure(ordered, block)


@kernel_part
def _measure(ordered: Ordered, block: int) -> None:
    """Find the greatest high end of *block* anew."""
    highest = np.uint64(0)
    for slot in range(block * BLOCK, block * BLOCK + ordered.filled[block]):
        highest = max(highest, ordered.high[slot])
    ordered.highest[block] = highest


@kernel_part
def _open_block(ordered: Ordered, place: int) -> None:
    """Put an empty block at *place* in the order."""
    used = ordered.used
    if used[FREE_BLOCK] != NOWHERE:
        block = used[FREE_BLOCK]
        used[FREE_BLOCK] = ordered.filled[block]
        used[FREED] -= 1
    else:
        block = used[TOUCHED]
        used[TOUCHED] += 1
    for hole in range(used[ORDERED], place, -1):
        ordered.order[hole] = ordered.order[hole - 1]
        ordered.first[hole] = ordered.first[hole - 1]
    ordered.order[place] = block
    ordered.filled[block] = 0
    ordered.highest[block] = np.uint64(0)
    used[ORDERED] += 1


@kernel_part
def _free_block(ordered: Ordered, place: int) -> None:
    """Take the empty block at *place* out of the order."""
    used = ordered.used
    block = ordered.order[place]
    used[ORDERED] -= 1
    for hole in range(place, used[ORDERED]):
        ordered.order[hole] = ordered.order[hole + 1]
        ordered.first[hole] = ordered.first[hole + 1]
    ordered.first[used[ORDERED]] = NEVER
    ordered.filled[block] = used[FREE_BLOCK]
    used[FREE_BLOCK] = block
    used[FREED] += 1


@kernel_part
def _cut(ordered: Ordered, place: int) -> None:
    """Move the upper half of the block at *place* into a new one after it."""
    _open_block(ordered, place + 1)
    left, right = ordered.order[place], ordered.order[place + 1]
    half = BLOCK // 2
    for offset in range(half):
        source, target = left * BLOCK + half + offset, right * BLOCK + offset
        ordered.low[target] = ordered.low[source]
        ordered.high[target] = ordered.high[source]
        ordered.entry[target] = ordered.entry[source]
        ordered.low[source] = NEVER
    ordered.filled[left] = half
    ordered.filled[right] = half
    ordered.first[place + 1] = ordered.low[right * BLOCK]
    _measure(ordered, left)
    _measure(ordered, right)
