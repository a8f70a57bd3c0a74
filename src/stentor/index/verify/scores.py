"""Scores of matches, and the best of them."""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
    all_read_only,
)
from stentor.index.verify.predicates import subscription_score
from stentor.index.verify.scratch import EventScratch, load_event, scratch_for
from stentor.model import Scoring


def scores_of(
    columns: SubscriptionColumns,
    events: EventColumns,
    pairs: MatchPairs,
    scoring: Scoring = Scoring.SUM,
) -> Float64:
    """The score of each of *pairs*, which must match (−∞ where one does not)."""
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
