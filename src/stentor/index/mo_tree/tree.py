"""One MO-Tree: its layers, and the buckets of subscriptions and of events side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns, event_count
from stentor.encoding.readonly import read_only
from stentor.index.mo_tree.attributes import Candidate, dimensions_of
from stentor.index.mo_tree.cells import cut
from stentor.index.mo_tree.densities import measured
from stentor.index.mo_tree.drafting import draft_alternatives, draft_events, drafts_for
from stentor.index.mo_tree.layout import Cells, Dimensions, Drafts, Query, query_for
from stentor.index.mo_tree.pool import Pool
from stentor.index.mo_tree.settings import Settings
from stentor.index.mo_tree.widths import (
    Levels,
    best_widths,
    even_targets,
    linear_targets,
    width_bounds,
)

#: Items that are drafted at a time: what a second-level cache holds.
BATCH = 1 << 12
#: Fewer measured intervals than this say nothing: cells are as wide as is useful.
LEAST_MEASURED = 256

Draft = Callable[[Int64, Drafts], None]


class Tree:
    """The layers, and what is filed under them.

    Invariant: an item is in the bucket that its cells name, row by row: with n cells a layer, that
    of the cells i, j, k is (i · n + j) · n + k.
    """

    def __init__(self, dimensions: Dimensions, cells: Cells, layers: int) -> None:
        self.dimensions, self.cells, self.layers = dimensions, cells, layers
        self.subscriptions = Pool(np.zeros(self.cell_count**layers, np.int64), ending=False)
        self.events = Pool(np.zeros(self.event_cells**layers + 1, np.int64), ending=True)

    @classmethod
    def planned(cls, candidates: Sequence[Candidate], settings: Settings) -> Tree:
        """An empty tree of the shape that *settings* ask for, its cells fitted to *candidates*."""
        chosen = candidates[: settings.layers]
        widths = [fitted_widths(one, settings) for one in chosen]
        cells = cut(settings.level_counts, widths, settings.event_cells)
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

    def query(self) -> Query:
        """Scratch for a question; each thread has its own."""
        each = max(self.cell_count, self.event_cells)
        return query_for(self.layers, each, len(self.cells.level_start) - 1)

    def near_each_other(self, events: EventColumns) -> Int64:
        """The places of *events* in an order in which neighbours stab the same cells, mostly."""
        count = event_count(events)
        drafts = drafts_for(count, ending=True)
        self._event_drafter(events)(read_only(np.arange(count)), drafts)
        return read_only(np.argsort(drafts.bucket, kind="stable"))

    # Filing.

    def build_subscriptions(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """File *alternatives* anew, each bucket's next to each other.

        Cost: they are drafted twice, about 0.5 µs each.
        """
        pool = self._built(
            alternatives, len(self.subscriptions.buckets.used), self._drafter(columns), ending=False
        )
        pool.expect(len(columns.predicate_start) - 1)
        self.subscriptions = pool
        self.file_subscriptions(columns, alternatives)

    def build_events(self, events: EventColumns, rows: Int64) -> None:
        """File the events in *rows* anew, each bucket's next to each other."""
        buckets = len(self.events.buckets.used)
        pool = self._built(rows, buckets, self._event_drafter(events), ending=True)
        pool.expect(event_count(events))
        self.events = pool
        self.file_events(events, rows)

    def file_subscriptions(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """Put *alternatives* where they belong now. Cost: O(layers) each."""
        self.subscriptions.expect(len(columns.predicate_start) - 1)
        _in_batches(self._drafter(columns), alternatives, self.subscriptions.store, ending=False)

    def file_events(self, events: EventColumns, rows: Int64) -> None:
        """Put the events in *rows* where they belong. Cost: O(layers) each."""
        self.events.expect(event_count(events))
        _in_batches(self._event_drafter(events), rows, self.events.store, ending=True)

    def _built(self, members: Int64, buckets: int, draft: Draft, *, ending: bool) -> Pool:
        counts = np.zeros(buckets, np.int64)

        def count(drafts: Drafts, batch: Int64) -> None:
            counts[:] += np.bincount(drafts.bucket, minlength=buckets)

        _in_batches(draft, members, count, ending=ending)
        return Pool(counts, ending=ending)

    def _drafter(self, columns: SubscriptionColumns) -> Draft:
        query = self.query()

        def draft(members: Int64, drafts: Drafts) -> None:
            draft_alternatives(columns, members, self.dimensions, self.cells, query, drafts)

        return draft

    def _event_drafter(self, events: EventColumns) -> Draft:
        query = self.query()

        def draft(members: Int64, drafts: Drafts) -> None:
            draft_events(events, members, self.dimensions, self.cells, query, drafts)

        return draft


def fitted_widths(candidate: Candidate, settings: Settings) -> tuple[float, ...]:
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


def _in_batches(
    draft: Draft, members: Int64, use: Callable[[Drafts, Int64], None], *, ending: bool
) -> None:
    """Draft *members* a batch at a time, and hand the drafts to *use*."""
    drafts = drafts_for(min(BATCH, len(members)), ending=ending)
    for start in range(0, len(members), BATCH):
        batch = read_only(np.ascontiguousarray(members[start : start + BATCH], np.int64))
        if len(batch) < len(drafts.bucket):
            drafts = drafts_for(len(batch), ending=ending)
        draft(batch, drafts)
        use(drafts, batch)
