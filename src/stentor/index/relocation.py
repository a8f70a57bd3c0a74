"""What a move changes: live events that a subscriber wants now, and that it wants no more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import Int64, MatchPairs


class Relocation(NamedTuple):
    """The positive and the negative updates of n moved subscriptions: rows of live events."""

    added: MatchPairs
    removed: MatchPairs


def difference(before: MatchPairs, after: MatchPairs) -> Relocation:
    """What is in *after* alone and what is in *before* alone. Cost: a sort of both."""
    width = 1 + max(before.rows.max(initial=0), after.rows.max(initial=0))
    old, new = _keys(before, width), _keys(after, width)
    count = len(before.starts) - 1
    return Relocation(
        added=_pairs(np.setdiff1d(new, old, assume_unique=True), width, count),
        removed=_pairs(np.setdiff1d(old, new, assume_unique=True), width, count),
    )


def _keys(pairs: MatchPairs, width: int) -> Int64:
    owner = np.repeat(np.arange(len(pairs.starts) - 1), np.diff(pairs.starts))
    return owner * width + pairs.rows


def _pairs(keys: Int64, width: int, count: int) -> MatchPairs:
    starts = np.searchsorted(keys, np.arange(count + 1) * width).astype(np.int64)
    return MatchPairs(starts, keys % width)
