"""Subscriptions and events as ranges of a curve through some of their dimensions (section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns
from stentor.encoding.hilbert.ranges import Ranges
from stentor.encoding.partition import NULL, UNWANTED, Partition, coarsened
from stentor.index.mics.bounds import Axes, AxisBounds, bounds_of_alternatives, bounds_of_events

#: About how many ranges a range event is turned into, at most.
EVENT_RANGES: Final = 32


@dataclass(frozen=True)
class Projection:
    """The *dimensions* that count, and how each is cut into cells.

    What matches shares a cell: an event's ranges meet those of every alternative that it satisfies.
    """

    dimensions: Axes
    partition: Partition

    @property
    def width(self) -> int:
        """How many dimensions there are."""
        return len(self.dimensions.attribute)

    def of_alternatives(
        self, columns: SubscriptionColumns, alternatives: Int64, most: float
    ) -> Ranges:
        """The ranges of each of *alternatives*, about *most* of them for each."""
        bounds = bounds_of_alternatives(columns, alternatives, self.dimensions)
        return self.of_bounds(bounds, most)

    def of_subscriptions(self, columns: SubscriptionColumns, most: float) -> Ranges:
        """The ranges of each subscription's alternatives together, which may overlap."""
        alternatives = np.arange(len(columns.predicate_start) - 1)
        starts, low, high = self.of_alternatives(columns, alternatives, most)
        return Ranges(starts[columns.alternative_start], low, high)

    def of_events(self, events: EventColumns, most: float) -> Ranges:
        """The number of each event as a range; of a range event about *most* ranges."""
        return self.of_points(bounds_of_events(events, self.dimensions), most)

    def of_bounds(self, bounds: AxisBounds, most: float) -> Ranges:
        """The ranges of the cells that *bounds* touch, about *most* of them for each."""
        curve = self.partition.curve
        return curve.ranges(*coarsened(*self.partition.boxes(*bounds), curve, most))

    def of_points(self, bounds: AxisBounds, most: float) -> Ranges:
        """The same of bounds that are mostly points, as those of events are."""
        if (bounds.low != bounds.high).any():
            return self.of_bounds(bounds, most)
        cells = self.partition.coordinates(bounds.low)
        cells[bounds.need == UNWANTED] = NULL
        numbers = self.partition.curve.numbers(cells)
        return Ranges(np.arange(len(numbers) + 1), numbers, numbers)
