"""Alternatives and events → the bucket of each, and the steps that it is compared by.

A predicate that a dimension cannot express is left to the verifier: then all steps are accepted,
and the cell is the whole domain.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._intrinsics import prefetch
from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns, UInt8
from stentor.encoding.kinds import KEYWORDS, MEMBERSHIP, MISSING
from stentor.index.bounds import X, Y, predicate_bounds
from stentor.index.mo_tree.cells import domain_position, interval_cell, value_cell
from stentor.index.mo_tree.layout import (
    ANYTHING,
    FIRST_STEP,
    LAST_STEP,
    MOST_DIMENSIONS,
    NEEDED,
    NO_DIMENSION,
    NULL_STEP,
    UNWANTED,
    LevelCells,
    MoDimensions,
    MoItems,
    MoMatchScratch,
)
from stentor.index.signature import alternative_signature, event_signature

_STEPS = LAST_STEP - FIRST_STEP + 1

#: The signature of what wants nothing, or has nothing, beyond the dimensions.
NO_BITS = np.uint64(0)
#: How many items ahead memory is prefetched.
AHEAD = 4
#: About how many predicates an alternative has, so that their bounds take two cache lines.
MANY = 8


@kernel
def items_of_alternatives(
    columns: SubscriptionColumns,
    alternatives: Int64,
    dimensions: MoDimensions,
    cells: LevelCells,
    scratch: MoMatchScratch,
    items: MoItems,
) -> None:
    """Fill *items* for each of *alternatives*."""
    each = cells.level_start[len(cells.level_start) - 1]
    for position in range(len(alternatives)):
        if position + 2 * AHEAD < len(alternatives):
            prefetch(columns.predicate_start, alternatives[position + 2 * AHEAD])
            prefetch_predicates(columns, columns.predicate_start[alternatives[position + AHEAD]])
        row = position * MOST_DIMENSIONS
        is_more = bound_alternative(
            columns,
            alternatives[position],
            dimensions,
            scratch,
            items.low[row : row + MOST_DIMENSIONS],
            items.high[row : row + MOST_DIMENSIONS],
        )
        bucket = 0
        for layer in range(len(scratch.ranges)):
            low = domain_position(dimensions, layer, scratch.bound_low[layer])
            high = domain_position(dimensions, layer, scratch.bound_high[layer])
            cell = each - 1
            if scratch.need[layer] == NEEDED and low <= high:
                cell = interval_cell(cells, layer, low, high)
            bucket = bucket * each + cell
        items.bucket[position] = bucket
        items.signature[position] = NO_BITS
        if is_more:
            items.signature[position] = alternative_signature(
                columns, alternatives[position], dimensions.first_of
            )


@kernel
def items_of_events(
    events: EventColumns,
    rows: Int64,
    dimensions: MoDimensions,
    cells: LevelCells,
    scratch: MoMatchScratch,
    items: MoItems,
) -> None:
    """Fill *items* for the events in *rows*.

    A range that touches several cells of a layer has none of its own: such an event is in one
    more bucket after all others.
    """
    each = cells.event_cells[0]
    for position in range(len(rows)):
        row = position * MOST_DIMENSIONS
        is_more = bound_event(
            events,
            rows[position],
            dimensions,
            scratch,
            items.low[row : row + MOST_DIMENSIONS],
            items.high[row : row + MOST_DIMENSIONS],
        )
        bucket, buckets, is_wide = 0, 1, False
        for layer in range(len(scratch.ranges)):
            cell = each - 1
            if scratch.need[layer] == NEEDED:
                cell = value_cell(
                    cells, domain_position(dimensions, layer, scratch.bound_low[layer])
                )
                other = value_cell(
                    cells, domain_position(dimensions, layer, scratch.bound_high[layer])
                )
                is_wide |= cell != other
            bucket = bucket * each + cell
            buckets *= each
        items.bucket[position] = buckets if is_wide else bucket
        items.signature[position] = ~NO_BITS
        if is_more:
            items.signature[position] = ~event_signature(
                events, rows[position], dimensions.first_of
            )
        items.until[position] = events.until[rows[position]]


@kernel_inline
def prefetch_predicates(columns: SubscriptionColumns, predicate: int) -> None:
    """Prefetch the columns of *predicate* and of those after it."""
    prefetch(columns.kind, predicate)
    prefetch(columns.attribute, predicate)
    prefetch(columns.operand_start, predicate)
    prefetch(columns.low, predicate)
    prefetch(columns.high, predicate)
    second = min(predicate + MANY, len(columns.kind) - 1)
    prefetch(columns.low, second)
    prefetch(columns.high, second)


@inner_kernel
def bound_alternative(
    columns: SubscriptionColumns,
    alternative: int,
    dimensions: MoDimensions,
    scratch: MoMatchScratch,
    low: UInt8,
    high: UInt8,
) -> bool:
    """The steps *low* … *high* that *alternative* accepts in each dimension.

    Of dimensions with a layer also the bounds themselves, and whether the attribute must be there.
    Bounds that contradict each other stay as they are, low above high: nothing can match.
    Returns whether it wants more, which a signature can express.
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
        is_more |= dimension == NO_DIMENSION or columns.kind[predicate] in (MEMBERSHIP, KEYWORDS)
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
                low_step = step_of(domain_position(dimensions, dimension, one))
                high_step = step_of(domain_position(dimensions, dimension, other))
                low[dimension] = max(low[dimension], low_step)
                high[dimension] = min(high[dimension], high_step)
            dimension = dimensions.next_of[dimension]
    return is_more


@inner_kernel
def bound_event(
    events: EventColumns,
    event: int,
    dimensions: MoDimensions,
    scratch: MoMatchScratch,
    low: UInt8,
    high: UInt8,
) -> bool:
    """The steps *low* … *high* that *event* has in each dimension, a null step where it has none.

    Of dimensions with a layer also the values themselves, and whether there is one. Returns whether
    it has more, which a signature can express.
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
            step = step_of(domain_position(dimensions, dimension, one))
            low[dimension] = high[dimension] = step
            if other != one:
                high[dimension] = step_of(domain_position(dimensions, dimension, other))
            dimension = dimensions.next_of[dimension]
    return bool(is_more)


@kernel_inline
def step_of(at: float) -> int:
    """The step that holds the position *at*."""
    return min(FIRST_STEP + int(at * _STEPS), LAST_STEP)


def new_items(count: int, *, ending: bool) -> MoItems:
    """Arrays for *count* items."""
    return MoItems(
        bucket=np.empty(count, np.int64),
        signature=np.empty(count, np.uint64),
        until=np.empty(count if ending else 0, np.int64),
        low=np.empty(count * MOST_DIMENSIONS, np.uint8),
        high=np.empty(count * MOST_DIMENSIONS, np.uint8),
    )
