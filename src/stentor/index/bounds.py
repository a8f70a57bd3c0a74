"""What predicates bound: values, and the two coordinates of places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from stentor.encoding.columns import (
    BOX,
    KIND_MASK,
    NEGATED,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
)

# What a bound is about: a value, or a place's coordinate.
VALUE, X, Y = 0, 1, 2


class Bounds(NamedTuple):
    """The bounds of some predicates along one axis; infinite where one has none."""

    attribute: Int32  # (predicates,)
    axis: int
    low: Float64  # (predicates,)
    high: Float64  # (predicates,)


def bounds_of(columns: SubscriptionColumns, predicates: Int64) -> Iterator[Bounds]:
    """The bounds of *predicates* that are not negated: of values, then of places by x and by y."""
    kind = columns.kind[predicates]
    predicates, kind = predicates[kind < NEGATED], kind[kind < NEGATED]
    is_place = (kind & KIND_MASK) >= BOX
    values, places = predicates[~is_place], predicates[is_place]
    attribute = columns.attribute
    yield Bounds(attribute[values], VALUE, columns.low[values], columns.high[values])
    first = columns.operand_start[places]
    for axis, pair in ((X, first), (Y, first + 1)):
        yield Bounds(attribute[places], axis, columns.pair_low[pair], columns.pair_high[pair])
