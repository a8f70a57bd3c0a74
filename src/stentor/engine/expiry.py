"""What ends when: rows by their `until`, taken out lazily and a few at a time."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from stentor.model.time import NEVER


class Expiry:
    """Rows that end some day, the earliest first."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []

    def add(self, rows: Iterable[int], untils: Iterable[int]) -> None:
        """Remember when each of *rows* ends; cost: O(log n) each."""
        for row, until in zip(rows, untils, strict=True):
            if until != NEVER:
                heapq.heappush(self._heap, (until, row))

    def over(self, time: int, most: int | None = None) -> list[int]:
        """Rows that have ended at *time*, at most *most* of them, each reported once."""
        ended: list[int] = []
        while self._heap and self._heap[0][0] <= time and (most is None or len(ended) < most):
            ended.append(heapq.heappop(self._heap)[1])
        return ended
