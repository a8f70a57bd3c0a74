"""Ranges in the order of their low ends, in blocks: what the paper keeps in a B+-tree.

    order   ─▶ 4        0        7              block numbers, ascending by their first low end
    first   ─▶ 12       96       310            those low ends
    block      ├ low │ high │ entry ┤ …         up to BLOCK ranges each, `filled` of them used
    highest    the greatest high end of each    whoever looks for a number passes over a block below

A full block is split, an empty one is freed. A position is an index into `order` (an ordinal) times
BLOCK plus an offset in that block. Equal low ends are in the order in which they came.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from stentor._intrinsics import move
from stentor._jit import inner_kernel, kernel_inline
from stentor.encoding.columns import Int64, UInt64

#: Ranges of a block.
BLOCK: Final = 64
ONE: Final = np.uint64(1)
#: The low end of an unused slot.
NEVER: Final = np.uint64(2**64 - 1)
#: The position of no range.
NONE: Final = -1
# What `used` counts: blocks in order, blocks that were ever used, the first free one, free ones.
ORDERED, TOUCHED, FREE_BLOCK, FREED, RANGES = range(5)


class RangeBlocks(NamedTuple):
    """Ranges in blocks."""

    low: UInt64  # (blocks × BLOCK)
    high: UInt64  # (blocks × BLOCK)
    entry: Int64  # (blocks × BLOCK) what the range belongs to
    filled: Int64  # (blocks,) ranges of each; of a free block: the next free one
    highest: UInt64  # (blocks,)
    order: Int64  # (blocks,)
    first: UInt64  # (blocks, rounded up to BLOCK) in that order: where each begins
    used: Int64  # (5,)


def new_ordered(blocks: int = 4) -> RangeBlocks:
    """No ranges, and a few free blocks."""
    return RangeBlocks(
        low=np.full(blocks * BLOCK, NEVER),
        high=np.zeros(blocks * BLOCK, np.uint64),
        entry=np.zeros(blocks * BLOCK, np.int64),
        filled=np.zeros(blocks, np.int64),
        highest=np.zeros(blocks, np.uint64),
        order=np.zeros(blocks, np.int64),
        first=np.full(-(-blocks // BLOCK) * BLOCK, NEVER),
        used=np.array([0, 0, NONE, 0, 0]),
    )


def grow(ordered: RangeBlocks, blocks: int) -> RangeBlocks:
    """*ordered* with at least so many spare *blocks*; itself where it has them."""
    spare = len(ordered.filled) - ordered.used[TOUCHED] + ordered.used[FREED]
    if spare >= blocks:
        return ordered
    grown = new_ordered(2 * len(ordered.filled) + blocks)
    for old, new in zip(ordered, grown, strict=True):
        new[: len(old)] = old
    return grown


@kernel_inline
def capacity_of(ordered: RangeBlocks) -> int:
    """How many blocks can still be taken."""
    return int(len(ordered.filled) - ordered.used[TOUCHED] + ordered.used[FREED])


@kernel_inline
def slot_of(ordered: RangeBlocks, position: int) -> int:
    """The slot of the range at *position*."""
    return int(ordered.order[position // BLOCK] * BLOCK + position % BLOCK)


@kernel_inline
def after(ordered: RangeBlocks, position: int) -> int:
    """The position after *position*, or NONE."""
    ordinal = position // BLOCK
    if position % BLOCK + 1 < ordered.filled[ordered.order[ordinal]]:
        return position + 1
    return (ordinal + 1) * BLOCK if ordinal + 1 < ordered.used[ORDERED] else NONE


@kernel_inline
def predecessor(ordered: RangeBlocks, low: np.uint64) -> int:
    """The position of the last range that begins at *low* or before, or NONE.

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
        return NONE
    start = (start - 1) * BLOCK
    position = start + _count_to(ordered.first[start : start + BLOCK], low) - 1
    position = min(position, ordered.used[ORDERED] - 1)
    block = ordered.order[position]
    count = _count_to(ordered.low[block * BLOCK : (block + 1) * BLOCK], low)
    return int(position * BLOCK + min(count, ordered.filled[block]) - 1)


@kernel_inline
def _count_to(ascending: UInt64, most: np.uint64) -> int:
    """How many of the BLOCK numbers in *ascending* are *most* or less.

    All are compared, several with one instruction: a search by halves guesses wrong at every other
    step. What is unused has to be NEVER, which may be *most* too: then more are counted.
    """
    count = 0
    for position in range(BLOCK):
        count += ascending[position] <= most
    return count


@inner_kernel
def first_from(ordered: RangeBlocks, low: np.uint64) -> int:
    """The position of the first range that begins at *low* or after, or NONE."""
    if ordered.used[ORDERED] == 0:
        return NONE
    if low == np.uint64(0):
        return 0
    before = predecessor(ordered, low - ONE)
    return 0 if before == NONE else after(ordered, before)


@kernel_inline
def insert(ordered: RangeBlocks, low: np.uint64, high: np.uint64, entry: int) -> None:
    """Add a range; there must be a block to spare. Cost: O(log ranges + BLOCK), amortised."""
    put_after(ordered, predecessor(ordered, low), low, high, entry)


