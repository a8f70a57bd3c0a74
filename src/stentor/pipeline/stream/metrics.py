"""A running stream in the text format of Prometheus.

metrics = Metrics()
start(events, changes, path, listeners=[metrics])
metrics.text()
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from time import time
from typing import Final

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


@dataclass(frozen=True)
class _Sample:
    """One line: what follows the metric's name, its labels, its value."""

    value: float
    labels: Mapping[str, str]
    suffix: str = ""


class Metrics:
    """A listener that counts; `text` may be asked for in another thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[str] = Counter(dict.fromkeys(_COUNTERS, 0))
        self._steps: defaultdict[str, float] = defaultdict(float)
        self._durations: Counter[float] = Counter()
        self._seconds = 0.0
        self._batches = 0
        self._last: BatchProgress | None = None
        self._committed = 0.0

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
        with self._lock:
            lines: list[str] = []
            for name, what in _COUNTERS.items():
                value = [_Sample(self._counts[name], {})]
                lines += _metric(f"{name}_total", "counter", what, value)
            lines += _metric("batch_seconds", "histogram", "What a batch takes.", self._histogram())
            steps = [_Sample(seconds, {"step": step}) for step, seconds in self._steps.items()]
            what = "Seconds by step; those of tasks add up over all tasks."
            lines += _metric("step_seconds_total", "counter", what, steps)
            if self._last is not None:
                lines += self._gauges(self._last)
        return "\n".join(lines) + "\n"

    def _histogram(self) -> list[_Sample]:
        buckets = [
            _Sample(self._durations[bound], {"le": f"{bound:g}"}, "_bucket") for bound in BUCKETS
        ]
        return [
            *buckets,
            _Sample(self._batches, {"le": "+Inf"}, "_bucket"),
            _Sample(self._seconds, {}, "_sum"),
            _Sample(self._batches, {}, "_count"),
        ]

    def _gauges(self, last: BatchProgress) -> list[str]:
        values = {
            "subscriptions": last.subscriptions,
            "live_events": last.live,
            "lag_seconds": last.lag,
            "last_batch": last.batch,
            "last_commit_timestamp_seconds": self._committed,
            "logical_time_seconds": last.time / 1e6,
        }
        lines: list[str] = []
        for name, what in _GAUGES.items():
            lines += _metric(name, "gauge", what, [_Sample(values[name], {})])
        labels = {"index": last.index, "version": last.version, "plan": last.plan}
        what = "Which index matches, on which version of it."
        return lines + _metric("index_info", "gauge", what, [_Sample(1, labels)])


def _metric(name: str, kind: str, what: str, samples: Iterable[_Sample]) -> list[str]:
    lines = [f"# HELP stentor_{name} {what}", f"# TYPE stentor_{name} {kind}"]
    for sample in samples:
        labels = ",".join(f'{key}="{_escaped(text)}"' for key, text in sample.labels.items())
        braces = f"{{{labels}}}" if labels else ""
        lines.append(f"stentor_{name}{sample.suffix}{braces} {_number(sample.value)}")
    return lines


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 6))


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
