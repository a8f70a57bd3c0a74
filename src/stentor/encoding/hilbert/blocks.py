"""Boxes to ranges in up to six dimensions: block by block, each a word of cells.

    met      cells of the block that the box touches      runs of ones in `filled` are ranges,
    filled   cells that it fills                          other ones of `met` are blocks to enter

A block consists of cells of one size; only those across the border of the box are entered, as
blocks of smaller cells.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from stentor._intrinsics import trailing_zeros
from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Int64, UInt64
from stentor.encoding.hilbert.ranges import NO_CAPACITY, Walk, add_range
from stentor.encoding.hilbert.turns import ALL, ONE, WORD_BITS, ZERO, CurveBlocks, blocks, ones

#: Words that are kept of a block: what is left to walk, and its corner.
FRAME: Final = 4 + WORD_BITS


def by_blocks(lows: UInt64, highs: UInt64, dimensions: int, bits: int) -> Walk:
    """A walk along the curve through boxes of at most six *dimensions*."""
    frames = np.empty((bits + 1) * FRAME, np.uint64)
    return partial(_walk, lows, highs, dimensions, bits, blocks(dimensions), frames)


@kernel
def _walk(
    lows: UInt64,
    highs: UInt64,
    dimensions: int,
    bits: int,
    tables: CurveBlocks,
    frames: UInt64,
    first: int,
    starts: Int64,
    low: UInt64,
    high: UInt64,
) -> int:
    """The walk; *frames* is scratch for what it keeps of the blocks that it is in."""
    levels = WORD_BITS // dimensions
    width = np.uint64(levels * dimensions)
    top = (bits - 1) // levels * levels
    # The uppermost block may be larger than the space, which is its beginning then: as many turns
    # as there are levels too many lead from its state to that of the space.
    outermost = np.int64((top + levels - bits) * (dimensions - 1) % dimensions)
    found = starts[first]
    for box in range(first, len(starts) - 1):
        starts[box] = begin = found
        least = lows[box * dimensions : (box + 1) * dimensions]
        most = highs[box * dimensions : (box + 1) * dimensions]
        is_empty = False
        for dimension in range(dimensions):
            is_empty |= least[dimension] > most[dimension]
            frames[4 + dimension] = ZERO
        if is_empty:
            continue
        depth, below, base, state = 0, top, ZERO, outermost
        met, filled = _cells(tables.from_on, state, frames[4:], below, least, most, levels)
        while True:
            frame = frames[depth * FRAME : (depth + 2) * FRAME]
            if met == ZERO:
                if depth == 0:
                    break
                depth -= 1
                below += levels
                frame = frames[depth * FRAME : (depth + 1) * FRAME]
                met, filled, base, state = frame[0], frame[1], frame[2], np.int64(frame[3])
                continue
            cell, shift = trailing_zeros(met), np.uint64(below * dimensions)
            start = base + (cell << shift)
            run = trailing_zeros(~(filled >> cell))
            if run:
                # The whole space may have 2^64 numbers, which is 0; 0 − 1 is its last one.
                stop = start + (run << shift) - ONE
                found = add_range(start, stop, begin, found, low, high)
                if found == NO_CAPACITY:
                    return box
                met &= ~(ones(run) << cell)
                continue
            frame[0], frame[1], frame[2], frame[3] = met & (met - ONE), filled, base, state
            entered = (state << np.int64(width)) + np.int64(cell)
            base, state, coordinates = (
                start,
                np.int64(tables.inside[entered]),
                tables.coordinates[entered],
            )
            for dimension in range(dimensions):
                step = (coordinates >> dimension * levels) & ((1 << levels) - 1)
                corner = frame[4 + dimension] + (np.uint64(step) << np.uint64(below))
                frame[FRAME + 4 + dimension] = corner
            depth += 1
            below -= levels
            met, filled = _cells(
                tables.from_on, state, frame[FRAME + 4 :], below, least, most, levels
            )
    starts[len(starts) - 1] = found
    return len(starts) - 1


@kernel_inline
def _cells(
    from_on: UInt64,
    state: np.int64,
    corner: UInt64,
    below: int,
    least: UInt64,
    most: UInt64,
    levels: int,
) -> tuple[np.uint64, np.uint64]:
    """The cells, 2^below a side, of the block at *corner* that a box touches, and that it fills.

    The box goes from *least* to *most*, and touches the block.
    """
    met = filled = ALL
    shift, rest = np.uint64(below), ones(np.uint64(below))
    end = ONE << np.uint64(levels)
    values = (1 << levels) + 1
    for dimension in range(len(least)):
        position = (state * len(least) + dimension) * values
        sets = from_on[position : position + values]
        before = least[dimension] - min(least[dimension], corner[dimension])
        within = most[dimension] - corner[dimension]
        start, stop = before >> shift, within >> shift
        is_cut = np.uint64((within & rest) != rest)
        stop, full = (end, end) if stop >= end else (stop + ONE, stop + ONE - is_cut)
        met &= sets[start] & ~sets[stop]
        filled &= sets[start + np.uint64((before & rest) != ZERO)] & ~sets[full]
    return met, filled
