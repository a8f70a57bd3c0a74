"""The choice of dimensions: which attributes records hold, and where values are cut into cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    SubscriptionColumns,
    all_read_only,
)
from stentor.encoding.kinds import MEMBERSHIP, NEGATED, REGIONS, are_among
from stentor.encoding.ragged import children
from stentor.index.packed.blocks.layout import (
    ABSENT,
    BY_HASH,
    BY_VALUE,
    CUTS,
    FIRST_CELL,
    LOCATION,
    LOCATION_CELLS,
    MOST_CUTS,
    MOST_DIMENSIONS,
    NO_DIMENSION,
    OPEN_LOW,
    BlockDimensions,
)
from stentor.index.sort import distinct

#: About how many alternatives are looked at.
SAMPLE = 1 << 14
#: Cells of a line: few where many bounds leave few alternatives anyway, so that lines stay cached.
FEW_CELLS_SHIFT, MANY_CELLS_SHIFT = 5, 4
#: Bounds of an alternative on average from which few cells suffice.
MANY_BOUNDS = 7.0
#: A hash has 64 bits, a double 53 for a whole number.
HASH_SHIFT = np.uint64(11)


class _Use(NamedTuple):
    """How predicates use an attribute."""

    attribute: int
    axis: int
    low: Float64
    high: Float64
    cut: Float64

    @property
    def left(self) -> float:
        """About the share of those that ask for it which a value leaves."""
        if not len(self.low):
            return 1.0
        edges = np.searchsorted(self.cut, np.stack((self.low, self.high)), side="right")
        return float(np.mean(edges[1] - edges[0] + 1)) / (len(self.cut) + 1)


def choose_dimensions(columns: SubscriptionColumns, alternatives: Int64) -> BlockDimensions:
    """The dimensions for *alternatives*, judged by a random sample.

    Cost: a sort of the sample's bounds.
    """
    sample = _sample(alternatives)
    predicates, _ = children(columns.predicate_start, sample)
    of_regions = are_among(columns.kind[predicates], REGIONS)
    attributes, times = np.unique(columns.attribute[predicates[of_regions]], return_counts=True)
    location = int(attributes[times.argmax()]) if len(attributes) else NO_DIMENSION
    uses = _uses(columns, predicates[~of_regions], location)
    uses.sort(key=lambda use: 1.0 - (1.0 - use.left) * len(use.low) / max(1, len(sample)))
    bounds = sum(len(use.low) for use in uses) / max(1, len(sample))
    is_few = location != NO_DIMENSION and bounds >= MANY_BOUNDS
    shift = FEW_CELLS_SHIFT if is_few else MANY_CELLS_SHIFT
    return _dimensions(uses, location, shift, live=False)


def choose_live_dimensions(events: EventColumns, rows: Int64) -> BlockDimensions:
    """The dimensions for live events, judged by a random sample of *rows*.

    An attribute whose values have two different ends in most events is taken for a location; if
    it is none, a range is found by them all the same.
    """
    sample = _sample(rows)
    values, _ = children(events.value_start, sample)
    attribute = events.attribute[values]
    order = np.argsort(attribute, kind="stable")
    values, attribute = values[order], attribute[order]
    starts = np.unique(attribute, return_index=True)[1]
    parts = np.split(values, starts[1:]) if len(values) else []
    parts.sort(key=len, reverse=True)
    location = NO_DIMENSION
    uses: list[_Use] = []
    for part in parts:
        low, high = events.low[part], events.high[part]
        number = int(events.attribute[part[0]])
        if location == NO_DIMENSION and 2 * np.count_nonzero(low != high) > len(part):
            location = number
        elif len(uses) < MOST_DIMENSIONS:
            axis, string = BY_VALUE, events.string[part]
            if 2 * np.count_nonzero(string >= 0) > len(part):
                axis = BY_HASH
                low = high = hash_values(events.string_hash[string[string >= 0]])
            uses.append(_Use(number, axis, low, high, _cuts(low, high)))
    return _dimensions(uses, location, FEW_CELLS_SHIFT, live=True)


def _sample(positions: Int64) -> Int64:
    """At most SAMPLE of *positions*, at random: a fixed step may meet the same kind each time."""
    if len(positions) <= SAMPLE:
        return positions
    random = np.random.default_rng(len(positions))
    return np.sort(random.choice(positions, SAMPLE, replace=False))


def _uses(columns: SubscriptionColumns, predicates: Int64, location: int) -> list[_Use]:
    """The attributes that *predicates* use most, but for *location*."""
    attribute = columns.attribute[predicates]
    order = np.argsort(attribute, kind="stable")
    predicates, attribute = predicates[order], attribute[order]
    starts = np.unique(attribute, return_index=True)[1]
    parts = np.split(predicates, starts[1:]) if len(predicates) else []
    parts = [part for part in parts if columns.attribute[part[0]] != location]
    parts.sort(key=len, reverse=True)
    return [_use(columns, part) for part in parts[:MOST_DIMENSIONS]]


def _use(columns: SubscriptionColumns, predicates: Int64) -> _Use:
    """How *predicates*, all of one attribute, use it."""
    attribute = int(columns.attribute[predicates[0]])
    members = predicates[columns.kind[predicates] == MEMBERSHIP]
    if 2 * len(members) > len(predicates):
        start, stop = columns.operand_start[members], columns.operand_stop[members]
        some = start < stop
        low = hash_values(columns.string_hash[start[some]])
        high = hash_values(columns.string_hash[stop[some] - 1])
        return _Use(attribute, BY_HASH, low, high, _cuts(low, high))
    plain = predicates[columns.kind[predicates] & NEGATED == 0]
    low, high = columns.low[plain], columns.high[plain]
    bounded = np.isfinite(low) | np.isfinite(high)
    low, high = low[bounded], high[bounded]
    return _Use(attribute, BY_VALUE, low, high, _cuts(low, high))


def hash_values(hashes: np.ndarray[tuple[int, ...], np.dtype[np.uint64]]) -> Float64:
    """Hashes of strings as numbers."""
    return (hashes >> HASH_SHIFT).astype(np.float64)


def _cuts(low: Float64, high: Float64) -> Float64:
    """At most MOST_CUTS cuts at quantiles; a frequent value has a cell of its own."""
    ends = np.concatenate((low, high))
    value, times = np.unique(ends[np.isfinite(ends)], return_counts=True)
    if not len(value):
        return value
    frequent = value[times * MOST_CUTS >= times.sum()]
    if 2 * len(value) <= MOST_CUTS:
        frequent = value
    with np.errstate(over="ignore"):  # after the largest number comes infinity
        points = distinct(np.concatenate((frequent, np.nextafter(frequent, np.inf))))
    points = points[np.isfinite(points)][:MOST_CUTS]
    rest = np.repeat(value, times)[~np.isin(np.repeat(value, times), frequent)]
    budget = MOST_CUTS - len(points)
    if len(rest) and budget:
        positions = np.linspace(0, len(rest) - 1, min(budget, len(rest))).astype(np.int64)
        points = distinct(np.concatenate((points, rest[positions])))
    return points


def _dimensions(uses: list[_Use], location: int, shift: int, *, live: bool) -> BlockDimensions:
    count = len(uses)
    known = max([location, *(use.attribute for use in uses)], default=-1)
    dimension_of = np.full(known + 1, NO_DIMENSION, np.int32)
    cut = np.full((count, CUTS), np.nan)
    is_point = np.zeros((count, 256), np.uint8)
    for dimension, use in enumerate(uses):
        dimension_of[use.attribute] = dimension
        cut[dimension, : len(use.cut)] = use.cut
        alone = np.nextafter(use.cut[:-1], np.inf) == use.cut[1:]
        is_point[dimension, FIRST_CELL + 1 + np.flatnonzero(alone)] = 1
    if location != NO_DIMENSION:
        dimension_of[location] = LOCATION
    codes, locations = _lines(256, shift, live), _lines(LOCATION_CELLS, 0, live)
    codes = np.hstack((np.array([[ABSENT], [ABSENT]]), codes))
    first = 1 if location == NO_DIMENSION else 1 + 2 * locations.shape[1]
    return all_read_only(
        BlockDimensions(
            attribute=np.array([use.attribute for use in uses], np.int32),
            axis=np.array([use.axis for use in uses], np.uint8),
            dimension_of=dimension_of,
            cut=cut.reshape(-1),
            coarse=np.ascontiguousarray(cut[:, 15::16]).reshape(-1),
            is_point=is_point.reshape(-1),
            line_start=first + np.arange(count + 1) * codes.shape[1],
            shift=np.array([shift]),
            first_code=np.ascontiguousarray(codes[0]),
            last_code=np.ascontiguousarray(codes[1]),
            first_location=np.ascontiguousarray(locations[0]),
            last_location=np.ascontiguousarray(locations[1]),
        )
    )


def _lines(codes: int, shift: int, live: bool) -> Int64:
    """What the lines of cells of 2^shift *codes* are about: (first, last).

    Of alternatives, which ask for a range, each cell. Of live events, which have a value, all
    codes up to the end of each cell, and then all from its start on: a range selects two lines.
    """
    start = np.arange(0, codes, 1 << shift)
    last = start + (1 << shift) - 1
    if not live:
        return np.stack((start, last))
    least = OPEN_LOW if shift else 0  # who has no value is in neither
    up_to = np.stack((np.full(len(start), least), last))
    return np.hstack((up_to, np.stack((np.maximum(start, least), np.full(len(start), codes - 1)))))
