"""What every structure inherits: its tables, hooks for what changes, a few events at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from stentor._jit import is_plain
from stentor.encoding.choices import with_choices
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
    event_count,
)
from stentor.encoding.event import EventBuffer
from stentor.encoding.ragged import children, events_between, take
from stentor.index.choices import LiveChoices, by_choice, by_choice_of_pairs
from stentor.index.contract import NOTHING_LEARNED, Index, Learned
from stentor.index.live import LiveSignatures
from stentor.index.table import FROM_THE_START, EventTable, SubscriptionTable
from stentor.index.verify import best_of, scores_of
from stentor.index.verify.candidates import Candidates, Tally, verify
from stentor.index.verify.scratch import EventScratch, ScratchSize, scratch_for
from stentor.index.verify.single import NO_SCORES, NOTHING_PROVED, SingleMatch
from stentor.model import Scoring

#: Events of a tile: those that one kernel call matches together.
TILE = 512
#: Candidates of a single event that fit at first.
FIRST_CANDIDATES = 1 << 10

Pairs = TypeVar("Pairs", MatchPairs, ScoredPairs)


def map_tiles(match: Callable[[EventColumns], Pairs], events: EventColumns, threads: int) -> Pairs:
    """What *match* finds for *events*, a tile at a time; the same for any *threads*."""
    count = event_count(events)
    tile = max(1, min(TILE, -(-count // threads)))
    if count <= tile:
        return match(events)
    tiles = [
        events_between(events, start, min(start + tile, count)) for start in range(0, count, tile)
    ]
    if threads == 1 or is_plain():  # plain kernels of several threads would wait for one another
        return concatenate_pairs([match(one) for one in tiles])
    contexts = [copy_context() for _ in tiles]  # a context is one thread's at a time
    with ThreadPoolExecutor(threads) as pool:
        started = [
            pool.submit(one.run, match, tile) for one, tile in zip(contexts, tiles, strict=True)
        ]
        return concatenate_pairs([one.result() for one in started])


def concatenate_pairs(parts: Sequence[Pairs]) -> Pairs:
    """The pairs of all *parts*, one after the other."""
    if len(parts) == 1:
        return parts[0]
    counts = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.starts) for part in parts)])
    rest = (np.concatenate(arrays) for arrays in zip(*(part[1:] for part in parts), strict=True))
    return type(parts[0])(np.cumsum(counts), *rest)


Bool = npt.NDArray[np.bool_]


class SingleScratch:
    """The memory that matching one event takes; it grows, and never shrinks.

    It is kept with the event's own, from call to call: one thread at a time.
    """

    def __init__(self) -> None:
        self._columns: EventColumns | None = None
        self._widest = ScratchSize()
        self._scratch: EventScratch | None = None
        self.found = _empty_match(FIRST_CANDIDATES)

    def fitting(self, event: EventBuffer) -> EventScratch:
        """A scratch that *event* fits into."""
        attributes, terms = event.attributes, event.term_count
        if (
            self._scratch is None
            or event.columns is not self._columns
            or attributes > self._widest.attributes
            or terms > self._widest.terms
        ):
            self._columns = event.columns
            # More than is needed now: the next event need not make it anew.
            self._widest = self._widest.joined(ScratchSize(2 * attributes, 2 * terms + 16))
            self._scratch = scratch_for(event.columns, self._widest)
        return self._scratch

    def grow(self, candidates: int) -> None:
        """Grow to so many *candidates*."""
        self.found = _empty_match(candidates + candidates // 4)


def kept_with(event: EventBuffer) -> SingleScratch:
    """The scratch that goes with *event*."""
    if event.kept is None:
        event.kept = SingleScratch()
    kept: SingleScratch = event.kept
    return kept


def _empty_match(candidates: int) -> SingleMatch:
    return SingleMatch(
        np.zeros(candidates, np.int64),
        np.empty(candidates, np.int64),
        np.empty(candidates, np.int64),
        np.empty(candidates),
    )


class Structure(Index):
    """An index over its own tables.

    A structure finds the matches of a few events (`_match_tile`), and keeps its own memory in step
    with the tables in the hooks at the end. Where it can do `top` or `match_live` faster than the
    methods here, it overrides them.
    """

    #: The settings of the structure, and presets of them by one word: `catalog.py`.
    settings: ClassVar[Any] = None
    presets: ClassVar[Mapping[str, Any]] = {}

    def __init__(self) -> None:
        self.subscriptions = SubscriptionTable()
        self.live = EventTable()
        self.history: EventColumns | None = None
        self._signatures = LiveSignatures()
        self._live_choices = LiveChoices()

    @classmethod
    def build(
        cls,
        columns: SubscriptionColumns,
        history: EventColumns | None = None,
        learned: Learned = NOTHING_LEARNED,
    ) -> Self:
        index = cls()
        index.history = history
        index._take_over(learned)
        index.insert(columns)
        return index

    def save(self, folder: Path) -> None:
        """Write what `open` needs beyond the subscriptions' columns; nothing by default."""

    @classmethod
    def open(cls, folder: Path, columns: SubscriptionColumns) -> Self:
        """A read-only index: rows can be removed, and everything else needs a layer over it."""
        index = cls()
        index.subscriptions = SubscriptionTable.over(columns)
        index._open_arrays(folder)
        return index

    @classmethod
    def of_events(cls, events: EventColumns) -> Self:
        """An index of live events alone, of which nothing is copied: for `match_live`."""
        index = cls()
        index.live = EventTable.over(events)
        index._live_choices.hold(index.live, 0)
        index._hold_events(0)
        return index

    def insert(self, columns: SubscriptionColumns, since: int | Int64 = FROM_THE_START) -> int:
        first = self.subscriptions.append(columns, since)
        self._insert_rows(first)
        return first

    def close(self, rows: Int64, seq: Int64) -> None:
        self.subscriptions.close(rows, seq)

    def remove(self, rows: Int64) -> None:
        self.subscriptions.hide(rows)
        self._remove_rows(rows)

    def move(self, rows: Int64, positions: Float64) -> None:
        self.subscriptions.move(rows, positions)
        self._move_rows(rows)

    def advance(self, now: int) -> None:
        """Nothing: the caller drops events that have ended."""

    def hold(self, events: EventColumns) -> int:
        first = self.live.append(events)
        self._live_choices.hold(self.live, first)
        self._hold_events(first)
        return first

    def drop(self, rows: Int64) -> None:
        self.live.hide(rows)
        self._drop_events(rows)

    def forget_dropped(self) -> Int64:
        count, kept = self.live.count, self.live.current_rows()
        self.live.keep(kept)
        self._live_choices.hold(self.live, 0)
        self._renumbered(kept, count)
        return kept

    def match(self, events: EventColumns, *, threads: int = 1) -> MatchPairs:
        if len(several := with_choices(events)):
            return by_choice(events, several, lambda some: self.match(some, threads=threads))
        return map_tiles(self._match_tile, events, threads)

    def top(
        self,
        events: EventColumns,
        k: int,
        *,
        threads: int = 1,
        scoring: Scoring = Scoring.SUM,
    ) -> ScoredPairs:
        if len(several := with_choices(events)):
            return best_of(
                by_choice(
                    events,
                    several,
                    lambda some: self._top(some, k, threads=threads, scoring=scoring),
                ),
                k,
            )
        return self._top(events, k, threads=threads, scoring=scoring)

    def _top(
        self,
        events: EventColumns,
        k: int,
        *,
        threads: int = 1,
        scoring: Scoring = Scoring.SUM,
    ) -> ScoredPairs:
        """For each event its k best rows, and ties. Cost: that of `match`, and all scores."""

        def best(tile: EventColumns) -> ScoredPairs:
            pairs = self._match_tile(tile)
            scores = scores_of(self.subscriptions.columns, tile, pairs, scoring)
            return best_of(ScoredPairs(*pairs, scores), k)

        return map_tiles(best, events, threads)

    def match_rows(self, events: EventColumns, candidates: MatchPairs) -> MatchPairs:
        if len(several := with_choices(events)):
            return by_choice_of_pairs(events, several, candidates, self.match_rows)
        columns = self.subscriptions.columns
        event = np.repeat(np.arange(event_count(events)), np.diff(candidates.starts))
        alternatives, starts = children(columns.alternative_start, candidates.rows)
        named = Candidates(
            np.repeat(event, np.diff(starts)), alternatives.astype(np.int64), NOTHING_PROVED
        )
        return verify(columns, self.subscriptions.validity, events, named)

    def scores(self, events: EventColumns, pairs: MatchPairs, scoring: Scoring) -> Float64:
        return scores_of(self.subscriptions.columns, events, pairs, scoring)

    def match_one(self, event: EventBuffer) -> Int64:
        if event.has_choices:
            return self.match(event.copy()).rows
        single, count = self._match_one(event, NO_SCORES)
        return single.found.row[:count]

    def top_one(self, event: EventBuffer, k: int, scoring: Scoring) -> tuple[Int64, Float64]:
        if event.has_choices:
            _, rows, scores = self.top(event.copy(), k, scoring=scoring)
            return rows, scores
        return self._top_one(event, k, scoring)

    def _top_one(self, event: EventBuffer, k: int, scoring: Scoring) -> tuple[Int64, Float64]:
        single, count = self._match_one(event, int(scoring))
        rows, scores = single.found.row[:count], single.found.score[:count]
        if count <= k:
            return rows, scores
        kept = scores >= np.partition(scores, count - k)[count - k]
        return rows[kept], scores[kept]

    def _match_one(self, event: EventBuffer, scoring: int) -> tuple[SingleScratch, int]:
        """How many rows want *event*, and where they are, and with a *scoring* their scores."""
        single = kept_with(event)
        scratch = single.fitting(event)
        while (count := self._match_into(event, scratch, scoring, single.found)) < 0:
            single.grow(~count)
        return single, count

    def _match_into(
        self, event: EventBuffer, scratch: EventScratch, scoring: int, found: SingleMatch
    ) -> int:
        """`_match_one` in one kernel: see `verify_one` for what it returns."""
        columns = event.copy()
        pairs = self._match_tile(columns)
        rows = len(pairs.rows)
        if rows > len(found.row):
            return ~rows
        found.row[:rows] = pairs.rows
        if scoring >= 0:
            how = Scoring(scoring)
            found.score[:rows] = scores_of(self.subscriptions.columns, columns, pairs, how)
        return rows

    def sample(self) -> EventColumns | None:
        return self.history

    def match_live(self, columns: SubscriptionColumns) -> MatchPairs:
        return self._live_choices.completed(columns, self._match_live(columns))

    def _match_live(self, columns: SubscriptionColumns) -> MatchPairs:
        """`match_live`; what it says of events that are one of several counts for nothing."""
        return self._signatures.match(columns, self.live)

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        """The matches of a few events; threads may be in it at the same time."""
        raise NotImplementedError(f"{type(self).__name__} says neither `match` nor `_match_tile`")

    @property
    def count(self) -> int:
        return self.subscriptions.count

    def current_rows(self) -> Int64:
        return self.subscriptions.current_rows()

    def is_current(self, row: int) -> bool:
        return self.subscriptions.is_current(row)

    def until(self, rows: Int64) -> Int64:
        return self.subscriptions.columns.until[rows]

    def positions(self, rows: Int64) -> Float64:
        return self.subscriptions.columns.position.reshape(-1, 2)[rows]

    def columns_of(self, rows: Int64) -> SubscriptionColumns:
        return take(self.subscriptions.columns, rows)

    def columns_with(self, rows: Int64) -> tuple[SubscriptionColumns, Int64]:
        return self.subscriptions.columns, rows

    def stats(self) -> dict[str, Any]:
        columns = self.subscriptions.nbytes + self.live.nbytes
        return {
            "index": self.name,
            "subscriptions": self.subscriptions.current_count,
            "live events": self.live.current_count,
            "bytes": columns + self._signatures.nbytes,
            "bytes of columns": columns,
        }

    def counted_work(self, events: EventColumns) -> dict[str, float]:
        """What matching *events* takes in counted work, by event: for people and benchmarks."""
        before = Tally.candidates
        self.match(events)
        return {"candidates/event": (Tally.candidates - before) / max(1, event_count(events))}

    def check(self) -> None:
        self.subscriptions.check()
        self.live.check()
        self._check_live()

    @classmethod
    def learned_in(cls, folder: Path, columns: SubscriptionColumns) -> Learned:
        """What the index of *columns* that was saved in *folder* had learned, for `build`."""
        return NOTHING_LEARNED

    @classmethod
    def learned_together(cls, base: Learned, delta: Learned, is_base: Bool) -> Learned:
        """What is learned of all rows, from those that are in the base and those in a delta."""
        return NOTHING_LEARNED

    def _take_over(self, learned: Learned) -> None:
        """Adopt what another index has measured, before anything is inserted."""

    # Hooks of a structure; each is called after the tables have changed.
    def _insert_rows(self, first: int) -> None: ...
    def _remove_rows(self, rows: Int64) -> None: ...
    def _move_rows(self, rows: Int64) -> None: ...
    def _hold_events(self, first: int) -> None:
        self._signatures.add(events_between(self.live.columns, first, None))

    def _check_live(self) -> None:
        self._signatures.check(self.live)

    def _drop_events(self, rows: Int64) -> None: ...
    def _renumbered(self, kept: Int64, count: int) -> None:
        """Of *count* live events *kept* are left, each now known by its position there."""
        self._signatures.keep(kept)

    def _open_arrays(self, folder: Path) -> None: ...
