"""The k best of each event, where equal scores go by id."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import ScoredPairs
from stentor.engine.names import Strings


def k_best(pairs: ScoredPairs, k: int, ids: Strings) -> ScoredPairs:
    """The k best of each event, best first; *pairs* hold all that tie with the k-th."""
    starts = [0]
    rows: list[int] = []
    scores: list[float] = []
    for start, stop in zip(pairs.starts[:-1].tolist(), pairs.starts[1:].tolist(), strict=True):
        ranked = sorted(
            zip(pairs.scores[start:stop].tolist(), pairs.rows[start:stop].tolist(), strict=True),
            key=lambda one: (-one[0], ids[one[1]]),
        )[:k]
        rows += [row for _, row in ranked]
        scores += [score for score, _ in ranked]
        starts.append(len(rows))
    return ScoredPairs(
        np.array(starts, np.int64), np.array(rows, np.int64), np.array(scores, np.float64)
    )
