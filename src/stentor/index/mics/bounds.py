"""The bounds of alternatives and events in each dimension, and whether a value is needed."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
    event_count,
    read_only,
)
from stentor.encoding.kinds import MISSING
from stentor.encoding.partition import ANYTHING, NEEDED, UNWANTED
from stentor.index.bounds import X, Y, predicate_bounds


class Axes(NamedTuple):
    """The dimensions onto which the content space is projected."""

    attribute: Int32  # (dimensions,)
    axis: UInt8  # (dimensions,) VALUE, X or Y


class AxisBounds(NamedTuple):
    """Of each item and dimension the bounds of wanted values, or of the value."""

    low: Float64  # (items, dimensions)
    high: Float64  # (items, dimensions)
    need: UInt8  # (items, dimensions) ANYTHING, NEEDED or UNWANTED

    def first(self, dimensions: int) -> AxisBounds:
        """Those of the first *dimensions* alone."""
        low, high, need = self
        return AxisBounds(low[:, :dimensions], high[:, :dimensions], need[:, :dimensions])


def bounds_of_alternatives(
    columns: SubscriptionColumns, alternatives: Int64, dimensions: Axes
) -> AxisBounds:
    """The bounds of *alternatives*; what a dimension cannot express is left open."""
    bounds = _empty_bounds(len(alternatives), dimensions)
    _bound_alternatives(columns, read_only(alternatives), dimensions, *_flat(bounds))
    return bounds


def bounds_of_events(events: EventColumns, dimensions: Axes) -> AxisBounds:
    """Where *events* are: one value, two ends of a range, or UNWANTED where they have none."""
    bounds = _empty_bounds(event_count(events), dimensions)
    _bound_events(events, dimensions, *_flat(bounds))
    return bounds


def _empty_bounds(items: int, dimensions: Axes) -> AxisBounds:
    shape = items, len(dimensions.attribute)
    return AxisBounds(np.empty(shape), np.empty(shape), np.empty(shape, np.uint8))


def _flat(bounds: AxisBounds) -> tuple[Float64, Float64, UInt8]:
    """The arrays of *bounds* as kernels take them, over the same memory."""
    low, high, need = bounds
    return low.reshape(-1), high.reshape(-1), need.reshape(-1)


@kernel
def _bound_alternatives(
    columns: SubscriptionColumns,
    alternatives: Int64,
    dimensions: Axes,
    low: Float64,
    high: Float64,
    need: UInt8,
) -> None:
    """Fill the bounds of *alternatives*; contradictions are left open, as nothing matches them."""
    count = len(dimensions.attribute)
    for position in range(len(alternatives)):
        start = columns.predicate_start[alternatives[position]]
        stop = columns.predicate_start[alternatives[position] + 1]
        for dimension in range(count):
            item = position * count + dimension
            low[item], high[item], need[item] = -math.inf, math.inf, ANYTHING
            for predicate in range(start, stop):
                if columns.attribute[predicate] != dimensions.attribute[dimension]:
                    continue
                if columns.kind[predicate] == MISSING:
                    need[item] = UNWANTED
                    break
                need[item] = NEEDED
                one, other = predicate_bounds(columns, predicate, dimensions.axis[dimension])
                low[item], high[item] = max(low[item], one), min(high[item], other)
            if not low[item] <= high[item]:
                low[item], high[item] = -math.inf, math.inf


@kernel
def _bound_events(
    events: EventColumns, dimensions: Axes, low: Float64, high: Float64, need: UInt8
) -> None:
    """Fill the bounds of *events*."""
    count = len(dimensions.attribute)
    for event in range(len(events.value_start) - 1):
        for dimension in range(count):
            item = event * count + dimension
            low[item], high[item], need[item] = 0.0, 0.0, UNWANTED
            for value in range(events.value_start[event], events.value_start[event + 1]):
                if events.attribute[value] != dimensions.attribute[dimension]:
                    continue
                axis = dimensions.axis[dimension]
                one = events.high[value] if axis == Y else events.low[value]
                other = events.low[value] if axis == X else events.high[value]
                low[item], high[item] = -math.inf, math.inf
                if one <= other or other <= one:  # what is no number is there all the same
                    low[item], high[item] = min(one, other), max(one, other)
                need[item] = NEEDED
