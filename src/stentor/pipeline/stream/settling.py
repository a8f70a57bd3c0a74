"""The third step of a micro-batch: changes in their order → segments of versions.

What the changes of one id amount to depends on no other id, so the ids are shared out by hash:
among the workers where there are many changes, else the driver does it itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from stentor.engine.names import NO_ROW
from stentor.engine.plan import Operation
from stentor.pipeline.commit.manifests import Segment, TableFile
from stentor.pipeline.stream.changes import Changes, Settled, settle, share_of, sorted_changes
from stentor.pipeline.stream.ordering import open_order
from stentor.pipeline.stream.parts import open_changes, open_rows
from stentor.pipeline.stream.rejections import Rejections
from stentor.pipeline.stream.replicas import ShardVersion, replica
from stentor.pipeline.stream.segments import write_segment
from stentor.pipeline.tables.files import moments, write_file


class SettleReport(msgspec.Struct, frozen=True):
    """What a share of the changes led to."""

    segment: Segment | None
    files: dict[str, list[TableFile]]


@dataclass(frozen=True)
class Settling:
    """The settling step of one micro-batch, in the workers or on the driver itself.

    A task's number is its share: shard by shard, each in *shares* parts.
    """

    path: str
    work: str
    batch: int
    batch_time: int
    parts: tuple[str, ...]
    shards: tuple[ShardVersion, ...]  # as the batch before left them
    shares: int

    def task(self, number: int) -> SettleReport:
        """Settle one share."""
        version = self.shards[number // self.shares]
        changes = self._changes(version.shard, number % self.shares)
        state = replica(version).settle()
        settled = settle(changes, state)
        segment = None
        if len(settled.accepted):
            batches = self.batch, self.batch
            # Those that are over count until the next base leaves them behind.
            growth = sum(
                (last is not None) - (state.subscribers.row(id) != NO_ROW)
                for id, last in settled.plan.touched.items()
            )
            segment = write_segment(
                Path(self.path),
                version.shard,
                batches,
                settled.versions,
                settled.asked,
                growth=growth,
            )
        files = {
            "rejected": self._rejected(changes, settled.errors),
            "subscriptions": self._logged(changes, settled),
        }
        return SettleReport(segment, files)

    def _changes(self, shard: int, share: int) -> Changes:
        work = Path(self.work)
        parts = [open_changes(work, name) for name in self.parts]
        hashes = np.concatenate([part.ids.hashes() for part in parts])
        rows = share_of(hashes, shard, len(self.shards), share, self.shares)
        return sorted_changes(parts, open_order(work, "changes"), rows)

    def _rejected(self, changes: Changes, errors: dict[int, str]) -> list[TableFile]:
        rejections = Rejections()
        tables: dict[int, Any] = {}
        for change, reason in sorted(errors.items()):
            part = int(changes.part[change])
            if part not in tables:
                tables[part] = open_rows(Path(self.work), self.parts[part])
            rejections.add_row(tables[part], int(changes.row[change]), reason)
            rejections.relieve(Path(self.path), self.batch, self.batch_time)
        return rejections.write(Path(self.path), self.batch, self.batch_time)

    def _logged(self, changes: Changes, settled: Settled) -> list[TableFile]:
        """The changes that did something, for the table of subscriptions."""
        rows = settled.accepted
        if not len(rows):
            return []
        position = changes.position[rows]
        texts = [changes.texts[row] or None for row in rows.tolist()]
        table = pa.table(
            {
                "id": pa.array([changes.ids[row] for row in rows.tolist()], pa.string()),
                "change": [Operation(int(op)).name.lower() for op in changes.operation[rows]],
                "expression": pa.array(texts, pa.string()),
                "longitude": pa.array(position[:, 0], from_pandas=True),
                "latitude": pa.array(position[:, 1], from_pandas=True),
                "until": moments(changes.until[rows]),
                "seq": changes.ordered.seq[rows],
                "time": moments(changes.ordered.time[rows]),
            }
        )
        return [write_file(Path(self.path), "subscriptions", table, self.batch)]
