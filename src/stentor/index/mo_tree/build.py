"""One MO-Tree: its layers, and the buckets of subscriptions and of events side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    Int64,
    SubscriptionColumns,
    event_count,
    read_only,
)
from stentor.index.mo_tree.attributes import AttributeChoice, dimensions_of
from stentor.index.mo_tree.buckets import BucketTable
from stentor.index.mo_tree.cells import cells_of_levels
from stentor.index.mo_tree.items import items_of_alternatives, items_of_events, new_items
from stentor.index.mo_tree.layout import (
    LevelCells,
    MoDimensions,
    MoItems,
    MoMatchScratch,
    match_scratch,
)
from stentor.index.mo_tree.settings import MoTreeSettings
from stentor.index.mo_tree.widths import (
    Levels,
    best_widths,
    even_targets,
    linear_targets,
    measured,
    width_bounds,
)

#: Items that are made at a time: what a second-level cache holds.
BATCH = 1 << 12
#: Fewer measured intervals than this say nothing: cells are as wide as is useful.
LEAST_MEASURED = 256

FillItems = Callable[[Int64, MoItems], None]


class MoTreeLayers:
    """The layers, and the buckets at their crossings.

    Invariant: an item is in the bucket of its cells: with n cells a layer, that of the cells
    i, j, k is (i · n + j) · n + k.
    """

    def __init__(self, dimensions: MoDimensions, cells: LevelCells, layers: int) -> None:
        self.dimensions, self.cells, self.layers = dimensions, cells, layers
        self.subscriptions = BucketTable(self.subscription_counts(), ending=False)
        self.events = BucketTable(self.event_counts(), ending=True)

    @classmethod
    def planned(
        cls, candidates: Sequence[AttributeChoice], settings: MoTreeSettings
    ) -> MoTreeLayers:
        """An empty tree of the shape that *settings* describe, its cells fitted to *candidates*."""
        chosen = candidates[: settings.layers]
        widths = [fitted_widths(one, settings) for one in chosen]
        cells = cells_of_levels(settings.level_counts, widths, settings.event_cells)
        return cls(dimensions_of(candidates), cells, len(chosen))

    @property
    def cell_count(self) -> int:
        """Cells for intervals in each layer."""
        return int(self.cells.level_start[-1])

    @property
    def event_cells(self) -> int:
        """Cells for values in each layer, with the null cell."""
        return int(self.cells.event_cells[0])

    @property
    def nbytes(self) -> int:
        return self.subscriptions.nbytes + self.events.nbytes

    @property
    def empty_nbytes(self) -> int:
        """Bytes of the tree before anything is in it."""
        return self.subscriptions.empty_nbytes + self.events.empty_nbytes

    def widths(self, layer: int) -> list[float]:
        """The widths of the cells of *layer*, level by level."""
        levels = len(self.cells.level_start) - 1
        widths: list[float] = self.cells.width[layer * levels : (layer + 1) * levels].tolist()
        return widths

    def query(self) -> MoMatchScratch:
        """Scratch for a query; each thread has its own."""
        each = max(self.cell_count, self.event_cells)
        return match_scratch(self.layers, each, len(self.cells.level_start) - 1)

    def order_by_bucket(self, events: EventColumns) -> Int64:
        """The positions of *events* in an order in which neighbours mostly stab the same cells."""
        count = event_count(events)
        items = new_items(count, ending=True)
        self._event_filler(events)(read_only(np.arange(count)), items)
        return read_only(np.argsort(items.bucket, kind="stable"))

    @property
    def needs_rebuild(self) -> bool:
        """Whether so many buckets have grown that a rebuild would pay."""
        return self.subscriptions.needs_rebuild or self.events.needs_rebuild

    # Changes.

    def build_subscriptions(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """Build the buckets of *alternatives*, those of a bucket next to each other.

        Cost: their items are made twice, about 0.5 µs each.
        """
        counts = self.subscription_counts()
        self.count_subscriptions(columns, alternatives, counts)
        self.subscriptions = BucketTable(counts, ending=False)
        self.insert_subscriptions(columns, alternatives)

    def build_events(self, events: EventColumns, rows: Int64) -> None:
        """Build the buckets of the events in *rows*, those of a bucket next to each other."""
        counts = self.event_counts()
        self.count_events(events, rows, counts)
        self.events = BucketTable(counts, ending=True)
        self.insert_events(events, rows)

    def subscription_counts(self) -> Int64:
        """A zero for each bucket of subscriptions."""
        return np.zeros(self.cell_count**self.layers, np.int64)

    def event_counts(self) -> Int64:
        """A zero for each bucket of events; the last one is for ranges across cells."""
        return np.zeros(self.event_cells**self.layers + 1, np.int64)

    def count_subscriptions(
        self, columns: SubscriptionColumns, alternatives: Int64, counts: Int64
    ) -> None:
        """Add to *counts* how many of *alternatives* belong into each bucket."""
        _in_batches(self._alternative_filler(columns), alternatives, _adder(counts), ending=False)

    def count_events(self, events: EventColumns, rows: Int64, counts: Int64) -> None:
        """Add to *counts* how many of the events in *rows* belong into each bucket."""
        _in_batches(self._event_filler(events), rows, _adder(counts), ending=True)

    def insert_subscriptions(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """Insert *alternatives* into their buckets. Cost: O(layers) each."""
        self.subscriptions.expect(len(columns.predicate_start) - 1)
        _in_batches(
            self._alternative_filler(columns), alternatives, self.subscriptions.insert, ending=False
        )

    def insert_events(self, events: EventColumns, rows: Int64) -> None:
        """Insert the events in *rows* into their buckets. Cost: O(layers) each."""
        self.events.expect(event_count(events))
        _in_batches(self._event_filler(events), rows, self.events.insert, ending=True)

    def _alternative_filler(self, columns: SubscriptionColumns) -> FillItems:
        query = self.query()

        def fill(members: Int64, items: MoItems) -> None:
            items_of_alternatives(columns, members, self.dimensions, self.cells, query, items)

        return fill

    def _event_filler(self, events: EventColumns) -> FillItems:
        query = self.query()

        def fill(members: Int64, items: MoItems) -> None:
            items_of_events(events, members, self.dimensions, self.cells, query, items)

        return fill


def fitted_widths(candidate: AttributeChoice, settings: MoTreeSettings) -> tuple[float, ...]:
    """The widths of a layer's cells, level by level, that suit what was measured of it."""
    counts = settings.level_counts
    if len(candidate.interval_low) < LEAST_MEASURED:
        targets = linear_targets(len(counts))
        return tuple(width_bounds(*pair)[1] for pair in zip(counts, targets, strict=True))
    low, high = candidate.interval_low, candidate.interval_high
    values = candidate.value if len(candidate.value) else (low + high) / 2.0
    densities = measured(low, high, values)
    levels = Levels(counts, even_targets(counts, densities), densities)
    return best_widths(levels, settings.stabbed, exact=False)


def _adder(counts: Int64) -> Callable[[MoItems, Int64], None]:
    """A function that counts the items of a batch in *counts*, by bucket."""

    def add(items: MoItems, batch: Int64) -> None:
        np.add.at(counts, items.bucket, 1)

    return add


def _in_batches(
    fill: FillItems, members: Int64, use: Callable[[MoItems, Int64], None], *, ending: bool
) -> None:
    """Make the items of *members* a batch at a time, and hand them to *use*."""
    items = new_items(min(BATCH, len(members)), ending=ending)
    for start in range(0, len(members), BATCH):
        batch = read_only(np.ascontiguousarray(members[start : start + BATCH], np.int64))
        if len(batch) < len(items.bucket):
            items = new_items(len(batch), ending=ending)
        fill(batch, items)
        use(items, batch)
