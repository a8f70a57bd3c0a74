"""Matches as sets: of some events alone, and what two of them do not have in common."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import Int64, MatchPairs, ScoredPairs
from stentor.encoding.ragged import expand_slices

Pairs = MatchPairs | ScoredPairs


class MatchChanges(NamedTuple):
    """The positive and the negative updates of n moved subscriptions: rows of live events."""

    added: MatchPairs
    removed: MatchPairs


class SetChanges(NamedTuple):
    """What is in the second of two sets of matches alone, in the first alone, and in both."""

    added: MatchPairs
    removed: MatchPairs
    kept: MatchPairs


def match_changes(before: MatchPairs, after: MatchPairs) -> MatchChanges:
    """What is in *after* alone and what is in *before* alone. Cost: a sort of both."""
    return MatchChanges(*set_changes(before, after)[:2])


def set_changes(before: Pairs, after: Pairs) -> SetChanges:
    """How the matches of n events differ from those *before*. Cost: a sort of both."""
    width = 1 + max(before.rows.max(initial=0), after.rows.max(initial=0))
    old, new = _keys(before, width), _keys(after, width)
    count = len(before.starts) - 1
    return SetChanges(
        added=_pairs(np.setdiff1d(new, old, assume_unique=True), width, count),
        removed=_pairs(np.setdiff1d(old, new, assume_unique=True), width, count),
        kept=_pairs(np.intersect1d(new, old, assume_unique=True), width, count),
    )


def pairs_of(pairs: Pairs, positions: Int64) -> Pairs:
    """The matches of the events at *positions*; none where that is negative."""
    start = np.where(positions < 0, 0, pairs.starts[positions])
    stop = np.where(positions < 0, 0, pairs.starts[positions + 1])
    taken, starts = expand_slices(start, stop)
    if isinstance(pairs, ScoredPairs):
        return ScoredPairs(starts, pairs.rows[taken], pairs.scores[taken])
    return MatchPairs(starts, pairs.rows[taken])


def pairs_together(first: Pairs, second: Pairs, is_first: npt.NDArray[np.bool_]) -> Pairs:
    """The matches of events that are in *first*, or, where not *is_first*, in *second*."""
    rows = np.concatenate([first.rows, second.rows])
    starts = np.concatenate([first.starts, first.starts[-1] + second.starts[1:]])
    count = np.count_nonzero(is_first)
    order = np.where(is_first, np.cumsum(is_first), count + np.cumsum(~is_first)) - 1
    if isinstance(first, ScoredPairs) and isinstance(second, ScoredPairs):
        scores = np.concatenate([first.scores, second.scores])
        return pairs_of(ScoredPairs(starts, rows, scores), order)
    return pairs_of(MatchPairs(starts, rows), order)


def _keys(pairs: Pairs, width: int) -> Int64:
    owner = np.repeat(np.arange(len(pairs.starts) - 1), np.diff(pairs.starts))
    return owner * width + pairs.rows


def _pairs(keys: Int64, width: int, count: int) -> MatchPairs:
    keys = np.sort(keys)
    starts = np.searchsorted(keys, np.arange(count + 1) * width).astype(np.int64)
    return MatchPairs(starts, keys % width)
