"""What every index does.

A structure prunes by what it understands; the shared verifier (`verify/`) tests the rest. So
every structure serves the whole language, and structures differ only in speed. What structures
have in common beyond this contract is in `structure.py`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
)
from stentor.encoding.event import EventBuffer
from stentor.index.pairs import MatchChanges, match_changes
from stentor.index.table import FROM_THE_START, EventTable
from stentor.model import Point, Scoring

#: What an index has measured of its subscriptions, in arrays by name.
Learned = Mapping[str, npt.NDArray[Any]]
NOTHING_LEARNED: Final[Learned] = MappingProxyType({})


class Index(ABC):
    """Subscriptions, which events are matched with, and live events, which subscriptions are.

    Invariant: a row is a subscription's position in the order of insertion; it is never reused.
    Invariant: `match(e)` holds row r exactly where `evaluate` says that r wants e and r holds at
    e's seq.
    """

    name: str
    live: EventTable

    @classmethod
    @abstractmethod
    def build(
        cls,
        columns: SubscriptionColumns,
        history: EventColumns | None = None,
        learned: Learned = NOTHING_LEARNED,
    ) -> Self:
        """An index of *columns*; row i is their i-th subscription.

        *history* is a sample of what is published, for structures that measure what is likely;
        *learned* is what `learned` of another index of the same structure returned for them.
        """

    @classmethod
    @abstractmethod
    def open(cls, folder: Path, columns: SubscriptionColumns) -> Self:
        """An index of what a structure's `save` wrote, over memory-mapped *columns*."""

    def learned(self, rows: Int64) -> Learned:
        """What was measured of *rows*, to be handed to `build` of an index of them alone.

        Arrays by name: by row, or of the whole. A structure passes over what it does not know, and
        nothing that is answered depends on it.
        """
        return NOTHING_LEARNED

    # Changes.

    @abstractmethod
    def insert(self, columns: SubscriptionColumns, since: int | Int64 = FROM_THE_START) -> int:
        """Add subscriptions that hold for records after *since*; the row of the first."""

    @abstractmethod
    def close(self, rows: Int64, seq: Int64) -> None:
        """Let each of *rows* hold only for records before its *seq*; `remove` it afterwards."""

    @abstractmethod
    def remove(self, rows: Int64) -> None:
        """Remove *rows*: no event matches them any more."""

    @abstractmethod
    def move(self, rows: Int64, positions: Float64) -> None:
        """Put the subscribers *rows* at *positions* (n × 2); their rows stay the same."""

    def move_and_match(self, rows: Int64, positions: Float64) -> MatchChanges:
        """`move`, and how it changes which live events each of *rows* (each once) wants."""
        before = self.columns_of(rows)
        self.move(rows, positions)
        return match_changes(self.match_live(before), self.match_live(self.columns_of(rows)))

    @abstractmethod
    def hold(self, events: EventColumns) -> int:
        """Hold live events, for `match_live`; the event row of the first."""

    @abstractmethod
    def drop(self, rows: Int64) -> None:
        """Drop the live events *rows*."""

    @abstractmethod
    def forget_dropped(self) -> Int64:
        """Renumber live events without dropped ones; the old rows of the rest, ascending.

        The row of each is from now on its position there.

        Cost: what the live events hold. Subscriptions are not touched.
        """

    def advance(self, now: int) -> None:
        """Let the time be *now*: live events that end at *now* or before are no longer wanted.

        An index may drop them where it meets them, but need not: the caller drops them, and looks
        at their ends. It counts as a change: nothing is matched meanwhile, and an index may
        rebalance by what was matched before.
        """

    def sample(self) -> EventColumns | None:
        """Some of the latest events, for `build` of an index that replaces this one."""
        return None

    def is_misfiled(self) -> bool:
        """Whether the same index, built anew for `sample`, would be much faster."""
        return False

    # Matches.

    @abstractmethod
    def match(self, events: EventColumns, *, threads: int = 1) -> MatchPairs:
        """For each event the rows that want it."""

    @abstractmethod
    def top(
        self,
        events: EventColumns,
        k: int,
        *,
        threads: int = 1,
        scoring: Scoring = Scoring.SUM,
    ) -> ScoredPairs:
        """For each event its k best rows and all that tie with the k-th; ascending rows."""

    @abstractmethod
    def match_rows(self, events: EventColumns, candidates: MatchPairs) -> MatchPairs:
        """Of the rows that *candidates* name for each event, in any order, those that want it.

        Cost: that of verifying them.
        """

    @abstractmethod
    def scores(self, events: EventColumns, pairs: MatchPairs, scoring: Scoring) -> Float64:
        """The score of each of *pairs*, which match."""

    def match_one(self, event: EventBuffer) -> Int64:
        """The rows that want the first of *event*, which is encoded; void after the next call.

        One thread at a time: memory is kept between calls.
        """
        return self.match(event.copy()).rows

    def top_one(self, event: EventBuffer, k: int, scoring: Scoring) -> tuple[Int64, Float64]:
        """Its k best rows, all that tie with the k-th, and their scores; as for `match_one`."""
        _, rows, scores = self.top(event.copy(), k, scoring=scoring)
        return rows, scores

    @abstractmethod
    def match_live(self, columns: SubscriptionColumns) -> MatchPairs:
        """For each of the subscriptions in *columns* the rows of live events that it wants."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many rows there are, those that were removed too."""

    @abstractmethod
    def current_rows(self) -> Int64:
        """The rows that are neither removed nor closed, ascending."""

    @abstractmethod
    def is_current(self, row: int) -> bool:
        """Whether *row* is neither removed nor closed."""

    @abstractmethod
    def until(self, rows: Int64) -> Int64:
        """When the subscription in each of *rows* ends, or NEVER."""

    @abstractmethod
    def positions(self, rows: Int64) -> Float64:
        """Where the subscriber in each of *rows* is (n × 2); NaN where that is unknown."""

    def position(self, row: int) -> Point | None:
        """Where the subscriber in *row* is."""
        x, y = self.positions(np.array([row], np.int64))[0].tolist()
        return None if math.isnan(x) else Point(x, y)

    @abstractmethod
    def columns_of(self, rows: Int64) -> SubscriptionColumns:
        """The subscriptions in *rows*, in that order; removed ones too."""

    def columns_with(self, rows: Int64) -> tuple[SubscriptionColumns, Int64]:
        """Columns that have *rows*, and where these are in them: copied only if need be."""
        each, positions = np.unique(rows, return_inverse=True)
        return self.columns_of(each), positions

    # For people and tests.

    def homes_of(self, row: int) -> tuple[str, ...]:
        """The part of the structure that each alternative of *row* lies in, if it has several."""
        return ()

    @abstractmethod
    def stats(self) -> dict[str, Any]:
        """Counts and sizes that help a person to judge the structure."""

    @abstractmethod
    def check(self) -> None:
        """Assert every invariant of the structure: for tests."""
