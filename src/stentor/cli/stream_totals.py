"""What a stream has done since it was started, and how fast it is just now."""

from __future__ import annotations

from collections import Counter, deque
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from stentor.pipeline.stream.progress import BatchProgress

#: Rates are those of the last so many seconds.
WINDOW: Final = 10.0


class Told(NamedTuple):
    """A batch, and when it was told of."""

    at: float
    progress: BatchProgress


class Totals:
    """Adds up batches; one thread adds, any may read."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.last: Told | None = None
        self.started = monotonic()
        self._window: deque[Told] = deque()

    def add(self, progress: BatchProgress) -> None:
        """Take in a batch."""
        for name in ("records", "events", "delivered", "rejected"):
            self.counts[name] += getattr(progress, name)
        self.counts["batches"] += 1
        told = Told(monotonic(), progress)
        self._window.append(told)
        while self._window[0].at < told.at - WINDOW:
            self._window.popleft()
        self.last = told

    def rate(self, what: str) -> float:
        """How many of *what* come per second: over the batches of the last seconds."""
        now = monotonic()
        recent = [told for told in list(self._window) if told.at >= now - WINDOW]
        if not recent:
            return 0.0
        since = min(told.at - told.progress.seconds for told in recent)
        count: int = sum(getattr(told.progress, what) for told in recent)
        return count / max(now - since, 1e-3)

    @property
    def waiting(self) -> float:
        """Seconds since the last batch, or since the start."""
        return monotonic() - (self.last.at if self.last else self.started)
