"""The BE*-Tree as an index."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    Int64,
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
    event_count,
)
from stentor.encoding.ragged import children, events_between
from stentor.encoding.readonly import read_only
from stentor.errors import FolderError
from stentor.index.be_star_tree.best import Exact, Scored, find_best
from stentor.index.be_star_tree.check import check_tree
from stentor.index.be_star_tree.heaps import search_for
from stentor.index.be_star_tree.matching import (
    EFFORTS,
    MET,
    NODES,
    TESTED,
    Spread,
    find_alternatives,
    values_of,
)
from stentor.index.be_star_tree.settings import Settings
from stentor.index.be_star_tree.store import TreeStore
from stentor.index.be_star_tree.window import Window
from stentor.index.row_marks import RowMarks, marks_for
from stentor.index.storage import read_arrays, write_arrays
from stentor.index.structure import Structure
from stentor.index.tiles import joined, over_tiles
from stentor.index.verify import Candidates, best_of, settle
from stentor.index.verify.scratch import scratch_for
from stentor.model import Scoring
from stentor.model.time import NEVER

#: Matches that there is room for at first, and at most: a tile that brings more is halved.
ROOM, MOST_ROOM = 1 << 12, 1 << 22
#: Of so many best the rows are kept in a heap; of more, all matches are scored.
MOST_SEARCHED = 1024


class BEStarTree(Structure):
    """Partitioned by attributes and clustered by values, as its subscriptions and events ask."""

    name = "be_star_tree"
    settings: ClassVar[Settings] = Settings()
    presets: ClassVar[Mapping[str, Settings]] = {
        "paper": Settings(capacity=5, rank="sum"),
    }

    def __init__(self) -> None:
        super().__init__()
        self._store = TreeStore(self.settings.knobs)
        self._is_single = self._is_endless = True
        self._scratches: list[tuple[Spread, RowMarks]] = []
        self._room_each = 8
        self._window = Window(self.settings.window)
        self._taken_out = 0  # rows that are hidden and no longer in the tree

    @classmethod
    def build(cls, columns: SubscriptionColumns, history: EventColumns | None = None) -> Self:
        """A tree of *columns*, built from the top with everything in view."""
        index = cls()
        index.history = history
        index.subscriptions.append(columns)
        index._learn(0)
        index._store.file_all(index.subscriptions.columns, index._filed_from(0), history)
        return index

    # Questions.

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        """The matches of a few events.

        Cost: the records of the leaves that they reach, one after the other in memory.
        """
        pairs = self._walk(events)
        self._window.add(events)
        if self._store.is_proved and self._is_single and self._is_always:
            return pairs  # an alternative has the number of its row
        event = np.repeat(np.arange(len(pairs.starts) - 1), np.diff(pairs.starts))
        candidates = Candidates(event, pairs.rows, self._store.tree.proved[pairs.rows])
        return settle(self.subscriptions.columns, self.subscriptions.validity, events, candidates)

    def _walk(self, events: EventColumns, effort: Int64 | None = None) -> MatchPairs:
        """The alternatives that *events* may want; what finding them took is added to *effort*."""
        count = event_count(events)
        starts = np.empty(count + 1, np.int64)
        values, reading = values_of(events), self._store.reading
        spread, marks = scratch = self._borrowed()
        room, found = 0, max(ROOM, self._room_each * count)
        while found > room:
            if found > MOST_ROOM and count > 1:
                self._scratches.append(scratch)
                half = count // 2
                cuts = events_between(events, 0, half), events_between(events, half, None)
                return joined([self._walk(one, effort) for one in cuts])
            room = found
            alternatives = np.empty(room, np.int64)
            found = find_alternatives(reading, values, spread, marks, starts, alternatives)
        if effort is not None:
            effort += spread.effort
        self._scratches.append(scratch)
        if 2 * found > self._room_each * count:
            self._room_each = 2 * found // max(1, count)
        return MatchPairs(starts, alternatives[:found])

    def top(
        self,
        events: EventColumns,
        k: int,
        *,
        threads: int = 1,
        scoring: Scoring = Scoring.SUM,
    ) -> ScoredPairs:
        """For each event its k best rows, and ties.

        Cost: what lies on the way to nodes that may hold one of the k best (section VI). Where k is
        large, that of `match`, and all scores.
        """
        if k > MOST_SEARCHED:
            return super().top(events, k, threads=threads, scoring=scoring)

        def best(tile: EventColumns) -> ScoredPairs:
            found = self._search(tile, k, scoring)
            self._window.add(tile)
            return best_of(_each_once(found, event_count(tile)), k)

        return over_tiles(best, events, threads)

    def search_effort(self, events: EventColumns, k: int) -> dict[str, float]:
        """C-nodes and records that the search for the *k* best of *events* meets, on average."""
        spread, _ = borrowed = self._borrowed()
        self._scratches.append(borrowed)
        self._search(events, k, Scoring.SUM)
        each = spread.effort / max(1, event_count(events))
        return {"nodes/event": float(each[NODES]), "records/event": float(each[TESTED])}

    def _search(self, events: EventColumns, k: int, scoring: Scoring) -> Scored:
        """Rows that are among the k best, and some that were until better ones were found."""
        table, store = self.subscriptions, self._store
        scratch = scratch_for(events)
        exact = Exact(
            table.columns, table.validity, events, scratch, self._is_single, self._is_always
        )
        borrowed = self._borrowed()
        search = search_for(k, store.buckets)
        room, count = 0, (4 * k + 32) * max(1, event_count(events))
        while count > room:
            room = count
            found = Scored(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room))
            count = find_best(
                store.reading,
                read_only(store.tree.key_of),
                values_of(events),
                exact,
                int(scoring),
                borrowed[0],
                search,
                found,
            )
        self._scratches.append(borrowed)
        return Scored(found.event[:count], found.row[:count], found.score[:count])

    @property
    def _is_always(self) -> bool:
        """Whether every row whose record is in the tree holds whenever an event comes."""
        table = self.subscriptions
        has_spans = len(table.validity.since) or len(table.validity.upto)
        is_gone = table.count - table.live_count == self._taken_out
        return bool(self._is_endless and not has_spans and is_gone)

    def _borrowed(self) -> tuple[Spread, RowMarks]:
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
        # More than is needed now: the next insertion need not make it anew.
        return store.spread(), marks_for(alternatives + alternatives // 4)

    # What changes.

    def remove(self, rows: Int64) -> None:
        before = self.subscriptions.live_count
        super().remove(rows)
        if not self._store.is_mapped:
            self._taken_out += before - self.subscriptions.live_count

    def _inserted(self, first: int) -> None:
        self._learn(first)
        self._store.file(self.subscriptions.columns, self._filed_from(first))
        self._adapt_if_due()

    def _removed(self, rows: Int64) -> None:
        if not self._store.is_mapped:
            self._store.take_out(self._alternatives_of(rows))
            self._adapt_if_due()

    def _moved(self, rows: Int64) -> None:
        """File *rows* anew: circles around the subscriber are among their boxes."""
        alternatives = self._alternatives_of(np.unique(rows))
        filed = read_only(alternatives[self._store.holds(alternatives)])
        self._store.take_out(filed)
        self._store.file(self.subscriptions.columns, filed)

    def _learn(self, first: int) -> None:
        """Note what the rows from *first* on have in common."""
        columns = self.subscriptions.columns
        start = columns.alternative_start[first:]
        single = np.array_equal(start, np.arange(first, first + len(start)))
        self._is_single = self._is_single and single
        self._is_endless = self._is_endless and bool((columns.until[first:] == NEVER).all())

    def _filed_from(self, first: int) -> Int64:
        start = self.subscriptions.columns.alternative_start
        return read_only(np.arange(start[first], start[-1]))

    def _alternatives_of(self, rows: Int64) -> Int64:
        return read_only(children(self.subscriptions.columns.alternative_start, rows)[0])

    # Adaptation.

    def adapt(self) -> int:
        """Learn from the window of events, and file anew what was filed badly; how many records.

        A change does this by itself where the window is full. Cost: matching the window, and
        removing and inserting each record.
        """
        events = None if self._store.is_mapped else self._window.take()
        if events is None:
            return 0
        self._store.measure(events, apart=self.settings.apart)
        recycled = read_only(np.sort(self._store.recycled()))
        self._store.take_out(recycled)
        self._store.file(self.subscriptions.columns, recycled)
        return len(recycled)

    def _adapt_if_due(self) -> None:
        if self._window.is_full:
            self.adapt()

    # Files, figures, invariants.

    def save(self, folder: Path) -> None:
        meta = {"alternatives": len(self.subscriptions.columns.predicate_start) - 1}
        write_arrays(folder, self._store.arrays(), kind=BEStarTree.name, meta=meta)

    def _opened(self, folder: Path) -> None:
        arrays, meta = read_arrays(folder, kind=BEStarTree.name)
        if meta.get("alternatives") != len(self.subscriptions.columns.predicate_start) - 1:
            raise FolderError(
                f"{folder} holds the BE*-Tree of other subscriptions than those it was opened "
                "with; open both from one saved folder"
            )
        self._store = TreeStore.over(self.settings.knobs, arrays)
        self._learn(0)

    def effort(self, events: EventColumns) -> dict[str, float]:
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


def _each_once(found: Scored, events: int) -> ScoredPairs:
    """Each event's rows once, with their best scores, ascending."""
    order = np.lexsort((-found.score, found.row, found.event))
    event, row, score = found.event[order], found.row[order], found.score[order]
    first = np.ones(len(row), np.bool_)
    first[1:] = (row[1:] != row[:-1]) | (event[1:] != event[:-1])
    starts = np.concatenate([[0], np.cumsum(np.bincount(event[first], minlength=events))])
    return ScoredPairs(starts, row[first], score[first])
