"""The last step of every structure: candidates in any order → matches, each row once; scores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_inline
from stentor.encoding.choices import choices_of_pairs, with_choices
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
    UInt8,
    all_read_only,
    event_count,
    read_only,
)
from stentor.index.sort import sort_slice
from stentor.index.table import RowSpans
from stentor.index.verify.predicates import alternative_holds, is_valid_at, subscription_score
from stentor.index.verify.scratch import EventScratch, load_event, scratch_for
from stentor.model import Scoring


class Candidates(NamedTuple):
    """Pairs of an event and an alternative that a structure could not rule out."""

    event: Int64  # (candidates,)
    alternative: Int64  # (candidates,)
    covered: UInt8  # (candidates,) 1 where the structure proved the match, or (0,): nowhere


class Tally:
    """How many candidates this process has verified: for people, so threads may lose a few."""

    candidates = 0


class CandidateCounts:
    """How many candidates each event had: while it is counting, in this context and its threads."""

    def __init__(self) -> None:
        self.by_event: Int64 = np.zeros(0, np.int64)  # of the events that were matched, in order
        self._parts: list[tuple[Int64, Int64]] = []

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what is verified meanwhile."""
        token = _COUNTS.set(self)
        try:
            yield
        finally:
            _COUNTS.reset(token)

    def add(self, seq: Int64, starts: Int64) -> None:
        """Add the candidates of events: those of the i-th begin at starts[i]."""
        self._parts.append((seq, np.diff(starts)))

    def sum_up(self, seq: Int64) -> None:
        """Let `by_event` be the sums of what was added, for events of ascending *seq*."""
        self.by_event = np.zeros(len(seq), np.int64)
        for part, counts in self._parts:
            np.add.at(self.by_event, np.searchsorted(seq, part), counts)
        self._parts.clear()


_COUNTS: ContextVar[CandidateCounts | None] = ContextVar("candidate counts", default=None)


def current_counts() -> CandidateCounts | None:
    """What counts candidates just now."""
    return _COUNTS.get()


def verify(
    columns: SubscriptionColumns,
    validity: RowSpans,
    events: EventColumns,
    candidates: Candidates,
) -> MatchPairs:
    """The rows that match, event by event; only candidates that are not covered are verified.

    Cost: O(candidates), and a sort of an event's rows where they were not found in order.
    """
    count = len(candidates.event)
    Tally.candidates += count
    starts = np.zeros(event_count(events) + 1, np.int64)
    order = np.empty(count, np.int64)
    group_by_event(read_only(candidates.event), starts, order)
    if (counts := current_counts()) is not None:
        counts.add(events.seq, starts)
    rows = np.empty(count, np.int64)
    found = verify_candidates(
        columns,
        validity,
        events,
        all_read_only(candidates),
        read_only(order),
        scratch_for(events),
        starts,
        rows,
    )
    return MatchPairs(starts, rows[:found])


@kernel
def group_by_event(event: Int64, starts: Int64, order: Int64) -> None:
    """A counting sort: the positions of *event* in *order*; those of event e start at starts[e].

    *starts* comes as zeros; equal events stay in the order in which they came.
    """
    for position in range(len(event)):
        starts[event[position] + 1] += 1
    for one in range(1, len(starts)):
        starts[one] += starts[one - 1]
    for position in range(len(event)):
        one = event[position]
        order[starts[one]] = position
        starts[one] += 1
    for one in range(len(starts) - 1, 0, -1):
        starts[one] = starts[one - 1]
    starts[0] = 0


