"""A read-only base of any structure, one small mutable delta of the same, tombstones.

What a saved engine opens into and what the pipeline uses: the base is memory-mapped and shared,
the changes since then are few. Rows are those of one index: the base's first, then those that were
inserted later. A row of the base that moves, or that is closed, is inserted into the delta and
hidden in the base; its number stays.

    rows            0 … base rows │ later rows
    _replaced_by    (base rows)     its delta row + 1, where the row was copied there; else 0
    _delta_row      (later rows)    its delta row
    _row_of_delta   (delta rows)    its row
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
    subscription_count,
)
from stentor.encoding.event import EventBuffer
from stentor.encoding.ragged import concatenate, take
from stentor.index.arena import GrowingArray
from stentor.index.contract import NOTHING_LEARNED, Index, Learned
from stentor.index.sort import distinct
from stentor.index.structure import Structure
from stentor.index.table import FROM_THE_START
from stentor.index.verify import best_of
from stentor.model import Scoring

Pairs = TypeVar("Pairs", MatchPairs, ScoredPairs)

#: The delta row of a row that is not in the delta.
NOT_IN_DELTA = -1
#: A delta below this many rows costs less than merging it would.
LEAST_MERGED = 1024


@cache
def layered(structure: type[Structure]) -> type[Layered]:
    """The index class that puts a delta over a base of *structure*."""
    own = {"name": f"{structure.name} layered", "structure": structure, "__module__": __name__}
    return type(f"Layered{structure.__name__}", (Layered,), own)


def _only(pairs: MatchPairs, kept: npt.NDArray[np.bool_]) -> MatchPairs:
    """Those of *pairs* that are *kept*."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    return MatchPairs(before[pairs.starts], pairs.rows[kept])


