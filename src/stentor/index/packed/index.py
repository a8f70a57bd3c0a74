"""The packed index: segments of homes, and a few alternatives that are in none yet.

A large merge of segments runs in a thread of its own while everything goes on; the next call adopts
it. What is removed is passed over until then. What moves a little is moved in its home; what moves
far, or is just being merged, is pending once more, so that it is found under its new bounds: what
is left of it under the old ones is a candidate, which the verifier decides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from stentor._jit import direct
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
    all_read_only,
    event_count,
    read_only,
)
from stentor.encoding.event import EventBuffer
from stentor.encoding.kinds import KIND_MASK, OWN_CIRCLE
from stentor.encoding.ragged import children, events_between
from stentor.errors import FolderError
from stentor.index.contract import NOTHING_LEARNED, Learned
from stentor.index.live import SIGN_ALL_ATTRIBUTES
from stentor.index.packed.blocks import LiveBlocks
from stentor.index.packed.check import check_packed
from stentor.index.packed.homes import Found, between, found_for
from stentor.index.packed.insert import Segments
from stentor.index.packed.layout import LAYOUT, PackedSegment
from stentor.index.packed.match import (
    Holding,
    Pending,
    match_event,
    match_pending,
    rows_of_found,
    sign_pending,
)
from stentor.index.packed.nodes.top import BestInputs
from stentor.index.packed.sample import SeenEvents, learned_from, learned_of
from stentor.index.packed.settings import PackedSettings
from stentor.index.packed.top import MOST_SEARCHED, best_rows
from stentor.index.row_set import RowSet, row_set
from stentor.index.sort import distinct
from stentor.index.storage.arrays import read_arrays, write_arrays
from stentor.index.structure import Bool, Structure, concatenate_pairs, kept_with, map_tiles
from stentor.index.table import FROM_THE_START
from stentor.index.verify.candidates import Tally, current_counts, group_by_event
from stentor.index.verify.scratch import EventScratch, scratch_for
from stentor.index.verify.single import SingleMatch
from stentor.model import Scoring
from stentor.model.values.time import NEVER

#: Pairs that fit at first, and at most: a tile that has more is halved.
FIRST_CAPACITY, MOST_CAPACITY = 1 << 14, 1 << 23
#: Memory for so many pairs at most is kept for the next tile.
MOST_KEPT = 1 << 20
#: What is out of date in segments is left out when it outnumbers the rest, and this.
FEW_GONE = 1024

_match_event = direct(match_event)
_NOTHING = np.zeros(0, np.int64)
_NOTHING_PENDING = all_read_only(Pending(_NOTHING, np.zeros(0, np.uint64), _NOTHING))


def _halves(events: EventColumns) -> tuple[EventColumns, EventColumns]:
    half = event_count(events) // 2
    return events_between(events, 0, half), events_between(events, half, None)


class PackedIndex(Structure):
    """Alternatives in the homes that suit them, in segments that are merged as they grow."""

    name = "packed"
    settings: ClassVar[PackedSettings] = PackedSettings()

    def __init__(self) -> None:
        super().__init__()
        self._segments = Segments(self.settings)
        self._live_blocks = LiveBlocks()
        self._pending = _NOTHING_PENDING
        self._is_single = True  # every row has one alternative, of the same number
        self._latest_since: int = FROM_THE_START
        self._first_end: int = NEVER  # no row ends before
        self._removed = 0  # alternatives of rows that were removed
        self._capacity_each = 8
        self._marks: list[RowSet] = []
        self._founds: list[Found] = []
        self._sample = SeenEvents(NOTHING_LEARNED)
        self._one = found_for(1024), row_set(0)

    # Matching.

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        """The matches of a few events.

        Cost: the lists of their keys, the blocks of their locations, and the verifier at borders.
        """
        pairs = self._pairs(events)
        if pairs is None:
            return concatenate_pairs([self._match_tile(half) for half in _halves(events)])
        return pairs

    def _pairs(self, events: EventColumns, *, with_nodes: bool = True) -> MatchPairs | None:
        """The matches, or those that no node holds; None where they are too many at once."""
        count, events_count = 0, event_count(events)
        columns = self.subscriptions.columns
        self._know_matched(events_count)
        if self._sample.is_due(events_count):
            self._sample.keep(events)
        segments, pending = self._segments.all, self._pending
        found = self._borrow_found(max(FIRST_CAPACITY, self._capacity_each * events_count))
        while True:
            count = 0
            for segment in segments:
                count = segment.match(events, found, count, with_nodes=with_nodes)
            if len(pending.alternative):
                count = match_pending(columns, pending, SIGN_ALL_ATTRIBUTES, events, found, count)
            if count <= len(found.event):
                break
            if count > MOST_CAPACITY and events_count > 1:
                return None
            found = found_for(count + count // 8)
        self._capacity_each = max(self._capacity_each, 2 * count // max(1, events_count))
        pairs = self._rows_of(events, between(found, 0, count))
        if len(found.event) <= MOST_KEPT:
            self._founds.append(found)
        return pairs

    def _borrow_found(self, capacity: int) -> Found:
        """Memory for *capacity* pairs: fresh pages take longer than what is written to them."""
        if self._founds and len((found := self._founds.pop()).event) >= capacity:
            return found
        return found_for(capacity)

    def _top(
        self,
        events: EventColumns,
        k: int,
        *,
        threads: int = 1,
        scoring: Scoring = Scoring.SUM,
    ) -> ScoredPairs:
        """For each event its k best rows, and ties.

        Cost: the leaves of nodes that may hold one of the k best; of what is in lists and blocks
        that of `match`, and all scores.
        """
        if k > MOST_SEARCHED or not any(segment.nodes for segment in self._segments.all):
            return super()._top(events, k, threads=threads, scoring=scoring)
        return map_tiles(lambda tile: self._top_tile(tile, k, scoring), events, threads)

    def _top_tile(
        self, events: EventColumns, k: int, scoring: Scoring, scratch: EventScratch | None = None
    ) -> ScoredPairs:
        others = self._pairs(events, with_nodes=False)
        if others is None:
            return concatenate_pairs([self._top_tile(one, k, scoring) for one in _halves(events)])
        homes = [home for segment in self._segments.all for home in segment.nodes]
        inputs = BestInputs(
            self.subscriptions.columns,
            self._holding(events),
            events,
            scratch_for(events) if scratch is None else scratch,
        )
        return best_rows(homes, inputs, others, k, scoring)

    def _top_one(self, event: EventBuffer, k: int, scoring: Scoring) -> tuple[Int64, Float64]:
        if k > MOST_SEARCHED or not any(segment.nodes for segment in self._segments.all):
            return super()._top_one(event, k, scoring)
        best = self._top_tile(event.columns, k, scoring, kept_with(event).fitting(event))
        return best.rows, best.scores

    def _rows_of(self, events: EventColumns, found: Found) -> MatchPairs:
        """The rows that *found* leads to."""
        count = len(found.event)
        Tally.candidates += count
        starts = np.zeros(event_count(events) + 1, np.int64)
        order = np.empty(count, np.int64)
        group_by_event(read_only(found.event), starts, order)
        if (counts := current_counts()) is not None:
            counts.add(events.seq, starts)
        rows = np.empty(count, np.int64)
        marks = self._marks.pop() if self._marks else row_set(0)
        if 64 * len(marks.word) < self.count:
            marks = row_set(self.count + self.count // 4)
        used = rows_of_found(
            self.subscriptions.columns,
            self._holding(events),
            events,
            all_read_only(found),
            read_only(order),
            scratch_for(events),
            marks,
            starts,
            rows,
        )
        self._marks.append(marks)
        return MatchPairs(starts, rows[:used])

    def _holding(self, events: EventColumns) -> Holding:
        """When rows hold, for *events*."""
        validity = self.subscriptions.validity
        has_begun = not len(validity.since) or bool(
            self._latest_since < events.seq.min(initial=NEVER)
        )
        table = self.subscriptions
        return Holding(
            validity,
            self._is_single,
            table.current_count == table.count,
            has_begun,
            bool(self._first_end <= events.time.max(initial=-NEVER)),
        )

    def _match_into(
        self, event: EventBuffer, scratch: EventScratch, scoring: int, found: SingleMatch
    ) -> int:
        columns, table = event.columns, self.subscriptions
        self._know_matched(1)
        if self._sample.is_due(1):
            self._sample.add(event.copy())
        pairs, marks = self._one
        if 64 * len(marks.word) < self.count:
            marks = row_set(self.count + self.count // 4)
        count = 0
        for segment in self._segments.all:
            count = segment.match_one(columns, pairs, count)
        rows = _match_event(
            table.columns,
            self._pending,
            SIGN_ALL_ATTRIBUTES,
            self._holding(columns),
            columns,
            scratch,
            scoring,
            pairs,
            count,
            marks,
            found,
        )
        fits = ~rows <= len(pairs.event)
        self._one = pairs if fits else found_for(~rows + ~rows // 4), marks
        return rows

    def sample(self) -> EventColumns | None:
        return self._sample.events if self.history is None else self.history

    def learned(self, rows: Int64) -> Learned:
        return learned_of(self.sample())

    @classmethod
    def learned_together(cls, base: Learned, delta: Learned, is_base: Bool) -> Learned:
        return base or delta  # both matched the same events

    def _take_over(self, learned: Learned) -> None:
        self._sample = SeenEvents(learned)

    # Changes.

    def _insert_rows(self, first: int) -> None:
        columns = self.subscriptions.columns
        self._learn(first)
        start = columns.alternative_start
        self._add(np.arange(start[first], start[-1]))

    def _learn(self, first: int) -> None:
        """Update what is known of all rows with those from *first* on."""
        columns, since = self.subscriptions.columns, self.subscriptions.validity.since
        start = columns.alternative_start[first:]
        self._is_single &= np.array_equal(start, np.arange(first, first + len(start)))
        self._first_end = int(columns.until[first:].min(initial=self._first_end))
        self._latest_since = int(since[first:].max(initial=self._latest_since))

    def remove(self, rows: Int64) -> None:
        super().remove(distinct(rows[self.subscriptions.validity.hidden[rows] == 0]))

    def _remove_rows(self, rows: Int64) -> None:
        gone = self._alternatives_of(rows)
        self._removed += len(gone)
        for segment in self._segments.all:
            segment.remove(gone)
        is_left = ~np.isin(self._pending.alternative, gone)
        if not is_left.all():
            left: Any = (part[is_left] for part in self._pending)
            self._pending = all_read_only(Pending(*left))
        self._leave_out()

    def _move_rows(self, rows: Int64) -> None:
        """Bring what is around a subscriber to its new bounds: in place, or as pending."""
        columns = self.subscriptions.columns
        alternatives = distinct(self._alternatives_of(rows))
        predicates, starts = children(columns.predicate_start, alternatives)
        moves = np.concatenate([[0], np.cumsum(columns.kind[predicates] & KIND_MASK == OWN_CIRCLE)])
        moved = self._kept(alternatives[moves[starts[1:]] > moves[starts[:-1]]])
        moved = moved[~np.isin(moved, self._pending.alternative)]
        self._add(self._segments.move(columns, moved))
        self._leave_out()

    def _leave_out(self) -> None:
        """Build anew without what is out of date, where that is more than the rest."""
        current = self._in_segments
        if self._segments.size - current > max(FEW_GONE, current) and not self.is_mapped:
            self._segments.rebuild(self.subscriptions.columns, self._kept)

    @property
    def _in_segments(self) -> int:
        """Current alternatives that are not pending: each once, though segments may repeat it."""
        every = len(self.subscriptions.columns.predicate_start) - 1
        return every - self._removed - len(self._pending.alternative)

    def _know_matched(self, events: int) -> None:
        """Let segments be merged that *events* have paid for."""
        if self._segments.all and not self.is_mapped:
            columns = self.subscriptions.columns
            self._segments.matched(events, self._in_segments, columns, self._kept)

    def _add(self, alternatives: Int64) -> None:
        """Let *alternatives* (ascending) be pending, or a segment where they are many."""
        if len(self._pending.alternative) + len(alternatives) <= self.settings.pending:
            self._more_pending(alternatives)
            return
        pending = np.concatenate([self._pending.alternative, alternatives])
        columns = self.subscriptions.columns
        self._segments.add(columns, self._kept(distinct(pending)), self._kept)
        self._pending = _NOTHING_PENDING

    def _more_pending(self, alternatives: Int64) -> None:
        """Let *alternatives* be pending beside the others."""
        added = Pending(
            read_only(alternatives),
            np.empty(len(alternatives), np.uint64),
            np.empty(len(alternatives), np.int64),
        )
        columns = self.subscriptions.columns
        sign_pending(columns, added.alternative, SIGN_ALL_ATTRIBUTES, added.signature, added.bound)
        both = (np.concatenate(parts) for parts in zip(self._pending, added, strict=True))
        self._pending = all_read_only(Pending(*both))

    # Live events.

    def _match_live(self, columns: SubscriptionColumns) -> MatchPairs:
        return self._live_blocks.match(columns, self.live)

    def _hold_events(self, first: int) -> None:
        self._live_blocks.hold(self.live)

    def _drop_events(self, rows: Int64) -> None:
        self._live_blocks.drop(rows)

    def _renumbered(self, kept: Int64, count: int) -> None:
        self._live_blocks.keep(kept, self.live)

    def _check_live(self) -> None:
        self._live_blocks.check(self.live)

    def _kept(self, alternatives: Int64) -> Int64:
        """Those of *alternatives* (ascending) whose rows were not removed."""
        hidden = self.subscriptions.validity.hidden
        kept: Int64 = alternatives[hidden[self._rows_with(alternatives)] == 0]
        return kept

    def _rows_with(self, alternatives: Int64) -> Int64:
        """The row of each of *alternatives*."""
        if self._is_single:
            return alternatives
        start = self.subscriptions.columns.alternative_start
        return np.searchsorted(start, alternatives, side="right") - 1

    def _alternatives_of(self, rows: Int64) -> Int64:
        return children(self.subscriptions.columns.alternative_start, rows)[0]

    # Files, figures, invariants.

    @property
    def is_mapped(self) -> bool:
        """Whether it was opened from files, and cannot change."""
        return self._is_mapped

    _is_mapped = False

    def wait(self) -> None:
        """Wait for a merge that is under way: for tests and benchmarks."""
        self._segments.wait()

    def save(self, folder: Path) -> None:
        alternatives = len(self.subscriptions.columns.predicate_start) - 1
        segments = self._segments.all
        if len(segments) != 1 or len(self._pending.alternative):
            rows = np.flatnonzero(self.subscriptions.validity.hidden == 0)
            whole = PackedSegment.build(
                self.subscriptions.columns, self._alternatives_of(rows), self.settings.home
            )
            segments = (whole,)
        meta = {
            "alternatives": alternatives,
            "layout": LAYOUT,
            "is single": self._is_single,
            "first end": self._first_end,
        }
        arrays = {**segments[0].arrays(), **learned_of(self.sample())}
        write_arrays(folder, arrays, kind=PackedIndex.name, meta=meta)

    @classmethod
    def learned_in(cls, folder: Path, columns: SubscriptionColumns) -> Learned:
        return learned_from(folder, read_arrays(folder, kind=PackedIndex.name)[0])

    def _open_arrays(self, folder: Path) -> None:
        arrays, meta = read_arrays(folder, kind=PackedIndex.name)
        columns = self.subscriptions.columns
        if meta.get("alternatives") != len(columns.predicate_start) - 1:
            raise FolderError(
                f"{folder} holds the packed index of other subscriptions than those it was opened "
                "with; open both from one saved folder"
            )
        self._is_mapped = True
        self._take_over(learned_from(folder, arrays))
        if "first end" in meta:
            self._is_single, self._first_end = bool(meta["is single"]), int(meta["first end"])
        else:  # an earlier version saved it
            self._learn(0)
        if meta.get("layout") == LAYOUT:
            segment = PackedSegment.over(arrays)
        else:  # an earlier version saved it
            segment = PackedSegment.build(
                columns, np.arange(meta["alternatives"]), self.settings.home
            )
        self._segments.put((segment,))

    def homes_of(self, row: int) -> tuple[str, ...]:
        alternatives = self._alternatives_of(np.array([row])).tolist()
        return tuple(self._home_of(alternative) for alternative in alternatives)

    def _home_of(self, alternative: int) -> str:
        """The home of *alternative* as it is now: that of the latest segment it is in."""
        for segment in reversed(self._segments.all):
            if alternative in self._pending.alternative:
                break
            for home, here in zip(
                segment.homes, segment.here(np.array([alternative])), strict=True
            ):
                if len(here):
                    return home.name
        return "pending"

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        self._segments.adopt()
        segments = self._segments.all
        own = sum(segment.nbytes for segment in segments)
        own += sum(array.nbytes for array in self._pending) + self._live_blocks.nbytes
        return {
            **inherited,
            "bytes": inherited["bytes"] + own,
            "segments": [segment.stats() for segment in segments],
            "pending": len(self._pending.alternative),
            "is merging": self._segments.is_merging,
        }

    def check(self) -> None:
        super().check()
        rows = np.flatnonzero(self.subscriptions.validity.hidden == 0)
        check_packed(
            self.subscriptions.columns,
            self._segments.all,
            self._pending,
            self._alternatives_of(rows),
        )
