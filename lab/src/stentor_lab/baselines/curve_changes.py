"""Keys that come and go on a curve."""

from __future__ import annotations

import numpy as np

from stentor._jit import inner_kernel
from stentor.encoding.columns import Float64, UInt64
from stentor_lab.baselines.curve import (
    BLOCK,
    BLOCKS,
    FREE_BLOCK,
    ORDERED,
    Curve,
    after,
    cell_of,
    entry_at,
    lower_bound,
)


@inner_kernel
def write_key(curve: Curve, point: Float64, key: UInt64) -> None:
    """The key of *point*: one bit of each dimension after the other, the highest first."""
    dims, bits = curve.shape[0], curve.shape[1]
    for word in range(len(key)):
        key[word] = 0
    for dim in range(dims):
        cell = cell_of(curve, dim, point[dim])
        for bit in range(bits):
            if (cell >> (bits - 1 - bit)) & 1:
                at = bit * dims + dim
                key[at >> 6] |= np.uint64(1) << np.uint64(63 - (at & 63))


@inner_kernel
def fits_one_more_block(curve: Curve) -> bool:
    """Whether an insertion surely finds room."""
    return bool(curve.used[BLOCKS] + 2 <= len(curve.filled))


@inner_kernel
def insert_key(curve: Curve, entry: int, point: Float64, key: UInt64) -> None:
    """File *entry*; cost: a binary search and half a block, now and then a new block."""
    words = curve.shape[2]
    write_key(curve, point, key)
    for word in range(words):
        curve.key_of[entry * words + word] = key[word]
    used = curve.used
    if used[ORDERED] == 0:
        curve.order[0] = new_block(curve)
        used[ORDERED] = 1
    stop = used[ORDERED] * BLOCK
    position = lower_bound(curve, key, 0, stop)
    number, place = position // BLOCK, position % BLOCK
    if position == stop or (place == 0 and number > 0):
        number -= 1  # at the end of the block before, which begins below the key
        place = curve.filled[curve.order[number]]
    block = curve.order[number]
    if curve.filled[block] == BLOCK:
        cut_block(curve, number)
        if place > BLOCK // 2:
            number, place = number + 1, place - BLOCK // 2
        block = curve.order[number]
    for at in range(curve.filled[block] - 1, place - 1, -1):
        copy_key(curve, block, at, block, at + 1)
    curve.filled[block] += 1
    curve.entries[block * BLOCK + place] = entry
    for word in range(words):
        curve.keys[(block * BLOCK + place) * words + word] = key[word]


@inner_kernel
def new_block(curve: Curve) -> int:
    """A block without entries."""
    used = curve.used
    block = used[FREE_BLOCK]
    if block >= 0:
        used[FREE_BLOCK] = curve.filled[block]
    else:
        block = used[BLOCKS]
        used[BLOCKS] += 1
    curve.filled[block] = 0
    return int(block)


@inner_kernel
def copy_key(curve: Curve, giver: int, location: int, taker: int, new_place: int) -> None:
    """Copy an entry and its key to another place."""
    words = curve.shape[2]
    source, target = giver * BLOCK + location, taker * BLOCK + new_place
    curve.entries[target] = curve.entries[source]
    for word in range(words):
        curve.keys[target * words + word] = curve.keys[source * words + word]


@inner_kernel
def cut_block(curve: Curve, number: int) -> None:
    """Move the upper half of a full block to a new one behind it."""
    block = curve.order[number]
    fresh = new_block(curve)
    for position in range(BLOCK // 2, BLOCK):
        copy_key(curve, block, position, fresh, position - BLOCK // 2)
    curve.filled[block] = BLOCK // 2
    curve.filled[fresh] = BLOCK - BLOCK // 2
    for at in range(curve.used[ORDERED], number + 1, -1):
        curve.order[at] = curve.order[at - 1]
    curve.order[number + 1] = fresh
    curve.used[ORDERED] += 1


@inner_kernel
def remove_key(curve: Curve, entry: int, key: UInt64) -> None:
    """Take *entry* out; a block without entries is given up."""
    words = curve.shape[2]
    for word in range(words):
        key[word] = curve.key_of[entry * words + word]
    position = lower_bound(curve, key, 0, curve.used[ORDERED] * BLOCK)
    while entry_at(curve, position) != entry:
        position = after(curve, position)
    number, location = position // BLOCK, position % BLOCK
    block = curve.order[number]
    curve.filled[block] -= 1
    for at in range(location, curve.filled[block]):
        copy_key(curve, block, at + 1, block, at)
    if curve.filled[block] == 0:
        curve.filled[block] = curve.used[FREE_BLOCK]
        curve.used[FREE_BLOCK] = block
        curve.used[ORDERED] -= 1
        for at in range(number, curve.used[ORDERED]):
            curve.order[at] = curve.order[at + 1]
