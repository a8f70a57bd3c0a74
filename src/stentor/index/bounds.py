"""What predicates bound: values, and the two coordinates of locations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from stentor._jit import kernel_inline
from stentor.encoding.columns import Float64, Int32, Int64, SubscriptionColumns
from stentor.encoding.kinds import (
    NEGATED,
    REGIONS,
    are_among,
    is_negated,
    is_region,
)

# What a bound is about: a value, or a coordinate of a location.
VALUE, X, Y = 0, 1, 2
AXIS_NAMES: Final = {VALUE: "value", X: "x", Y: "y"}
#: The share of ends at either side that may lie outside the domain: far ones would stretch it.
OUTSIDE: Final = 0.005


class Bounds(NamedTuple):
    """The bounds of some predicates along one axis; infinite where one has none."""

    attribute: Int32  # (predicates,)
    axis: int
    low: Float64  # (predicates,)
    high: Float64  # (predicates,)


def bounds_of(columns: SubscriptionColumns, predicates: Int64) -> Iterator[Bounds]:
    """The bounds of *predicates* that are not negated: of values, then of regions by x and y."""
    kind = columns.kind[predicates]
    is_plain = kind & NEGATED == 0
    predicates, kind = predicates[is_plain], kind[is_plain]
    of_regions = are_among(kind, REGIONS)
    values, positions = predicates[~of_regions], predicates[of_regions]
    attribute = columns.attribute
    yield Bounds(attribute[values], VALUE, columns.low[values], columns.high[values])
    first = columns.operand_start[positions]
    for axis, pair in ((X, first), (Y, first + 1)):
        yield Bounds(attribute[positions], axis, columns.pair_low[pair], columns.pair_high[pair])


def bounded_attributes(columns: SubscriptionColumns, predicates: Int64) -> Iterator[Bounds]:
    """What *predicates* bound at all, attribute by attribute and axis by axis."""
    for attribute, axis, low, high in bounds_of(columns, predicates):
        bounded = np.flatnonzero((np.isfinite(low) | np.isfinite(high)) & (low <= high))
        order = bounded[np.argsort(attribute[bounded], kind="stable")]
        starts = np.unique(attribute[order], return_index=True)[1]
        for rows in np.split(order, starts[1:]) if len(order) else ():
            yield Bounds(attribute[rows], axis, low[rows], high[rows])


def domain_of(ends: Float64) -> tuple[float, float]:
    """Where most of *ends* are; equal where all of them are."""
    finite = ends[np.isfinite(ends)]
    low, high = np.quantile(finite, [OUTSIDE, 1.0 - OUTSIDE], method="inverted_cdf").tolist()
    return (low, high) if low < high else (float(finite.min()), float(finite.max()))


@kernel_inline
def predicate_bounds(
    columns: SubscriptionColumns, predicate: int, axis: int
) -> tuple[float, float]:
    """The bounds of an event's value along *axis* for *predicate* to hold."""
    kind = columns.kind[predicate]
    if is_negated(kind):
        return -math.inf, math.inf
    if is_region(kind):
        if axis == VALUE:
            return -math.inf, math.inf
        pair = columns.operand_start[predicate] + (axis == Y)
        low, high = columns.pair_low[pair], columns.pair_high[pair]
        if low <= high:
            return low, high
        return -math.inf, math.inf  # across 180°, or around an unknown location
    low, high = columns.low[predicate], columns.high[predicate]
    if axis == X:  # of a range the low end: it must not exceed the bounds
        low = -math.inf
    elif axis == Y:
        high = math.inf
    return low, high
