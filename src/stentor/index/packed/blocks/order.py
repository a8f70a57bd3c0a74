"""The order of records: a kd-tree over locations, sizes and codes of bounds, cut at whole blocks.

Each split is the one that leaves events the least to visit, judged on a sample: halves whose boxes
have the least area together, or, where that no longer pays, whose codes span the least.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import Float64, Int32, Int64, UInt8
from stentor.index.packed.blocks.layout import (
    BLOCK,
    BOX_FLOAT,
    FANOUT,
    FIRST_CELL,
    HIGH,
    LAST_CELL,
    NOT_ASKED_HIGH,
    NOT_ASKED_LOW,
    RECORD,
    Float32,
    real,
    whole,
)

#: Records that a split is judged by.
SAMPLE: Final = 128
#: Halves that keep less than this share of what is to be visited need no better split.
GOOD_SPLIT: Final = 0.65
#: Axes: x, y and size of boxes, then the low and the high codes of each dimension.
X, Y, SIZE, FIRST_CODE = 0, 1, 2, 3
NO_AXIS: Final = -1
#: The share of events that have a value, about.
_PRESENT: Final = 0.9
_CELLS: Final = LAST_CELL - FIRST_CELL + 1
#: Beyond this a coordinate says only that there is no bound; sums stay finite.
_FAR: Final = 1e37
_MOST_DEPTH: Final = 128
_FLOATS: Final = RECORD // 4


class OrderScratch(NamedTuple):
    """Memory of the ordering."""

    key: Float32  # (records,)
    stack: Int64  # (2 × _MOST_DEPTH,)
    sample: Int64  # (SAMPLE,) records
    value: Float64  # (SAMPLE,) keys of the sample
    sorted: Float64  # (SAMPLE,)
    side: Float64  # (4 × SAMPLE,) x1, y1, x2, y2
    state: Int64  # (1,) of random numbers
    times: Int64  # (256,) how often each code is met


def order_scratch(count: int) -> OrderScratch:
    """Memory to order *count* records."""
    return OrderScratch(
        key=np.empty(count, np.float32),
        stack=np.empty(2 * _MOST_DEPTH, np.int64),
        sample=np.empty(SAMPLE, np.int64),
        value=np.empty(SAMPLE),
        sorted=np.empty(SAMPLE),
        side=np.empty(4 * SAMPLE),
        state=np.ones(1, np.int64),
        times=np.empty(256, np.int64),
    )


@kernel
def order_records(
    record: UInt8,
    record_float: Float32,
    dimensions: int,
    has_locations: bool,
    index: Int32,
    scratch: OrderScratch,
) -> int:
    """Put *index*, which comes as all positions of records, into order; splits by codes."""
    by_code, top = 0, 1
    scratch.stack[0], scratch.stack[1] = 0, len(index)
    while top > 0:
        top -= 1
        start, stop = scratch.stack[2 * top], scratch.stack[2 * top + 1]
        blocks = (stop - start + BLOCK - 1) // BLOCK
        if blocks <= 1:
            continue
        axis, share = choose_split(
            record, record_float, dimensions, has_locations, index, start, stop, scratch
        )
        middle = start + left_blocks(blocks, share) * BLOCK
        if axis != NO_AXIS:
            for position in range(start, stop):
                scratch.key[position] = key_of(record, record_float, index[position], axis)
            select(scratch.key, index, start, stop, middle, scratch.state)
            by_code += axis >= FIRST_CODE
        if top + 2 <= _MOST_DEPTH:
            scratch.stack[2 * top], scratch.stack[2 * top + 1] = middle, stop
            scratch.stack[2 * top + 2], scratch.stack[2 * top + 3] = start, middle
            top += 2
    return by_code


@kernel_inline
def left_blocks(blocks: int, share: float) -> int:
    """How many of *blocks* go to the left: a *share*, where it is half in whole nodes."""
    left = min(max(whole(blocks * share + 0.5), 1), blocks - 1)
    if share != 0.5:
        return left
    unit = 1
    while unit * FANOUT < blocks:
        unit *= FANOUT
    rounded = (left + unit // 2) // unit * unit
    return rounded if 0 < rounded < blocks else left


@kernel_inline
def key_of(record: UInt8, record_float: Float32, row: int, axis: int) -> float:
    """Where a record is along *axis*."""
    if axis >= FIRST_CODE:
        dimension = (axis - FIRST_CODE) >> 1
        return real(record[row * RECORD + dimension + HIGH * ((axis - FIRST_CODE) & 1)])
    box = record_float[row * _FLOATS + BOX_FLOAT : (row + 1) * _FLOATS]
    x1, y1, x2, y2 = sides_of(box)
    if axis == X:
        return x1 + x2
    if axis == Y:
        return y1 + y2
    return max(x2 - x1, y2 - y1)


@kernel_inline
def sides_of(box: Float32) -> tuple[float, float, float, float]:
    """x1, y1, x2, y2 of a record's box, none of them farther than _FAR."""
    return (
        max(min(real(box[0]), _FAR), -_FAR),
        max(min(real(box[1]), _FAR), -_FAR),
        min(max(-real(box[2]), -_FAR), _FAR),
        min(max(-real(box[3]), -_FAR), _FAR),
    )


