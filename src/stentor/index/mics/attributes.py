"""Which dimensions are indexed: greedily, those that are most selective (section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    SubscriptionColumns,
    all_read_only,
)
from stentor.encoding.partition import Partition, coarsened, positions
from stentor.encoding.ragged import children
from stentor.index.bounds import AXIS_NAMES, Bounds, Y, bounded_attributes, domain_of
from stentor.index.mics.bounds import Axes, bounds_of_alternatives
from stentor.index.mics.projection import Projection
from stentor.index.mics.settings import VARIABLE, MicsSettings

#: About how many alternatives are looked at.
SAMPLE: Final = 1 << 13
#: How many of them are turned into boxes for each number of dimensions.
FEWER: Final = 1 << 10
#: An attribute that rules out less than this share of the alternatives is no dimension.
LEAST_USE: Final = 0.02


@dataclass(frozen=True)
class DimensionChoice:
    """An attribute, or a coordinate of a location, with the measures it is chosen by."""

    attribute: int
    axis: int
    low: float  # its domain
    high: float
    selectivity: float  # the share of alternatives × domain that is ruled out
    ends: Float64  # where intervals begin and end, or what values events have

    def explained(self) -> dict[str, Any]:
        """What `stats` says of it."""
        return {
            "attribute": self.attribute,
            "axis": AXIS_NAMES[self.axis],
            "low": self.low,
            "high": self.high,
            "selectivity": self.selectivity,
        }


def choose_dimensions(
    columns: SubscriptionColumns,
    alternatives: Int64,
    history: EventColumns | None,
    settings: MicsSettings,
) -> list[DimensionChoice]:
    """The most selective dimensions for *alternatives*, the best first; by a sample.

    So many that the boxes, made of cells so large that their ranges remain few, are smallest.
    """
    found = selective_dimensions(columns, alternatives, history)
    return smallest_boxes(columns, alternatives, found, settings)


def selective_dimensions(
    columns: SubscriptionColumns, alternatives: Int64, history: EventColumns | None
) -> list[DimensionChoice]:
    """All useful dimensions for *alternatives*, the most selective first; by a sample."""
    sample = _sample(alternatives)
    predicates, _ = children(columns.predicate_start, sample)
    found = [
        _candidate(bounds, len(sample), history)
        for bounds in bounded_attributes(columns, predicates)
    ]
    found = [one for one in found if one.selectivity >= LEAST_USE]
    return sorted(found, key=lambda one: (-one.selectivity, one.attribute, one.axis))


def smallest_boxes(
    columns: SubscriptionColumns,
    alternatives: Int64,
    found: list[DimensionChoice],
    settings: MicsSettings,
) -> list[DimensionChoice]:
    """So many of the first of *found* that the boxes of *alternatives* are smallest."""
    sample = _sample(alternatives)[:FEWER]
    volumes = [
        _mean_volume(columns, sample, found[:kept], settings)
        for kept in range(1, min(len(found), settings.dimensions) + 1)
    ]
    return found[: int(np.argmin(volumes)) + 1] if found else []


def projection_of(candidates: list[DimensionChoice], settings: MicsSettings) -> Projection:
    """The projection onto *candidates*; at least one."""
    return Projection(dimensions_of(candidates), partition_of(candidates, settings))


def partition_of(candidates: list[DimensionChoice], settings: MicsSettings) -> Partition:
    """The cells of *candidates*; at least one."""
    if settings.cells == VARIABLE:
        return Partition.from_sample([one.ends for one in candidates], settings.bits)
    low, high = [one.low for one in candidates], [one.high for one in candidates]
    return Partition.equal(low, high, settings.bits)


def dimensions_of(candidates: list[DimensionChoice]) -> Axes:
    """*candidates* as kernels take them."""
    return all_read_only(
        Axes(
            attribute=np.array([one.attribute for one in candidates], np.int32),
            axis=np.array([one.axis for one in candidates], np.uint8),
        )
    )


def _sample(alternatives: Int64) -> Int64:
    return np.ascontiguousarray(alternatives[:: max(1, len(alternatives) // SAMPLE)])


def _mean_volume(
    columns: SubscriptionColumns, sample: Int64, kept: list[DimensionChoice], settings: MicsSettings
) -> float:
    """The share of the space that an alternative takes where the dimensions are *kept*."""
    partition = partition_of(kept, settings)
    bounds = bounds_of_alternatives(columns, sample, dimensions_of(kept))
    low, high = coarsened(*partition.boxes(*bounds), partition.curve, settings.ranges)
    sides = (high.astype(np.float64) - low + 1.0) / (partition.curve.last + 1)
    return float(np.prod(sides, axis=1).mean())


def _candidate(bounds: Bounds, items: int, history: EventColumns | None) -> DimensionChoice:
    attribute, axis, low, high = bounds
    ends = np.concatenate([low, high])
    if history is not None:
        of = history.attribute == attribute[0]
        values = (history.high if axis == Y else history.low)[of]
        if np.isfinite(values).any():
            ends = values
    least, most = _domain(np.concatenate([low, high]))
    width = positions(high, least, most) - positions(low, least, most)
    selectivity = float((1.0 - width).sum() / items)
    return DimensionChoice(int(attribute[0]), axis, least, most, selectivity, ends)


def _domain(ends: Float64) -> tuple[float, float]:
    """Where most of *ends* are, widened where that is one value."""
    low, high = domain_of(ends)
    if low < high:
        return low, high
    return (low, low + max(1.0, abs(low))) if low < 0.0 else (low - max(1.0, low), high)