class Layered(Index):
    """Made by `layered(structure)`; equal in all it answers to one index of that structure.

    Invariant: a row is in one layer at most.
    Invariant: the base changes in nothing but its hidden rows, and holds no live events.
    """

    structure: ClassVar[type[Structure]]

    def __init__(self, base: Structure | None = None) -> None:
        self._base = self.structure() if base is None else base
        self._delta = self.structure()
        self.live = self._delta.live
        # Zeros that nobody touches take no memory, however large the base.
        self._replaced_by = np.zeros(self._base.count, np.int64)
        self._delta_row = GrowingArray(np.int64)
        self._row_of_delta = GrowingArray(np.int64)

    @classmethod
    def build(
        cls,
        columns: SubscriptionColumns,
        history: EventColumns | None = None,
        learned: Learned = NOTHING_LEARNED,
    ) -> Self:
        return cls(cls.structure.build(columns, history, learned))

    @classmethod
    def open(cls, folder: Path, columns: SubscriptionColumns) -> Self:
        return cls(cls.structure.open(folder, columns))

    @property
    def base(self) -> Structure:
        """The layer below, in which only hidden rows change."""
        return self._base

    # Changes.

    def insert(self, columns: SubscriptionColumns, since: int | Int64 = FROM_THE_START) -> int:
        first = self.count
        rows = np.arange(first, first + subscription_count(columns))
        self._delta_row.extend(self._insert_into_delta(columns, rows, since), len(rows))
        return first

    def close(self, rows: Int64, seq: Int64) -> None:
        positions = self._copy_to_delta(rows)
        self._delta.close(positions[positions != NOT_IN_DELTA], seq[positions != NOT_IN_DELTA])

    def remove(self, rows: Int64) -> None:
        positions = self._delta_rows(rows)
        self._base.subscriptions.hide(rows[positions == NOT_IN_DELTA])
        self._delta.remove(positions[positions != NOT_IN_DELTA])

    def move(self, rows: Int64, positions: Float64) -> None:
        delta_rows = self._copy_to_delta(rows)
        is_there = delta_rows != NOT_IN_DELTA
        self._delta.move(delta_rows[is_there], positions[is_there])

    def hold(self, events: EventColumns) -> int:
        return self._delta.hold(events)

    def drop(self, rows: Int64) -> None:
        self._delta.drop(rows)

    def forget_dropped(self) -> Int64:
        return self._delta.forget_dropped()

    def advance(self, now: int) -> None:
        self._delta.advance(now)

    # Matches.

    def match(self, events: EventColumns, *, threads: int = 1) -> MatchPairs:
        found = self._base.match(events, threads=threads)
        if not self._delta.count:
            return found
        return self._merge_pairs(found, self._delta.match(events, threads=threads))

    def top(
        self,
        events: EventColumns,
        k: int,
        *,
        threads: int = 1,
        scoring: Scoring = Scoring.SUM,
    ) -> ScoredPairs:
        """The best of what each layer finds best: with its ties, nothing else can be."""
        found = self._base.top(events, k, threads=threads, scoring=scoring)
        if not self._delta.count:
            return found
        later = self._delta.top(events, k, threads=threads, scoring=scoring)
        return best_of(self._merge_pairs(found, later), k)

    def match_rows(self, events: EventColumns, candidates: MatchPairs) -> MatchPairs:
        delta_rows = self._delta_rows(candidates.rows)
        in_delta = delta_rows != NOT_IN_DELTA
        base = self._base.match_rows(events, _only(candidates, ~in_delta))
        if not in_delta.any():
            return base
        named = _only(candidates._replace(rows=delta_rows), in_delta)
        return self._merge_pairs(base, self._delta.match_rows(events, named))

    def scores(self, events: EventColumns, pairs: MatchPairs, scoring: Scoring) -> Float64:
        delta_rows = self._delta_rows(pairs.rows)
        in_delta = delta_rows != NOT_IN_DELTA
        found = np.empty(len(pairs.rows))
        found[~in_delta] = self._base.scores(events, _only(pairs, ~in_delta), scoring)
        named = _only(pairs._replace(rows=delta_rows), in_delta)
        found[in_delta] = self._delta.scores(events, named, scoring)
        return found

    def match_one(self, event: EventBuffer) -> Int64:
        found = self._base.match_one(event)
        if not self._delta.count:
            return found
        found = found.copy()  # the delta's uses the same memory
        later = self._row_of_delta.view[self._delta.match_one(event)]
        return np.sort(np.concatenate([found, later])) if len(later) else found

    def top_one(self, event: EventBuffer, k: int, scoring: Scoring) -> tuple[Int64, Float64]:
        found = self._base.top_one(event, k, scoring)
        if not self._delta.count:
            return found
        found = found[0].copy(), found[1].copy()
        rows, scores = self._delta.top_one(event, k, scoring)
        rows = np.concatenate([found[0], self._row_of_delta.view[rows]])
        scores = np.concatenate([found[1], scores])
        order = np.argsort(rows)
        best = best_of(ScoredPairs(np.array([0, len(rows)]), rows[order], scores[order]), k)
        return best.rows, best.scores

    def match_live(self, columns: SubscriptionColumns) -> MatchPairs:
        return self._delta.match_live(columns)

    def sample(self) -> EventColumns | None:
        return self._base.sample()

    def is_misfiled(self) -> bool:
        return self._base.is_misfiled()

    @property
    def count(self) -> int:
        return self._base.count + len(self._delta_row)

    def current_rows(self) -> Int64:
        delta = self._delta.current_rows()
        delta = self._row_of_delta.view[
            delta[delta < len(self._row_of_delta)]
        ]  # fewer where `_insert_into_delta` was interrupted
        return np.sort(np.concatenate([self._base.current_rows(), delta]))

    def is_current(self, row: int) -> bool:
        layer, inner = self._layer_of(row)
        return layer.is_current(inner)

    def until(self, rows: Int64) -> Int64:
        positions = self._delta_rows(rows)
        until = np.empty(len(rows), np.int64)
        until[positions == NOT_IN_DELTA] = self._base.until(rows[positions == NOT_IN_DELTA])
        until[positions != NOT_IN_DELTA] = self._delta.until(positions[positions != NOT_IN_DELTA])
        return until

    def positions(self, rows: Int64) -> Float64:
        delta_rows = self._delta_rows(rows)
        positions = np.empty((len(rows), 2))
        in_delta = delta_rows != NOT_IN_DELTA
        positions[~in_delta] = self._base.positions(rows[~in_delta])
        positions[in_delta] = self._delta.positions(delta_rows[in_delta])
        return positions

    def columns_of(self, rows: Int64) -> SubscriptionColumns:
        delta_rows = self._delta_rows(rows)
        is_base = delta_rows == NOT_IN_DELTA
        if is_base.all():
            return self._base.columns_of(rows)
        delta = self._delta.columns_of(delta_rows[~is_base])
        if not is_base.any():
            return delta
        both = concatenate([self._base.columns_of(rows[is_base]), delta])
        order = np.where(is_base, np.cumsum(is_base), is_base.sum() + np.cumsum(~is_base)) - 1
        return take(both, order)

    def columns_with(self, rows: Int64) -> tuple[SubscriptionColumns, Int64]:
        if (self._delta_rows(rows) == NOT_IN_DELTA).all():
            return self._base.columns_with(rows)
        return super().columns_with(rows)

    def learned(self, rows: Int64) -> Learned:
        delta_rows = self._delta_rows(rows)
        is_base = delta_rows == NOT_IN_DELTA
        base, delta = self._base.learned(rows[is_base]), self._delta.learned(delta_rows[~is_base])
        return self.structure.learned_together(base, delta, is_base)

    # Merging.

    def should_merge(self, share: float = 0.2) -> bool:
        """Whether the delta's rows and the base's hidden ones pass a *share* of the base.

        Or whether the base, which cannot rebalance, does not suit the latest events.
        """
        base = self._base.subscriptions
        changed = self._delta.count + base.count - base.current_count
        return changed > max(share * base.count, LEAST_MERGED) or self.is_misfiled()

    def merged(self) -> tuple[Structure, Int64]:
        """A new structure of the current rows, and these rows: its row i is rows[i].

        It does not know since when they hold, so it is for later records only. Live events are not
        in it.

        Cost: building it.
        """
        rows = self.current_rows()
        columns, learned = self.columns_of(rows), self.learned(rows)
        return self.structure.build(columns, self.sample(), learned), rows

    # For people and tests.

    def homes_of(self, row: int) -> tuple[str, ...]:
        layer, inner = self._layer_of(row)
        return layer.homes_of(inner)

    def stats(self) -> dict[str, Any]:
        base, delta = self._base.stats(), self._delta.stats()
        return {
            "index": self.name,
            "subscriptions": base["subscriptions"] + delta["subscriptions"],
            "live events": delta["live events"],
            "bytes": base["bytes"]
            + delta["bytes"]
            + self._delta_row.nbytes
            + self._row_of_delta.nbytes,
            "bytes of columns": base["bytes of columns"] + delta["bytes of columns"],
            "base": base,
            "delta": delta,
        }

    def check(self) -> None:
        self._base.check()
        self._delta.check()
        assert self.live is self._delta.live
        assert self._base.live.count == 0
        hidden, since, upto = self._base.subscriptions.validity
        assert len(since) == len(upto) == 0, "a base has no spans of records"
        assert hidden[self._replaced_by > 0].all()
        positions = self._delta_rows(np.arange(self.count))
        rows = np.flatnonzero(positions != NOT_IN_DELTA)
        assert len(rows) == len(self._row_of_delta) == self._delta.count
        assert (self._row_of_delta.view[positions[rows]] == rows).all()

    # Rows of the layers.

    def _delta_rows(self, rows: Int64) -> Int64:
        """The delta row of each of *rows*, or NOT_IN_DELTA."""
        delta_rows = np.empty(len(rows), np.int64)
        later = rows >= self._base.count
        delta_rows[later] = self._delta_row.view[rows[later] - self._base.count]
        delta_rows[~later] = self._replaced_by[rows[~later]] - 1
        return delta_rows

    def _layer_of(self, row: int) -> tuple[Structure, int]:
        """The layer that *row* is in, and its row there."""
        delta_row = int(self._delta_rows(np.array([row]))[0])
        return (self._base, row) if delta_row == NOT_IN_DELTA else (self._delta, delta_row)

    def _insert_into_delta(
        self, columns: SubscriptionColumns, rows: Int64, since: int | Int64
    ) -> Int64:
        """Insert *columns* into the delta as *rows*; their delta rows."""
        first = self._delta.insert(columns, since)
        self._row_of_delta.extend(rows, len(rows))
        return np.arange(first, first + len(rows))

    def _copy_to_delta(self, rows: Int64) -> Int64:
        """The delta rows of *rows*, copied there if need be; NOT_IN_DELTA for removed ones."""
        base = self._base.subscriptions
        old = distinct(rows[self._delta_rows(rows) == NOT_IN_DELTA])
        old = old[base.validity.hidden[old] == 0]
        if len(old):
            self._replaced_by[old] = (
                self._insert_into_delta(take(base.columns, old), old, FROM_THE_START) + 1
            )
            base.hide(old)
        return self._delta_rows(rows)

    def _merge_pairs(self, base: Pairs, delta: Pairs) -> Pairs:
        """The matches of both layers in one, ascending within each event.

        Cost: linear in the base's matches, a sort of the delta's.
        """
        delta = delta._replace(rows=self._row_of_delta.view[delta.rows])
        base_key, delta_key = (
            np.repeat(np.arange(len(pairs.starts) - 1), np.diff(pairs.starts)) * self.count
            + pairs.rows
            for pairs in (base, delta)
        )
        order = np.argsort(delta_key)
        at = np.searchsorted(base_key, delta_key[order])
        both = [
            np.insert(one, at, other[order]) for one, other in zip(base[1:], delta[1:], strict=True)
        ]
        return type(base)(base.starts + delta.starts, *both)
