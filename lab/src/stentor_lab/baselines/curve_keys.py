"""Keys of cells on the Z-curve, in plain Python: the definition that the kernels follow.

Paper: IV.D. The bits of a cell's coordinates, interleaved, are its place on the curve; a leading 1
makes one number space of the cells of all resolutions.
"""

from __future__ import annotations

from collections.abc import Sequence


def place_on_curve(cell: Sequence[int], bits: int) -> int:
    """The place of *cell*, whose coordinates have *bits* bits each.

    >>> place_on_curve((3, 5), bits=3)
    27
    """
    position = 0
    for bit in reversed(range(bits)):
        for coordinate in cell:
            position = position << 1 | coordinate >> bit & 1
    return position


def cell_key(cell: Sequence[int], bits: int) -> int:
    """The key of *cell* among the cells of all resolutions.

    >>> cell_key((3, 5), bits=3), bin(cell_key((0, 0), bits=1)), bin(cell_key((0, 0), bits=2))
    (91, '0b100', '0b10000')
    """
    return 1 << len(cell) * bits | place_on_curve(cell, bits)


def key_words(position: int, total_bits: int, words: int) -> list[int]:
    """*position* as *words* numbers of 64 bits, the most significant first, padded with 0."""
    shifted = position << 64 * words - total_bits
    mask = (1 << 64) - 1
    return [shifted >> 64 * (words - 1 - word) & mask for word in range(words)]
