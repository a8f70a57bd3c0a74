"""`BEStarTree`: the BE*-Tree as an index."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from stentor._jit import direct
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
    event_count,
    read_only,
)
from stentor.encoding.event import EventBuffer
from stentor.encoding.ragged import children, events_between
from stentor.errors import FolderError
from stentor.index.be_star_tree.check import check_tree
from stentor.index.be_star_tree.heaps import heaps_for
from stentor.index.be_star_tree.layout import LAYOUT
from stentor.index.be_star_tree.match import (
    EFFORTS,
    MET,
    NODES,
    TESTED,
    BEMatchScratch,
    Values,
    find_alternatives,
    match_event,
    values_of,
)
from stentor.index.be_star_tree.settings import BEStarTreeSettings
from stentor.index.be_star_tree.state import BEStarTreeState, EventWindow
from stentor.index.be_star_tree.top import Scored, VerifierInputs, Weights, find_best
from stentor.index.contract import NOTHING_LEARNED, Learned
from stentor.index.row_set import RowSet, row_set
from stentor.index.storage.arrays import read_arrays, write_arrays
from stentor.index.structure import Structure, concatenate_pairs, kept_with, map_tiles
from stentor.index.table import FROM_THE_START
from stentor.index.verify import Candidates, best_of, verify
from stentor.index.verify.candidates import current_counts
from stentor.index.verify.scratch import EventScratch, scratch_for
from stentor.index.verify.single import SingleMatch
from stentor.model import Scoring
from stentor.model.values.time import NEVER

#: Capacity for matches at first, and at most: a tile that has more is halved.
FIRST_CAPACITY, MOST_CAPACITY = 1 << 12, 1 << 22
#: Of so many best the rows are kept in a heap; of more, all matches are scored.
MOST_SEARCHED = 1024
#: Records that one call reinserts while the tree adapts.
REINSERTED = 2048
#: Subscriptions of the small tree that an opened one is compared with, and the share of its waste
#: below which rebuilding is worth while.
COMPARED, MUCH_BETTER = 2000, 0.5

_match_event = direct(match_event)


class BEStarTree(Structure):
    """Partitioned by attributes and clustered by values of its subscriptions and events."""

    name = "be_star_tree"
    settings: ClassVar[BEStarTreeSettings] = BEStarTreeSettings()
    presets: ClassVar[Mapping[str, BEStarTreeSettings]] = {
        "paper": BEStarTreeSettings(capacity=5, rank="sum"),
    }

    def __init__(self) -> None:
        super().__init__()
        self._store = BEStarTreeState(self.settings.for_kernels)
        self._is_single = True
        self._latest_since = FROM_THE_START
        self._closed: set[int] = (
            set()
        )  # rows in the tree that were closed: valid for some events only
        self._first_end: int = NEVER  # no row in the tree ends before
        self._verified = 0  # candidates that were verified since that was looked up
        self._scratches: list[tuple[BEMatchScratch, RowSet]] = []
        self._one: tuple[EventColumns, Values, Int64] | None = None  # of a single event
        self._capacity_each = 8
        self._window = EventWindow(self.settings.window)
        self._removed = 0  # rows that are hidden and no longer in the tree
        self._recycled = np.zeros(0, np.int64)  # alternatives that are still to be reinserted

    @classmethod
    def build(
        cls,
        columns: SubscriptionColumns,
        history: EventColumns | None = None,
        learned: Learned = NOTHING_LEARNED,
    ) -> Self:
        """A tree of *columns*, built from the top with all records in view."""
        index = cls()
        index.history = history
        index.subscriptions.append(columns)
        index._learn(0)
        index._store.build(index.subscriptions.columns, index._alternatives_from(0), history)
        return index

    # Matching.

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        """The matches of a few events.

        Cost: the records of the leaves that they reach, one after the other in memory.
        """
        pairs = self._walk(events)
        self._window.add(events)
        if self._store.is_proved and self._is_single and self._all_hold(events):
            if (counts := current_counts()) is not None:
                counts.add(events.seq, pairs.starts)
            return pairs  # an alternative has the number of its row
        self._verified += len(pairs.rows)
        event = np.repeat(np.arange(len(pairs.starts) - 1), np.diff(pairs.starts))
        candidates = Candidates(event, pairs.rows, self._store.tree.proved[pairs.rows])
        return verify(self.subscriptions.columns, self.subscriptions.validity, events, candidates)

    def _walk(self, events: EventColumns, effort: Int64 | None = None) -> MatchPairs:
        """The alternatives that *events* may match; the counted work is added to *effort*."""
        count = event_count(events)
        starts = np.empty(count + 1, np.int64)
        values, reading = values_of(events), self._store.reading
        spread, marks = scratch = self._borrow_scratch()
        capacity, found = 0, max(FIRST_CAPACITY, self._capacity_each * count)
        while found > capacity:
            if found > MOST_CAPACITY and count > 1:
                self._scratches.append(scratch)
                half = count // 2
                cuts = events_between(events, 0, half), events_between(events, half, None)
                return concatenate_pairs([self._walk(one, effort) for one in cuts])
            capacity = found
            alternatives = np.empty(capacity, np.int64)
            found = find_alternatives(reading, values, spread, marks, starts, alternatives)
        if effort is not None:
            effort += spread.counted_work
        self._scratches.append(scratch)
        if 2 * found > self._capacity_each * count:
            self._capacity_each = 2 * found // max(1, count)
        return MatchPairs(starts, alternatives[:found])

    def _match_into(
        self, event: EventBuffer, scratch: EventScratch, scoring: int, found: SingleMatch
    ) -> int:
        columns, store, table = event.columns, self._store, self.subscriptions
        spread, marks = borrowed = self._borrow_scratch()
        if self._one is None or self._one[0] is not columns:
            self._one = columns, values_of(columns), np.empty(2, np.int64)
        _, values, starts = self._one
        is_covered = store.is_proved and self._is_single and self._all_hold(columns)
        rows = _match_event(
            store.reading,
            values,
            spread,
            marks,
            starts,
            is_covered,
            store.proved,
            table.columns,
            table.validity,
            columns,
            scratch,
            scoring,
            found,
        )
        self._scratches.append(borrowed)
        if rows >= 0:
            if not is_covered:
                self._verified += int(starts[1])
            if self._window.is_due(1):
                self._window.add(event.copy())
        return rows

    def _top_one(self, event: EventBuffer, k: int, scoring: Scoring) -> tuple[Int64, Float64]:
        if k > MOST_SEARCHED:
            return super()._top_one(event, k, scoring)
        found = self._find_best(event.columns, k, scoring, kept_with(event).fitting(event))
        if self._window.is_due(1):
            self._window.add(event.copy())
        return _best_of_one(found, k)

    def _top(
        self,
        events: EventColumns,
        k: int,
        *,
        threads: int = 1,
        scoring: Scoring = Scoring.SUM,
    ) -> ScoredPairs:
        """For each event its k best rows, and ties.

        Cost: that of the nodes that may hold one of the k best, and those above (section VI). Where
        k is large, that of `match`, and all scores.
        """
        if k > MOST_SEARCHED:
            return super()._top(events, k, threads=threads, scoring=scoring)

        def best(tile: EventColumns) -> ScoredPairs:
            found = self._find_best(tile, k, scoring)
            self._window.add(tile)
            return best_of(_each_once(found, event_count(tile)), k)

        return map_tiles(best, events, threads)

    def top_effort(self, events: EventColumns, k: int) -> dict[str, float]:
        """C-nodes and records that the search for the *k* best of *events* meets, on average."""
        spread, _ = borrowed = self._borrow_scratch()
        self._scratches.append(borrowed)
        self._find_best(events, k, Scoring.SUM)
        each = spread.counted_work / max(1, event_count(events))
        return {"nodes/event": float(each[NODES]), "records/event": float(each[TESTED])}

    def _find_best(
        self, events: EventColumns, k: int, scoring: Scoring, scratch: EventScratch | None = None
    ) -> Scored:
        """Rows that are among the k best, and some that were until better ones were found."""
        table, store = self.subscriptions, self._store
        scratch = scratch_for(events) if scratch is None else scratch
        all_hold = self._all_hold(events)
        exact = VerifierInputs(
            table.columns, table.validity, events, scratch, self._is_single, all_hold
        )
        tree = store.tree
        known = Weights(read_only(tree.key_of), read_only(tree.usual), read_only(tree.heaviest))
        borrowed = self._borrow_scratch()
        heaps = heaps_for(k, store.buckets, store.keys)
        capacity, count = 0, (4 * k + 32) * max(1, event_count(events))
        while count > capacity:
            capacity = count
            found = Scored(
                np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity)
            )
            count = find_best(
                store.reading,
                known,
                values_of(events),
                exact,
                int(scoring),
                borrowed[0],
                heaps,
                found,
            )
        self._scratches.append(borrowed)
        return Scored(found.event[:count], found.row[:count], found.score[:count])

    def _all_hold(self, events: EventColumns) -> bool:
        """Whether every row whose record is in the tree is valid at each of *events*.

        Cost: O(1) for an event; where subscriptions have ended, now and then a scan of all of them.
        """
        table = self.subscriptions
        if self._closed or table.count - table.current_count != self._removed:
            return False
        if not len(events.seq) or self._latest_since >= (
            events.seq[0] if len(events.seq) == 1 else events.seq.min()
        ):
            return False
        time = int(events.time[0] if len(events.time) == 1 else events.time.max())
        if time >= self._first_end and self._verified > table.count:
            self._verified = 0
            until = table.columns.until[table.validity.hidden == 0]
            self._first_end = int(until.min(initial=NEVER))
        return time < self._first_end

    def _borrow_scratch(self) -> tuple[BEMatchScratch, RowSet]:
        """Scratch that fits the tree, used again from call to call; threads have their own."""
        store = self._store
        alternatives = len(self.subscriptions.columns.predicate_start) - 1
        while self._scratches:
            spread, marks = scratch = self._scratches.pop()
            if (
                len(spread.stack) > store.buckets
                and len(spread.dimension) >= store.keys
                and 64 * len(marks.word) >= alternatives
            ):
                return scratch
        # More than is needed now, so that it still fits after the next insertion.
        return store.spread(), row_set(alternatives + alternatives // 4)

    # Changes.

    def close(self, rows: Int64, seq: Int64) -> None:
        super().close(rows, seq)
        self._closed.update(rows[self.subscriptions.validity.hidden[rows] == 0].tolist())

    def remove(self, rows: Int64) -> None:
        before = self.subscriptions.current_count
        super().remove(rows)
        if not self._store.is_mapped:
            self._removed += before - self.subscriptions.current_count
        if self._closed:
            self._closed.difference_update(rows.tolist())

    def advance(self, now: int) -> None:
        """Adapt, where it is time: no event is matched while this is called."""
        super().advance(now)
        self._rebalance_if_due()

    def _insert_rows(self, first: int) -> None:
        self._learn(first)
        self._store.insert(self.subscriptions.columns, self._alternatives_from(first))
        self._rebalance_if_due()

    def _remove_rows(self, rows: Int64) -> None:
        if not self._store.is_mapped:
            self._store.remove(self._alternatives_of(rows))
            self._rebalance_if_due()

    def _move_rows(self, rows: Int64) -> None:
        """Reinsert *rows*: circles around the subscriber are among their boxes."""
        alternatives = self._alternatives_of(np.unique(rows))
        present = read_only(alternatives[self._store.holds(alternatives)])
        self._store.remove(present)
        self._store.insert(self.subscriptions.columns, present)

    def _learn(self, first: int) -> None:
        """Update what is known of all rows with those from *first* on."""
        columns = self.subscriptions.columns
        start = columns.alternative_start[first:]
        single = np.array_equal(start, np.arange(first, first + len(start)))
        self._is_single = self._is_single and single
        self._first_end = int(columns.until[first:].min(initial=self._first_end))
        since = self.subscriptions.validity.since[first:]
        self._latest_since = int(since.max(initial=self._latest_since))

    def _alternatives_from(self, first: int) -> Int64:
        start = self.subscriptions.columns.alternative_start
        return read_only(np.arange(start[first], start[-1]))

    def _alternatives_of(self, rows: Int64) -> Int64:
        return read_only(children(self.subscriptions.columns.alternative_start, rows)[0])

    # Adaptation.

    def rebalance(self) -> int:
        """Measure losses by the window of events, and reinsert records where they are high.

        How many records that were.

        Changes and `advance` do this by themselves, a few records at a time, where the window is
        full. Cost: matching the window, and removing and inserting each record.
        """
        if self._store.is_mapped or (events := self._window.events) is None:
            return 0
        self._window.clear()
        self._measure(events)
        return self._reinsert(len(self._recycled))

    def _rebalance_if_due(self) -> None:
        """Measure where that is due, and reinsert some records: a few milliseconds at a time."""
        if self._store.is_mapped:
            return
        if not len(self._recycled) and self._window.is_full and (events := self._window.events):
            self._window.clear()
            self._measure(events)
        if len(self._recycled):
            self._reinsert(REINSERTED)

    def _measure(self, events: EventColumns) -> None:
        self._store.measure(events, apart=self.settings.apart)
        self._recycled = np.sort(self._store.recycled())

    def _reinsert(self, count: int) -> int:
        """Reinsert the next *count* of those that are to be; how many were still in the tree."""
        recycled, self._recycled = self._recycled[:count], self._recycled[count:]
        present = read_only(recycled[self._store.holds(recycled)])
        self._store.remove(present)
        self._store.insert(self.subscriptions.columns, present)
        return len(present)

    def sample(self) -> EventColumns | None:
        return self._window.events if self._window.is_full else self.history

    def is_misfiled(self) -> bool:
        """Whether a tree built for the events of a full window would test far fewer records.

        For a tree that cannot change: one that can adapts. Cost: where a window is full and the
        tree wastes much, that of matching the window and of building a small tree.
        """
        if not self._window.is_full or (events := self._window.events) is None:
            return False
        waste = self._waste(events)
        if waste > self.settings.recycle:
            rows = self.current_rows()
            few = self.columns_of(rows[:: max(1, len(rows) // COMPARED)])
            if type(self).build(few, events)._waste(events) < MUCH_BETTER * waste:
                return True
        self._window.clear()
        return False

    def _waste(self, events: EventColumns) -> float:
        """The share of all records that each of *events* is compared with in vain, on average."""
        effort = self.counted_work(events)
        vain = effort["records/event"] - effort["candidates/event"]
        return vain / max(1, self._store.records)

    # Files, figures, invariants.

    def save(self, folder: Path) -> None:
        alternatives = len(self.subscriptions.columns.predicate_start) - 1
        meta = {"alternatives": alternatives, "layout": LAYOUT}
        write_arrays(folder, self._store.arrays(), kind=BEStarTree.name, meta=meta)

    def _open_arrays(self, folder: Path) -> None:
        arrays, meta = read_arrays(folder, kind=BEStarTree.name)
        if meta.get("alternatives") != len(self.subscriptions.columns.predicate_start) - 1:
            raise FolderError(
                f"{folder} holds the BE*-Tree of other subscriptions than those it was opened "
                "with; open both from one saved folder"
            )
        self._learn(0)
        if meta.get("layout") == LAYOUT:
            self._store = BEStarTreeState.over(self.settings.for_kernels, arrays)
        else:  # an earlier version saved it
            self._store.build(self.subscriptions.columns, self._alternatives_from(0), None)
            self._store.is_mapped = True

    def counted_work(self, events: EventColumns) -> dict[str, float]:
        """C-nodes, records and candidates that each of *events* meets, on average."""
        effort = np.zeros(EFFORTS, np.int64)
        self._walk(events, effort)
        each = effort / max(1, event_count(events))
        return {
            "nodes/event": float(each[NODES]),
            "records/event": float(each[TESTED]),
            "candidates/event": float(each[MET]),
        }

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        return {
            **inherited,
            "bytes": inherited["bytes"] + self._store.nbytes,
            "records": self._store.records,
            "dimensions": self._store.dimensions,
            "buckets": self._store.buckets,
        }

    def check(self) -> None:
        super().check()
        rows = np.flatnonzero(self.subscriptions.validity.hidden == 0)
        check_tree(self._store, self.subscriptions.columns, self._alternatives_of(rows))


def _best_of_one(found: Scored, k: int) -> tuple[Int64, Float64]:
    """The k best rows of one event, and ties, each once, ascending; and their best scores."""
    order = np.lexsort((-found.score, found.row))
    row, score = found.row[order], found.score[order]
    first = np.ones(len(row), np.bool_)
    first[1:] = row[1:] != row[:-1]
    row, score = row[first], score[first]
    if len(row) > k:
        kept = score >= np.partition(score, len(score) - k)[len(score) - k]
        row, score = row[kept], score[kept]
    return row, score


def _each_once(found: Scored, events: int) -> ScoredPairs:
    """Each event's rows once, with their best scores, ascending."""
    order = np.lexsort((-found.score, found.row, found.event))
    event, row, score = found.event[order], found.row[order], found.score[order]
    first = np.ones(len(row), np.bool_)
    first[1:] = (row[1:] != row[:-1]) | (event[1:] != event[:-1])
    starts = np.concatenate([[0], np.cumsum(np.bincount(event[first], minlength=events))])
    return ScoredPairs(starts, row[first], score[first])