@kernel
def verify_candidates(
    columns: SubscriptionColumns,
    validity: RowSpans,
    events: EventColumns,
    candidates: Candidates,
    order: Int64,
    scratch: EventScratch,
    starts: Int64,
    rows: Int64,
) -> int:
    """Keep what matches: *rows* gets each event's, *starts* where they start; returns how many.

    *starts* comes as the starts of the events in *order*. An event is spread out only where one
    of its candidates needs it. Never more rows than candidates, so *rows* cannot overflow.
    """
    found = 0
    stop = 0
    for event in range(len(starts) - 1):
        start, stop = stop, starts[event + 1]
        first = found
        starts[event] = found
        spread = False
        for position in order[start:stop]:
            alternative = candidates.alternative[position]
            row = row_of(columns.alternative_start, alternative)
            if found > first and rows[found - 1] == row:
                continue  # another alternative of the same subscription
            if not is_valid_at(columns, validity, row, events, event):
                continue
            if len(candidates.covered) == 0 or candidates.covered[position] == 0:
                if not spread:
                    load_event(events, event, scratch)
                    spread = True
                if not alternative_holds(columns, alternative, scratch):
                    continue
            rows[found] = row
            found += 1
        found = sort_rows(rows, first, found)
    starts[len(starts) - 1] = found
    return found


@kernel_inline
def sort_rows(rows: Int64, start: int, stop: int) -> int:
    """Sort a slice of *rows*, each once; where it ends then."""
    is_sorted = True
    for position in range(start + 1, stop):
        is_sorted &= rows[position - 1] < rows[position]
    if is_sorted:
        return stop
    sort_slice(rows, start, stop)
    kept = start + 1
    for position in range(start + 1, stop):
        if rows[position] != rows[kept - 1]:
            rows[kept] = rows[position]
            kept += 1
    return kept


@kernel_inline
def row_of(alternative_start: Int64, alternative: int) -> int:
    """The subscription that *alternative* belongs to."""
    start, stop = 0, len(alternative_start) - 1
    same = alternative  # where every subscription has one alternative
    if same < stop and alternative_start[same] <= alternative < alternative_start[same + 1]:
        return same
    while stop - start > 1:
        middle = (start + stop) >> 1
        if alternative_start[middle] <= alternative:
            start = middle
        else:
            stop = middle
    return start


def scores_of(
    columns: SubscriptionColumns,
    events: EventColumns,
    pairs: MatchPairs,
    scoring: Scoring = Scoring.SUM,
) -> Float64:
    """The score of each of *pairs*, which must match (−∞ where one does not)."""
    if len(with_choices(events)):
        choices, named, of = choices_of_pairs(events, pairs)
        best = np.full(len(pairs.rows), -np.inf)
        np.maximum.at(best, of, scores_of(columns, choices, named, scoring))
        return best
    scores = np.empty(len(pairs.rows))
    score_pairs(columns, events, all_read_only(pairs), scratch_for(events), int(scoring), scores)
    return scores


def best_of(pairs: ScoredPairs, k: int) -> ScoredPairs:
    """Of each event's pairs those that score at least as much as its k-th best; k ≥ 1.

    Cost: a sort of all pairs.
    """
    starts, rows, scores = pairs
    if not len(rows):
        return pairs
    counts = np.diff(starts)
    event = np.repeat(np.arange(len(counts)), counts)
    ranked = scores[np.lexsort((-scores, event))]
    last = np.minimum(starts[:-1] + k, starts[1:]) - 1  # of an empty event: never looked up
    keep = scores >= np.repeat(ranked[last], counts)
    kept = np.concatenate([[0], np.cumsum(keep)])
    return ScoredPairs(kept[starts], rows[keep], scores[keep])


@kernel
def score_pairs(
    columns: SubscriptionColumns,
    events: EventColumns,
    pairs: MatchPairs,
    scratch: EventScratch,
    scoring: int,
    scores: Float64,
) -> None:
    """Fill *scores*: for each of *pairs* the best alternative that holds."""
    for event in range(len(pairs.starts) - 1):
        start, stop = pairs.starts[event], pairs.starts[event + 1]
        if start < stop:
            load_event(events, event, scratch)
        for position in range(start, stop):
            scores[position] = subscription_score(columns, pairs.rows[position], scratch, scoring)
