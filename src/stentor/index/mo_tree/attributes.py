"""Which attributes tell items apart: popular, selective, evenly spread (section 4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    SubscriptionColumns,
    event_count,
)
from stentor.encoding.ragged import children, take
from stentor.encoding.readonly import all_read_only
from stentor.index.bounds import (
    AXIS_NAMES,
    VALUE,
    Bounds,
    X,
    Y,
    bounded_attributes,
    domain_of,
)
from stentor.index.mo_tree.layout import MOST_DIMENSIONS, NO_DIMENSION, Dimensions

#: About how many alternatives, and events, are looked at.
SAMPLE = 1 << 13
#: An attribute that rules out less than this share of the items is not worth a look.
LEAST_USE = 0.02
#: Cells in which centres are counted.
UNIFORMITY_CELLS = 16


@dataclass(frozen=True)
class Candidate:
    """An attribute, or a coordinate of a place, with all that speaks for it."""

    attribute: int
    axis: int
    low: float  # its domain
    high: float
    popularity: float  # the share of items that bound it
    interval_low: Float64  # (bounding items of the sample,) positions in the domain
    interval_high: Float64
    value: Float64  # (events of the sample that have it,)

    @property
    def selectivity(self) -> float:
        """The share of the domain that an interval leaves out, on average."""
        return 1.0 - float(np.mean(self.interval_high - self.interval_low))

    @property
    def uniformity(self) -> float:
        """How evenly the centres are spread: their entropy, as a share of the greatest."""
        centre = (self.interval_low + self.interval_high) / 2.0
        counts = np.histogram(centre, UNIFORMITY_CELLS, (0.0, 1.0))[0]
        shares = counts[counts > 0] / counts.sum()
        return float(-(shares * np.log(shares)).sum() / np.log(UNIFORMITY_CELLS))

    @property
    def merit(self) -> float:
        return self.popularity * self.selectivity * self.uniformity

    def explained(self) -> dict[str, Any]:
        """What `stats` says of it."""
        return {
            "attribute": self.attribute,
            "axis": AXIS_NAMES[self.axis],
            "low": self.low,
            "high": self.high,
            "popularity": self.popularity,
            "selectivity": self.selectivity,
            "uniformity": self.uniformity,
        }


def choose_attributes(
    columns: SubscriptionColumns, alternatives: Int64, events: EventColumns
) -> list[Candidate]:
    """The attributes that tell *alternatives* apart best, the best first; by a sample.

    Where no alternative bounds anything, those that tell *events* apart.
    """
    sample = alternatives[:: max(1, len(alternatives) // SAMPLE)]
    predicates, _ = children(columns.predicate_start, sample)
    count = event_count(events)
    few = take(events, np.arange(0, count, max(1, count // SAMPLE)))
    found = [
        _candidate(bounds, len(sample), _values(few, bounds))
        for bounds in bounded_attributes(columns, predicates)
    ]
    if not found:
        found = list(_of_events(few))
    found = [one for one in found if one.popularity * one.selectivity >= LEAST_USE]
    found.sort(key=lambda one: (-one.merit, one.attribute, one.axis))
    return found[:MOST_DIMENSIONS]


def dimensions_of(candidates: Sequence[Candidate]) -> Dimensions:
    """*candidates* as kernels take them."""
    attribute = np.array([one.attribute for one in candidates], np.int32)
    first_of = np.full(attribute.max(initial=-1) + 1, NO_DIMENSION, np.int32)
    next_of = np.full(len(candidates), NO_DIMENSION, np.int32)
    for dimension, code in reversed(list(enumerate(attribute.tolist()))):
        next_of[dimension] = first_of[code]
        first_of[code] = dimension
    with np.errstate(over="ignore", divide="ignore"):
        scale = [1.0 / (np.float64(one.high) - one.low) for one in candidates]
    return all_read_only(
        Dimensions(
            attribute=attribute,
            axis=np.array([one.axis for one in candidates], np.uint8),
            low=np.array([one.low for one in candidates], np.float64),
            scale=np.array(scale, np.float64),
            first_of=first_of,
            next_of=next_of,
        )
    )


def _values(events: EventColumns, bounds: Bounds) -> Float64:
    """The numbers that *events* have at the attribute of *bounds*."""
    has_it = events.attribute == bounds.attribute[0]
    values: Float64 = (events.high if bounds.axis == Y else events.low)[has_it]
    return values


def _candidate(bounds: Bounds, items: int, values: Float64) -> Candidate:
    attribute, axis, low, high = bounds
    least, most = domain_of(np.concatenate([low, high, values]))
    most = max(most, float(np.nextafter(least, np.inf)))
    return Candidate(
        int(attribute[0]),
        axis,
        least,
        most,
        popularity=len(low) / items,
        interval_low=_positions(low, least, most),
        interval_high=_positions(high, least, most),
        value=_positions(values, least, most),
    )


def _of_events(events: EventColumns) -> Iterator[Candidate]:
    """The attributes of *events*, as if somebody asked for each value alone.

    Two numbers that differ are a place, or a range: either way each of them tells events apart.
    """
    for attribute in np.unique(events.attribute[events.attribute >= 0]).tolist():
        of = events.attribute == attribute
        pairs = (events.low[of], events.high[of])
        axes = (X, Y) if 2 * np.count_nonzero(pairs[0] != pairs[1]) > of.sum() else (VALUE,)
        for axis in axes:
            values = pairs[axis == Y]
            alone = Bounds(np.full(len(values), attribute, np.int32), axis, values, values)
            yield _candidate(alone, event_count(events), values)


def _positions(values: Float64, low: float, high: float) -> Float64:
    with np.errstate(over="ignore", invalid="ignore"):
        at = (values - low) * (1.0 / (np.float64(high) - low))
    return np.clip(np.nan_to_num(at, nan=0.0), 0.0, 1.0)
