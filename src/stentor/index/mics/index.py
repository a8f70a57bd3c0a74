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
    event_count,
    sealed,
    subscription_count,
)
from stentor.encoding.hilbert import Ranges
from stentor.encoding.partition import Partition
from stentor.encoding.ragged import children, events_between, take
from stentor.encoding.readonly import all_read_only
from stentor.errors import FolderError
from stentor.index.bundles import bundle_of, with_prefix
from stentor.index.mics.bounds import (
    Bounds,
    Dimensions,
    bounds_of_alternatives,
    bounds_of_events,
)
from stentor.index.mics.choosing import (
    Candidate,
    dimensions_of,
    projection_of,
    selective_dimensions,
    smallest_boxes,
)
from stentor.index.mics.filters import (
    SIGNS,
    Filters,
    cells_of_alternatives,
    cells_of_events,
    filters_of,
    with_edges,
)
from stentor.index.mics.leaves import Leaves
from stentor.index.mics.projection import EVENT_RANGES, Projection
from stentor.index.mics.runs import Runs
from stentor.index.mics.searching import Question
from stentor.index.mics.settings import PAPER, Settings
from stentor.index.storage import read_arrays, write_arrays
from stentor.index.structure import Structure
from stentor.index.tiles import joined
from stentor.index.verify import Candidates, settle

#: Candidates beyond which a tile is halved, so that memory stays bounded.
MOST_CANDIDATES: Final = 1 << 22
#: Fewer alternatives than this never call for another choice of dimensions.
FEW: Final = 64
#: Alternatives that are filed at a time.
CHUNK: Final = 1 << 16


