"""Events that are matched as they are read: the short way through a micro-batch.

Where no order is named and no event stays live, nothing about an event depends on another one:
the batch's changes come first, then all of its events at one place in the order and at the
batch's own time. So they need not be kept in files between two steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import msgspec
import numpy as np

from stentor.encoding.columns import event_count
from stentor.encoding.readonly import read_only
from stentor.index.verify.candidates import Tally
from stentor.pipeline.commit.manifests import TableFile
from stentor.pipeline.stream.deliveries import DeliveryFiles, matched
from stentor.pipeline.stream.reading import PartitionReader, in_parts
from stentor.pipeline.stream.replicas import ShardVersion, replica
from stentor.pipeline.stream.runner import reported
from stentor.wire.limits import RecordLimits


class PublishReport(msgspec.Struct, frozen=True):
    """What one task of the publishing step tells the driver."""

    events: int
    files: dict[str, list[TableFile]]
    candidates: int
    seconds: dict[str, float]


@dataclass(frozen=True)
class Publishing:
    """The publishing step of one micro-batch: what `mapInArrow` runs on each partition."""

    path: str
    batch: int
    schema: bytes  # JSON
    limits: RecordLimits
    shard: ShardVersion  # with the changes of this batch
    seq: int  # the place of all events in the order
    time: int  # that the order has come to, or the batch's own time if that is later
    batch_time: int
    top: int | None

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Publish a partition; one row comes out: its report."""
        yield reported(self.publish(batches))

    def publish(self, batches: Iterator[Any]) -> PublishReport:
        """Publish the events of a partition."""
        began, settled = process_time(), Tally.candidates
        state = replica(self.shard).state
        opening = process_time() - began
        reader = PartitionReader(self.schema, self.limits, self.batch_time)
        files = DeliveryFiles(Path(self.path), self.batch)
        events, matching = 0, 0.0
        for table in in_parts(batches):
            columns, rows = reader.events(reader.usable(table))
            reader.rejections.relieve(Path(self.path), self.batch, self.batch_time)
            count = event_count(columns)
            events += count
            if not count or not state.index.count:
                continue
            started = process_time()
            placed = columns._replace(
                seq=read_only(np.full(count, self.seq)), time=read_only(np.full(count, self.time))
            )
            files.add(matched(state, placed, rows["id"], self.top))
            matching += process_time() - started
        written = {
            "deliveries": files.close(),
            "rejected": reader.rejections.write(Path(self.path), self.batch, self.batch_time),
        }
        seconds = {
            "opening": opening,
            "matching": matching - files.seconds,
            "writing": files.seconds,
            "reading": process_time() - began - opening - matching,
        }
        return PublishReport(events, written, Tally.candidates - settled, seconds)
