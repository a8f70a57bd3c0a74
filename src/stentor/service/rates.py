"""How much an owner may ask for in a second, and what it asked for in the last ones."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from stentor.service.refusals import RefusedError

_MOST_OWNERS: Final = 10_000


class RateLimits:
    """For each name a bucket that holds *per_second* and fills as fast."""

    def __init__(
        self, per_second: int, what: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second, self._what, self._clock = per_second, what, clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str, count: int = 1) -> None:
        """Let *name* have *count* more; a RefusedError where that is too fast.

        Whoever asks for more than a second's worth at once pays it off afterwards.
        """
        now = self._clock()
        level, last = self._buckets.get(name, (float(self._per_second), now))
        level = min(float(self._per_second), level + (now - last) * self._per_second)
        if level <= 0:
            self._buckets[name] = level, now
            wait = max(1, round(-level / self._per_second))
            limit = f"{self._per_second:,} {self._what} a second"
            raise RefusedError(429, "too_many", f"the limit is {limit}", retry_after=wait)
        if len(self._buckets) >= _MOST_OWNERS and name not in self._buckets:
            self._buckets.clear()
        self._buckets[name] = level - count, now


class Rate:
    """How many of something there were, a second, in the last ten."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._seconds: deque[tuple[int, int]] = deque(maxlen=11)

    def add(self, count: int) -> None:
        """Take note of *count* more."""
        second = int(self._clock())
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1] = second, self._seconds[-1][1] + count
        else:
            self._seconds.append((second, count))

    def per_second(self) -> float:
        """Of the last ten whole seconds, or of those since the start."""
        now = int(self._clock())
        found = sum(count for second, count in self._seconds if now - 10 <= second < now)
        span = min(10.0, max(1.0, self._clock() - self._start))
        return round(found / span, 1)