@inner_kernel
def choose_split(
    record: UInt8,
    record_float: Float32,
    dimensions: int,
    has_locations: bool,
    index: Int32,
    start: int,
    stop: int,
    scratch: OrderScratch,
) -> tuple[int, float]:
    """The axis to split by, or NO_AXIS, and the share that goes to the left."""
    count = min(SAMPLE, stop - start)
    step = (stop - start) / count
    for position in range(count):
        within = whole((position + random_share(scratch.state)) * step)
        row = index[min(start + within, stop - 1)]
        scratch.sample[position] = row
        sides = sides_of(record_float[row * _FLOATS + BOX_FLOAT : (row + 1) * _FLOATS])
        for side in range(4):
            scratch.side[side * SAMPLE + position] = sides[side]
    axis, best = NO_AXIS, 0.999
    if has_locations:
        for one in range(FIRST_CODE):
            cost = location_cost(one, count, scratch)
            if cost < best:
                axis, best = one, cost
    share = 0.5
    if best > GOOD_SPLIT:
        for one in range(FIRST_CODE, FIRST_CODE + 2 * dimensions):
            cost, cut = code_cost(record, one, count, scratch)
            if cost < best:
                axis, best, share = one, cost, cut
    return axis, share


@kernel_inline
def random_share(state: Int64) -> float:
    """A number from 0 to 1, the next of a sequence."""
    state[0] = (state[0] * 1103515245 + 12345) & 0x7FFFFFFF
    return real(state[0] >> 7) / 16777216.0


@kernel_inline
def location_cost(axis: int, count: int, scratch: OrderScratch) -> float:
    """The share of the area that is still to be visited after a split at the median of *axis*."""
    x1, y1 = scratch.side[:SAMPLE], scratch.side[SAMPLE : 2 * SAMPLE]
    x2, y2 = scratch.side[2 * SAMPLE : 3 * SAMPLE], scratch.side[3 * SAMPLE :]
    for one in range(count):
        if axis == X:
            scratch.value[one] = x1[one] + x2[one]
        elif axis == Y:
            scratch.value[one] = y1[one] + y2[one]
        else:
            scratch.value[one] = max(x2[one] - x1[one], y2[one] - y1[one])
    median = median_of(scratch.value, count, scratch.sorted)
    area, whole, number = 0.0, 1.0, 0
    for part in range(3):  # all, up to the median, above it
        west, south, east, north, number = 1e300, 1e300, -1e300, -1e300, 0
        for one in range(count):
            if part == 0 or (scratch.value[one] <= median) == (part == 1):
                west, east = min(west, x1[one]), max(east, x2[one])
                south, north = min(south, y1[one]), max(north, y2[one])
                number += 1
        if number == 0:
            return 1.0
        wide, tall = max(east - west, 1e-30), max(north - south, 1e-30)
        if part == 0:
            whole = wide * tall
        else:
            area += wide * tall / whole * number / count
    return area


