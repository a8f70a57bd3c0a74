"""The MO-Tree as an index."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from stentor._jit import direct
from stentor.encoding.columns import (
    EventColumns,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    event_count,
    read_only,
)
from stentor.encoding.event import EventBuffer
from stentor.encoding.ragged import children, events_between
from stentor.errors import FolderError
from stentor.index.mo_tree.attributes import AttributeChoice, choose_attributes
from stentor.index.mo_tree.buckets import BucketTable
from stentor.index.mo_tree.build import MoTreeLayers
from stentor.index.mo_tree.check import check_events, check_subscriptions, in_trees
from stentor.index.mo_tree.layout import LevelCells, MoDimensions, MoMatchScratch
from stentor.index.mo_tree.live import match_live
from stentor.index.mo_tree.match import match_event, match_events
from stentor.index.mo_tree.settings import PAPER, MoTreeSettings
from stentor.index.storage.arrays import bundle_of, read_arrays, with_prefix, write_arrays
from stentor.index.structure import Structure, concatenate_pairs
from stentor.index.verify import Candidates, verify
from stentor.index.verify.scratch import EventScratch, ScratchSize, scratch_size
from stentor.index.verify.single import SingleMatch

#: The order of one event.
_FIRST = read_only(np.zeros(1, np.int64))
#: Candidates that fit at first, and at most: a tile that has more is halved.
FIRST_CAPACITY, MOST_CAPACITY = 1 << 18, 1 << 22
#: Fewer items than this never call for a new choice of attributes.
FEW = 64
#: Items that one step of a rebuild handles.
STEP = 1 << 11
#: Buckets that `advance` looks through for events that have ended.
SWEPT = 256

_match_event = direct(match_event)


class MoTree(Structure):
    """Layers of cells; subscriptions and live events in the buckets at the crossings."""

    name = "mo_tree"
    settings: ClassVar[MoTreeSettings] = MoTreeSettings()
    presets: ClassVar[Mapping[str, MoTreeSettings]] = {"paper": PAPER}

    def __init__(self) -> None:
        super().__init__()
        self._layers: list[dict[str, Any]] = []  # what `stats` says of each
        self._tree = MoTreeLayers.planned([], self.settings)
        # During a rebuild: its items are moved into `_tree`, step by step.
        self._former: MoTreeLayers | None = None
        self._rebuilding: Iterator[None] = iter(())
        self._chosen_for = (0, 0)  # alternatives, events
        self._widest = ScratchSize()
        # Scratch for a single event.
        self._one: tuple[MoTreeLayers, MoMatchScratch] | None = None
        self._now: int | None = None
        self._next_swept = 0  # the bucket at which the next sweep starts

    # Matches.

    def _match_live(self, columns: SubscriptionColumns) -> MatchPairs:
        """For each subscription the live events that it wants.

        Cost: the buckets of events whose cells it meets in every layer.
        """
        return match_live(self._trees, columns, self.live.columns, self._widest, self._now)

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        """The matches of a few events."""
        found = [self._candidates(tree, events, tree.query()) for tree in self._trees]
        complete = [one for one in found if one is not None]
        if len(complete) < len(found):
            half = event_count(events) // 2
            cuts = (events_between(events, 0, half), events_between(events, half, None))
            return concatenate_pairs([self._match_tile(one) for one in cuts])
        candidates = Candidates(*(np.concatenate(parts) for parts in zip(*complete, strict=True)))
        return verify(self.subscriptions.columns, self.subscriptions.validity, events, candidates)

    def _match_into(
        self, event: EventBuffer, scratch: EventScratch, scoring: int, found: SingleMatch
    ) -> int:
        tree, table = self._tree, self.subscriptions
        if self._former is not None:
            return super()._match_into(event, scratch, scoring, found)
        if self._one is None or self._one[0] is not tree:
            self._one = tree, tree.query()
        return _match_event(
            tree.subscriptions.buckets,
            tree.dimensions,
            tree.cells,
            self._one[1],
            _FIRST,
            table.columns,
            table.validity,
            event.columns,
            scratch,
            scoring,
            found,
        )

    @property
    def _trees(self) -> list[MoTreeLayers]:
        """Each item is in one of them."""
        return [self._tree] if self._former is None else [self._former, self._tree]

    @staticmethod
    def _candidates(
        tree: MoTreeLayers, events: EventColumns, query: MoMatchScratch
    ) -> Candidates | None:
        """The candidates of *events*; None where these are too many for one call."""
        order = tree.order_by_bucket(events)
        capacity, found = 0, FIRST_CAPACITY
        while found > capacity:
            if found > MOST_CAPACITY and event_count(events) > 1:
                return None
            capacity = found
            event, alternative = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
            found = match_events(
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

    # Changes.

    def advance(self, now: int) -> None:
        """Remove events that end at *now* or before from the next few buckets.

        Other buckets follow when a subscription visits them, or in later calls.
        """
        if self._now is not None and now <= self._now:
            return
        self._now = now
        if not self.live.count:
            return
        buckets = len(self._tree.events.buckets.used)
        self._tree.events.remove_expired(self._next_swept, SWEPT, self.live.columns.until, now)
        self._next_swept = self._next_swept + SWEPT if self._next_swept + SWEPT < buckets else 0

    def _insert_rows(self, first: int) -> None:
        start = self.subscriptions.columns.alternative_start
        if self._is_stale and self._is_most(len(self.subscriptions.columns.until) - first):
            self._rebuild()
            return
        added = np.arange(start[first], start[-1])
        self._tree.insert_subscriptions(self.subscriptions.columns, added)
        self._advance(len(added))

    def _remove_rows(self, rows: Int64) -> None:
        for tree in self._trees:
            tree.subscriptions.remove(self._alternatives_of(rows))

    def _move_rows(self, rows: Int64) -> None:
        current = rows[self.subscriptions.validity.hidden[rows] == 0]
        alternatives = self._alternatives_of(current)
        if self._former is not None:
            self._former.subscriptions.remove(alternatives)
        self._tree.insert_subscriptions(self.subscriptions.columns, alternatives)
        self._advance(len(alternatives))

    def _hold_events(self, first: int) -> None:
        added = events_between(self.live.columns, first, None)
        self._widest = self._widest.joined(scratch_size(added))
        count = self.live.count - first
        if self._is_stale and self._is_most(count):
            self._rebuild()
            return
        self._tree.insert_events(self.live.columns, np.arange(first, self.live.count))
        self._advance(count)

    def _drop_events(self, rows: Int64) -> None:
        for tree in self._trees:
            tree.events.remove(rows)

    def _renumbered(self, kept: Int64, count: int) -> None:
        if self._former is not None:  # the rebuild finds no event there any more
            self._former.events.remove(self._former.events.members())
        self._tree.build_events(self.live.columns, self._current_events())

    @property
    def _is_stale(self) -> bool:
        """Whether the items have doubled since the attributes were chosen."""
        alternatives = len(self.subscriptions.columns.predicate_start) - 1
        chosen_alternatives, chosen_events = self._chosen_for
        few_events = 2 * max(FEW, chosen_events, alternatives)
        return alternatives > 2 * max(FEW, chosen_alternatives) or self.live.count > few_events

    def _is_most(self, added: int) -> bool:
        """Whether *added* items are half of all, or all of them are one step's work."""
        count = self.subscriptions.current_count + self.live.current_count
        return 2 * added >= count or count <= STEP

    def _rebuild(self) -> None:
        """Choose attributes and cells anew, and insert everything."""
        self._rebuilding = iter(())
        self._former = None
        candidates = self._choose()
        self._adopt(MoTreeLayers.planned(candidates, self.settings), candidates)
        columns = self.subscriptions.columns
        self._tree.build_subscriptions(columns, self._current_alternatives())
        self._tree.build_events(self.live.columns, self._current_events())

    def _choose(self) -> list[AttributeChoice]:
        """The attributes that suit the items now."""
        columns, current = self.subscriptions.columns, self._current_alternatives()
        history = self.live.columns if self.history is None else self.history
        self._chosen_for = len(columns.predicate_start) - 1, self.live.count
        return choose_attributes(columns, current, history, self.settings.pieces)

    def _adopt(self, tree: MoTreeLayers, candidates: Sequence[AttributeChoice]) -> None:
        """Insert into *tree* from now on, which was planned for *candidates*."""
        self._tree, self._next_swept = tree, 0
        self._layers = [
            {**one.explained(), "widths": tree.widths(layer)}
            for layer, one in enumerate(candidates[: tree.layers])
        ]

    def _advance(self, changed: int) -> None:
        """Continue a rebuild, by steps in proportion to *changed*; start one where it would pay.

        There are more steps than changes, so a rebuild ends long before the items double again.
        """
        steps = 1 + 4 * changed // STEP
        for _ in itertools.islice(self._rebuilding, steps):
            steps -= 1
        if steps and (self._is_stale or self._tree.needs_rebuild):
            self._rebuilding = self._rebuilt()

    def _rebuilt(self) -> Iterator[None]:
        """The steps of a rebuild; each takes a millisecond or two, the first two some ten.

        First the items of each bucket are counted, then all of them are moved. Meanwhile each item
        is in one of the two trees.
        """
        candidates = self._choose()
        yield
        tree = MoTreeLayers.planned(candidates, self.settings)
        yield
        counts, event_counts = tree.subscription_counts(), tree.event_counts()
        for part in _parts(self._current_alternatives()):
            tree.count_subscriptions(self.subscriptions.columns, part, counts)
            yield
        for part in _parts(self._current_events()):
            # Rows may have been renumbered since; the counts need not be exact.
            known = part[part < self.live.count]
            tree.count_events(self.live.columns, known, event_counts)
            yield
        tree.subscriptions = BucketTable(counts, ending=False)
        tree.events = BucketTable(event_counts, ending=True)
        former = self._former = self._tree
        self._adopt(tree, candidates)
        yield
        for part in _parts(former.subscriptions.members()):
            moved = former.subscriptions.contained(part)
            tree.insert_subscriptions(self.subscriptions.columns, moved)
            former.subscriptions.remove(moved)
            yield
        for part in _parts(former.events.members()):
            moved = former.events.contained(part)
            tree.insert_events(self.live.columns, moved)
            former.events.remove(moved)
            yield
        self._former = None

    def _finish(self) -> None:
        """Finish a rebuild."""
        for _ in self._rebuilding:
            pass

    def _current_alternatives(self) -> Int64:
        return self._alternatives_of(np.flatnonzero(self.subscriptions.validity.hidden == 0))

    def _current_events(self) -> Int64:
        """The rows of live events that have not ended, as far as the time is known."""
        rows = self.live.current_rows()
        if self._now is None:
            return rows
        return rows[self.live.columns.until[rows] > self._now]

    def _alternatives_of(self, rows: Int64) -> Int64:
        return children(self.subscriptions.columns.alternative_start, rows)[0]

    # Files, figures, invariants.

    def save(self, folder: Path) -> None:
        self._finish()
        tree = self._tree
        arrays = {
            **with_prefix("dimensions", tree.dimensions),
            **with_prefix("cells", tree.cells),
            **{f"buckets.{name}": array for name, array in tree.subscriptions.arrays().items()},
        }
        write_arrays(folder, arrays, kind=self.name, meta={"layers": self._layers})

    def _open_arrays(self, folder: Path) -> None:
        arrays, meta = read_arrays(folder, kind=self.name)
        if "dimensions.knot" not in arrays:  # of a version that knew equal widths only
            self._rebuild()
            return
        dimensions = bundle_of(MoDimensions, "dimensions", arrays)
        cells = bundle_of(LevelCells, "cells", arrays)
        self._layers = meta["layers"]
        self._tree = MoTreeLayers(dimensions, cells, len(self._layers))
        buckets = {
            name.removeprefix("buckets."): array
            for name, array in arrays.items()
            if name.startswith("buckets.")
        }
        self._tree.subscriptions = BucketTable.over(buckets)
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
            "bytes": inherited["bytes"] + sum(tree.nbytes for tree in self._trees),
            "empty bytes": tree.empty_nbytes,
            "buckets": len(used),
            "occupied buckets": int(np.count_nonzero(used)),
            "largest bucket": int(used.max(initial=0)),
            "event buckets": len(tree.events.buckets.used),
            "layers": self._layers,
        }

    def counted_work(self, events: EventColumns) -> dict[str, float]:
        before, visits = super().counted_work(events), np.zeros(2)
        for tree in self._trees:
            query = tree.query()
            self._candidates(tree, events, query)
            visits += query.visits
        buckets, slots = (visits / max(1, event_count(events))).tolist()
        return {**before, "buckets/event": buckets, "slots/event": slots}

    def check(self) -> None:
        super().check()
        columns, current = self.subscriptions.columns, self._current_alternatives()
        for tree, members in in_trees([one.subscriptions for one in self._trees], current):
            check_subscriptions(self._trees[tree], columns, members)
        for tree, members in in_trees([one.events for one in self._trees], self._current_events()):
            check_events(self._trees[tree], self.live.columns, members)

    def _check_live(self) -> None:
        """Live events have buckets of their own, and no signatures beside them."""


def _parts(members: Int64) -> Iterator[Int64]:
    """*members*, STEP at a time."""
    for start in range(0, len(members), STEP):
        yield members[start : start + STEP]
