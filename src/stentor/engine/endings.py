"""What ends when: rows by their `until`, expired lazily and a few at a time."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from stentor.encoding.columns import Int64
from stentor.model.values.time import BEGINNING, FOR_GOOD, NEVER


class Endings:
    """Rows that end: those that were opened together, and those that came since.

    Invariant: `_opened_rows[_position:]` are the opened rows that are still to end, the earliest
    first, once `over` was called.
    """

    def __init__(self) -> None:
        self.soonest: int = NEVER  # nothing ends before
        self._heap: list[tuple[int, int]] = []
        self._opened: Int64 | None = None  # until of each row, until `over` is called
        self._opened_rows: Int64 = np.zeros(0, np.int64)
        self._opened_until: Int64 = np.zeros(0, np.int64)
        self._position = 0

    def add(self, rows: Iterable[int], untils: Iterable[int]) -> None:
        """Remember when each of *rows* ends; cost: O(log n) each."""
        for row, until in zip(rows, untils, strict=True):
            if until != NEVER:
                heapq.heappush(self._heap, (until, row))
                self.soonest = min(self.soonest, until)

    def add_all(self, first: int, untils: Int64) -> None:
        """Remember when each of the rows from *first* on ends."""
        if len(untils) == 1:
            until = int(untils[0])
            self.add((first,), (NEVER if until == FOR_GOOD else until,))
            return
        ending = np.flatnonzero((untils != NEVER) & (untils != FOR_GOOD))
        self.add((first + ending).tolist(), untils[ending].tolist())

    def watch(self, until: Int64) -> None:
        """Remember when the rows from 0 on end; they are sorted when `over` is first called."""
        self._opened = until
        self.soonest = BEGINNING

    def over(self, time: int, most: int | None = None) -> list[int]:
        """Rows that have ended at *time*, at most *most* of them, each reported once."""
        ended = self._over_of_opened(time, most)
        while self._heap and self._heap[0][0] <= time and (most is None or len(ended) < most):
            ended.append(heapq.heappop(self._heap)[1])
        self.soonest = self._heap[0][0] if self._heap else NEVER
        if self._position < len(self._opened_until):
            self.soonest = min(self.soonest, int(self._opened_until[self._position]))
        return ended

    def _over_of_opened(self, time: int, most: int | None) -> list[int]:
        if self._opened is not None:
            rows = np.flatnonzero(self._opened != NEVER).astype(np.int64)
            order = np.argsort(self._opened[rows], kind="stable")
            self._opened_rows, self._opened_until = rows[order], self._opened[rows[order]]
            self._opened = None
        start, untils = self._position, self._opened_until
        if start == len(untils) or untils[start] > time:
            return []
        stop = int(np.searchsorted(untils, time, side="right"))
        self._position = stop if most is None else min(stop, start + most)
        ended: list[int] = self._opened_rows[start : self._position].tolist()
        return ended
