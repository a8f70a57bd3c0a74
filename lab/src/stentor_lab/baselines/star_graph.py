"""G*: every covering is an edge (paper: Indexing for Subscription Covering, III)."""

from __future__ import annotations

import numpy as np

from stentor.covering.graph.poset import WholeGraph


class StarGraph(WholeGraph):
    """G*: an edge for every pair of which one covers the other."""

    def _connect(self, row: int, above: set[int], below: set[int]) -> None:
        self._link(above, [row])
        self._link([row], below)

    def check(self) -> None:
        super().check()
        rows = np.flatnonzero(self.state)
        for row in rows.tolist():
            above, below = self.relation.related(row, rows[rows != row])
            assert above.tolist() == self.coverers(row)
            assert below.tolist() == self.covered(row)
