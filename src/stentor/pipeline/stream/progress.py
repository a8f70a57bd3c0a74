"""What a stream reports while it runs: one `BatchProgress` per micro-batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stentor.model.values.time import BEGINNING
from stentor.pipeline.commit.manifests import Manifest

if TYPE_CHECKING:
    from stentor.pipeline.stream.micro_batch import MicroBatchResult


@dataclass(frozen=True, kw_only=True)
class BatchProgress:
    """A committed micro-batch in numbers."""

    batch: int
    records: int
    events: int
    """Those that could be read; some of them may be rejected later, as late or twice published."""
    changes: int
    """Likewise."""
    delivered: int
    """Rows of the table of deliveries: matched, added and removed."""
    rejected: int
    repeats: int
    """Records that had been taken in already: neither delivered again nor rejected."""
    reasons: dict[str, int]
    """Why records were rejected, the commonest reasons; … is what varies in one."""
    candidates: int
    """Pairs of an event and a subscription that had to be compared exactly."""
    seconds: float
    """From the start of the batch to the end of its commit."""
    steps: dict[str, float]
    """Seconds by step; those of tasks add up over all tasks."""
    time: int
    """Logical time after the batch, in microseconds since 1970."""
    lag: float
    """Seconds from the time of the batch's last record to the time when the batch began."""
    subscriptions: int
    live: int
    """Live events, those that are over but not yet removed among them."""
    index: str
    """Name of the structure; where `auto` chose several for the shards, each once."""
    why: str = ""
    """Why `auto` chose it; empty where it was named, and before the first base."""
    version: str
    """Which bases the index is on, and how many segments of changes lie above them."""
    plan: str

    @classmethod
    def of(cls, result: MicroBatchResult, manifest: Manifest, seconds: float) -> BatchProgress:
        """What *result*, committed as *manifest*, comes to."""
        counts = result.counts
        is_known = counts["records"] and manifest.time != BEGINNING
        lag = max(0.0, (result.began - manifest.time) / 1e6) if is_known else 0.0
        return cls(
            batch=manifest.batch,
            records=counts["records"],
            events=counts["events"],
            changes=counts["changes"],
            delivered=counts["delivered"],
            rejected=counts["rejected"],
            repeats=counts["repeats"],
            reasons=result.reasons,
            candidates=counts["candidates"],
            seconds=seconds,
            steps=dict(result.seconds),
            time=manifest.time,
            lag=lag,
            subscriptions=manifest.counts["subscriptions"],
            live=manifest.counts["live"],
            index=manifest.index,
            why=manifest.why,
            version=f"{manifest.base_batch}+{len(manifest.segments)}",
            plan="replicated" if manifest.shards == 1 else f"sharded in {manifest.shards}",
        )
