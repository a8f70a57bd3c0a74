"""MICS as an index: subscription indexing in two phases (section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    event_count,
    subscription_count,
)
from stentor.encoding.hilbert import Ranges
from stentor.encoding.partition import Partition
from stentor.encoding.ragged import children, events_between
from stentor.encoding.readonly import all_read_only
from stentor.errors import FolderError
from stentor.index.bundles import bundle_of, with_prefix
from stentor.index.mics.bounds import Dimensions
from stentor.index.mics.check import check_postings
from stentor.index.mics.choosing import (
    choose_dimensions,
    dimensions_of,
    projection_of,
)
from stentor.index.mics.ordered import Ordered
from stentor.index.mics.postings import Postings, owners_in
from stentor.index.mics.projection import Projection
from stentor.index.mics.settings import PAPER, Settings
from stentor.index.storage import read_arrays, write_arrays
from stentor.index.structure import Structure
from stentor.index.tiles import joined
from stentor.index.verify import Candidates, settle

#: Candidates beyond which a tile is halved, so that memory stays bounded.
MOST_CANDIDATES: Final = 1 << 22
#: Fewer alternatives than this never call for a new choice of dimensions.
FEW: Final = 64
#: About how many ranges a range event is turned into, at most.
EVENT_RANGES: Final = 32
#: Alternatives whose ranges are made at a time.
CHUNK: Final = 1 << 16


class Mics(Structure):
    """Alternatives as ranges of a Hilbert curve through the most selective dimensions.

    First the alternatives that own a range with the event's number are found, then the exact
    verifier settles them: projection and augmentation leave no false positives.
    """

    name = "mics"
    settings: ClassVar[Settings] = Settings()
    presets: ClassVar[Mapping[str, Settings]] = {"paper": PAPER}

    def __init__(self) -> None:
        super().__init__()
        self._chosen: list[dict[str, Any]] = []  # what speaks for each dimension
        self._projection: Projection | None = None  # None: no dimension is worth it
        self._postings = Postings()
        self._chosen_for = 0  # alternatives
        self._mapped: tuple[Ordered, Int64] | None = None  # of an opened index

    # Questions.

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        """The matches of a few events."""
        event, alternative = self._owners(self._event_ranges(events))
        if len(event) > MOST_CANDIDATES and event_count(events) > 1:
            half = event_count(events) // 2
            cuts = (events_between(events, 0, half), events_between(events, half, None))
            return joined([self._match_tile(one) for one in cuts])
        found = Candidates(event, alternative, np.zeros(0, np.uint8))
        return settle(self.subscriptions.columns, self.subscriptions.validity, events, found)

    def related(self, columns: SubscriptionColumns) -> MatchPairs:
        """For each subscription in *columns* the rows that may cover, or be covered by, or merge.

        The first phase for covering, subsumption and merging: rows that share no cell of the
        chosen dimensions with it are left out; an exact method must look at the others.
        """
        count = subscription_count(columns)
        alternatives = np.arange(len(columns.predicate_start) - 1)
        asked, owner = self._owners(self._ranges(columns, alternatives))
        start = columns.alternative_start
        one = np.searchsorted(start, asked, side="right") - 1
        row = np.searchsorted(self.subscriptions.columns.alternative_start, owner, "right") - 1
        pairs = np.unique(np.stack([one, row], axis=1), axis=0)
        pairs = pairs[self.subscriptions.validity.hidden[pairs[:, 1]] == 0]
        starts = np.searchsorted(pairs[:, 0], np.arange(count + 1))
        return MatchPairs(starts, np.ascontiguousarray(pairs[:, 1]))

    def _owners(self, asked: Ranges) -> tuple[Int64, Int64]:
        if self._mapped is not None:
            return owners_in(*self._mapped, asked)
        return self._postings.owners_of(asked)

    def _event_ranges(self, events: EventColumns) -> Ranges:
        if self._projection is None:
            return _everything(event_count(events))
        return self._projection.of_events(events, EVENT_RANGES)

    def _ranges(self, columns: SubscriptionColumns, alternatives: Int64) -> Ranges:
        """The ranges of *alternatives*."""
        if self._projection is None:
            return _everything(len(alternatives))
        return self._projection.of_alternatives(columns, alternatives, self.settings.ranges)

    # What changes.

    def _inserted(self, first: int) -> None:
        start = self.subscriptions.columns.alternative_start
        if int(start[-1]) > 2 * max(FEW, self._chosen_for):
            self._rebuild()
        else:
            self._file(np.arange(start[first], start[-1]))

    def _removed(self, rows: Int64) -> None:
        if self._mapped is None:  # else the verifier passes hidden rows over
            self._postings.remove(np.unique(self._alternatives_of(rows)))

    def _moved(self, rows: Int64) -> None:
        standing = np.unique(rows[self.subscriptions.validity.hidden[rows] == 0])
        alternatives = self._alternatives_of(standing)
        self._postings.remove(alternatives)
        self._file(alternatives)

    def _rebuild(self) -> None:
        """Choose dimensions and cells anew, and file everything under them."""
        columns = self.subscriptions.columns
        standing = self._standing_alternatives()
        chosen = choose_dimensions(columns, standing, self.history, self.settings)
        self._chosen = [one.explained() for one in chosen]
        self._projection = projection_of(chosen, self.settings) if chosen else None
        self._chosen_for = len(columns.predicate_start) - 1
        self._postings = Postings()
        self._file(standing)

    def _file(self, alternatives: Int64) -> None:
        """File *alternatives*; all that stands, into fresh postings, where most of it is waste."""
        if self._postings.is_wasteful:
            self._postings, alternatives = Postings(), self._standing_alternatives()
        for start in range(0, len(alternatives), CHUNK):
            part = alternatives[start : start + CHUNK]
            self._postings.add(part, self._ranges(self.subscriptions.columns, part))

    def _standing_alternatives(self) -> Int64:
        return self._alternatives_of(np.flatnonzero(self.subscriptions.validity.hidden == 0))

    def _alternatives_of(self, rows: Int64) -> Int64:
        return children(self.subscriptions.columns.alternative_start, rows)[0]

    # Files, figures, invariants.

    def save(self, folder: Path) -> None:
        projection = self._projection
        dimensions = projection.dimensions if projection else dimensions_of([])
        edges = projection.partition.edges if projection else ()
        arrays = {
            **with_prefix("dimensions", dimensions),
            **with_prefix("pieces", self._postings.pieces),
            "classes": self._postings.classes,
            "edges": np.concatenate([np.zeros(0), *edges]),
        }
        alternatives = len(self.subscriptions.columns.predicate_start) - 1
        meta = {"chosen": self._chosen, "alternatives": alternatives}
        write_arrays(folder, arrays, kind=self.name, meta=meta)

    def _opened(self, folder: Path) -> None:
        arrays, meta = read_arrays(folder, kind=self.name)
        if meta["alternatives"] != len(self.subscriptions.columns.predicate_start) - 1:
            raise FolderError(
                f"{folder} holds the MICS of other subscriptions than those it was opened with; "
                "open both from one saved folder"
            )
        self._chosen = meta["chosen"]
        self._mapped = all_read_only(bundle_of(Ordered, "pieces", arrays)), arrays["classes"]
        if self._chosen:
            low, high = ([one[end] for one in self._chosen] for end in ("low", "high"))
            edges = tuple(np.split(np.asarray(arrays["edges"]), len(self._chosen)))
            partition = Partition(
                self.settings.bits, np.array(low), np.array(high), edges if len(edges[0]) else ()
            )
            dimensions = all_read_only(bundle_of(Dimensions, "dimensions", arrays))
            self._projection = Projection(dimensions, partition)

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        pieces = self._mapped[0] if self._mapped is not None else ()
        mapped = sum(array.nbytes for array in pieces)
        return {
            **inherited,
            "bytes": inherited["bytes"] + self._postings.nbytes + mapped,
            "ranges": self._postings.count,
            "dimensions": self._chosen,
        }

    def check(self) -> None:
        super().check()
        if self._mapped is None:
            check_postings(self._postings, self._standing_alternatives(), self._all_ranges)

    def _all_ranges(self, alternatives: Int64) -> Ranges:
        return self._ranges(self.subscriptions.columns, alternatives)


def _everything(count: int) -> Ranges:
    """One range, the same one, for each of *count*: where there is no dimension."""
    zeros = np.zeros(count, np.uint64)
    return Ranges(np.arange(count + 1), zeros, zeros)
