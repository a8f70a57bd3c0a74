"""Live events → records, alternatives → what they ask of blocks of live events.

The same compare as for events, the other way round: a record has the codes and the location of an
event, and the query the bounds of an alternative.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
)
from stentor.encoding.kinds import BOX, INTERVAL, MISSING, PRESENT, is_negated, is_region
from stentor.index.packed.blocks.encode import (
    MOST_LEFT,
    bound_codes,
    dimension_at,
    rounded_down,
    signed,
    value_codes,
)
from stentor.index.packed.blocks.layout import (
    ABOVE,
    ABSENT,
    BELOW,
    BOX_FLOAT,
    EVENT,
    FARTHEST,
    FLAGS_INT,
    HIGH,
    LACKING_INT,
    LIVE,
    LOCATION,
    MEMBER_INT,
    MOST_DIMENSIONS,
    NO_DIMENSION,
    NOT_ASKED_HIGH,
    NOT_ASKED_LOW,
    OPEN_HIGH,
    OPEN_LOW,
    POINT_FLOAT,
    QUERY_LINES,
    RECORD,
    UNDECIDED,
    VALUE_HIGH,
    BlockDimensions,
    BlockEvents,
    Float32,
    short,
    whole,
)
from stentor.index.signature import alternative_signature, event_signature

#: No location, and no bound of a region, is farther; an event without a location is.
FAR: Final = 1e38
_INTS, _EVENT_INTS = RECORD // 4, EVENT // 4
_LANES = 32
_EVERY_BIT = ((1 << 30) - 1) << 1


@kernel_inline
def clamped(value: float) -> float:
    """*value*, FAR at most."""
    return max(-FAR, min(FAR, value))


@kernel
def write_live_records(
    events: EventColumns,
    rows: Int64,
    dimensions: BlockDimensions,
    record: UInt8,
    record_int: Int32,
    record_float: Float32,
) -> None:
    """Write the records of the live events *rows*."""
    for slot in range(len(rows)):
        row = rows[slot]
        code = record[slot * RECORD : (slot + 1) * RECORD]
        number = record_int[slot * _INTS : (slot + 1) * _INTS]
        box = record_float[slot * _INTS + BOX_FLOAT : (slot + 1) * _INTS]
        for dimension in range(MOST_DIMENSIONS + 4):
            code[dimension] = code[HIGH + dimension] = ABSENT
        for side in range(4):
            box[side] = FARTHEST
        for value in range(events.value_start[row], events.value_start[row + 1]):
            dimension = dimension_at(dimensions, events.attribute[value])
            if dimension == LOCATION:
                x = rounded_down(clamped(events.low[value]))
                y = rounded_down(clamped(events.high[value]))
                box[0], box[1] = x, y
                box[2] = -np.nextafter(x, short(math.inf))
                box[3] = -np.nextafter(y, short(math.inf))
            elif dimension != NO_DIMENSION:
                low, high = value_codes(events, value, dimensions, dimension)
                code[dimension], code[HIGH + dimension] = low, high
        number[MEMBER_INT] = row
        signature = event_signature(events, row, dimensions.dimension_of)
        number[FLAGS_INT] = _EVERY_BIT & ~signed(signature)


@kernel
def write_queries(
    columns: SubscriptionColumns,
    first: int,
    count: int,
    dimensions: BlockDimensions,
    left: Float64,
    to: BlockEvents,
) -> None:
    """Write *count* alternatives from *first* on as queries."""
    for position in range(count):
        alternative = first + position
        code = to.code[position * EVENT : (position + 1) * EVENT]
        number = to.code_int[position * _EVENT_INTS : (position + 1) * _EVENT_INTS]
        single = to.code_float[position * _EVENT_INTS + POINT_FLOAT : (position + 1) * _EVENT_INTS]
        for lane in range(_LANES):
            code[lane], code[VALUE_HIGH + lane] = NOT_ASKED_LOW, NOT_ASKED_HIGH
        for side in range(8):
            single[side] = math.inf
        flags = 0
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            dimension = dimension_at(dimensions, columns.attribute[predicate])
            if dimension == NO_DIMENSION:
                flags |= UNDECIDED
            elif dimension == LOCATION:
                flags |= bound_query(columns, predicate, single)
            else:
                low, high, undecided = bound_codes(columns, predicate, dimensions, dimension)
                code[dimension] = max(low, code[dimension])
                code[VALUE_HIGH + dimension] = min(high, code[VALUE_HIGH + dimension])
                flags |= undecided
        if flags != 0:
            for side in range(4, 8):
                single[side] = -math.inf  # nothing is sure
        number[LACKING_INT] = signed(
            alternative_signature(columns, alternative, dimensions.dimension_of)
        )
        write_strict_codes(dimensions, code)
        select_query_lines(dimensions, left, position, code, to)


@kernel_inline
def bound_query(columns: SubscriptionColumns, predicate: int, single: Float32) -> int:
    """Narrow x2, y2, −x1, −y1 (rounded outwards, then inwards) to *predicate*; UNDECIDED or 0."""
    kind = columns.kind[predicate]
    if kind == MISSING:
        return UNDECIDED
    west, south, east, north = -math.inf, -math.inf, math.inf, math.inf
    undecided = UNDECIDED
    if kind == PRESENT:
        undecided = 0
    elif kind == INTERVAL:  # of a range: its low end is taken for x, its high end for y
        east, south, undecided = columns.high[predicate], columns.low[predicate], 0
    elif is_region(kind) and not is_negated(kind):
        pair = columns.operand_start[predicate]
        if (
            columns.pair_low[pair] <= columns.pair_high[pair]
            and columns.pair_low[pair + 1] <= columns.pair_high[pair + 1]
        ):
            west, east = columns.pair_low[pair], columns.pair_high[pair]
            south, north = columns.pair_low[pair + 1], columns.pair_high[pair + 1]
            undecided = 0 if kind == BOX else UNDECIDED
    narrow(single, 0, east)
    narrow(single, 1, north)
    narrow(single, 2, -west)
    narrow(single, 3, -south)
    return undecided


@kernel_inline
def narrow(single: Float32, side: int, bound: float) -> None:
    """Let a side be no farther than *bound*: rounded outwards, and for what is sure inwards."""
    single[side] = min(single[side], -rounded_down(clamped(-bound)))
    single[4 + side] = min(single[4 + side], rounded_down(clamped(bound)))


@kernel_inline
def write_strict_codes(dimensions: BlockDimensions, code: UInt8) -> None:
    """The codes between which a bound holds surely."""
    for lane in range(_LANES):
        code[BELOW + lane], code[ABOVE + lane] = NOT_ASKED_LOW, NOT_ASKED_HIGH
    for dimension in range(len(dimensions.attribute)):
        low, high = whole(code[dimension]), whole(code[VALUE_HIGH + dimension])
        below, above = low, high
        if low == ABSENT:
            below = ABSENT - 1
        elif OPEN_LOW < low < OPEN_HIGH:
            below -= dimensions.is_point[dimension * 256 + low]
        if high == ABSENT:
            above = ABSENT + 1
        elif OPEN_LOW < high < OPEN_HIGH:
            above += dimensions.is_point[dimension * 256 + high]
        code[BELOW + dimension], code[ABOVE + dimension] = below, above


@kernel_inline
def select_query_lines(
    dimensions: BlockDimensions, left: Float64, position: int, code: UInt8, to: BlockEvents
) -> None:
    """Of each attribute that is asked for: who is up to the last cell, and from the first on."""
    line = to.line[position * QUERY_LINES : (position + 1) * QUERY_LINES]
    used, shift = 0, dimensions.shift[0]
    cells = len(dimensions.first_code) // 2
    for dimension in range(len(dimensions.attribute)):
        start = dimensions.line_start[dimension]
        low, high = whole(code[dimension]), whole(code[VALUE_HIGH + dimension])
        if low == NOT_ASKED_LOW:
            continue
        one = start if high <= ABSENT else start + 1 + (min(high, OPEN_HIGH) >> shift)
        line[used] = one
        used += left[one] < MOST_LEFT
        if low > OPEN_LOW:
            one = start + 1 + cells + (low >> shift)
            line[used] = one
            used += left[one] < MOST_LEFT
    while used % 4 != 0 or used == 0:
        line[used] = LIVE
        used += 1
    to.used[position] = used
