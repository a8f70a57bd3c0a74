"""Alternatives → records, events → codes and the lines that they select.

What a record cannot express exactly it bounds as well as it can, and says that it is undecided.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._intrinsics import prefetch
from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor._lines import cuts_up_to
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
)
from stentor.encoding.kinds import (
    BOX,
    INTERVAL,
    MEMBERSHIP,
    MISSING,
    PRESENT,
    is_negated,
    is_region,
)
from stentor.index.packed.blocks.layout import (
    ABOVE,
    ABSENT,
    BELOW,
    BOX_FLOAT,
    BY_HASH,
    CUTS,
    EVENT,
    EVENT_LINES,
    FARTHEST,
    FIRST_CELL,
    FLAGS_INT,
    HIGH,
    LACKING_INT,
    LAST_CELL,
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
    RECORD,
    UNDECIDED,
    VALUE_HIGH,
    BlockDimensions,
    BlockEvents,
    Float32,
    real,
    short,
    whole,
)
from stentor.index.signature import alternative_signature, event_signature

#: A line that leaves more than this share of the alternatives costs more than it saves.
MOST_LEFT = 0.985
#: How many alternatives ahead memory is prefetched.
AHEAD = 4
_INTS, _EVENT_INTS = RECORD // 4, EVENT // 4
_LANES = 32
_SIGNED_BITS = np.uint64(30)
_SIGNED = np.uint64((1 << 30) - 1)
_HASH_SHIFT = np.uint64(11)


@kernel_inline
def rounded_down(value: float) -> float:
    """The largest number of single precision that does not exceed *value*; −FARTHEST at least."""
    single = short(max(-FARTHEST, min(FARTHEST, value)))
    if real(single) > value:
        single = np.nextafter(single, short(-math.inf))
    return short(max(single, short(-FARTHEST)))


@kernel_inline
def code_of(dimensions: BlockDimensions, dimension: int, value: float) -> int:
    """The code of the cell that *value* lies in."""
    coarse = cuts_up_to(dimensions.coarse, dimension * 16, value)
    fine = cuts_up_to(dimensions.cut, dimension * CUTS + 16 * coarse, value)
    return FIRST_CELL + 16 * coarse + fine


@kernel_inline
def dimension_at(dimensions: BlockDimensions, attribute: int) -> int:
    """The dimension of *attribute*, LOCATION or NO_DIMENSION."""
    if 0 <= attribute < len(dimensions.dimension_of):
        return int(dimensions.dimension_of[attribute])
    return NO_DIMENSION


@kernel_inline
def signed(signature: np.uint64) -> int:
    """A signature in bits 1 to 30: what is in it stays in it."""
    folded = signature | signature >> _SIGNED_BITS | signature >> (_SIGNED_BITS + _SIGNED_BITS)
    return whole(folded & _SIGNED) << 1


@kernel
def write_records(
    columns: SubscriptionColumns,
    alternatives: Int64,
    dimensions: BlockDimensions,
    slots: Int64,
    record: UInt8,
    record_int: Int32,
    record_float: Float32,
) -> int:
    """Write the records of *alternatives* to *slots*; how many have a signature."""
    count = 0
    for position in range(len(alternatives)):
        if position + 2 * AHEAD < len(alternatives):
            prefetch(columns.predicate_start, alternatives[position + 2 * AHEAD])
            predicate = columns.predicate_start[alternatives[position + AHEAD]]
            if predicate < len(columns.kind):
                prefetch(columns.kind, predicate)
                prefetch(columns.attribute, predicate)
                prefetch(columns.low, predicate)
                prefetch(columns.high, predicate)
        slot, alternative = slots[position], alternatives[position]
        numbers = record_int[slot * _INTS : (slot + 1) * _INTS]
        flags = write_bounds(
            columns,
            alternative,
            dimensions,
            record[slot * RECORD : (slot + 1) * RECORD],
            record_float[slot * _INTS + BOX_FLOAT : (slot + 1) * _INTS],
        )
        if flags != 0:
            flags |= signed(alternative_signature(columns, alternative, dimensions.dimension_of))
        numbers[MEMBER_INT], numbers[FLAGS_INT] = alternative, flags
        count += flags > UNDECIDED
    return count


@inner_kernel
def write_bounds(
    columns: SubscriptionColumns,
    alternative: int,
    dimensions: BlockDimensions,
    code: UInt8,
    box: Float32,
) -> int:
    """Write the codes and the box of *alternative*; UNDECIDED where they do not say all."""
    for dimension in range(MOST_DIMENSIONS + 4):
        code[dimension], code[HIGH + dimension] = NOT_ASKED_LOW, NOT_ASKED_HIGH
    for side in range(4):
        box[side] = -math.inf
    flags = 0
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        dimension = dimension_at(dimensions, columns.attribute[predicate])
        if dimension == NO_DIMENSION:
            flags |= UNDECIDED
        elif dimension == LOCATION:
            flags |= bound_location(columns, predicate, box)
        else:
            low, high, undecided = bound_codes(columns, predicate, dimensions, dimension)
            code[dimension] = max(low, code[dimension])
            code[HIGH + dimension] = min(high, code[HIGH + dimension])
            flags |= undecided
    return flags


@kernel_inline
def bound_location(columns: SubscriptionColumns, predicate: int, box: Float32) -> int:
    """Narrow *box* (x1, y1, −x2, −y2) to where *predicate* can hold; UNDECIDED or 0."""
    kind = columns.kind[predicate]
    if kind == MISSING:
        return UNDECIDED
    for side in range(4):  # there must be a location
        box[side] = max(box[side], short(-FARTHEST))
    if is_negated(kind) or not is_region(kind):
        return 0 if kind == PRESENT else UNDECIDED
    pair = columns.operand_start[predicate]
    west, east = columns.pair_low[pair], columns.pair_high[pair]
    south, north = columns.pair_low[pair + 1], columns.pair_high[pair + 1]
    if not (west <= east and south <= north):
        return UNDECIDED  # across 180°, or around an unknown location
    box[0] = max(box[0], rounded_down(west))
    box[1] = max(box[1], rounded_down(south))
    box[2] = max(box[2], rounded_down(-east))
    box[3] = max(box[3], rounded_down(-north))
    return 0 if kind == BOX else UNDECIDED


@kernel_inline
def bound_codes(
    columns: SubscriptionColumns, predicate: int, dimensions: BlockDimensions, dimension: int
) -> tuple[int, int, int]:
    """The codes between which *predicate* can hold, and UNDECIDED or 0."""
    kind = columns.kind[predicate]
    if kind == MISSING:
        return ABSENT, ABSENT, 0
    if kind == PRESENT:
        return OPEN_LOW, OPEN_HIGH, 0
    if dimensions.axis[dimension] == BY_HASH:
        start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
        if kind != MEMBERSHIP or start >= stop:
            return OPEN_LOW, OPEN_HIGH, UNDECIDED
        first = real(columns.string_hash[start] >> _HASH_SHIFT)
        last = real(columns.string_hash[stop - 1] >> _HASH_SHIFT)
        return (
            code_of(dimensions, dimension, first),
            code_of(dimensions, dimension, last),
            UNDECIDED,
        )
    if is_negated(kind) or is_region(kind):
        return OPEN_LOW, OPEN_HIGH, UNDECIDED
    low, high = columns.low[predicate], columns.high[predicate]
    low_code, high_code = OPEN_LOW, OPEN_HIGH
    if low != -math.inf:
        low_code = code_of(dimensions, dimension, low)
    if high != math.inf:
        high_code = code_of(dimensions, dimension, high)
    return low_code, high_code, 0 if kind == INTERVAL else UNDECIDED


@kernel
def write_events(
    events: EventColumns,
    first: int,
    count: int,
    dimensions: BlockDimensions,
    left: Float64,
    has_signatures: bool,
    to: BlockEvents,
) -> None:
    """Write *count* of *events* from *first* on as blocks see them."""
    for position in range(count):
        event = first + position
        code = to.code[position * EVENT : (position + 1) * EVENT]
        number = to.code_int[position * _EVENT_INTS : (position + 1) * _EVENT_INTS]
        single = to.code_float[position * _EVENT_INTS + POINT_FLOAT : (position + 1) * _EVENT_INTS]
        for lane in range(_LANES):
            code[lane] = code[VALUE_HIGH + lane] = ABSENT
            code[ABOVE + lane], code[BELOW + lane] = ABSENT + 1, ABSENT - 1
        write_no_point(single)
        for value in range(events.value_start[event], events.value_start[event + 1]):
            dimension = dimension_at(dimensions, events.attribute[value])
            if dimension == LOCATION:
                write_point(events.low[value], events.high[value], single)
            elif dimension != NO_DIMENSION:
                low, high = value_codes(events, value, dimensions, dimension)
                code[dimension], code[VALUE_HIGH + dimension] = low, high
                at = dimension * 256
                code[ABOVE + dimension] = high + dimensions.is_point[at + high]
                code[BELOW + dimension] = low - dimensions.is_point[at + low]
        number[LACKING_INT] = 0
        if has_signatures:
            signature = event_signature(events, event, dimensions.dimension_of)
            number[LACKING_INT] = (whole(_SIGNED) << 1) & ~signed(signature)
        select_lines(dimensions, left, position, code, to)


@kernel_inline
def value_codes(
    events: EventColumns, value: int, dimensions: BlockDimensions, dimension: int
) -> tuple[int, int]:
    """The codes of the ends of a value."""
    low, high = events.low[value], events.high[value]
    if dimensions.axis[dimension] == BY_HASH:
        string = events.string[value]
        if string < 0:
            return FIRST_CELL, LAST_CELL  # there, and nothing that has a hash
        low = high = real(events.string_hash[string] >> _HASH_SHIFT)
    code = code_of(dimensions, dimension, low)
    return code, code if low == high else code_of(dimensions, dimension, high)


@kernel_inline
def write_no_point(single: Float32) -> None:
    """An event without a location: only a record that asks for none has it in its box."""
    single[0] = single[1] = single[4] = single[5] = math.inf
    single[2] = single[3] = -math.inf
    single[6] = single[7] = -FARTHEST


@kernel_inline
def write_point(x: float, y: float, single: Float32) -> None:
    """The point and the next one, of which the true point lies between."""
    down_x, down_y = rounded_down(x), rounded_down(y)
    single[0] = single[4] = down_x
    single[1] = single[5] = down_y
    single[2], single[3] = -down_x, -down_y
    single[6] = -np.nextafter(down_x, short(math.inf))
    single[7] = -np.nextafter(down_y, short(math.inf))


@kernel_inline
def select_lines(
    dimensions: BlockDimensions, left: Float64, position: int, code: UInt8, to: BlockEvents
) -> None:
    """The lines of the event that are worth while, and LIVE up to the next multiple of four."""
    line = to.line[position * EVENT_LINES : (position + 1) * EVENT_LINES]
    last_line = to.last_line[position * EVENT_LINES : (position + 1) * EVENT_LINES]
    used, has_range, shift = 0, False, dimensions.shift[0]
    for dimension in range(len(dimensions.attribute)):
        first = last = dimensions.line_start[dimension]
        low, high = whole(code[dimension]), whole(code[VALUE_HIGH + dimension])
        if low != ABSENT:
            first += 1 + (low >> shift)
            last += 1 + (high >> shift)
        share = left[first]
        for one in range(first + 1, last + 1):
            share += left[one]
        line[used], last_line[used] = first, last
        has_range |= last > first and share < MOST_LEFT
        used += share < MOST_LEFT
    while used % 4 != 0 or used == 0:
        line[used] = last_line[used] = LIVE
        used += 1
    to.used[position] = used
    to.has_range[position] = has_range
