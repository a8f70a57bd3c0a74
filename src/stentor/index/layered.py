"""A read-only base of any structure, one small mutable delta of the same, tombstones.

What a saved engine opens into and what the pipeline uses: the base is memory-mapped and shared,
the changes since then are few. Rows are those of one index: the base's first, then those that were
inserted later. A row of the base that moves, or that is closed, is filed again in the delta and
hidden in the base; its number stays.

    rows       0 … base rows │ later rows
    _refiled   (base rows)      its delta row + 1, where the row was filed again; else 0
    _filed     (later rows)     its delta row
    _row_of    (delta rows)     the other way round
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
    subscription_count,
)
from stentor.encoding.ragged import concatenate, take
from stentor.index.contract import Index
from stentor.index.growing import GrowingArray
from stentor.index.structure import Structure
from stentor.index.table import ALWAYS
from stentor.index.verify import best_of
from stentor.model import Point, Scoring

Pairs = TypeVar("Pairs", MatchPairs, ScoredPairs)

#: The place of a row that is not in the delta.
IN_BASE = -1
#: A delta below this many rows costs less than merging it would.
LEAST_MERGED = 1024


@cache
def layered(structure: type[Structure]) -> type[Layered]:
    """The index class that puts a delta over a base of *structure*."""
    own = {"name": f"{structure.name} layered", "structure": structure, "__module__": __name__}
    return type(f"Layered{structure.__name__}", (Layered,), own)


class Layered(Index):
    """Made by `layered(structure)`; equal in all it answers to one index of that structure.

    Invariant: a row stands in one layer at most.
    Invariant: the base changes in nothing but its hidden rows, and holds no live events.
    """

    structure: ClassVar[type[Structure]]

    def __init__(self, base: Structure | None = None) -> None:
        self._base = self.structure() if base is None else base
        self._delta = self.structure()
        self.live = self._delta.live
        # Zeros that nobody touches take no memory, however large the base.
        self._refiled = np.zeros(self._base.count, np.int64)
        self._filed = GrowingArray(np.int64)
        self._row_of = GrowingArray(np.int64)

    @classmethod
    def build(cls, columns: SubscriptionColumns, history: EventColumns | None = None) -> Self:
        return cls(cls.structure.build(columns, history))

    @classmethod
    def open(cls, folder: Path, columns: SubscriptionColumns) -> Self:
        return cls(cls.structure.open(folder, columns))

    @property
    def base(self) -> Structure:
        """The layer below, in which nothing changes but what is hidden."""
        return self._base

    # Changes.

    def insert(self, columns: SubscriptionColumns, since: int | Int64 = ALWAYS) -> int:
        first = self.count
        rows = np.arange(first, first + subscription_count(columns))
        self._filed.extend(self._file(columns, rows, since), len(rows))
        return first

    def close(self, rows: Int64, seq: Int64) -> None:
        places = self._filed_again(rows)
        self._delta.close(places[places != IN_BASE], seq[places != IN_BASE])

    def remove(self, rows: Int64) -> None:
        places = self._places(rows)
        self._base.subscriptions.hide(rows[places == IN_BASE])
        self._delta.remove(places[places != IN_BASE])

    def move(self, rows: Int64, positions: Float64) -> None:
        places = self._filed_again(rows)
        self._delta.move(places[places != IN_BASE], positions[places != IN_BASE])

    def hold(self, events: EventColumns) -> int:
        return self._delta.hold(events)

    def drop(self, rows: Int64) -> None:
        self._delta.drop(rows)

    def pass_time(self, now: int) -> None:
        self._delta.pass_time(now)

    # Questions.

    def match(self, events: EventColumns, *, threads: int = 1) -> MatchPairs:
        found = self._base.match(events, threads=threads)
        if not self._delta.count:
            return found
        return self._joined(found, self._delta.match(events, threads=threads))

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
        return best_of(self._joined(found, later), k)

    def match_back(self, columns: SubscriptionColumns) -> MatchPairs:
        return self._delta.match_back(columns)

    @property
    def count(self) -> int:
        return self._base.count + len(self._filed)

    def standing_rows(self) -> Int64:
        delta = self._row_of.view[self._delta.standing_rows()]
        return np.sort(np.concatenate([self._base.standing_rows(), delta]))

    def stands(self, row: int) -> bool:
        layer, inner = self._layer_of(row)
        return layer.stands(inner)

    def until(self, rows: Int64) -> Int64:
        places = self._places(rows)
        until = np.empty(len(rows), np.int64)
        until[places == IN_BASE] = self._base.until(rows[places == IN_BASE])
        until[places != IN_BASE] = self._delta.until(places[places != IN_BASE])
        return until

    def position(self, row: int) -> Point | None:
        layer, inner = self._layer_of(row)
        return layer.position(inner)

    def columns_of(self, rows: Int64) -> SubscriptionColumns:
        places = self._places(rows)
        is_base = places == IN_BASE
        if is_base.all():
            return self._base.columns_of(rows)
        delta = self._delta.columns_of(places[~is_base])
        if not is_base.any():
            return delta
        both = concatenate([self._base.columns_of(rows[is_base]), delta])
        order = np.where(is_base, np.cumsum(is_base), is_base.sum() + np.cumsum(~is_base)) - 1
        return take(both, order)

    # Merging.

    def should_merge(self, share: float = 0.2) -> bool:
        """Whether the delta's rows and the base's hidden ones pass a *share* of the base."""
        base = self._base.subscriptions
        changed = self._delta.count + base.count - base.live_count
        return changed > max(share * base.count, LEAST_MERGED)

    def merged(self) -> tuple[Structure, Int64]:
        """A fresh structure of the rows that stand, and these rows: its row i is rows[i].

        It forgets since when they hold, so it is for the records that come next. Live events stay
        behind.

        Cost: building it.
        """
        rows = self.standing_rows()
        return self.structure.build(self.columns_of(rows)), rows

    # For people and tests.

    def stats(self) -> dict[str, Any]:
        base, delta = self._base.stats(), self._delta.stats()
        return {
            "index": self.name,
            "subscriptions": base["subscriptions"] + delta["subscriptions"],
            "live events": delta["live events"],
            "bytes": base["bytes"] + delta["bytes"] + self._filed.nbytes + self._row_of.nbytes,
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
        assert hidden[self._refiled > 0].all()
        places = self._places(np.arange(self.count))
        rows = np.flatnonzero(places != IN_BASE)
        assert len(rows) == len(self._row_of) == self._delta.count
        assert (self._row_of.view[places[rows]] == rows).all()

    # Rows and places.

    def _places(self, rows: Int64) -> Int64:
        """The delta row of each of *rows*, or IN_BASE."""
        places = np.empty(len(rows), np.int64)
        later = rows >= self._base.count
        places[later] = self._filed.view[rows[later] - self._base.count]
        places[~later] = self._refiled[rows[~later]] - 1
        return places

    def _layer_of(self, row: int) -> tuple[Structure, int]:
        """The layer that *row* is in, and its row there."""
        place = int(self._places(np.array([row]))[0])
        return (self._base, row) if place == IN_BASE else (self._delta, place)

    def _file(self, columns: SubscriptionColumns, rows: Int64, since: int | Int64) -> Int64:
        """Put *columns* into the delta as *rows*; their places."""
        first = self._delta.insert(columns, since)
        self._row_of.extend(rows, len(rows))
        return np.arange(first, first + len(rows))

    def _filed_again(self, rows: Int64) -> Int64:
        """The delta rows of *rows*, which go there if need be; IN_BASE for removed ones."""
        base = self._base.subscriptions
        old = np.unique(rows[self._places(rows) == IN_BASE])
        old = old[base.validity.hidden[old] == 0]
        if len(old):
            self._refiled[old] = self._file(take(base.columns, old), old, ALWAYS) + 1
            base.hide(old)
        return self._places(rows)

    def _joined(self, base: Pairs, delta: Pairs) -> Pairs:
        """The matches of both layers in one, ascending within each event.

        Cost: linear in the base's matches, a sort of the delta's.
        """
        delta = delta._replace(rows=self._row_of.view[delta.rows])
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