@inner_kernel
def put_after(
    ordered: RangeBlocks, position: int, low: np.uint64, high: np.uint64, entry: int
) -> None:
    """Add a range whose predecessor is at *position*."""
    ordered.used[RANGES] += 1
    if ordered.used[ORDERED] == 0:
        _open_block(ordered, 0)
    ordinal = max(position, 0) // BLOCK
    offset = position % BLOCK + 1 if position != NONE else 0
    block = ordered.order[ordinal]
    if ordered.filled[block] == BLOCK:
        _cut(ordered, ordinal)
        if offset > BLOCK // 2:
            ordinal, offset = ordinal + 1, offset - BLOCK // 2
            block = ordered.order[ordinal]
    start = block * BLOCK
    _shift(ordered, start + offset + 1, start + offset, ordered.filled[block] - offset)
    ordered.low[start + offset] = low
    ordered.high[start + offset] = high
    ordered.entry[start + offset] = entry
    ordered.filled[block] += 1
    ordered.first[ordinal] = ordered.low[start]
    ordered.highest[block] = max(ordered.highest[block], high)


@kernel_inline
def _shift(ordered: RangeBlocks, target: int, source: int, count: int) -> None:
    """Move *count* ranges from *source* on to *target*."""
    move(ordered.low, target, source, count)
    move(ordered.high, target, source, count)
    move(ordered.entry, target, source, count)


@inner_kernel
def remove(ordered: RangeBlocks, position: int) -> int:
    """Remove the range at *position*; the position of the one after it, or NONE."""
    ordered.used[RANGES] -= 1
    ordinal, offset = position // BLOCK, position % BLOCK
    block = ordered.order[ordinal]
    start = block * BLOCK
    gone = ordered.high[start + offset]
    ordered.filled[block] -= 1
    filled = ordered.filled[block]
    _shift(ordered, start + offset, start + offset + 1, filled - offset)
    ordered.low[start + filled] = NEVER
    if filled == 0:
        _free_block(ordered, ordinal)
        return ordinal * BLOCK if ordinal < ordered.used[ORDERED] else NONE
    ordered.first[ordinal] = ordered.low[start]
    if gone == ordered.highest[block]:
        _measure(ordered, block)
    if offset < filled:
        return position
    return (ordinal + 1) * BLOCK if ordinal + 1 < ordered.used[ORDERED] else NONE


@kernel_inline
def set_high(ordered: RangeBlocks, position: int, high: np.uint64) -> None:
    """Set the high end of the range at *position*."""
    slot = slot_of(ordered, position)
    block = slot // BLOCK
    before = ordered.high[slot]
    ordered.high[slot] = high
    if high > ordered.highest[block]:
        ordered.highest[block] = high
    elif before == ordered.highest[block]:
        _measure(ordered, block)


@inner_kernel
def _measure(ordered: RangeBlocks, block: int) -> None:
    """Compute the greatest high end of *block* anew."""
    highest = np.uint64(0)
    for slot in range(block * BLOCK, block * BLOCK + ordered.filled[block]):
        highest = max(highest, ordered.high[slot])
    ordered.highest[block] = highest


@inner_kernel
def _open_block(ordered: RangeBlocks, position: int) -> None:
    """Put an empty block at *position* in the order."""
    used = ordered.used
    if used[FREE_BLOCK] != NONE:
        block = used[FREE_BLOCK]
        used[FREE_BLOCK] = ordered.filled[block]
        used[FREED] -= 1
    else:
        block = used[TOUCHED]
        used[TOUCHED] += 1
    move(ordered.order, position + 1, position, used[ORDERED] - position)
    move(ordered.first, position + 1, position, used[ORDERED] - position)
    ordered.order[position] = block
    ordered.filled[block] = 0
    ordered.highest[block] = np.uint64(0)
    used[ORDERED] += 1


@inner_kernel
def _free_block(ordered: RangeBlocks, position: int) -> None:
    """Take the empty block at *position* out of the order."""
    used = ordered.used
    block = ordered.order[position]
    used[ORDERED] -= 1
    move(ordered.order, position, position + 1, used[ORDERED] - position)
    move(ordered.first, position, position + 1, used[ORDERED] - position)
    ordered.first[used[ORDERED]] = NEVER
    ordered.filled[block] = used[FREE_BLOCK]
    used[FREE_BLOCK] = block
    used[FREED] += 1


@inner_kernel
def _cut(ordered: RangeBlocks, position: int) -> None:
    """Move the upper half of the block at *position* into a new one after it."""
    _open_block(ordered, position + 1)
    left, right = ordered.order[position], ordered.order[position + 1]
    half = BLOCK // 2
    _shift(ordered, right * BLOCK, left * BLOCK + half, half)
    ordered.low[left * BLOCK + half : (left + 1) * BLOCK] = NEVER
    ordered.filled[left] = half
    ordered.filled[right] = half
    ordered.first[position + 1] = ordered.low[right * BLOCK]
    _measure(ordered, left)
    _measure(ordered, right)
