"""Matches of events that are one of several, from the matches of their choices.

Structures match plain events. What differs between the choices of an event is decided here alone:
a row wants it where it wants some choice, and scores as the best of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from stentor.encoding.choices import spread_choices, with_choices
from stentor.encoding.columns import (
    EventColumns,
    Int64,
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
    event_count,
    subscription_count,
)
from stentor.encoding.ragged import concatenate, events_between, take
from stentor.index.live import LiveSignatures
from stentor.index.pairs import pairs_of
from stentor.index.table import EventTable

Pairs = TypeVar("Pairs", MatchPairs, ScoredPairs)


def by_choice(
    events: EventColumns, several: Int64, match: Callable[[EventColumns], Pairs]
) -> Pairs:
    """What *match*, which takes plain events, finds for *events*; *several* leave choices.

    Cost: that of as many events as there are choices.
    """
    plain, of = _plain(events, several)
    return _merged(match(plain), of, event_count(events))


def by_choice_of_pairs(
    events: EventColumns,
    several: Int64,
    candidates: MatchPairs,
    match: Callable[[EventColumns, MatchPairs], MatchPairs],
) -> MatchPairs:
    """The same for what *match* finds among *candidates*."""
    plain, of = _plain(events, several)
    found = match(plain, MatchPairs(*pairs_of(candidates, of)[:2]))
    return _merged(found, of, event_count(events))


def _plain(events: EventColumns, several: Int64) -> tuple[EventColumns, Int64]:
    """Plain events for all of *events*, and of which each is."""
    others = np.delete(np.arange(event_count(events)), several)
    spread = spread_choices(take(events, several))
    plain = concatenate([take(events, others), spread.events])
    return plain, np.concatenate([others, several[spread.of]])


def _merged(pairs: Pairs, of: Int64, count: int) -> Pairs:
    """The *pairs* of plain events as those of the *count* events that they are *of*."""
    event = np.repeat(of, np.diff(pairs.starts))
    arrays: tuple[Any, ...] = pairs[1:]  # rows, and scores where there are any
    order = np.lexsort((*(-scores for scores in arrays[1:]), arrays[0], event))
    event, rows = event[order], arrays[0][order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (event[1:] != event[:-1]) | (rows[1:] != rows[:-1])
    starts = np.append(0, np.cumsum(np.bincount(event[is_first], minlength=count)))
    return type(pairs)(starts, *(array[order[is_first]] for array in arrays))


class LiveChoices:
    """The choices of live events that are one of several."""

    def __init__(self) -> None:
        self._live = EventTable()
        self._several = np.zeros(0, np.int64)  # their rows
        self._of = np.zeros(0, np.int64)  # the row of each choice
        self._choices: EventColumns | None = None

    def hold(self, live: EventTable, first: int) -> None:
        """Take in the events of *live* from row *first* on; 0 where they are numbered anew."""
        if first == 0:
            self.__init__()  # type: ignore[misc]  # nothing is left of what was there
        self._live = live
        several = first + with_choices(events_between(live.columns, first, None))
        if len(several):
            found = spread_choices(take(live.columns, several))
            parts = [found.events] if self._choices is None else [self._choices, found.events]
            self._choices = concatenate(parts)
            self._of = np.concatenate([self._of, several[found.of]])
            self._several = np.concatenate([self._several, several])

    def completed(self, columns: SubscriptionColumns, pairs: MatchPairs) -> MatchPairs:
        """*pairs* of *columns* and live events, with those of events that are one of several.

        Cost: a signature compared per choice and alternative.
        """
        if self._choices is None:
            return pairs
        choices, signatures = EventTable.over(self._choices), LiveSignatures()
        choices.hide(np.flatnonzero(self._live.hidden[self._of]))
        signatures.add(self._choices)
        own = signatures.match(columns, choices)
        is_plain = ~np.isin(pairs.rows, self._several)
        count = subscription_count(columns)
        row = np.repeat(np.arange(count), np.diff(pairs.starts))[is_plain]
        own_row = np.repeat(np.arange(count), np.diff(own.starts))
        of = np.concatenate([row, own_row])
        starts = np.arange(len(of) + 1)
        rows = np.concatenate([pairs.rows[is_plain], self._of[own.rows]])
        return _merged(MatchPairs(starts, rows), of, count)
