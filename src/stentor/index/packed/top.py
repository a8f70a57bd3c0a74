"""The k best of events: what nodes hold is searched by weights, the rest is matched and scored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from stentor.encoding.columns import Int64, MatchPairs, ScoredPairs, all_read_only, event_count
from stentor.index.packed.nodes import Nodes
from stentor.index.packed.nodes.best import BestFound
from stentor.index.packed.nodes.top import BestInputs
from stentor.index.verify import best_of, scores_of
from stentor.model import Scoring

#: Of more best than these, all matches are scored.
MOST_SEARCHED: Final = 1 << 14


def best_rows(
    homes: Sequence[Nodes], inputs: BestInputs, others: MatchPairs, k: int, scoring: Scoring
) -> ScoredPairs:
    """For each event its k best rows of *homes* and of *others*, and ties.

    *others* are the matches that no node holds. Cost: the leaves that may hold one of the best.
    """
    events = event_count(inputs.events)
    scores = scores_of(inputs.columns, inputs.events, others, scoring)
    event = np.repeat(np.arange(events), np.diff(others.starts))
    known = BestFound(event, others.rows, scores)
    for home in homes:
        starts, known = by_event(known, events)
        found = home.top(inputs, k, scoring, starts, known)
        known = BestFound(
            np.concatenate([known.event, found.event]),
            np.concatenate([known.row, found.row]),
            np.concatenate([known.score, found.score]),
        )
    return best_of(each_once(known, events), k)


def by_event(found: BestFound, events: int) -> tuple[Int64, BestFound]:
    """*found* in the order of events, and where those of each begin."""
    order = np.argsort(found.event, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(found.event, minlength=events))])
    return starts.astype(np.int64), all_read_only(_taken(found, order))


def each_once(found: BestFound, events: int) -> ScoredPairs:
    """The rows of each event, ascending, each once with its best score."""
    order = np.lexsort((-found.score, found.row, found.event))
    event, row, score = _taken(found, order)
    is_first = np.ones(len(event), np.bool_)
    is_first[1:] = (event[1:] != event[:-1]) | (row[1:] != row[:-1])
    starts = np.concatenate([[0], np.cumsum(np.bincount(event[is_first], minlength=events))])
    return ScoredPairs(starts.astype(np.int64), row[is_first], score[is_first])


def _taken(found: BestFound, order: Int64) -> BestFound:
    return BestFound(found.event[order], found.row[order], found.score[order])