@kernel_inline
def median_of(value: Float64, count: int, ordered: Float64) -> float:
    """The lower median of the first *count* values; *ordered* is scratch."""
    for one in range(count):
        position = one
        while position > 0 and ordered[position - 1] > value[one]:
            ordered[position] = ordered[position - 1]
            position -= 1
        ordered[position] = value[one]
    return real(ordered[(count - 1) >> 1])


@kernel_inline
def code_cost(record: UInt8, axis: int, count: int, scratch: OrderScratch) -> tuple[float, float]:
    """The share of codes that is still spanned after the better of two splits; what goes left.

    One is at the median, the other between those that ask for the attribute and those that do not.
    """
    dimension, is_high = (axis - FIRST_CODE) >> 1, (axis - FIRST_CODE) & 1
    for code in range(256):
        scratch.times[code] = 0
    for one in range(count):
        code = whole(record[scratch.sample[one] * RECORD + dimension + HIGH * is_high])
        scratch.value[one] = code
        scratch.times[code] += 1
    if scratch.times[NOT_ASKED_HIGH if is_high else NOT_ASKED_LOW] == count:
        return 1.0, 0.5
    median, before = 0, whole(scratch.times[0])
    while 2 * before < count:
        median += 1
        before += whole(scratch.times[median])
    best, share = 1.0, 0.5
    for side in range(2):
        limit = real(median)
        if side == 1:
            limit = NOT_ASKED_HIGH - 1.0 if is_high else real(NOT_ASKED_LOW)
        cost, left = spanned(record, dimension, limit, count, scratch)
        if cost < best:
            best, share = cost, 0.5 if side == 0 else left
    return best, share


@kernel_inline
def spanned(
    record: UInt8, dimension: int, limit: float, count: int, scratch: OrderScratch
) -> tuple[float, float]:
    """The share of events that halves at *limit* still meet, and the share of the left one."""
    cost, whole, number, left = 0.0, 1.0, 0, 0
    for part in range(3):  # all, up to the limit, above it
        low, high, number = 255, 0, 0
        for one in range(count):
            if part == 0 or (scratch.value[one] <= limit) == (part == 1):
                at = scratch.sample[one] * RECORD + dimension
                low, high = min(low, record[at]), max(high, record[at + HIGH])
                number += 1
        if number == 0:
            return 1.0, 0.5
        reach = 1.0
        if low != NOT_ASKED_LOW:
            reach = _PRESENT * max(1, high - low + 1) / _CELLS
        if part == 0:
            whole = reach
        else:
            cost += reach / whole * number / count
        if part == 1:
            left = number
    return cost, left / count


@kernel_inline
def select(key: Float32, index: Int32, start: int, stop: int, middle: int, state: Int64) -> None:
    """Let no key before *middle* exceed one from there on; *index* moves along."""
    first, last = start, stop - 1
    while first < last:
        span = last - first
        a = key[first + whole(random_share(state) * span)]
        b = key[first + whole(random_share(state) * span)]
        c = key[first + whole(random_share(state) * span)]
        pivot = max(min(a, b), min(max(a, b), c))
        low, high = first, last
        while low <= high:
            while key[low] < pivot:
                low += 1
            while key[high] > pivot:
                high -= 1
            if low <= high:
                key[low], key[high] = key[high], key[low]
                index[low], index[high] = index[high], index[low]
                low += 1
                high -= 1
        if middle <= high:
            last = high
        elif middle >= low:
            first = low
        else:
            return
