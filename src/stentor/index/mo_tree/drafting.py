"""Alternatives and events → the bucket of each, and the steps by which it is told apart.

What a dimension cannot say of a predicate it leaves to the verifier: then all steps are accepted,
and the cell is the whole domain.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import (
    BOX,
    MISSING,
    NEGATED,
    EventColumns,
    Int64,
    SubscriptionColumns,
    UInt8,
)
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
    VALUE,
    Cells,
    Dimensions,
    Drafts,
    Query,
    X,
    Y,
)
from stentor.index.signature import alternative_signature, event_signature

_STEPS = LAST_STEP - FIRST_STEP + 1


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
        bound_alternative(columns, alternatives[place], dimensions, scratch)
        row = place * MOST_DIMENSIONS
        steps_of_bounds(
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
        bound_event(events, rows[place], dimensions, scratch)
        steps_of_bounds(
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
        drafts.signature[place] = ~event_signature(events, rows[place], dimensions.first_of)
        drafts.until[place] = events.until[rows[place]]


@kernel_part
def bound_alternative(
    columns: SubscriptionColumns, alternative: int, dimensions: Dimensions, scratch: Query
) -> None:
    """What *alternative* asks of each dimension: bounds, and whether the attribute must be there.

    Bounds that contradict each other come out as they are, low above high.
    """
    for dimension in range(len(dimensions.attribute)):
        scratch.bound_low[dimension], scratch.bound_high[dimension] = -math.inf, math.inf
        scratch.need[dimension] = ANYTHING
    attributes = len(dimensions.first_of)
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        attribute = columns.attribute[predicate]
        dimension = NO_DIMENSION
        if 0 <= attribute < attributes:
            dimension = dimensions.first_of[attribute]
        while dimension != NO_DIMENSION:
            kind = columns.kind[predicate]
            scratch.need[dimension] = UNWANTED if kind == MISSING else NEEDED
            if kind < NEGATED:
                narrow(columns, predicate, dimensions.axis[dimension], dimension, scratch)
            dimension = dimensions.next_of[dimension]


@kernel_inline
def narrow(
    columns: SubscriptionColumns, predicate: int, axis: int, dimension: int, scratch: Query
) -> None:
    """Intersect the bounds of *dimension* with those of *predicate*."""
    low, high = columns.low[predicate], columns.high[predicate]
    if columns.kind[predicate] >= BOX:
        if axis == VALUE:
            return
        pair = columns.operand_start[predicate] + (axis == Y)
        low, high = columns.pair_low[pair], columns.pair_high[pair]
        if not low <= high:  # across 180°, or around nobody knows where
            return
    elif axis == X:  # of a range, the low end: it must not exceed the bounds
        low = -math.inf
    elif axis == Y:
        high = math.inf
    if low > scratch.bound_low[dimension]:
        scratch.bound_low[dimension] = low
    if high < scratch.bound_high[dimension]:
        scratch.bound_high[dimension] = high


@kernel_part
def bound_event(
    events: EventColumns, event: int, dimensions: Dimensions, scratch: Query
) -> None:
    """What *event* has in each dimension: its value, the ends of its range, or nothing."""
    for dimension in range(len(dimensions.attribute)):
        scratch.need[dimension] = UNWANTED
    attributes = len(dimensions.first_of)
    for value in range(events.value_start[event], events.value_start[event + 1]):
        attribute = events.attribute[value]
        dimension = NO_DIMENSION
        if 0 <= attribute < attributes:
            dimension = dimensions.first_of[attribute]
        while dimension != NO_DIMENSION:
            axis = dimensions.axis[dimension]
            scratch.need[dimension] = NEEDED
            scratch.bound_low[dimension] = events.high[value] if axis == Y else events.low[value]
            scratch.bound_high[dimension] = events.low[value] if axis == X else events.high[value]
            dimension = dimensions.next_of[dimension]


@kernel_part
def steps_of_bounds(dimensions: Dimensions, scratch: Query, low: UInt8, high: UInt8) -> None:
    """The bounds of *scratch* as steps; dimensions that are not there accept everything."""
    for dimension in range(MOST_DIMENSIONS):
        low[dimension], high[dimension] = NULL_STEP, LAST_STEP
    for dimension in range(len(dimensions.attribute)):
        need = scratch.need[dimension]
        if need == UNWANTED:
            high[dimension] = NULL_STEP
        elif need == NEEDED:
            one = step_of(position(dimensions, dimension, scratch.bound_low[dimension]))
            other = step_of(position(dimensions, dimension, scratch.bound_high[dimension]))
            low[dimension] = one if one <= other else FIRST_STEP
            high[dimension] = other if one <= other else LAST_STEP


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
