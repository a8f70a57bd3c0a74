"""Subscriptions and events as ranges of a curve through some of their dimensions (section 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns
from stentor.encoding.hilbert import Ranges
from stentor.encoding.partition import NULL, UNWANTED, Partition, coarsened
from stentor.index.mics.bounds import (
    Bounds,
    Dimensions,
    bounds_of_alternatives,
    bounds_of_events,
)


@dataclass(frozen=True)
class Projection:
    """The *dimensions* that count, and how each is cut into cells.

    What matches shares a cell: an event's ranges meet those of every alternative that it satisfies.
    """

    dimensions: Dimensions
    partition: Partition

    def of_alternatives(
        self, columns: SubscriptionColumns, alternatives: Int64, most: float
    ) -> Ranges:
        """The ranges of each of *alternatives*, about *most* of them for each."""
        bounds = bounds_of_alternatives(columns, alternatives, self.dimensions)
        return self._decomposed(bounds, most)

    def of_subscriptions(self, columns: SubscriptionColumns, most: float) -> Ranges:
        """The ranges of each subscription's alternatives together, which may overlap."""
        alternatives = np.arange(len(columns.predicate_start) - 1)
        starts, low, high = self.of_alternatives(columns, alternatives, most)
        return Ranges(starts[columns.alternative_start], low, high)

    def of_events(self, events: EventColumns, most: float) -> Ranges:
        """The number of each event as a range; of a range event about *most* ranges."""
        bounds = bounds_of_events(events, self.dimensions)
        if (bounds.low != bounds.high).any():
            return self._decomposed(bounds, most)
        cells = self.partition.coordinates(bounds.low)
        cells[bounds.need == UNWANTED] = NULL
        numbers = self.partition.curve.numbers(cells)
        return Ranges(np.arange(len(numbers) + 1), numbers, numbers)

    def _decomposed(self, bounds: Bounds, most: float) -> Ranges:
        curve = self.partition.curve
        return curve.ranges(*coarsened(*self.partition.boxes(*bounds), curve, most))
