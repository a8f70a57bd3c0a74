"""The k best of each event, where equal scores go by id."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stentor.encoding.columns import Float64, Int64, ScoredPairs
from stentor.engine.names import Strings
from stentor.model import Scoring


class Best(NamedTuple):
    """Of an event's matches, the *k* that score highest."""

    k: int
    scoring: Scoring = Scoring.SUM


def k_best(pairs: ScoredPairs, k: int, ids: Strings) -> ScoredPairs:
    """The k best of each event, best first; *pairs* hold all that tie with the k-th."""
    counts = np.diff(pairs.starts)
    event = np.repeat(np.arange(len(counts)), counts)
    kept = best_places(event, pairs.scores, ids.take(pairs.rows), k)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.minimum(counts, k))])
    return ScoredPairs(starts, pairs.rows[kept], pairs.scores[kept])


def best_places(event: Int64, scores: Float64, ids: Any, k: int) -> Int64:
    """The places of each event's k best among matches of any order; by event, best first.

    *ids*, an Arrow array of strings, go by their code points.

    Cost: a sort.
    """
    table = pa.table({"event": event, "score": scores, "id": ids})
    keys = [("event", "ascending"), ("score", "descending"), ("id", "ascending")]
    order: Int64 = pc.sort_indices(table, sort_keys=keys).to_numpy().astype(np.int64)
    ranked = event[order]
    return order[np.arange(len(order)) - np.searchsorted(ranked, ranked) < k]
