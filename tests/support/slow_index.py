"""What an index must answer, from `evaluate` alone: the oracle of every structure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from stentor.encoding.columns import MatchPairs, ScoredPairs, SubscriptionColumns
from stentor.encoding.events import TimedEvent
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.index.table import FROM_THE_START
from stentor.language.evaluate import evaluate
from stentor.language.normalise import normalise
from stentor.model import Event, Point, Schema, Scoring, Subscription
from stentor.model.values.time import NEVER

Item = TypeVar("Item")


@dataclass(slots=True)
class _Row:
    subscription: Subscription
    since: int
    upto: int = NEVER
    removed: bool = False

    def holds_at(self, arrival: TimedEvent) -> bool:
        until = NEVER if self.subscription.until is None else self.subscription.until
        in_span = self.since < arrival.seq < self.upto and arrival.time < until
        return in_span and not self.removed


class SlowIndex:
    """`Index` over the model: rows of subscriptions, live events, and no structure at all.

    Cost: each event meets each row.
    """

    def __init__(self, subscriptions: Iterable[Subscription] = (), *, plane: bool = False) -> None:
        self._plane = plane
        self._rows: list[_Row] = []
        self._live: list[Event | None] = []
        self.insert(subscriptions)

    def insert(self, subscriptions: Iterable[Subscription], since: int = FROM_THE_START) -> int:
        """Add *subscriptions* that hold for records after *since*; the row of the first."""
        first = len(self._rows)
        self._rows += [_Row(subscription, since) for subscription in subscriptions]
        return first

    def close(self, rows: Iterable[int], seq: int) -> None:
        """Let *rows* hold only for records before *seq*."""
        for row in rows:
            self._rows[row].upto = seq

    def remove(self, rows: Iterable[int]) -> None:
        """Forget *rows*."""
        for row in rows:
            self._rows[row].removed = True

    def move(self, rows: Iterable[int], places: Iterable[Point]) -> None:
        """Put the subscribers *rows* at *places*."""
        for row, place in zip(rows, places, strict=True):
            self._rows[row].subscription = replace(self._rows[row].subscription, at=place)

    def hold(self, events: Iterable[Event]) -> int:
        """Keep live events; the row of the first."""
        first = len(self._live)
        self._live += events
        return first

    def forget_dropped(self) -> list[int]:
        """Give the rows of dropped events back; the old rows of the others."""
        kept = list(self.live())
        self._live = list(self.live().values())
        return kept

    def drop(self, rows: Iterable[int]) -> None:
        """Forget the live events *rows*."""
        for row in rows:
            self._live[row] = None

    def match(self, arrivals: Iterable[TimedEvent]) -> list[list[int]]:
        """For each of *arrivals* the rows that want it."""
        return [[row for row, _ in self._scored(arrival)] for arrival in arrivals]

    def top(
        self, arrivals: Iterable[TimedEvent], k: int, scoring: Scoring = Scoring.SUM
    ) -> list[list[tuple[int, float]]]:
        """For each of *arrivals* its k best rows and all that tie with the k-th, with scores."""
        best = []
        for arrival in arrivals:
            scored = self._scored(arrival, scoring)
            scores = sorted((score for _, score in scored), reverse=True)
            least = scores[:k][-1] if scores else 0.0
            best.append([(row, score) for row, score in scored if score >= least])
        return best

    def match_live(self, subscriptions: Iterable[Subscription]) -> list[list[int]]:
        """For each of *subscriptions* the rows of live events that it wants."""
        return [
            [
                row
                for row, event in enumerate(self._live)
                if event is not None and self._score(subscription, event) is not None
            ]
            for subscription in subscriptions
        ]

    def standing(self) -> dict[int, Subscription]:
        """What is neither removed nor closed, by row."""
        return {
            number: row.subscription
            for number, row in enumerate(self._rows)
            if not row.removed and row.upto == NEVER
        }

    def live(self) -> dict[int, Event]:
        """The live events that were not dropped, by row."""
        return {row: event for row, event in enumerate(self._live) if event is not None}

    def _scored(
        self, arrival: TimedEvent, scoring: Scoring = Scoring.SUM
    ) -> list[tuple[int, float]]:
        found = []
        for number, row in enumerate(self._rows):
            if row.holds_at(arrival):
                score = self._score(row.subscription, arrival.event, scoring)
                if score is not None:
                    found.append((number, score))
        return found

    def _score(
        self, subscription: Subscription, event: Event, scoring: Scoring = Scoring.SUM
    ) -> float | None:
        """The score of *event*; None where it is not wanted."""
        found = evaluate(
            subscription.expression,
            event,
            here=subscription.at,
            plane=self._plane,
            scoring=scoring,
        )
        return found.score if found.truth else None


def encoded(subscriptions: Iterable[Subscription], schema: Schema) -> SubscriptionColumns:
    """The columns of *subscriptions*, whose attributes *schema* knows."""
    return encode_subscriptions(
        [
            NormalisedSubscription(normalise(one.expression), one.at, one.until).checked()
            for one in subscriptions
        ],
        schema,
    )


def rows_by_event(pairs: MatchPairs | ScoredPairs) -> list[list[int]]:
    """The rows of *pairs* as `SlowIndex.match` gives them."""
    return _parts(pairs.rows.tolist(), pairs.starts.tolist())


def scores_by_event(pairs: ScoredPairs) -> list[list[tuple[int, float]]]:
    """The rows and scores of *pairs* as `SlowIndex.top` gives them."""
    scored = list(zip(pairs.rows.tolist(), pairs.scores.tolist(), strict=True))
    return _parts(scored, pairs.starts.tolist())


def _parts(items: Sequence[Item], starts: Sequence[int]) -> list[list[Item]]:
    return [list(items[start:stop]) for start, stop in pairwise(starts)]
