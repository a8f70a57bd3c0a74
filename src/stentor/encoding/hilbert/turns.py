"""How the Hilbert curve turns from a cell to its sub-cells, and cells to numbers and back.

A cell has 2^dimensions sub-cells. A *corner* has a bit for each dimension: whether the sub-cell is
in the upper half. A *digit* is its position on the curve. The digits' Gray codes are the corners
where the curve is neither turned nor mirrored:

    corner = rotated(gray(digit) ^ mirror, turn + 1)        mirror = rotated back(entry)

*entry* is the corner at which the curve comes into the cell, *turn* the dimension along which it
leaves, less one. The digits of all levels, the largest cells first, are the number.

Paper: Hamilton, Compact Hilbert Indices (2006), section 2.

The Hilbert curve through a block of up to 64 cells, in each way that it can be turned.

Of up to six dimensions the cells of a few levels fit into one word, a bit for each in the order of
the curve: 8 × 8, 4 × 4 × 4, or 2^dimensions. A set of them, such as those from the third column on,
is one word, and a box inside the block is the intersection of two such sets for each dimension.

A *state* is how the curve is mirrored and turned in a block: entry × dimensions + turn.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor._intrinsics import trailing_zeros
from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Int64, UInt8, UInt64, all_read_only

#: A number has this many bits at most.
MOST_BITS: Final = 64
# Typed, because Numba turns a uint64 combined with a plain integer into a double.
ZERO: Final = np.uint64(0)
ONE: Final = np.uint64(1)
ALL: Final = np.uint64(2**64 - 1)
WIDEST: Final = np.uint64(MOST_BITS)


@kernel_inline
def ones(count: np.uint64) -> np.uint64:
    """A word whose lowest *count* bits are set."""
    return (ONE << count) - ONE if count < WIDEST else ALL


@kernel_inline
def rotated(digit: np.uint64, locations: np.uint64, width: np.uint64) -> np.uint64:
    """The *width* bits of *digit* moved up by *locations*, 0 to *width*, in a circle."""
    if locations in (ZERO, width):
        return digit
    return ((digit << locations) | (digit >> (width - locations))) & ones(width)


@kernel_inline
def enter_cell(
    digit: np.uint64, entry: np.uint64, turn: np.uint64, width: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """The entry and the turn of the sub-cell *digit* of a cell with *entry* and *turn*."""
    if digit == ZERO:
        return entry, _wrapped(turn + ONE, width)
    even = (digit - ONE) & ~ONE
    entry ^= rotated(even ^ (even >> ONE), turn + ONE, width)
    flips = trailing_zeros(~((digit - ONE) | ONE))
    return entry, _wrapped(turn + _wrapped(flips, width) + ONE, width)


@kernel_inline
def _wrapped(turn: np.uint64, width: np.uint64) -> np.uint64:
    """*turn*, which is below twice *width*, modulo *width*: division takes long."""
    return turn - width if turn >= width else turn


@kernel
def number_cells(cells: UInt64, dimensions: int, bits: int, numbers: UInt64) -> None:
    """Fill *numbers* with those of *cells*."""
    width = np.uint64(dimensions)
    for row in range(len(numbers)):
        entry, turn, number = ZERO, ZERO, ZERO
        cell = cells[row * dimensions : (row + 1) * dimensions]
        for level in range(bits - 1, -1, -1):
            corner = ZERO
            for dimension in range(dimensions):
                bit = (cell[dimension] >> np.uint64(level)) & ONE
                corner |= bit << np.uint64(dimension)
            digit = rotated(corner ^ entry, width - turn - ONE, width)
            shift = ONE
            while shift < width:  # out of the Gray code
                digit ^= digit >> shift
                shift <<= ONE
            if level < bits - 1:
                number <<= width
            number |= digit
            entry, turn = enter_cell(digit, entry, turn, width)
        numbers[row] = number


@kernel
def cells_numbered(numbers: UInt64, dimensions: int, bits: int, cells: UInt64) -> None:
    """Fill *cells*, which come as zeros, with those of *numbers*."""
    width = np.uint64(dimensions)
    for row in range(len(numbers)):
        entry, turn = ZERO, ZERO
        cell = cells[row * dimensions : (row + 1) * dimensions]
        for level in range(bits - 1, -1, -1):
            digit = (numbers[row] >> (np.uint64(level) * width)) & ones(width)
            corner = rotated(digit ^ (digit >> ONE), turn + ONE, width) ^ entry
            for dimension in range(dimensions):
                bit = (corner >> np.uint64(dimension)) & ONE
                cell[dimension] |= bit << np.uint64(level)
            entry, turn = enter_cell(digit, entry, turn, width)


@kernel
def turned_by(numbers: UInt64, dimensions: int, bits: int, entries: Int64, turns: Int64) -> None:
    """Fill *entries* and *turns* with those inside the cells of *numbers*."""
    width = np.uint64(dimensions)
    for row in range(len(numbers)):
        entry, turn = ZERO, ZERO
        for level in range(bits - 1, -1, -1):
            digit = (numbers[row] >> (np.uint64(level) * width)) & ones(width)
            entry, turn = enter_cell(digit, entry, turn, width)
        entries[row], turns[row] = entry, turn


#: A word has a bit for each cell of a block.
WORD_BITS: Final = 6
MOST_BLOCK_DIMENSIONS: Final = WORD_BITS


class CurveBlocks(NamedTuple):
    """What is known of blocks of 2^levels cells a side, for each state."""

    from_on: UInt64  # (states × dimensions × (2^levels + 1)) the cells with that coordinate or more
    coordinates: UInt8  # (states × cells) where each is: *levels* bits for each dimension
    inside: npt.NDArray[np.uint16]  # (states × cells) the state in each


@cache
def blocks(dimensions: int) -> CurveBlocks:
    """The tables for at most six *dimensions*. Cost: milliseconds, once."""
    levels = WORD_BITS // dimensions
    cells = 1 << levels * dimensions
    numbers = np.arange(cells, dtype=np.uint64)
    plain = np.zeros(cells * dimensions, np.uint64)
    cells_numbered(numbers, dimensions, levels, plain)
    entries, turns = np.empty(cells, np.int64), np.empty(cells, np.int64)
    turned_by(numbers, dimensions, levels, entries, turns)
    # A state turns and mirrors all that the curve does where it is neither turned nor mirrored.
    entry = np.repeat(np.arange(1 << dimensions), dimensions)
    turn = np.tile(np.arange(dimensions), 1 << dimensions)
    of = np.arange(dimensions)
    turned = plain.reshape(cells, dimensions)[:, (of - turn[:, None]) % dimensions]
    mirror = np.where(entry[:, None] >> of & 1, (1 << levels) - 1, 0).astype(np.uint64)
    position = turned.transpose(1, 0, 2) ^ mirror[:, None, :]
    from_on = [
        np.where(position >= np.uint64(least), (ONE << numbers)[:, None], ZERO).sum(axis=1)
        for least in range((1 << levels) + 1)
    ]
    rotated = entries << turn[:, None] | entries >> dimensions - turn[:, None]
    inside = (entry[:, None] ^ rotated & (1 << dimensions) - 1) * dimensions
    inside += (turns + turn[:, None]) % dimensions
    packed = (position << (of * levels).astype(np.uint64)).sum(axis=2)
    return all_read_only(
        CurveBlocks(
            np.stack(from_on, axis=2).reshape(-1),
            packed.astype(np.uint8).reshape(-1),
            inside.astype(np.uint16).reshape(-1),
        )
    )
