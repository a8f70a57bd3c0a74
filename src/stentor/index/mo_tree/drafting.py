"""Alternatives and events → the bucket of each, and the steps by which it is told apart.

What a dimension cannot say of a predicate it leaves to the verifier: then all steps are accepted,
and the cell is the whole domain.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor._prefetch import prefetch
from stentor.encoding.columns import (
    MISSING,
    ONE_OF,
    TERMS,
    EventColumns,
    Int64,
    SubscriptionColumns,
    UInt8,
)
from stentor.index.bounds import X, Y, predicate_bounds
from stentor.index.mo_tree.cells import interval_cell, position, value_cell
from stentor.index.mo_tree.layout import (
    ANYTHING,
    FIRST_STEP,
    LAST_STEP,
    MOST_DIMENSIONS,
    NEEDED,
    NO_DIMENSION,
    NULL_STEP,
    UNWANTED,
    Cells,
    Dimensions,
    Drafts,
    Query,
)
from stentor.index.signature import alternative_signature, event_signature

_STEPS = LAST_STEP - FIRST_STEP + 1

#: The signature of what asks for nothing, or has nothing, beyond the dimensions.
NO_BITS = np.uint64(0)
#: How many items ahead memory is asked for.
AHEAD = 4
#: About how many predicates an alternative has, so that their bounds take two cache lines.
MANY = 8


@kernel
def draft_alternatives(
    columns: SubscriptionColumns,
    alternatives: Int64,
    dimensions: Dimensions,
    cells: Cells,
    scratch: Query,
    drafts: Drafts,
) -> None:
    """Fill *drafts* for each of *alternatives*."""
    each = cells.level_start[len(cells.level_start) - 1]
    for place in range(len(alternatives)):
        if place + 2 * AHEAD < len(alternatives):
            prefetch(columns.predicate_start, alternatives[place + 2 * AHEAD])
            call_for(columns, columns.predicate_start[alternatives[place + AHEAD]])
        row = place * MOST_DIMENSIONS
        is_more = bound_alternative(
            columns,
            alternatives[place],
            dimensions,
            scratch,
            drafts.low[row : row + MOST_DIMENSIONS],
            drafts.high[row : row + MOST_DIMENSIONS],
        )
        bucket = 0
        for layer in range(len(scratch.ranges)):
            low = position(dimensions, layer, scratch.bound_low[layer])
            high = position(dimensions, layer, scratch.bound_high[layer])
            cell = each - 1
            if scratch.need[layer] == NEEDED and low <= high:
                cell = interval_cell(cells, layer, low, high)
            bucket = bucket * each + cell
        drafts.bucket[place] = bucket
        drafts.signature[place] = NO_BITS
        if is_more:
            drafts.signature[place] = alternative_signature(
                columns, alternatives[place], dimensions.first_of
            )


@kernel
def draft_events(
    events: EventColumns,
    rows: Int64,
    dimensions: Dimensions,
    cells: Cells,
    scratch: Query,
    drafts: Drafts,
) -> None:
    """Fill *drafts* for the events in *rows*.

    A range that touches several cells of a layer has none of its own: such an event goes into one
    more bucket after all others.
    """
    each = cells.event_cells[0]
    for place in range(len(rows)):
        row = place * MOST_DIMENSIONS
        is_more = bound_event(
            events,
            rows[place],
            dimensions,
            scratch,
            drafts.low[row : row + MOST_DIMENSIONS],
            drafts.high[row : row + MOST_DIMENSIONS],
        )
        bucket, buckets, is_wide = 0, 1, False
        for layer in range(len(scratch.ranges)):
            cell = each - 1
            if scratch.need[layer] == NEEDED:
                cell = value_cell(cells, position(dimensions, layer, scratch.bound_low[layer]))
                other = value_cell(cells, position(dimensions, layer, scratch.bound_high[layer]))
                is_wide |= cell != other
            bucket = bucket * each + cell
            buckets *= each
        drafts.bucket[place] = buckets if is_wide else bucket
        drafts.signature[place] = ~NO_BITS
        if is_more:
            drafts.signature[place] = ~event_signature(events, rows[place], dimensions.first_of)
        drafts.until[place] = events.until[rows[place]]


@kernel_inline
def call_for(columns: SubscriptionColumns, predicate: int) -> None:
    """Have what is asked of *predicate* and those after it brought near."""
    prefetch(columns.kind, predicate)
    prefetch(columns.attribute, predicate)
    prefetch(columns.operand_start, predicate)
    prefetch(columns.low, predicate)
    prefetch(columns.high, predicate)
    second = min(predicate + MANY, len(columns.kind) - 1)
    prefetch(columns.low, second)
    prefetch(columns.high, second)


@kernel_part
def bound_alternative(
    columns: SubscriptionColumns,
    alternative: int,
    dimensions: Dimensions,
    scratch: Query,
    low: UInt8,
    high: UInt8,
) -> bool:
    """The steps *low* … *high* that *alternative* accepts in each dimension.

    Of dimensions with a layer also the bounds themselves, and whether the attribute must be there.
    Bounds that contradict each other come out as they are, low above high: nothing can match.
    Returns whether there is more to ask, which a signature can say.
    """
    layers = len(scratch.ranges)
    for layer in range(layers):
        scratch.bound_low[layer], scratch.bound_high[layer] = -math.inf, math.inf
        scratch.need[layer] = ANYTHING
    for dimension in range(MOST_DIMENSIONS):
        low[dimension], high[dimension] = NULL_STEP, LAST_STEP
    attributes, is_more = len(dimensions.first_of), False
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        attribute = columns.attribute[predicate]
        dimension = NO_DIMENSION
        if 0 <= attribute < attributes:
            dimension = dimensions.first_of[attribute]
        is_more |= dimension == NO_DIMENSION or columns.kind[predicate] in (ONE_OF, TERMS)
        while dimension != NO_DIMENSION:
            if columns.kind[predicate] == MISSING:
                low[dimension] = high[dimension] = NULL_STEP
                if dimension < layers:
                    scratch.need[dimension] = UNWANTED
            else:
                one, other = predicate_bounds(columns, predicate, dimensions.axis[dimension])
                if dimension < layers:
                    scratch.need[dimension] = NEEDED
                    scratch.bound_low[dimension] = max(scratch.bound_low[dimension], one)
                    scratch.bound_high[dimension] = min(scratch.bound_high[dimension], other)
                low_step = step_of(position(dimensions, dimension, one))
                high_step = step_of(position(dimensions, dimension, other))
                low[dimension] = max(low[dimension], low_step)
                high[dimension] = min(high[dimension], high_step)
            dimension = dimensions.next_of[dimension]
    return is_more


@kernel_part
def bound_event(
    events: EventColumns,
    event: int,
    dimensions: Dimensions,
    scratch: Query,
    low: UInt8,
    high: UInt8,
) -> bool:
    """The steps *low* … *high* that *event* has in each dimension, a null step where it has none.

    Of dimensions with a layer also the values themselves, and whether there is one. Returns whether
    it has more, which a signature can say.
    """
    layers = len(scratch.ranges)
    for layer in range(layers):
        scratch.need[layer] = UNWANTED
    for dimension in range(MOST_DIMENSIONS):
        low[dimension] = high[dimension] = NULL_STEP
    attributes = len(dimensions.first_of)
    is_more = events.term_start[event] < events.term_start[event + 1]
    for value in range(events.value_start[event], events.value_start[event + 1]):
        attribute = events.attribute[value]
        dimension = NO_DIMENSION
        if 0 <= attribute < attributes:
            dimension = dimensions.first_of[attribute]
        is_more |= dimension == NO_DIMENSION or events.string[value] >= 0
        while dimension != NO_DIMENSION:
            axis = dimensions.axis[dimension]
            one = events.high[value] if axis == Y else events.low[value]
            other = events.low[value] if axis == X else events.high[value]
            if dimension < layers:
                scratch.need[dimension] = NEEDED
                scratch.bound_low[dimension], scratch.bound_high[dimension] = one, other
            step = step_of(position(dimensions, dimension, one))
            low[dimension] = high[dimension] = step
            if other != one:
                high[dimension] = step_of(position(dimensions, dimension, other))
            dimension = dimensions.next_of[dimension]
    return bool(is_more)


@kernel_inline
def step_of(at: float) -> int:
    """The step that holds the position *at*."""
    return min(FIRST_STEP + int(at * _STEPS), LAST_STEP)


def drafts_for(count: int, *, ending: bool) -> Drafts:
    """Room for *count* drafts."""
    return Drafts(
        bucket=np.empty(count, np.int64),
        signature=np.empty(count, np.uint64),
        until=np.empty(count if ending else 0, np.int64),
        low=np.empty(count * MOST_DIMENSIONS, np.uint8),
        high=np.empty(count * MOST_DIMENSIONS, np.uint8),
    )
