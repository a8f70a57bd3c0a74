"""What alternatives and events say of the dimensions: bounds, and whether a value is needed."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import (
    MISSING,
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
    event_count,
)
from stentor.encoding.partition import ANYTHING, NEEDED, UNWANTED
from stentor.encoding.readonly import read_only
from stentor.index.bounds import X, Y, predicate_bounds


class Dimensions(NamedTuple):
    """The dimensions onto which the content space is projected."""

    attribute: Int32  # (dimensions,)
    axis: UInt8  # (dimensions,) VALUE, X or Y


class Bounds(NamedTuple):
    """Of each item and dimension what a value must lie between, or lies between."""

    low: Float64  # (items, dimensions)
    high: Float64  # (items, dimensions)
    need: UInt8  # (items, dimensions) ANYTHING, NEEDED or UNWANTED

    def first(self, dimensions: int) -> Bounds:
        """Those of the first *dimensions* alone."""
        low, high, need = self
        return Bounds(low[:, :dimensions], high[:, :dimensions], need[:, :dimensions])


def bounds_of_alternatives(
    columns: SubscriptionColumns, alternatives: Int64, dimensions: Dimensions
) -> Bounds:
    """What *alternatives* ask for; everything that a dimension cannot say is left open."""
    bounds = _room(len(alternatives), dimensions)
    _bound_alternatives(columns, read_only(alternatives), dimensions, *_flat(bounds))
    return bounds


def bounds_of_events(events: EventColumns, dimensions: Dimensions) -> Bounds:
    """Where *events* are: one value, two ends of a range, or UNWANTED where they have none."""
    bounds = _room(event_count(events), dimensions)
    _bound_events(events, dimensions, *_flat(bounds))
    return bounds


def _room(items: int, dimensions: Dimensions) -> Bounds:
    shape = items, len(dimensions.attribute)
    return Bounds(np.empty(shape), np.empty(shape), np.empty(shape, np.uint8))


def _flat(bounds: Bounds) -> tuple[Float64, Float64, UInt8]:
    """The arrays of *bounds* as kernels take them, over the same memory."""
    low, high, need = bounds
    return low.reshape(-1), high.reshape(-1), need.reshape(-1)


@kernel
def _bound_alternatives(
    columns: SubscriptionColumns,
    alternatives: Int64,
    dimensions: Dimensions,
    low: Float64,
    high: Float64,
    need: UInt8,
) -> None:
    """Fill the bounds of *alternatives*; contradictions are left open, as nothing matches them."""
    count = len(dimensions.attribute)
    for place in range(len(alternatives)):
        start = columns.predicate_start[alternatives[place]]
        stop = columns.predicate_start[alternatives[place] + 1]
        for dimension in range(count):
            item = place * count + dimension
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
    events: EventColumns, dimensions: Dimensions, low: Float64, high: Float64, need: UInt8
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
