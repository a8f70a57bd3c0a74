"""What alternatives bound, dimension by dimension, and where an event is in each.

A dimension is an attribute's value, or a coordinate of its location: `attribute × AXES + axis`.
Rivals for Boolean expressions and intervals are made of these; what is bounded nowhere they always
propose.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import EventColumns, Float64, Int64, SubscriptionColumns
from stentor.encoding.kinds import MISSING, is_region
from stentor.index.bounds import VALUE, X, Y, predicate_bounds

AXES: Final = 3


class BoundedPredicates(NamedTuple):
    """What some alternatives bound: an entry for each predicate and axis."""

    of: Int64  # (bounds,) position among the alternatives, ascending
    dimension: Int64  # (bounds,) ascending within one
    low: Float64  # (bounds,)
    high: Float64  # (bounds,)

    def only(self, chosen: Any) -> BoundedPredicates:
        """The *chosen* ones: positions, or whether."""
        return BoundedPredicates(
            np.ascontiguousarray(self.of[chosen]),
            np.ascontiguousarray(self.dimension[chosen]),
            np.ascontiguousarray(self.low[chosen]),
            np.ascontiguousarray(self.high[chosen]),
        )


def bounded(
    columns: SubscriptionColumns, alternatives: Int64, *, locations: bool = True
) -> BoundedPredicates:
    """The bounds of *alternatives*; with *locations* those of regions too."""
    alternatives = np.ascontiguousarray(alternatives, np.int64)
    found = max(16, 4 * len(alternatives))
    capacity = 0
    while found > capacity:
        capacity = found
        of, dimension = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        low, high = np.empty(capacity), np.empty(capacity)
        found = write_bounds(columns, alternatives, locations, of, dimension, low, high)
    made = BoundedPredicates(of[:found], dimension[:found], low[:found], high[:found])
    return made.only(np.lexsort((made.dimension, made.of)))


@kernel
def write_bounds(
    columns: SubscriptionColumns,
    alternatives: Int64,
    locations: bool,
    of: Int64,
    dimension: Int64,
    low: Float64,
    high: Float64,
) -> int:
    """Write what is bounded; what does not fit is only counted."""
    found = 0
    for position in range(len(alternatives)):
        alternative = alternatives[position]
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            region = is_region(columns.kind[predicate])
            if columns.kind[predicate] == MISSING or (region and not locations):
                continue
            for axis in range(X, Y + 1) if region else range(VALUE, VALUE + 1):
                least, most = predicate_bounds(columns, predicate, axis)
                if least == -math.inf and most == math.inf:
                    continue
                if found < len(of):
                    of[found] = position
                    dimension[found] = columns.attribute[predicate] * AXES + axis
                    low[found], high[found] = least, most
                found += 1
    return found


@kernel_inline
def event_bounds(events: EventColumns, value: int, axis: int) -> tuple[float, float]:
    """Where the event is, by its *value*, along *axis*."""
    low, high = events.low[value], events.high[value]
    if axis == X:
        return low, low
    if axis == Y:
        return high, high
    return min(low, high), max(low, high)


def domains(bounds: BoundedPredicates, dimensions: int) -> tuple[Float64, Float64]:
    """From where to where the finite ends lie, by dimension; 0 to 1 where there are none."""
    low, high = np.full(dimensions, np.inf), np.full(dimensions, -np.inf)
    for ends in (bounds.low, bounds.high):
        finite = np.isfinite(ends)
        np.minimum.at(low, bounds.dimension[finite], ends[finite])
        np.maximum.at(high, bounds.dimension[finite], ends[finite])
    known = low <= high
    return np.where(known, low, 0.0), np.where(known, high, 1.0)


@kernel_inline
def cell_in(value: float, low: float, high: float, cells: int) -> int:
    """Which of *cells* of a domain *value* is in; those outside are in the outermost."""
    if not value > low or not high > low:
        return 0
    share = (value - low) / (high - low)
    return cells - 1 if share >= 1.0 else min(cells - 1, int(share * cells))
