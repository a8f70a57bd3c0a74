"""Points in the order of the Z-curve, and the search for those that dominate a query.

    order ─▶ blocks of sorted (key, entry)          a cell = all keys with one prefix = a segment

    start … stop │ level (bits fixed) │ corner      a frame of the search: one cell

A cell whose corner lies beyond the query's own cell everywhere is inside the query: its segment is
reported without a comparison. One that ends below the query somewhere is left out. Others are cut
in half, bit by bit, the half with the larger coordinates first; segments of a few points are
compared. Before all cells come the last points of the curve, the most likely to dominate.

Paper: IV.D. Blocks take the place of its AVL tree: as dynamic, and a segment is contiguous.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel_inline
from stentor.encoding.columns import Float64, Int64, UInt64

#: Entries of a block.
BLOCK = 64
# What `used` counts.
ORDERED, BLOCKS, FREE_BLOCK = range(3)


class Curve(NamedTuple):
    """Sorted keys in blocks."""

    shape: Int64  # (3,) dimensions, bits, words of a key
    low: Float64  # (dims,) where the cells begin
    scale: Float64  # (dims,) cells per unit
    keys: UInt64  # (blocks × BLOCK × words)
    entries: Int64  # (blocks × BLOCK)
    filled: Int64  # (blocks,) entries of each; of a free block: the next free one
    order: Int64  # (blocks,) block numbers, ascending by key
    key_of: UInt64  # (entries × words)
    used: Int64  # (3,)


def new_curve(low: Float64, scale: Float64, bits: int, blocks: int = 4) -> Curve:
    """A curve without points over cells that begin at *low*, 2^bits in each dimension."""
    dims = len(low)
    words = -(-dims * bits // 64)
    return Curve(
        shape=np.array([dims, bits, words]),
        low=np.asarray(low, np.float64),
        scale=np.asarray(scale, np.float64),
        keys=np.zeros(blocks * BLOCK * words, np.uint64),
        entries=np.zeros(blocks * BLOCK, np.int64),
        filled=np.zeros(blocks, np.int64),
        order=np.zeros(blocks, np.int64),
        key_of=np.zeros(0, np.uint64),
        used=np.array([0, 0, -1]),
    )


@kernel_inline
def cell_of(curve: Curve, dim: int, value: float) -> int:
    """The cell of *value* in dimension *dim*: monotone, and clamped at both ends."""
    last = (1 << curve.shape[1]) - 1
    scaled = (value - curve.low[dim]) * curve.scale[dim]
    if not scaled > 0.0:
        return 0
    return last if scaled >= last else int(scaled)


@kernel_inline
def is_less(keys: UInt64, at: int, key: UInt64) -> bool:
    """Whether the key that begins at *at* is below *key*."""
    for word in range(len(key)):
        if keys[at + word] != key[word]:
            return bool(keys[at + word] < key[word])
    return False


@inner_kernel
def lower_bound(curve: Curve, key: UInt64, start: int, stop: int) -> int:
    """The first position from *start* to *stop* whose key is not below *key*; else *stop*.

    A position is a place in `order` times BLOCK plus a place in that block.
    """
    words = curve.shape[2]
    low, high = start // BLOCK, (stop - 1) // BLOCK if stop > start else start // BLOCK
    while low < high:  # the last block that begins below the key
        middle = (low + high + 1) >> 1
        if is_less(curve.keys, curve.order[middle] * BLOCK * words, key):
            low = middle
        else:
            high = middle - 1
    if low >= curve.used[ORDERED]:
        return stop
    block = curve.order[low]
    first, last = 0, curve.filled[block]
    while first < last:
        middle = (first + last) >> 1
        if is_less(curve.keys, (block * BLOCK + middle) * words, key):
            first = middle + 1
        else:
            last = middle
    position = low * BLOCK + first
    if first == curve.filled[block]:
        position = (low + 1) * BLOCK
    return min(max(position, start), stop)


@kernel_inline
def previous(curve: Curve, position: int) -> int:
    """The position before *position*, which is not the first."""
    if position % BLOCK:
        return position - 1
    before = position // BLOCK - 1
    return int(before * BLOCK + curve.filled[curve.order[before]] - 1)


@kernel_inline
def entry_at(curve: Curve, position: int) -> int:
    """The entry at *position*."""
    return int(curve.entries[curve.order[position // BLOCK] * BLOCK + position % BLOCK])


@kernel_inline
def after(curve: Curve, position: int) -> int:
    """The position after *position*."""
    following = position % BLOCK + 1
    if following < curve.filled[curve.order[position // BLOCK]]:
        return position + 1
    return (position // BLOCK + 1) * BLOCK
