"""What every structure inherits: the tables of what it holds, and hooks for what changes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
    event_count,
)
from stentor.encoding.ragged import events_between, take
from stentor.index.backwards import Signatures
from stentor.index.contract import Index
from stentor.index.table import ALWAYS, EventTable, SubscriptionTable
from stentor.index.tiles import over_tiles
from stentor.index.verify import best_of, scores_of
from stentor.index.verify.candidates import Tally
from stentor.model import Point, Scoring


class Structure(Index):
    """An index over its own tables.

    A structure finds the matches of a few events (`_match_tile`) and keeps what it builds beside
    the tables true to them in the hooks at the end. Where it has a better way to answer `top` or
    `match_back` than the ones here, it takes that.
    """

    #: What the structure can be told, and that by one word: `variants.py`.
    settings: ClassVar[Any] = None
    presets: ClassVar[Mapping[str, Any]] = {}

    def __init__(self) -> None:
        self.subscriptions = SubscriptionTable()
        self.live = EventTable()
        self.history: EventColumns | None = None
        self._signatures = Signatures()

    @classmethod
    def build(cls, columns: SubscriptionColumns, history: EventColumns | None = None) -> Self:
        index = cls()
        index.history = history
        index.insert(columns)
        return index

    def save(self, folder: Path) -> None:
        """Write what `open` needs beyond the subscriptions' columns; nothing by default."""

    @classmethod
    def open(cls, folder: Path, columns: SubscriptionColumns) -> Self:
        """A read-only index: rows can be removed, and everything else needs a layer over it."""
        index = cls()
        index.subscriptions = SubscriptionTable.over(columns)
        index._opened(folder)
        return index

    @classmethod
    def over_events(cls, events: EventColumns) -> Self:
        """An index of live events alone, of which nothing is copied: to be matched backwards."""
        index = cls()
        index.live = EventTable.over(events)
        index._held(0)
        return index

    def insert(self, columns: SubscriptionColumns, since: int | Int64 = ALWAYS) -> int:
        first = self.subscriptions.append(columns, since)
        self._inserted(first)
        return first

    def close(self, rows: Int64, seq: Int64) -> None:
        self.subscriptions.close(rows, seq)

    def remove(self, rows: Int64) -> None:
        self.subscriptions.hide(rows)
        self._removed(rows)

    def move(self, rows: Int64, positions: Float64) -> None:
        self.subscriptions.move(rows, positions)
        self._moved(rows)

    def hold(self, events: EventColumns) -> int:
        first = self.live.append(events)
        self._held(first)
        return first

    def drop(self, rows: Int64) -> None:
        self.live.hide(rows)
        self._dropped(rows)

    def match(self, events: EventColumns, *, threads: int = 1) -> MatchPairs:
        return over_tiles(self._match_tile, events, threads)

    def top(
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

        return over_tiles(best, events, threads)

    def match_back(self, columns: SubscriptionColumns) -> MatchPairs:
        return self._signatures.match(columns, self.live)

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        """The matches of a few events; threads may be in it at the same time."""
        raise NotImplementedError(f"{type(self).__name__} says neither `match` nor `_match_tile`")

    @property
    def count(self) -> int:
        return self.subscriptions.count

    def standing_rows(self) -> Int64:
        return self.subscriptions.standing_rows()

    def stands(self, row: int) -> bool:
        return self.subscriptions.stands(row)

    def until(self, rows: Int64) -> Int64:
        return self.subscriptions.columns.until[rows]

    def position(self, row: int) -> Point | None:
        x, y = self.subscriptions.columns.position[2 * row : 2 * row + 2].tolist()
        return None if math.isnan(x) else Point(x, y)

    def columns_of(self, rows: Int64) -> SubscriptionColumns:
        return take(self.subscriptions.columns, rows)

    def stats(self) -> dict[str, Any]:
        return {
            "index": self.name,
            "subscriptions": self.subscriptions.live_count,
            "live events": self.live.live_count,
            "bytes": self.subscriptions.nbytes + self.live.nbytes + self._signatures.nbytes,
        }

    def effort(self, events: EventColumns) -> dict[str, float]:
        """What matching *events* takes in counted work, by event: for people and benchmarks."""
        before = Tally.candidates
        self.match(events)
        return {"candidates/event": (Tally.candidates - before) / max(1, event_count(events))}

    def check(self) -> None:
        self.subscriptions.check()
        self.live.check()
        self._check_held()

    # What a structure hooks into; each is called after the tables have changed.
    def _inserted(self, first: int) -> None: ...
    def _removed(self, rows: Int64) -> None: ...
    def _moved(self, rows: Int64) -> None: ...
    def _held(self, first: int) -> None:
        self._signatures.add(events_between(self.live.columns, first, None))

    def _check_held(self) -> None:
        self._signatures.check(self.live)

    def _dropped(self, rows: Int64) -> None: ...
    def _opened(self, folder: Path) -> None: ...
