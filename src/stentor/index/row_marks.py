"""Rows that are found in any order, perhaps more than once, read in order, each once.

A bit for each row, and a bit for each word of these: no sort takes as little time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import kernel_inline, kernel_part
from stentor.encoding.columns import Int64, UInt64
from stentor.index.bit_places import NO_BITS, bit_at, lowest_bit, place_of


class RowMarks(NamedTuple):
    """Scratch: no bit is set between uses."""

    word: UInt64  # (rows / 64, rounded up)
    upper: UInt64  # (words / 64, rounded up)


def marks_for(rows: int) -> RowMarks:
    """Marks for so many *rows*."""
    words = -(-rows // 64)
    return RowMarks(np.zeros(words, np.uint64), np.zeros(-(-words // 64), np.uint64))


@kernel_inline
def mark(marks: RowMarks, row: int) -> None:
    """Remember *row*."""
    word = row >> 6
    marks.word[word] |= bit_at(row & 63)
    marks.upper[word >> 6] |= bit_at(word & 63)


@kernel_part
def read_out(marks: RowMarks, rows: Int64, start: int) -> int:
    """Write the marked rows to *rows* from *start* on, ascending; where they stop.

    Rows past the end are only counted. Nothing is marked afterwards.

    Cost: a step for each row, and for each 4096 rows that there are.
    """
    stop = start
    for place in range(len(marks.upper)):
        upper = marks.upper[place]
        if upper == NO_BITS:
            continue
        marks.upper[place] = NO_BITS
        while upper != NO_BITS:
            lowest = lowest_bit(upper)
            upper ^= lowest
            word = 64 * place + place_of(lowest)
            bits = marks.word[word]
            marks.word[word] = NO_BITS
            while bits != NO_BITS:
                bit = lowest_bit(bits)
                bits ^= bit
                if stop < len(rows):
                    rows[stop] = 64 * word + place_of(bit)
                stop += 1
    return stop
