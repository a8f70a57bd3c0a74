"""Boxes to ranges in any number of dimensions: digit by digit, passing over what is outside.

    on_low   a bit for each dimension: the cell is where the box begins there
    on_high  … where it ends

Only there does the box miss a half of the cell, or fill it in part, and which half it is follows
from the box's own coordinates: a few masks for each level, the same for all cells of a box. Turned
as the cell is, they become conditions on the Gray code of a digit, bits that must be one or zero. A
wrong bit says how many digits to pass over.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from stentor._intrinsics import leading_zeros
from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Int64, UInt64
from stentor.encoding.hilbert.ranges import NO_CAPACITY, Walk, add_range
from stentor.encoding.hilbert.turns import ONE, WIDEST, ZERO, enter_cell, ones, rotated

#: Masks of a level of a box; words that are kept of a cell while one of its sub-cells is walked.
LEVEL: Final = 4
FRAME: Final = 10


def by_steps(lows: UInt64, highs: UInt64, dimensions: int, bits: int) -> Walk:
    """A walk along the curve through boxes of any *dimensions*."""
    levels = np.empty(bits * LEVEL, np.uint64)
    frames = np.empty(bits * FRAME, np.uint64)
    return partial(_walk, lows, highs, dimensions, bits, levels, frames)


@kernel
def _walk(
    lows: UInt64,
    highs: UInt64,
    dimensions: int,
    bits: int,
    levels: UInt64,
    frames: UInt64,
    first: int,
    starts: Int64,
    low: UInt64,
    high: UInt64,
) -> int:
    """The walk; *levels* and *frames* are scratch for what it keeps of a box and of its cells."""
    width = np.uint64(dimensions)
    last_digit = ones(width)
    found = starts[first]
    for box in range(first, len(starts) - 1):
        starts[box] = begin = found
        corners = slice(box * dimensions, (box + 1) * dimensions)
        if not _levels_of(lows[corners], highs[corners], levels):
            continue
        on_low = on_high = last_digit
        digit = base = entry = turn = ZERO
        depth, below = 0, bits - 1
        met_one, met_zero, fill_one, fill_zero = _conditions(
            levels, below, on_low, on_high, entry, turn, width
        )
        while True:
            gray, shift = digit ^ (digit >> ONE), np.uint64(below) * width
            wrong = (met_one & ~gray) | (met_zero & gray)
            start = base + (digit << shift)
            if wrong:  # and so are all digits up to one with another bit there
                step = ONE << (WIDEST - ONE - leading_zeros(wrong))
                step -= digit & (step - ONE)
            elif (fill_one & ~gray) | (fill_zero & gray):
                frame = frames[depth * FRAME : (depth + 1) * FRAME]
                frame[0], frame[1], frame[2], frame[3] = digit, base, entry, turn
                frame[4], frame[5], frame[6], frame[7] = met_one, met_zero, fill_one, fill_zero
                frame[8], frame[9] = on_low, on_high
                base = start
                on_low, on_high = _borders(
                    digit, levels, below, on_low, on_high, entry, turn, width
                )
                entry, turn = enter_cell(digit, entry, turn, width)
                depth += 1
                below -= 1
                digit = ZERO
                met_one, met_zero, fill_one, fill_zero = _conditions(
                    levels, below, on_low, on_high, entry, turn, width
                )
                continue
            else:  # and so are those that differ from it only in bits without a condition
                step = _lowest(fill_one | fill_zero, width)
                # The whole space may have 2^64 numbers, which is 0; 0 − 1 is its last one.
                stop = start + (step << shift) - ONE
                found = add_range(start, stop, begin, found, low, high)
                if found == NO_CAPACITY:
                    return box
            while step == ZERO or step > last_digit - digit:
                if depth == 0:
                    break
                depth -= 1
                below += 1
                frame = frames[depth * FRAME : (depth + 1) * FRAME]
                digit, base, entry, turn = frame[0], frame[1], frame[2], frame[3]
                met_one, met_zero, fill_one, fill_zero = frame[4], frame[5], frame[6], frame[7]
                on_low, on_high = frame[8], frame[9]
                step = ONE
            else:
                digit += step
                continue
            break
    starts[len(starts) - 1] = found
    return len(starts) - 1


@kernel_inline
def _lowest(word: np.uint64, width: np.uint64) -> np.uint64:
    """The lowest bit of *word*; of 0 the one above its *width*, which may be beyond all."""
    if word == ZERO and width < WIDEST:
        return ONE << width
    return word & (~word + ONE)


@kernel_inline
def _levels_of(low: UInt64, high: UInt64, levels: UInt64) -> bool:
    """Fill *levels* with the masks of a box for each level; whether it has any cell.

    The low corner's bits at the level, whether anything is left of it below, the high corner's bits
    inverted, and whether anything is missing of it below.
    """
    levels[:] = ZERO
    for dimension in range(len(low)):
        least, lacking = low[dimension], ~high[dimension]
        if least > high[dimension]:
            return False
        location = np.uint64(dimension)
        for level in range(len(levels) // LEVEL):
            masks = levels[level * LEVEL : (level + 1) * LEVEL]
            below = np.uint64(level)
            rest = (ONE << below) - ONE
            masks[0] |= ((least >> below) & ONE) << location
            masks[1] |= np.uint64((least & rest) != ZERO) << location
            masks[2] |= ((lacking >> below) & ONE) << location
            masks[3] |= np.uint64((lacking & rest) != ZERO) << location
    return True


@kernel_inline
def _conditions(
    levels: UInt64,
    below: int,
    on_low: np.uint64,
    on_high: np.uint64,
    entry: np.uint64,
    turn: np.uint64,
    width: np.uint64,
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Bits that the Gray code of a digit must have and must not have.

    For the box to meet its sub-cell, which has sides of 2^below; and for it to fill it.
    """
    masks = levels[below * LEVEL : (below + 1) * LEVEL]
    begins, ends = on_low & masks[0], on_high & masks[2]  # in the upper, in the lower half
    no_lower = (on_low & (masks[0] | masks[1])) | (ends & masks[3])
    no_upper = (on_high & (masks[2] | masks[3])) | (begins & masks[1])
    back = width - turn - ONE
    return (
        rotated((begins & ~entry) | (ends & entry), back, width),
        rotated((ends & ~entry) | (begins & entry), back, width),
        rotated((no_lower & ~entry) | (no_upper & entry), back, width),
        rotated((no_upper & ~entry) | (no_lower & entry), back, width),
    )


@kernel_inline
def _borders(
    digit: np.uint64,
    levels: UInt64,
    below: int,
    on_low: np.uint64,
    on_high: np.uint64,
    entry: np.uint64,
    turn: np.uint64,
    width: np.uint64,
) -> tuple[np.uint64, np.uint64]:
    """Where the box begins and ends in the sub-cell *digit* of a cell."""
    corner = rotated(digit ^ (digit >> ONE), turn + ONE, width) ^ entry
    masks = levels[below * LEVEL : (below + 1) * LEVEL]
    return on_low & ~(corner ^ masks[0]), on_high & (corner ^ masks[2])
