"""The MO-Tree as an index."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    event_count,
)
from stentor.encoding.ragged import children, events_between
from stentor.errors import FolderError
from stentor.index.bundles import bundle_of, with_prefix
from stentor.index.mo_tree.attributes import choose_attributes
from stentor.index.mo_tree.backwards import match_live
from stentor.index.mo_tree.check import check_events, check_subscriptions
from stentor.index.mo_tree.layout import Cells, Dimensions, Query
from stentor.index.mo_tree.pool import Pool
from stentor.index.mo_tree.searching import search_subscriptions
from stentor.index.mo_tree.settings import PAPER, Settings
from stentor.index.mo_tree.tree import Tree
from stentor.index.storage import read_arrays, write_arrays
from stentor.index.structure import Structure
from stentor.index.tiles import joined
from stentor.index.verify import Candidates, settle
from stentor.index.verify.scratch import Widest, widest_of

#: Candidates that there is room for at first, and at most: a tile that brings more is halved.
ROOM, MOST_ROOM = 1 << 18, 1 << 22
#: Fewer items than this never call for a new choice of attributes.
FEW = 64
#: Buckets that are looked through for ended events each time that time passes.
SWEPT = 256


class MoTree(Structure):
    """Layers of cells; subscriptions and live events in the buckets at the crossings."""

    name = "mo_tree"
    settings: ClassVar[Settings] = Settings()
    presets: ClassVar[Mapping[str, Settings]] = {"paper": PAPER}

    def __init__(self) -> None:
        super().__init__()
        self._layers: list[dict[str, Any]] = []  # what speaks for the attribute of each
        self._tree = Tree.planned([], self.settings)
        self._chosen_for = (0, 0)  # alternatives, events
        self._widest = Widest()
        self._now: int | None = None
        self._hand = 0  # the bucket from which the next sweep goes on

    # Questions.

    def match_back(self, columns: SubscriptionColumns) -> MatchPairs:
        """For each subscription the live events that it wants.

        Cost: the buckets of events whose cells it meets in every layer.
        """
        return match_live(self._tree, columns, self.live.columns, self._widest, self._now)

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        """The matches of a few events."""
        candidates = self._search(self._tree, events, self._tree.query())
        if candidates is None:
            half = event_count(events) // 2
            cuts = (events_between(events, 0, half), events_between(events, half, None))
            return joined([self._match_tile(one) for one in cuts])
        return settle(self.subscriptions.columns, self.subscriptions.validity, events, candidates)

    @staticmethod
    def _search(tree: Tree, events: EventColumns, query: Query) -> Candidates | None:
        """The candidates of *events*; None where these are too many for one search."""
        order = tree.near_each_other(events)
        room, found = 0, ROOM
        while found > room:
            if found > MOST_ROOM and event_count(events) > 1:
                return None
            room = found
            event, alternative = np.empty(room, np.int64), np.empty(room, np.int64)
            found = search_subscriptions(
                tree.subscriptions.buckets,
                tree.dimensions,
                tree.cells,
                events,
                order,
                query,
                event,
                alternative,
            )
        return Candidates(event[:found], alternative[:found], np.zeros(0, np.uint8))

    # What changes.

    def pass_time(self, now: int) -> None:
        """Let events that end at *now* or before leave: those in the next few buckets at once.

        Others go when a subscription visits their bucket, or when it is their turn.
        """
        if self._now is not None and now <= self._now:
            return
        self._now = now
        buckets = len(self._tree.events.buckets.used)
        self._tree.events.remove_expired(self._hand, SWEPT, self.live.columns.until, now)
        self._hand = self._hand + SWEPT if self._hand + SWEPT < buckets else 0

    def _inserted(self, first: int) -> None:
        start = self.subscriptions.columns.alternative_start
        if self._is_stale:
            self._rebuild()
        else:
            added = np.arange(start[first], start[-1])
            self._tree.file_subscriptions(self.subscriptions.columns, added)
            self._pack()

    def _removed(self, rows: Int64) -> None:
        self._tree.subscriptions.remove(self._alternatives_of(rows))

    def _moved(self, rows: Int64) -> None:
        standing = rows[self.subscriptions.validity.hidden[rows] == 0]
        alternatives = self._alternatives_of(standing)
        self._tree.file_subscriptions(self.subscriptions.columns, alternatives)
        self._pack()

    def _held(self, first: int) -> None:
        added = events_between(self.live.columns, first, None)
        self._widest = self._widest.joined(widest_of(added))
        if self._is_stale:
            self._rebuild()
        else:
            self._tree.file_events(self.live.columns, np.arange(first, self.live.count))
            self._pack()

    def _dropped(self, rows: Int64) -> None:
        self._tree.events.remove(rows)

    @property
    def _is_stale(self) -> bool:
        """Whether what is held has doubled since the attributes were chosen."""
        alternatives = len(self.subscriptions.columns.predicate_start) - 1
        chosen_alternatives, chosen_events = self._chosen_for
        few_events = 2 * max(FEW, chosen_events, alternatives)
        return alternatives > 2 * max(FEW, chosen_alternatives) or self.live.count > few_events

    def _rebuild(self) -> None:
        """Choose attributes and cells anew, and file everything under them."""
        columns, standing = self.subscriptions.columns, self._standing_alternatives()
        history = self.live.columns if self.history is None else self.history
        candidates = choose_attributes(columns, standing, history)
        self._tree = Tree.planned(candidates, self.settings)
        self._layers = [
            {**one.explained(), "widths": self._tree.widths(layer)}
            for layer, one in enumerate(candidates[: self._tree.layers])
        ]
        self._chosen_for = len(columns.predicate_start) - 1, self.live.count
        self._hand = 0
        self._tree.build_subscriptions(columns, standing)
        self._tree.build_events(self.live.columns, self._filed_events())

    def _pack(self) -> None:
        """Bring buckets that have moved back together, where that pays."""
        if self._tree.subscriptions.is_scattered:
            columns = self.subscriptions.columns
            self._tree.build_subscriptions(columns, self._standing_alternatives())
        if self._tree.events.is_scattered:
            self._tree.build_events(self.live.columns, self._filed_events())

    def _standing_alternatives(self) -> Int64:
        return self._alternatives_of(np.flatnonzero(self.subscriptions.validity.hidden == 0))

    def _filed_events(self) -> Int64:
        """The rows of live events that have not ended, as far as the time is known."""
        rows = self.live.standing_rows()
        if self._now is None:
            return rows
        return rows[self.live.columns.until[rows] > self._now]

    def _alternatives_of(self, rows: Int64) -> Int64:
        return children(self.subscriptions.columns.alternative_start, rows)[0]

    # Files, figures, invariants.

    def save(self, folder: Path) -> None:
        tree = self._tree
        arrays = {
            **with_prefix("dimensions", tree.dimensions),
            **with_prefix("cells", tree.cells),
            **{f"buckets.{name}": array for name, array in tree.subscriptions.arrays().items()},
        }
        write_arrays(folder, arrays, kind=self.name, meta={"layers": self._layers})

    def _opened(self, folder: Path) -> None:
        arrays, meta = read_arrays(folder, kind=self.name)
        dimensions = bundle_of(Dimensions, "dimensions", arrays)
        cells = bundle_of(Cells, "cells", arrays)
        self._layers = meta["layers"]
        self._tree = Tree(dimensions, cells, len(self._layers))
        buckets = {
            name.removeprefix("buckets."): array
            for name, array in arrays.items()
            if name.startswith("buckets.")
        }
        self._tree.subscriptions = Pool.over(buckets)
        alternatives = len(self.subscriptions.columns.predicate_start) - 1
        if len(self._tree.subscriptions.slot_of) != alternatives:
            raise FolderError(
                f"{folder} holds the MO-Tree of other subscriptions than those it was opened "
                "with; open both from one saved folder"
            )
        self._chosen_for = alternatives, 0

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        tree = self._tree
        used = tree.subscriptions.buckets.used
        return {
            **inherited,
            "bytes": inherited["bytes"] + tree.nbytes,
            "empty bytes": tree.empty_nbytes,
            "buckets": len(used),
            "occupied buckets": int(np.count_nonzero(used)),
            "largest bucket": int(used.max(initial=0)),
            "event buckets": len(tree.events.buckets.used),
            "layers": self._layers,
        }

    def effort(self, events: EventColumns) -> dict[str, float]:
        query, before = self._tree.query(), super().effort(events)
        self._search(self._tree, events, query)
        buckets, slots = (query.visits / max(1, event_count(events))).tolist()
        return {**before, "buckets/event": buckets, "slots/event": slots}

    def check(self) -> None:
        super().check()
        check_subscriptions(self._tree, self.subscriptions.columns, self._standing_alternatives())
        check_events(self._tree, self.live.columns, self._filed_events())

    def _check_held(self) -> None:
        """Live events have buckets of their own, and no signatures beside them."""
