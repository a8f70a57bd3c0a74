"""MICS as an index: subscription indexing in two phases (section 5)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    UInt8,
    all_read_only,
    event_count,
    read_only_columns,
    subscription_count,
)
from stentor.encoding.hilbert.ranges import Ranges
from stentor.encoding.partition import Partition
from stentor.encoding.ragged import children, events_between, take
from stentor.errors import FolderError
from stentor.index.mics.attributes import (
    DimensionChoice,
    dimensions_of,
    projection_of,
    selective_dimensions,
    smallest_boxes,
)
from stentor.index.mics.bounds import Axes, AxisBounds, bounds_of_alternatives, bounds_of_events
from stentor.index.mics.filters import (
    SIGNS,
    RangeFilters,
    cells_of_alternatives,
    cells_of_events,
    filters_of,
    with_edges,
)
from stentor.index.mics.insert import Runs
from stentor.index.mics.layout import RangeQuery, SortedRanges
from stentor.index.mics.projection import EVENT_RANGES, Projection
from stentor.index.mics.settings import PAPER, MicsSettings
from stentor.index.storage.arrays import bundle_of, read_arrays, with_prefix, write_arrays
from stentor.index.structure import Structure, concatenate_pairs
from stentor.index.verify import Candidates, verify

#: Candidates beyond which a tile is halved, so that memory stays bounded.
MOST_CANDIDATES: Final = 1 << 22
#: Fewer alternatives than this never call for another choice of dimensions.
FEW: Final = 64
#: Alternatives whose ranges are made at a time.
CHUNK: Final = 1 << 16


class Mics(Structure):
    """Alternatives as ranges of a Hilbert curve through the most selective dimensions.

    First the alternatives are found that own a range with the event's number and whose filters the
    event passes, then they are verified: neither projection nor augmentation leaves a false
    positive.
    """

    name = "mics"
    settings: ClassVar[MicsSettings] = MicsSettings()
    presets: ClassVar[Mapping[str, MicsSettings]] = {"paper": PAPER}

    def __init__(self) -> None:
        super().__init__()
        self._chosen: list[dict[str, Any]] = []  # what `stats` says of each dimension
        self._projection: Projection | None = None  # None: no attribute is selective enough
        self._dimensions = dimensions_of([])  # those of the curve, then those of filters alone
        self._filters = filters_of(self._dimensions, [], signs=0)
        self._runs = Runs(0)
        self._inserted_since = self._chosen_for = 0  # alternatives; of the last choice
        self._is_mapped = False

    # Matches.

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        """The matches of a few events."""
        met = self._runs.meeting(self._query_of(events), MOST_CANDIDATES)
        if met.is_cut_short:
            half = event_count(events) // 2
            cuts = (events_between(events, 0, half), events_between(events, half, None))
            return concatenate_pairs([self._match_tile(one) for one in cuts])
        found = Candidates(met.question, met.owner, np.zeros(0, np.uint8))
        return verify(self.subscriptions.columns, self.subscriptions.validity, events, found)

    def related(self, columns: SubscriptionColumns) -> MatchPairs:
        """For each subscription in *columns* the rows that may cover, or be covered by, or merge.

        The first phase for covering, subsumption and merging: rows that share no cell of the
        chosen dimensions with it are left out; an exact method must look at the others.
        """
        columns, count = read_only_columns(columns), subscription_count(columns)
        alternatives = np.arange(len(columns.predicate_start) - 1)
        bounds = self._bounds(columns, alternatives)
        cells = cells_of_alternatives(columns, alternatives, bounds, self._filters)
        anything = np.full(len(alternatives), ~np.uint64(0))  # two may share what neither needs
        query = RangeQuery(*self._ranges(bounds), *cells._replace(signature=anything))
        met = self._runs.meeting(query, MOST_CANDIDATES if count > 1 else sys.maxsize)
        if met.is_cut_short:
            cuts = np.split(np.arange(count), [count // 2])
            return concatenate_pairs([self.related(take(columns, rows)) for rows in cuts])
        one = np.searchsorted(columns.alternative_start, met.question, side="right") - 1
        of_owner = self.subscriptions.columns.alternative_start
        row = np.searchsorted(of_owner, met.owner, side="right") - 1
        pairs = np.unique(np.stack([one, row], axis=1), axis=0)
        pairs = pairs[self.subscriptions.validity.hidden[pairs[:, 1]] == 0]
        starts = np.searchsorted(pairs[:, 0], np.arange(count + 1))
        return MatchPairs(starts, np.ascontiguousarray(pairs[:, 1]))

    def _query_of(self, events: EventColumns) -> RangeQuery:
        bounds = bounds_of_events(events, self._dimensions)
        cells = cells_of_events(events, bounds, self._filters)
        if self._projection is None:
            return RangeQuery(*_everything(event_count(events)), *cells)
        points = bounds.first(self._projection.width)
        return RangeQuery(*self._projection.of_points(points, EVENT_RANGES), *cells)

    def _bounds(self, columns: SubscriptionColumns, alternatives: Int64) -> AxisBounds:
        return bounds_of_alternatives(columns, alternatives, self._dimensions)

    def _ranges(self, bounds: AxisBounds) -> Ranges:
        """The ranges of alternatives between *bounds*."""
        if self._projection is None:
            return _everything(len(bounds.low))
        of = bounds.first(self._projection.width)
        return self._projection.of_bounds(of, self.settings.ranges)

    def _ranges_and_bytes(
        self, columns: SubscriptionColumns, alternatives: Int64
    ) -> tuple[Ranges, UInt8]:
        """The ranges of *alternatives*, and the bytes beside them."""
        parts = []
        for start in range(0, max(1, len(alternatives)), CHUNK):
            part = alternatives[start : start + CHUNK]
            bounds = self._bounds(columns, part)
            cells = cells_of_alternatives(columns, part, bounds, self._filters)
            parts.append((self._ranges(bounds), cells.bytes_of(self._filters)))
        if len(parts) == 1:
            return parts[0]
        counts = np.concatenate([np.zeros(1, np.int64), *(np.diff(one.starts) for one, _ in parts)])
        low, high = (np.concatenate([one[end] for one, _ in parts]) for end in (1, 2))
        ranges = Ranges(np.cumsum(counts), low, high)
        return ranges, np.concatenate([byte for _, byte in parts])

    # Changes.

    def _insert_rows(self, first: int) -> None:
        start = self.subscriptions.columns.alternative_start
        self._insert(np.arange(start[first], start[-1]))

    def _remove_rows(self, rows: Int64) -> None:
        if not self._is_mapped:  # else the verifier passes hidden rows over
            self._runs.remove(np.unique(self._alternatives_of(rows)))

    def _move_rows(self, rows: Int64) -> None:
        current = np.unique(rows[self.subscriptions.validity.hidden[rows] == 0])
        alternatives = self._alternatives_of(current)
        self._runs.remove(alternatives)
        self._insert(alternatives)

    def _insert(self, alternatives: Int64) -> None:
        """Insert *alternatives*; rebuild where as many came as the dimensions were chosen for.

        So the choice follows growth and replacement, at a constant cost for each alternative.
        """
        self._inserted_since += len(alternatives)
        if self._chosen_for == 0 or self._inserted_since > max(FEW, self._chosen_for):
            alternatives = self._current_alternatives()
            self._choose(alternatives)
        if len(alternatives):
            columns = self.subscriptions.columns
            self._runs.add(alternatives, *self._ranges_and_bytes(columns, alternatives))

    def _choose(self, current: Int64) -> None:
        """Choose dimensions, cells and filters for *current* alternatives; drop all ranges."""
        columns, settings = self.subscriptions.columns, self.settings
        found = selective_dimensions(columns, current, self.history)
        chosen = smallest_boxes(columns, current, found, settings)
        self._chosen = [one.explained() for one in chosen]
        self._projection = projection_of(chosen, settings) if chosen else None
        kept = found[: max(len(chosen), settings.filters)]
        self._dimensions = dimensions_of(kept)
        self._filters = self._chosen_filters(kept if settings.filters else [], current)
        self._runs = Runs(self._filters.rows)
        self._inserted_since, self._chosen_for = 0, len(current)

    def _chosen_filters(self, kept: list[DimensionChoice], current: Int64) -> RangeFilters:
        """The filters *kept*; with signatures where *current* alternatives set bits of them."""
        filters = filters_of(dimensions_of(kept), [one.ends for one in kept], signs=0)
        if self.settings.filters == 0:
            return filters
        columns = self.subscriptions.columns
        sample = np.ascontiguousarray(current[:: max(1, len(current) // FEW)])
        cells = cells_of_alternatives(columns, sample, self._bounds(columns, sample), filters)
        return filters._replace(signs=SIGNS if cells.signature.any() else 0)

    def _current_alternatives(self) -> Int64:
        return self._alternatives_of(np.flatnonzero(self.subscriptions.validity.hidden == 0))

    def _alternatives_of(self, rows: Int64) -> Int64:
        return children(self.subscriptions.columns.alternative_start, rows)[0]

    # Files, figures, invariants.

    def save(self, folder: Path) -> None:
        self._runs.sort_all()
        projection = self._projection
        dimensions = projection.dimensions if projection else dimensions_of([])
        edges = projection.partition.edges if projection else ()
        arrays = {
            **with_prefix("dimensions", dimensions),
            **with_prefix("filters", self._filters.dimensions),
            **with_prefix("leaves", self._runs.only),
            "edges": np.concatenate([np.zeros(0), *edges]),
            "filter_edges": self._filters.edges,
        }
        alternatives = len(self.subscriptions.columns.predicate_start) - 1
        signs = self._filters.signs
        meta = {"chosen": self._chosen, "alternatives": alternatives, "signs": signs}
        write_arrays(folder, arrays, kind=self.name, meta=meta)

    def _open_arrays(self, folder: Path) -> None:
        arrays, meta = read_arrays(folder, kind=self.name)
        if meta["alternatives"] != len(self.subscriptions.columns.predicate_start) - 1:
            raise FolderError(
                f"{folder} holds the MICS of other subscriptions than those it was opened with; "
                "open both from one saved folder"
            )
        self._is_mapped = True
        self._chosen = meta["chosen"]
        filters = all_read_only(bundle_of(Axes, "filters", arrays))
        self._filters = with_edges(filters, arrays["filter_edges"], meta["signs"])
        self._runs = Runs.over(bundle_of(SortedRanges, "leaves", arrays), self._filters.rows)
        if self._chosen:
            low, high = ([one[end] for one in self._chosen] for end in ("low", "high"))
            edges = tuple(np.split(np.asarray(arrays["edges"]), len(self._chosen)))
            partition = Partition(
                self.settings.bits, np.array(low), np.array(high), edges if len(edges[0]) else ()
            )
            dimensions = all_read_only(bundle_of(Axes, "dimensions", arrays))
            self._projection = Projection(dimensions, partition)
            self._dimensions = filters if len(filters.attribute) else dimensions

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        beside = self._runs.nbytes
        return {
            **inherited,
            "bytes": inherited["bytes"] + beside,
            "bytes/subscription": beside / max(1, self.subscriptions.current_count),
            "ranges": self._runs.count,
            "runs": len(self._runs.leaves),
            "dimensions": self._chosen,
            "filters": self._filters.width,
        }

    def counted_work(self, events: EventColumns) -> dict[str, float]:
        looked = self._runs.meeting(self._query_of(events), 0).looked
        return {
            **super().counted_work(events),
            "ranges/event": looked / max(1, event_count(events)),
        }

    def check(self) -> None:
        super().check()
        if not self._is_mapped:
            columns, owners = self.subscriptions.columns, self._runs.owners()
            assert np.isin(self._current_alternatives(), owners).all()
            self._runs.check(*self._ranges_and_bytes(columns, owners))


def _everything(count: int) -> Ranges:
    """One range, the same one, for each of *count*: where there is no dimension."""
    zeros = np.zeros(count, np.uint64)
    return Ranges(np.arange(count + 1), zeros, zeros)
