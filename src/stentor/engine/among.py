"""Events that are for some subscriptions only: those that have all of the labels that are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, MatchPairs, ScoredPairs
from stentor.encoding.ragged import take
from stentor.engine.state import State
from stentor.engine.tags import Among
from stentor.engine.top_k import TopK, k_best
from stentor.index.pairs import pairs_together
from stentor.index.verify import best_of

#: Where the labels are those of a larger share of all subscriptions, the index finds them faster.
LARGE_SHARE = 0.05
FEW_ROWS = 1_000


def match_among(
    state: State,
    events: EventColumns,
    among: Sequence[Among | None],
    match: Callable[[EventColumns], MatchPairs | ScoredPairs],
    top: TopK | None,
) -> MatchPairs | ScoredPairs:
    """For each event the rows that want it among those that have its labels; *match* for others.

    Cost: that of verifying the rows that have the labels.
    """
    labels = [one for one in among if one is not None]
    if len(labels) == len(among):
        return _labelled(state, events, labels, top)
    is_for_all = np.array([one is None for one in among], np.bool_)
    found = _labelled(state, take(events, np.flatnonzero(~is_for_all)), labels, top)
    return pairs_together(match(take(events, np.flatnonzero(is_for_all))), found, is_for_all)


def _labelled(
    state: State, events: EventColumns, among: Sequence[Among], top: TopK | None
) -> MatchPairs | ScoredPairs:
    rows_of: dict[Among, Int64] = {}
    for one in among:
        if one not in rows_of:
            rows_of[one] = state.tags.rows_among(one)
    most = max(FEW_ROWS, LARGE_SHARE * state.index.count)
    if all(len(rows) > most for rows in rows_of.values()):
        pairs = _filtered(state, state.index.match(events), among)
    else:
        starts = np.zeros(len(among) + 1, np.int64)
        np.cumsum([len(rows_of[one]) for one in among], out=starts[1:])
        rows = np.concatenate([np.zeros(0, np.int64), *(rows_of[one] for one in among)])
        pairs = state.index.match_rows(events, MatchPairs(starts, rows))
    if top is None:
        return pairs
    scores = state.index.scores(events, pairs, top.scoring)
    return k_best(best_of(ScoredPairs(*pairs, scores), top.k), top.k, state.subscribers.ids)


def _filtered(state: State, pairs: MatchPairs, among: Sequence[Among]) -> MatchPairs:
    """Those of *pairs* whose rows have the labels of their event."""
    kept = np.zeros(len(pairs.rows), np.bool_)
    for event, one in enumerate(among):
        own = slice(int(pairs.starts[event]), int(pairs.starts[event + 1]))
        kept[own] = state.tags.have(pairs.rows[own], one)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    return MatchPairs(before[pairs.starts], pairs.rows[kept])
