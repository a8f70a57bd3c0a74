"""What every index does.

A structure prunes by what it understands; the shared verifier (`verify/`) settles the rest. So
every structure serves the whole language, and structures differ only in speed. What structures
have in common beyond this contract stands in `structure.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
)
from stentor.index.relocation import Relocation, difference
from stentor.index.table import ALWAYS, EventTable
from stentor.model import Point, Scoring


class Index(ABC):
    """Subscriptions that events are matched with, and live events that subscriptions are.

    Invariant: a row is a subscription's place in the order of insertion; it is never reused.
    Invariant: `match(e)` holds row r exactly where `evaluate` says that r wants e and r holds at
    e's place in the order of records.
    """

    name: str
    live: EventTable

    @classmethod
    @abstractmethod
    def build(cls, columns: SubscriptionColumns, history: EventColumns | None = None) -> Self:
        """An index of *columns*; row i is their i-th subscription.

        *history* is a sample of what is published, for structures that measure what is likely.
        """

    @classmethod
    @abstractmethod
    def open(cls, folder: Path, columns: SubscriptionColumns) -> Self:
        """An index of what a structure's `save` wrote, over memory-mapped *columns*."""

    # Changes.

    @abstractmethod
    def insert(self, columns: SubscriptionColumns, since: int | Int64 = ALWAYS) -> int:
        """Add subscriptions that hold for records after *since*; the row of the first."""

    @abstractmethod
    def close(self, rows: Int64, seq: Int64) -> None:
        """Let each of *rows* hold only for records before its *seq*; `remove` it afterwards."""

    @abstractmethod
    def remove(self, rows: Int64) -> None:
        """Forget *rows*: no event matches them any more."""

    @abstractmethod
    def move(self, rows: Int64, positions: Float64) -> None:
        """Put the subscribers *rows* at *positions* (n × 2); their rows stay the same."""

    def relocate(self, rows: Int64, positions: Float64) -> Relocation:
        """`move`, and how it changes which live events each of *rows* (each once) wants."""
        before = self.columns_of(rows)
        self.move(rows, positions)
        return difference(self.match_back(before), self.match_back(self.columns_of(rows)))

    @abstractmethod
    def hold(self, events: EventColumns) -> int:
        """Keep live events, to be matched backwards; the event row of the first."""

    @abstractmethod
    def drop(self, rows: Int64) -> None:
        """Forget the live events *rows*."""

    def pass_time(self, now: int) -> None:
        """Know that nobody asks any more for live events that end at *now* or before.

        An index may forget them where it meets them, and nothing else depends on it: whoever holds
        events drops them, and looks at their ends.
        """

    # Questions.

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
    def match_back(self, columns: SubscriptionColumns) -> MatchPairs:
        """For each of the subscriptions in *columns* the rows of live events that it wants."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many rows there are, those that were removed too."""

    @abstractmethod
    def standing_rows(self) -> Int64:
        """The rows that are neither removed nor closed, ascending."""

    @abstractmethod
    def stands(self, row: int) -> bool:
        """Whether *row* is neither removed nor closed."""

    @abstractmethod
    def until(self, rows: Int64) -> Int64:
        """When the subscription in each of *rows* ends, or NEVER."""

    @abstractmethod
    def position(self, row: int) -> Point | None:
        """Where the subscriber in *row* is."""

    @abstractmethod
    def columns_of(self, rows: Int64) -> SubscriptionColumns:
        """The subscriptions in *rows*, in that order; removed ones too."""

    # For people and tests.

    @abstractmethod
    def stats(self) -> dict[str, Any]:
        """Counts and sizes that help a person to judge the structure."""

    @abstractmethod
    def check(self) -> None:
        """Assert every invariant of the structure: for tests."""
