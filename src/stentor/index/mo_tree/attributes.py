"""The choice of indexing attributes: popular, selective, evenly spread (section 4.2)."""

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
    all_read_only,
    event_count,
)
from stentor.encoding.ragged import children, take
from stentor.index.bounds import (
    AXIS_NAMES,
    VALUE,
    Bounds,
    X,
    Y,
    bounded_attributes,
    domain_of,
)
from stentor.index.mo_tree.layout import MOST_DIMENSIONS, NO_DIMENSION, PIECES, MoDimensions
from stentor.index.mo_tree.settings import QUANTILES

#: About how many alternatives, and events, are looked at.
SAMPLE = 1 << 12
#: An attribute that rules out less than this share of the items is not chosen.
LEAST_USE = 0.02
#: Cells in which centres are counted.
UNIFORMITY_CELLS = 16


@dataclass(frozen=True)
class AttributeChoice:
    """An attribute, or a coordinate of a location, with the measures it is chosen by."""

    attribute: int
    axis: int
    knots: Float64  # (PIECES + 1,) its domain, in pieces
    popularity: float  # the share of items that bound it
    interval_low: Float64  # (bounding items of the sample,) positions in the domain
    interval_high: Float64
    value: Float64  # (events of the sample that have it,)

    @property
    def selectivity(self) -> float:
        """The share of the domain, in positions, that an interval leaves out, on average."""
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
            "low": float(self.knots[0]),
            "high": float(self.knots[-1]),
            "popularity": self.popularity,
            "selectivity": self.selectivity,
            "uniformity": self.uniformity,
        }


def choose_attributes(
    columns: SubscriptionColumns, alternatives: Int64, events: EventColumns, pieces: str
) -> list[AttributeChoice]:
    """The best attributes for *alternatives*, the best first; by a sample.

    Where no alternative bounds anything, those for *events*.
    """
    sample = alternatives[:: max(1, len(alternatives) // SAMPLE)]
    predicates, _ = children(columns.predicate_start, sample)
    count = event_count(events)
    few = take(events, np.arange(0, count, max(1, count // SAMPLE)))
    found = [
        _candidate(bounds, len(sample), _values(few, bounds), pieces)
        for bounds in bounded_attributes(columns, predicates)
    ]
    if not found:
        found = list(_of_events(few, pieces))
    found = [one for one in found if one.popularity * one.selectivity >= LEAST_USE]
    found.sort(key=lambda one: (-one.merit, one.attribute, one.axis))
    return found[:MOST_DIMENSIONS]


def dimensions_of(candidates: Sequence[AttributeChoice]) -> MoDimensions:
    """*candidates* as kernels take them."""
    attribute = np.array([one.attribute for one in candidates], np.int32)
    first_of = np.full(attribute.max(initial=-1) + 1, NO_DIMENSION, np.int32)
    next_of = np.full(len(candidates), NO_DIMENSION, np.int32)
    for dimension, code in reversed(list(enumerate(attribute.tolist()))):
        next_of[dimension] = first_of[code]
        first_of[code] = dimension
    knots = np.array([one.knots for one in candidates]).reshape(len(candidates), PIECES + 1)
    return all_read_only(
        MoDimensions(
            attribute=attribute,
            axis=np.array([one.axis for one in candidates], np.uint8),
            knot=knots.reshape(-1),
            rate=_rates(knots).reshape(-1),
            first_of=first_of,
            next_of=next_of,
        )
    )


def _values(events: EventColumns, bounds: Bounds) -> Float64:
    """The numbers that *events* have at the attribute of *bounds*."""
    has_it = events.attribute == bounds.attribute[0]
    values: Float64 = (events.high if bounds.axis == Y else events.low)[has_it]
    return values


def _candidate(bounds: Bounds, items: int, values: Float64, pieces: str) -> AttributeChoice:
    attribute, axis, low, high = bounds
    ends = np.concatenate([low, high, values])
    knots = quantiles(ends) if pieces == QUANTILES else widths(*domain_of(ends))
    return AttributeChoice(
        int(attribute[0]),
        axis,
        knots,
        popularity=len(low) / items,
        interval_low=_positions(low, knots),
        interval_high=_positions(high, knots),
        value=_positions(values, knots),
    )


def quantiles(ends: Float64) -> Float64:
    """Knots between which as many of *ends* lie as between any other two."""
    finite = np.sort(ends[np.isfinite(ends)])
    return _apart(finite[np.linspace(0, len(finite) - 1, PIECES + 1).astype(np.int64)])


def widths(low: float, high: float) -> Float64:
    """Knots at equal distances from *low* to *high*."""
    return _apart(2.0 * np.linspace(low / 2.0, high / 2.0, PIECES + 1))  # the sum may be infinite


def _apart(knots: Float64) -> Float64:
    """*knots* of which the last is greater than the first."""
    knots = np.maximum.accumulate(knots)
    if knots[-1] <= knots[0] <= 0.0:
        knots[-1] = np.nextafter(knots[-1], np.inf)
    elif knots[-1] <= knots[0]:  # above the largest of doubles is none
        knots[:-1] = np.nextafter(knots[0], -np.inf)
    return knots


def _of_events(events: EventColumns, pieces: str) -> Iterator[AttributeChoice]:
    """The attributes of *events*, as if each value were an interval that is wanted.

    Two numbers that differ are a location, or a range: in both cases each is a dimension.
    """
    for attribute in np.unique(events.attribute[events.attribute >= 0]).tolist():
        of = events.attribute == attribute
        pairs = (events.low[of], events.high[of])
        axes = (X, Y) if 2 * np.count_nonzero(pairs[0] != pairs[1]) > of.sum() else (VALUE,)
        for axis in axes:
            values = pairs[axis == Y]
            alone = Bounds(np.full(len(values), attribute, np.int32), axis, values, values)
            yield _candidate(alone, event_count(events), values, pieces)


def _positions(values: Float64, knots: Float64) -> Float64:
    """As `cells.position` says, but for the last digits."""
    piece = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, PIECES - 1)
    with np.errstate(over="ignore", invalid="ignore"):
        within = (values - knots[piece]) * _rates(knots)[piece]
    at = (piece + np.clip(np.nan_to_num(within, nan=0.0), 0.0, 1.0)) / PIECES
    return np.where(values >= knots[-1], 1.0, np.where(values > knots[0], at, 0.0))


def _rates(knots: Float64) -> Float64:
    """One over the length of each piece; 0 where that is nothing, or infinite."""
    with np.errstate(over="ignore", divide="ignore"):
        rates = 1.0 / np.diff(knots)
    return np.where(np.isfinite(rates), rates, 0.0)
