"""SCAN: the verifier asked about every row, one after the other.

Paper: BE*-Tree, section VII; the naive algorithm of every paper.
"""

from __future__ import annotations

from stentor.encoding.columns import EventColumns, MatchPairs
from stentor.index.structure import Structure
from stentor_lab.baselines.rows import matched_by_rows


class RowScan(Structure):
    """No structure at all."""

    name = "row_scan"

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        return matched_by_rows(self.subscriptions, events)

    def counted_work(self, events: EventColumns) -> dict[str, float]:
        return {"candidates/event": float(self.subscriptions.current_count)}
