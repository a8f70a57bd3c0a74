"""What ends when: rows by their `until`, taken out lazily and a few at a time."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from stentor.encoding.columns import Int64
from stentor.model.time import NEVER


class Expiry:
    """Rows that end some day: those that were opened together, and those that came since.

    Invariant: `_opened_rows[_place:]` are the opened rows that are still to end, the earliest
    first, once anybody has asked for them.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._opened: Int64 | None = None  # until of each row, while nobody has asked
        self._opened_rows: Int64 = np.zeros(0, np.int64)
        self._opened_until: Int64 = np.zeros(0, np.int64)
        self._place = 0

    def add(self, rows: Iterable[int], untils: Iterable[int]) -> None:
        """Remember when each of *rows* ends; cost: O(log n) each."""
        for row, until in zip(rows, untils, strict=True):
            if until != NEVER:
                heapq.heappush(self._heap, (until, row))

    def watch(self, until: Int64) -> None:
        """Remember when the rows from 0 on end; they are sorted when `over` is first asked."""
        self._opened = until

    def over(self, time: int, most: int | None = None) -> list[int]:
        """Rows that have ended at *time*, at most *most* of them, each reported once."""
        ended = self._over_of_opened(time, most)
        while self._heap and self._heap[0][0] <= time and (most is None or len(ended) < most):
            ended.append(heapq.heappop(self._heap)[1])
        return ended

    def _over_of_opened(self, time: int, most: int | None) -> list[int]:
        if self._opened is not None:
            rows = np.flatnonzero(self._opened != NEVER).astype(np.int64)
            order = np.argsort(self._opened[rows], kind="stable")
            self._opened_rows, self._opened_until = rows[order], self._opened[rows[order]]
            self._opened = None
        start, untils = self._place, self._opened_until
        if start == len(untils) or untils[start] > time:
            return []
        stop = int(np.searchsorted(untils, time, side="right"))
        self._place = stop if most is None else min(stop, start + most)
        ended: list[int] = self._opened_rows[start : self._place].tolist()
        return ended