class Mics(Structure):
    """Alternatives as ranges of a Hilbert curve through the most selective dimensions.

    First the alternatives are found that own a range with the event's number and whose filters the
    event passes, then the exact verifier settles them: neither projection nor augmentation leaves a
    false positive.
    """

    name = "mics"
    settings: ClassVar[Settings] = Settings()
    presets: ClassVar[Mapping[str, Settings]] = {"paper": PAPER}

    def __init__(self) -> None:
        super().__init__()
        self._chosen: list[dict[str, Any]] = []  # what speaks for each dimension
        self._projection: Projection | None = None  # None: no dimension is worth it
        self._dimensions = dimensions_of([])  # those of the curve, then those of filters alone
        self._filters = filters_of(self._dimensions, [], signs=0)
        self._runs = Runs(0)
        self._filed_since = self._chosen_for = 0  # alternatives; of the last choice
        self._is_mapped = False

    # Questions.

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        """The matches of a few events."""
        met = self._runs.meeting(self._asked_by(events), MOST_CANDIDATES)
        if met.is_cut_short:
            half = event_count(events) // 2
            cuts = (events_between(events, 0, half), events_between(events, half, None))
            return joined([self._match_tile(one) for one in cuts])
        found = Candidates(met.question, met.owner, np.zeros(0, np.uint8))
        return settle(self.subscriptions.columns, self.subscriptions.validity, events, found)

    def related(self, columns: SubscriptionColumns) -> MatchPairs:
        """For each subscription in *columns* the rows that may cover, or be covered by, or merge.

        The first phase for covering, subsumption and merging: rows that share no cell of the
        chosen dimensions with it are left out; an exact method must look at the others.
        """
        columns, count = sealed(columns), subscription_count(columns)
        alternatives = np.arange(len(columns.predicate_start) - 1)
        bounds = self._bounds(columns, alternatives)
        cells = cells_of_alternatives(columns, alternatives, bounds, self._filters)
        anything = np.full(len(alternatives), ~np.uint64(0))  # two may share what neither needs
        asked = Question(*self._ranges(bounds), *cells._replace(signature=anything))
        met = self._runs.meeting(asked, MOST_CANDIDATES if count > 1 else sys.maxsize)
        if met.is_cut_short:
            cuts = np.split(np.arange(count), [count // 2])
            return joined([self.related(take(columns, rows)) for rows in cuts])
        one = np.searchsorted(columns.alternative_start, met.question, side="right") - 1
        of_owner = self.subscriptions.columns.alternative_start
        row = np.searchsorted(of_owner, met.owner, side="right") - 1
        pairs = np.unique(np.stack([one, row], axis=1), axis=0)
        pairs = pairs[self.subscriptions.validity.hidden[pairs[:, 1]] == 0]
        starts = np.searchsorted(pairs[:, 0], np.arange(count + 1))
        return MatchPairs(starts, np.ascontiguousarray(pairs[:, 1]))

    def _asked_by(self, events: EventColumns) -> Question:
        bounds = bounds_of_events(events, self._dimensions)
        cells = cells_of_events(events, bounds, self._filters)
        if self._projection is None:
            return Question(*_everything(event_count(events)), *cells)
        places = bounds.first(self._projection.width)
        return Question(*self._projection.of_places(places, EVENT_RANGES), *cells)

    def _bounds(self, columns: SubscriptionColumns, alternatives: Int64) -> Bounds:
        return bounds_of_alternatives(columns, alternatives, self._dimensions)

    def _ranges(self, bounds: Bounds) -> Ranges:
        """The ranges of alternatives between *bounds*."""
        if self._projection is None:
            return _everything(len(bounds.low))
        of = bounds.first(self._projection.width)
        return self._projection.of_bounds(of, self.settings.ranges)

    def _filed(self, columns: SubscriptionColumns, alternatives: Int64) -> tuple[Ranges, UInt8]:
        """The ranges of *alternatives*, and the bytes that stand beside them."""
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

    # What changes.

    def _inserted(self, first: int) -> None:
        start = self.subscriptions.columns.alternative_start
        self._file(np.arange(start[first], start[-1]))

    def _removed(self, rows: Int64) -> None:
        if not self._is_mapped:  # else the verifier passes hidden rows over
            self._runs.remove(np.unique(self._alternatives_of(rows)))

    def _moved(self, rows: Int64) -> None:
        standing = np.unique(rows[self.subscriptions.validity.hidden[rows] == 0])
        alternatives = self._alternatives_of(standing)
        self._runs.remove(alternatives)
        self._file(alternatives)

    def _file(self, alternatives: Int64) -> None:
        """File *alternatives*; all that stands, by a new choice, where as many came since the last.

        So growth and replacement alike are followed, at a constant cost for each that comes.
        """
        self._filed_since += len(alternatives)
        if self._chosen_for == 0 or self._filed_since > max(FEW, self._chosen_for):
            alternatives = self._standing_alternatives()
            self._choose(alternatives)
        if len(alternatives):
            columns = self.subscriptions.columns
            self._runs.add(alternatives, *self._filed(columns, alternatives))

    def _choose(self, standing: Int64) -> None:
        """Choose dimensions, cells and filters for what is *standing*, and forget all ranges."""
        columns, settings = self.subscriptions.columns, self.settings
        found = selective_dimensions(columns, standing, self.history)
        chosen = smallest_boxes(columns, standing, found, settings)
        self._chosen = [one.explained() for one in chosen]
        self._projection = projection_of(chosen, settings) if chosen else None
        kept = found[: max(len(chosen), settings.filters)]
        self._dimensions = dimensions_of(kept)
        self._filters = self._chosen_filters(kept if settings.filters else [], standing)
        self._runs = Runs(self._filters.rows)
        self._filed_since, self._chosen_for = 0, len(standing)

    def _chosen_filters(self, kept: list[Candidate], standing: Int64) -> Filters:
        """The filters *kept*; with signatures where what is *standing* asks for words and such."""
        filters = filters_of(dimensions_of(kept), [one.ends for one in kept], signs=0)
        if self.settings.filters == 0:
            return filters
        columns = self.subscriptions.columns
        sample = np.ascontiguousarray(standing[:: max(1, len(standing) // FEW)])
        cells = cells_of_alternatives(columns, sample, self._bounds(columns, sample), filters)
        return filters._replace(signs=SIGNS if cells.signature.any() else 0)

    def _standing_alternatives(self) -> Int64:
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

    def _opened(self, folder: Path) -> None:
        arrays, meta = read_arrays(folder, kind=self.name)
        if meta["alternatives"] != len(self.subscriptions.columns.predicate_start) - 1:
            raise FolderError(
                f"{folder} holds the MICS of other subscriptions than those it was opened with; "
                "open both from one saved folder"
            )
        self._is_mapped = True
        self._chosen = meta["chosen"]
        filters = all_read_only(bundle_of(Dimensions, "filters", arrays))
        self._filters = with_edges(filters, arrays["filter_edges"], meta["signs"])
        self._runs = Runs.over(bundle_of(Leaves, "leaves", arrays), self._filters.rows)
        if self._chosen:
            low, high = ([one[end] for one in self._chosen] for end in ("low", "high"))
            edges = tuple(np.split(np.asarray(arrays["edges"]), len(self._chosen)))
            partition = Partition(
                self.settings.bits, np.array(low), np.array(high), edges if len(edges[0]) else ()
            )
            dimensions = all_read_only(bundle_of(Dimensions, "dimensions", arrays))
            self._projection = Projection(dimensions, partition)
            self._dimensions = filters if len(filters.attribute) else dimensions

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        beside = self._runs.nbytes
        return {
            **inherited,
            "bytes": inherited["bytes"] + beside,
            "bytes/subscription": beside / max(1, self.subscriptions.live_count),
            "ranges": self._runs.count,
            "runs": len(self._runs.leaves),
            "dimensions": self._chosen,
            "filters": self._filters.width,
        }

    def effort(self, events: EventColumns) -> dict[str, float]:
        looked = self._runs.meeting(self._asked_by(events), 0).looked
        return {**super().effort(events), "ranges/event": looked / max(1, event_count(events))}

    def check(self) -> None:
        super().check()
        if not self._is_mapped:
            columns, filed = self.subscriptions.columns, self._runs.filed()
            assert np.isin(self._standing_alternatives(), filed).all()
            self._runs.check(*self._filed(columns, filed))


def _everything(count: int) -> Ranges:
    """One range, the same one, for each of *count*: where there is no dimension."""
    zeros = np.zeros(count, np.uint64)
    return Ranges(np.arange(count + 1), zeros, zeros)
