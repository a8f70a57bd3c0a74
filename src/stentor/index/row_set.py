"""Rows that are found in any order, perhaps more than once, read in order, each once.

A bit for each row, and a bit above for each word that is not zero: reading skips what is empty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel_inline
from stentor.encoding.columns import Int64, UInt64

NO_BITS = np.uint64(0)

_ONE = np.uint64(1)

_TOP_SIX = np.uint64(58)

_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)


#: The number of a single bit, by the top six bits of its product with the de Bruijn number.
_BIT_NUMBER = np.array(
    sorted(range(64), key=lambda number: (int(_DE_BRUIJN) << number & (1 << 64) - 1) >> 58)
)


@kernel_inline
def bit_at(number: int) -> np.uint64:
    """A word with the bit *number*, 0 … 63, alone."""
    return _ONE << np.uint64(number)


@kernel_inline
def lowest_bit(bits: np.uint64) -> np.uint64:
    """The lowest set bit of *bits*, by itself."""
    return bits & (~bits + _ONE)


@kernel_inline
def trailing_zeros(bit: np.uint64) -> int:
    """The number, 0 … 63, of a single *bit*."""
    return int(_BIT_NUMBER[np.int64((bit * _DE_BRUIJN) >> _TOP_SIX)])


class RowSet(NamedTuple):
    """Scratch: no bit is set between uses."""

    word: UInt64  # (rows / 64, rounded up)
    upper: UInt64  # (words / 64, rounded up)


def row_set(rows: int) -> RowSet:
    """An empty set for rows below *rows*."""
    words = -(-rows // 64)
    return RowSet(np.zeros(words, np.uint64), np.zeros(-(-words // 64), np.uint64))


@kernel_inline
def add_row(found: RowSet, row: int) -> None:
    """Add *row*."""
    word = row >> 6
    found.word[word] |= bit_at(row & 63)
    found.upper[word >> 6] |= bit_at(word & 63)


@inner_kernel
def take_rows(found: RowSet, rows: Int64, start: int) -> int:
    """Move the rows of the set to *rows* from *start* on, ascending; where they stop.

    Rows past the end are only counted. The set is empty afterwards.

    Cost: a step for each row, and for each 4096 rows that there are.
    """
    stop = start
    for position in range(len(found.upper)):
        upper = found.upper[position]
        if upper == NO_BITS:
            continue
        found.upper[position] = NO_BITS
        while upper != NO_BITS:
            lowest = lowest_bit(upper)
            upper ^= lowest
            word = 64 * position + trailing_zeros(lowest)
            bits = found.word[word]
            found.word[word] = NO_BITS
            while bits != NO_BITS:
                bit = lowest_bit(bits)
                bits ^= bit
                if stop < len(rows):
                    rows[stop] = 64 * word + trailing_zeros(bit)
                stop += 1
    return stop
