"""The search of a curve for points that dominate a query, cell by cell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel_inline
from stentor.encoding.columns import Float64, Int64, UInt64
from stentor_lab.baselines.curve import (
    BLOCK,
    ORDERED,
    Curve,
    after,
    cell_of,
    entry_at,
    lower_bound,
    previous,
)
from stentor_lab.baselines.points import dominates, goes_before

#: Segments of at most so many points are compared.
FEW = 8
#: Points at the end of the curve that are tried first.
EXTREMAL = 8


class CurveSearch(NamedTuple):
    """Room for one search."""

    frames: Int64  # (frames × (dims + 3)): start, stop, level, corner
    cell: Int64  # (dims,) the query's own
    key: UInt64  # (words,)
    state: Int64  # (2,) nodes visited, points compared


def new_curve_search(curve: Curve) -> CurveSearch:
    """Room for a search of *curve*."""
    dims, bits, words = curve.shape.tolist()
    return CurveSearch(
        np.zeros((2 * dims * bits + 4) * (dims + 3), np.int64),
        np.zeros(dims, np.int64),
        np.zeros(words, np.uint64),
        np.zeros(2, np.int64),
    )


@inner_kernel
def curve_coverers(
    curve: Curve, points: Float64, row: int, most: int, search: CurveSearch, found: Int64
) -> int:
    """Up to *most* entries that cover *row*, into *found*; how many."""
    dims = curve.shape[0]
    stop = curve.used[ORDERED] * BLOCK
    if stop == 0:
        return 0
    query = points[row * dims : row * dims + dims]
    for dim in range(dims):
        search.cell[dim] = cell_of(curve, dim, query[dim])
    count = 0
    position = stop
    for _ in range(EXTREMAL):
        if position == 0:
            break
        position = previous(curve, position)
        count = try_entry(curve, points, row, position, search, found, count)
        if count == most:
            return count
    tried = position
    width = dims + 3
    frames = search.frames
    frames[0], frames[1], frames[2] = 0, tried, 0
    for dim in range(dims):
        frames[3 + dim] = 0
    top = 1
    while top > 0:
        top -= 1
        search.state[0] += 1
        frame = frames[top * width : top * width + width]
        first, last = frame[0], frame[1]
        if first >= last:
            continue
        level = narrow(curve, frame)
        side = place_of_cell(curve, frame, search.cell)
        if side == OUTSIDE:
            continue
        if side == INSIDE or level == dims * curve.shape[1] or last - first <= FEW:
            position = first
            while position < last:
                if side == INSIDE:
                    entry = entry_at(curve, position)
                    if entry != row:  # its cell lies beyond the query's: larger everywhere
                        found[count] = entry
                        count += 1
                else:
                    count = try_entry(curve, points, row, position, search, found, count)
                if count == most:
                    return count
                position = after(curve, position)
            continue
        top = cut_frame(curve, frames, top, search.key)
    return count


@kernel_inline
def try_entry(
    curve: Curve,
    points: Float64,
    row: int,
    position: int,
    search: CurveSearch,
    found: Int64,
    count: int,
) -> int:
    """Compare the entry at *position*; the new *count* of those found."""
    dims = curve.shape[0]
    entry = entry_at(curve, position)
    search.state[1] += 1
    if (
        entry != row
        and dominates(points, dims, entry, row)
        and goes_before(points, dims, entry, row)
    ):
        found[count] = entry
        return count + 1
    return count


OUTSIDE, PARTLY, INSIDE = 0, 1, 2


@inner_kernel
def narrow(curve: Curve, frame: Int64) -> int:
    """Let the frame's cell be the smallest around its segment; its level.

    The first and the last key agree in the bits of that cell.
    """
    dims, bits, words = curve.shape[0], curve.shape[1], curve.shape[2]
    first = curve.order[frame[0] // BLOCK] * BLOCK + frame[0] % BLOCK
    end = previous(curve, frame[1])
    last = curve.order[end // BLOCK] * BLOCK + end % BLOCK
    level = frame[2]
    while level < dims * bits:
        shift = np.uint64(63 - (level & 63))
        one = (curve.keys[first * words + (level >> 6)] >> shift) & np.uint64(1)
        other = (curve.keys[last * words + (level >> 6)] >> shift) & np.uint64(1)
        if one != other:
            break
        if one != np.uint64(0):
            frame[3 + level % dims] |= 1 << (bits - 1 - level // dims)
        level += 1
    frame[2] = level
    return int(level)


@inner_kernel
def place_of_cell(curve: Curve, frame: Int64, cell: Int64) -> int:
    """Whether the frame's cell lies in the query, OUTSIDE of it or PARTLY in it."""
    dims, bits = curve.shape[0], curve.shape[1]
    side = INSIDE
    for dim in range(dims):
        fixed = (frame[2] - dim + dims - 1) // dims
        corner = frame[3 + dim]
        if corner + (1 << (bits - fixed)) - 1 < cell[dim]:
            return OUTSIDE
        if corner <= cell[dim]:
            side = PARTLY
    return side


@inner_kernel
def cut_frame(curve: Curve, frames: Int64, top: int, key: UInt64) -> int:
    """Replace the frame at *top* by its halves, the one with larger coordinates on top."""
    dims, bits = curve.shape[0], curve.shape[1]
    width = dims + 3
    lower = frames[top * width : top * width + width]
    upper = frames[(top + 1) * width : (top + 1) * width + width]
    for field in range(width):
        upper[field] = lower[field]
    level = lower[2]
    dim = level % dims
    upper[3 + dim] |= 1 << (bits - 1 - level // dims)
    for word in range(len(key)):
        key[word] = 0
    for at in range(level + 1):
        if (upper[3 + at % dims] >> (bits - 1 - at // dims)) & 1:
            key[at >> 6] |= np.uint64(1) << np.uint64(63 - (at & 63))
    middle = lower_bound(curve, key, lower[0], lower[1])
    lower[1], upper[0] = middle, middle
    lower[2], upper[2] = level + 1, level + 1
    return top + 2
