"""A running stream in the text format of Prometheus.

metrics = Metrics()
start(events, changes, path, listeners=[metrics])
metrics.text()
"""

from __future__ import annotations

from collections import Counter, defaultdict
from threading import Lock
from time import time
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from stentor.pipeline.stream.progress import BatchProgress

#: Upper bounds of the seconds that batches take.
BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

_COUNTERS: Final = {
    "records": "Records read, bad ones among them.",
    "events": "Events read.",
    "changes": "Changes of subscriptions read.",
    "deliveries": "Rows of the table of deliveries: matched, added and removed.",
    "rejected": "Records refused.",
    "candidates": "Pairs of event and subscription that had to be compared exactly.",
}
_GAUGES: Final = {
    "subscriptions": "Subscriptions that stand.",
    "live_events": "Events that are still live.",
    "lag_seconds": "From the last record's time to the start of the batch that took it in.",
    "last_batch": "The number of the last committed batch.",
    "last_commit_timestamp_seconds": "When the last batch was committed, in seconds since 1970.",
    "logical_time_seconds": "The largest time that a record had, in seconds since 1970.",
}
#: Every metric, for people who set up a dashboard.
NAMES: Final = (
    *(f"stentor_{name}_total" for name in _COUNTERS),
    *(f"stentor_{name}" for name in _GAUGES),
    "stentor_batch_seconds",
    "stentor_step_seconds_total",
    "stentor_index_info",
)


class Metrics(Collector):
    """A listener that counts; `text` may be called in another thread.

    Any registry of `prometheus_client` can have it as a collector, beside the program's own.
    """

    def __init__(self) -> None:
        self._lock = Lock()  # a reader finds a batch whole, or not at all
        self._registry = CollectorRegistry()
        self._counts = Counter(dict.fromkeys(_COUNTERS, 0))
        self._steps: defaultdict[str, float] = defaultdict(float)
        self._durations = Counter(dict.fromkeys(BUCKETS, 0))
        self._seconds = 0.0
        self._batches = 0
        self._last: BatchProgress | None = None
        self._committed = 0.0
        self._registry.register(self)

    def __call__(self, progress: BatchProgress) -> None:
        """Take in a batch."""
        with self._lock:
            self._counts["records"] += progress.records
            self._counts["events"] += progress.events
            self._counts["changes"] += progress.changes
            self._counts["deliveries"] += progress.delivered
            self._counts["rejected"] += progress.rejected
            self._counts["candidates"] += progress.candidates
            for step, seconds in progress.steps.items():
                self._steps[step] += seconds
            self._durations.update(bound for bound in BUCKETS if progress.seconds <= bound)
            self._seconds += progress.seconds
            self._batches += 1
            self._last, self._committed = progress, time()

    def text(self) -> str:
        """All metrics since the start; before the first batch, those that count."""
        return generate_latest(self._registry).decode()

    def health(self) -> dict[str, Any]:
        """How the stream is, for whoever asks whether it lives; JSON can hold it."""
        with self._lock:
            if self._last is None:
                return {"status": "starting", "batches": 0}
            return {
                "status": "ok",
                "batches": self._batches,
                "last_batch": self._last.batch,
                "seconds_since_commit": round(time() - self._committed, 3),
                "lag_seconds": self._last.lag,
                "rejected": self._counts["rejected"],
            }

    def collect(self) -> list[Metric]:
        """The same for a registry."""
        with self._lock:
            found: list[Metric] = [
                CounterMetricFamily(f"stentor_{name}", what, self._counts[name])
                for name, what in _COUNTERS.items()
            ]
            buckets = [(f"{bound:g}", self._durations[bound]) for bound in BUCKETS]
            found.append(
                HistogramMetricFamily(
                    "stentor_batch_seconds",
                    "What a batch takes.",
                    [*buckets, ("+Inf", self._batches)],
                    self._seconds,
                )
            )
            what = "Seconds by step; those of tasks add up over all tasks."
            steps = CounterMetricFamily("stentor_step_seconds", what, labels=["step"])
            for step, seconds in self._steps.items():
                steps.add_metric([step], seconds)
            gauges = [] if self._last is None else self._gauges(self._last)
            return [*found, steps, *gauges]

    def _gauges(self, last: BatchProgress) -> list[Metric]:
        values = {
            "subscriptions": last.subscriptions,
            "live_events": last.live,
            "lag_seconds": last.lag,
            "last_batch": last.batch,
            "last_commit_timestamp_seconds": self._committed,
            "logical_time_seconds": last.time / 1e6,
        }
        what = "Which index matches, on which version of it."
        info = GaugeMetricFamily("stentor_index_info", what, labels=["index", "version", "plan"])
        info.add_metric([last.index, last.version, last.plan], 1)
        gauges = _GAUGES.items()
        return [
            *(GaugeMetricFamily(f"stentor_{name}", what, values[name]) for name, what in gauges),
            info,
        ]
