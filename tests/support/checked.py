"""An index that does everything on a scan too and compares: any demo or job becomes a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
)
from stentor.index.contract import NOTHING_LEARNED, Index, Learned
from stentor.index.pairs import MatchChanges
from stentor.index.scan import Scan
from stentor.index.table import FROM_THE_START
from stentor.model import Scoring
from stentor.model.values.time import BEGINNING

#: Differences that a message names before it only counts them.
MOST_NAMED = 5


def checked(inner: type[Index]) -> type[Checked]:
    """The index class that does what *inner* does, and compares it with a scan."""
    own = {"inner": inner, "__module__": __name__}
    return type(f"Checked{inner.__name__}", (Checked,), own)


class Checked(Index):
    """Another index, which every answer is asked of, and a scan that has to agree.

    `Checked(index)` goes on from what *index* holds; `checked(cls)` is a class like any other.
    Raises AssertionError with what is missing and what is too much.
    """

    inner: ClassVar[type[Index]] = Scan

    def __init__(self, index: Index | None = None) -> None:
        self.index = self.inner() if index is None else index
        self.name = f"{self.index.name} checked"
        self.live = self.index.live
        self._now = BEGINNING
        everything = np.arange(self.index.count)
        self.scan = Scan.build(self.index.columns_of(everything))
        self.scan.remove(np.setdiff1d(everything, self.index.current_rows()))
        self.scan.hold(self.live.columns)
        self.scan.drop(np.flatnonzero(self.live.hidden))

    @classmethod
    def build(
        cls,
        columns: SubscriptionColumns,
        history: EventColumns | None = None,
        learned: Learned = NOTHING_LEARNED,
    ) -> Self:
        return cls(cls.inner.build(columns, history, learned))

    @classmethod
    def open(cls, folder: Path, columns: SubscriptionColumns) -> Self:
        return cls(cls.inner.open(folder, columns))

    # Changes.

    def insert(self, columns: SubscriptionColumns, since: int | Int64 = FROM_THE_START) -> int:
        first = self.index.insert(columns, since)
        self._agree("insert", first, self.scan.insert(columns, since))
        return first

    def close(self, rows: Int64, seq: Int64) -> None:
        self.index.close(rows, seq)
        self.scan.close(rows, seq)

    def remove(self, rows: Int64) -> None:
        self.index.remove(rows)
        self.scan.remove(rows)

    def move(self, rows: Int64, positions: Float64) -> None:
        self.index.move(rows, positions)
        self.scan.move(rows, positions)

    def move_and_match(self, rows: Int64, positions: Float64) -> MatchChanges:
        found = self.index.move_and_match(rows, positions)
        expected = self.scan.move_and_match(rows, positions)
        for what, one, other in zip(found._fields, found, expected, strict=True):
            self._agree_on_pairs(
                f"relocate: {what}", "row", self._asked_for(one), self._asked_for(other)
            )
        return found

    def hold(self, events: EventColumns) -> int:
        first = self.index.hold(events)
        self._agree("hold", first, self.scan.hold(events))
        return first

    def drop(self, rows: Int64) -> None:
        self.index.drop(rows)
        self.scan.drop(rows)

    def forget_dropped(self) -> Int64:
        kept = self.index.forget_dropped()
        self._agree("forget dropped", kept.tolist(), self.scan.forget_dropped().tolist())
        return kept

    def learned(self, rows: Int64) -> Learned:
        return self.index.learned(rows)

    def advance(self, now: int) -> None:
        self.index.advance(now)
        self._now = max(self._now, now)

    # Questions.

    def match(self, events: EventColumns, *, threads: int = 1) -> MatchPairs:
        found = self.index.match(events, threads=threads)
        self._agree_on_pairs("match", "event", found, self.scan.match(events))
        return found

    def match_rows(self, events: EventColumns, candidates: MatchPairs) -> MatchPairs:
        found = self.index.match_rows(events, candidates)
        expected = self.scan.match_rows(events, candidates)
        self._agree_on_pairs("match rows", "event", found, expected)
        return found

    def scores(self, events: EventColumns, pairs: MatchPairs, scoring: Scoring) -> Float64:
        found = self.index.scores(events, pairs, scoring)
        self._agree("scores", found.tolist(), self.scan.scores(events, pairs, scoring).tolist())
        return found

    def top(
        self,
        events: EventColumns,
        k: int,
        *,
        threads: int = 1,
        scoring: Scoring = Scoring.SUM,
    ) -> ScoredPairs:
        found = self.index.top(events, k, threads=threads, scoring=scoring)
        expected = self.scan.top(events, k, scoring=scoring)
        self._agree_on_pairs(f"top {k}", "event", found, expected)
        return found

    def match_live(self, columns: SubscriptionColumns) -> MatchPairs:
        found = self.index.match_live(columns)
        expected = self.scan.match_live(columns)
        self._agree_on_pairs(
            "match_back", "subscription", self._asked_for(found), self._asked_for(expected)
        )
        return found

    def _asked_for(self, pairs: MatchPairs) -> MatchPairs:
        """*pairs* without events that have ended: an index may have forgotten those."""
        is_live = self.live.columns.until[pairs.rows] > self._now
        before = np.concatenate([[0], np.cumsum(is_live)])
        return MatchPairs(before[pairs.starts], pairs.rows[is_live])

    @property
    def count(self) -> int:
        self._agree("count", self.index.count, self.scan.count)
        return self.index.count

    def current_rows(self) -> Int64:
        rows = self.index.current_rows()
        self._agree("standing_rows", rows.tolist(), self.scan.current_rows().tolist())
        return rows

    def is_current(self, row: int) -> bool:
        self._agree(f"stands({row})", self.index.is_current(row), self.scan.is_current(row))
        return self.index.is_current(row)

    def until(self, rows: Int64) -> Int64:
        until = self.index.until(rows)
        self._agree("until", until.tolist(), self.scan.until(rows).tolist())
        return until

    def positions(self, rows: Int64) -> Float64:
        positions = self.index.positions(rows)
        self._agree("positions", str(positions.tolist()), str(self.scan.positions(rows).tolist()))
        return positions

    def columns_of(self, rows: Int64) -> SubscriptionColumns:
        columns, expected = self.index.columns_of(rows), self.scan.columns_of(rows)
        for name, array in columns._asdict().items():
            same = np.array_equal(
                array, getattr(expected, name), equal_nan=array.dtype == np.float64
            )
            assert same, f"{self.index.name}: columns_of gives another {name} than the scan"
        return columns

    # For people and tests.

    def stats(self) -> dict[str, Any]:
        return {**self.index.stats(), "index": self.name}

    def check(self) -> None:
        self.index.check()
        self.scan.check()
        self.current_rows()
        live = self.index.live.current_rows().tolist()
        self._agree("live events", live, self.scan.live.current_rows().tolist())

    def _agree(self, what: str, found: object, expected: object) -> None:
        assert found == expected, f"{self.index.name}: {what}: {found}, scan: {expected}"

    def _agree_on_pairs(
        self,
        call: str,
        left: str,
        found: MatchPairs | ScoredPairs,
        expected: MatchPairs | ScoredPairs,
    ) -> None:
        if all(map(np.array_equal, found, expected)):
            return
        differences = list(_differences(left, found, expected))
        named = differences[:MOST_NAMED]
        if len(differences) > len(named):
            named.append(f"and {len(differences) - len(named)} more")
        raise AssertionError(
            "\n    ".join([f"{self.index.name}: {call} differs from scan", *named])
        )


def _differences(
    left: str, found: MatchPairs | ScoredPairs, expected: MatchPairs | ScoredPairs
) -> Iterator[str]:
    """A line for each left-hand row of which *found* says something else than *expected*."""
    if len(found.starts) != len(expected.starts):
        yield f"{len(found.starts) - 1} {left}s answered, expected {len(expected.starts) - 1}"
        return
    for row in range(len(expected.starts) - 1):
        here, there = _answer(found, row), _answer(expected, row)
        if here == there:
            continue
        missing = [one for one in there if one not in set(here)]
        extra = [one for one in here if one not in set(there)]
        what = [f"missing {missing}"] if missing else []
        what += [f"too much {extra}"] if extra else []
        yield f"{left} {row}: {', '.join(what) or f'{here} in another order than {there}'}"


def _answer(pairs: MatchPairs | ScoredPairs, row: int) -> list[Any]:
    """The matches of one left-hand row, with their scores where they have some."""
    its = slice(pairs.starts[row], pairs.starts[row + 1])
    rows: list[Any] = pairs.rows[its].tolist()
    return (
        list(zip(rows, pairs.scores[its].tolist(), strict=True))
        if isinstance(pairs, ScoredPairs)
        else rows
    )
