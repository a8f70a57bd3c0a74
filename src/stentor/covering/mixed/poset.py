"""The strict poset over subscriptions of the whole language."""

from __future__ import annotations

import numpy as np

from stentor.covering.graph.whole import PosetGraph
from stentor.covering.mixed.graph import MixedGraph
from stentor.encoding.columns import Int64, SubscriptionColumns
from stentor.encoding.ragged import take
from stentor.model import Schema


class MixedPoset(PosetGraph):
    """The poset of rows of columns whose attributes *schema* knows; each is compared with all."""

    relation: MixedGraph

    def __init__(self, schema: Schema) -> None:
        super().__init__(MixedGraph(schema))

    @property
    def count(self) -> int:
        """How many rows there are, standing or not."""
        return self.relation.count

    def add(self, columns: SubscriptionColumns) -> Int64:
        """The rows of *columns*, which do not stand yet."""
        return self.relation.add(columns)

    def only(self, rows: Int64) -> MixedPoset:
        """The same poset of *rows* alone, ascending; all that stand are among them."""
        fresh = MixedPoset(self.relation.schema)
        fresh.add(take(self.relation.index.columns, rows))
        number = {row: place for place, row in enumerate(rows.tolist())}
        fresh._standing = np.array(self.standing[rows])
        for mine, theirs in ((self._above, fresh._above), (self._below, fresh._below)):
            for row, others in mine.items():
                theirs[number[row]] = {number[other] for other in others}
        return fresh
