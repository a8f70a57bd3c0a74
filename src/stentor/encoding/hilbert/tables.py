"""The Hilbert curve through a block of up to 64 cells, in each way that it can be turned.

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

from stentor.encoding.columns import UInt8, UInt64, all_read_only
from stentor.encoding.hilbert.turns import ONE, ZERO, cells_numbered, turned_by

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
