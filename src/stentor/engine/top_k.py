"""The k best of each event, where equal scores go by id."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stentor.encoding.columns import Float64, Int64, ScoredPairs
from stentor.engine.ids import StringStore
from stentor.errors import SettingsError
from stentor.model import Scoring
from stentor.model.values.string import describe

#: The largest number that kernels count to.
_MOST = 2**31 - 1


class TopK(NamedTuple):
    """Of an event's matches, the *k* that score highest."""

    k: int
    scoring: Scoring = Scoring.SUM

    @classmethod
    def read(cls, top: int | None, scoring: Scoring | str) -> TopK | None:
        """What the user wants, checked; None where all matches are wanted."""
        how = Scoring.named(scoring)
        return None if top is None else cls(read_count("top", top), how)


def read_count(name: str, count: Any) -> int:
    """*count* as a whole number that kernels can count to."""
    is_whole = isinstance(count, (int, np.integer)) and not isinstance(
        count, (bool, np.timedelta64)
    )
    if not is_whole or not 1 <= int(count) <= _MOST:
        raise SettingsError(
            f"{name} is {describe(count)}; expected a whole number of at least 1, at most {_MOST:,}"
        )
    return int(count)


def best_by_id(ids: list[str], scores: list[float], k: int) -> list[tuple[str, float]]:
    """The k best of one event, best first, equal ones by id."""
    return sorted(zip(ids, scores, strict=True), key=lambda one: (-one[1], one[0]))[:k]


def k_best(pairs: ScoredPairs, k: int, ids: StringStore) -> ScoredPairs:
    """The k best of each event, best first; *pairs* hold all that tie with the k-th."""
    counts = np.diff(pairs.starts)
    event = np.repeat(np.arange(len(counts)), counts)
    kept = top_positions(event, pairs.scores, ids.take(pairs.rows), k)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.minimum(counts, k))])
    return ScoredPairs(starts, pairs.rows[kept], pairs.scores[kept])


def top_positions(event: Int64, scores: Float64, ids: Any, k: int) -> Int64:
    """The positions of each event's k best among matches of any order; by event, best first.

    *ids*, an Arrow array of strings, go by their code points.

    Cost: a sort.
    """
    table = pa.table({"event": event, "score": scores, "id": ids})
    keys = [("event", "ascending"), ("score", "descending"), ("id", "ascending")]
    order: Int64 = pc.sort_indices(table, sort_keys=keys).to_numpy().astype(np.int64)
    ranked = event[order]
    return order[np.arange(len(order)) - np.searchsorted(ranked, ranked) < k]
