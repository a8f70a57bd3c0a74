"""Propagation: expressions by an access predicate, the rest by counting.

An expression with an equality is found by the rarest of its equalities alone; one without is found
by counting which of its intervals hold, in cells of a dimension.

Paper: Fabret, Jacobsen, Llirbat, Pereira, Ross, Shasha: Filtering algorithms and implementation for
very fast publish/subscribe systems (2001).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stentor.encoding.columns import UInt64
from stentor_lab.baselines.counting import CELLS, CountingRival, equal_keys
from stentor_lab.baselines.dimensions import BoundedPredicates


class Propagation(CountingRival):
    """Access predicates, and counting where there is no equality."""

    name = "propagation"
    scheme = CELLS

    def _direct_keys(
        self, bounds: BoundedPredicates, count: int
    ) -> tuple[np.ndarray[Any, Any], UInt64, UInt64]:
        has_key, (key, whole) = np.zeros(count, np.bool_), np.zeros((2, count), np.uint64)
        equal = np.flatnonzero((bounds.low == bounds.high) & np.isfinite(bounds.low))
        rare = equal[np.lexsort((self._dimensions.used[bounds.dimension[equal]], bounds.of[equal]))]
        of, first = np.unique(bounds.of[rare], return_index=True)
        chosen = rare[first]
        keys, wholes = np.empty(len(chosen), np.uint64), np.empty(len(chosen), np.uint64)
        equal_keys(bounds.dimension[chosen], bounds.low[chosen], keys, wholes)
        has_key[of], key[of], whole[of] = True, keys, wholes
        return has_key, key, whole
