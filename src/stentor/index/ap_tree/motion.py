"""How subscribers move: what the cost model of the AP+-Tree asks (section 4.3)."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import Float64, Int32, Int64
from stentor.index.growing import GrowingArray


class Motion:
    """How far each alternative's subscriber went in a timestamp, and how many messages came."""

    def __init__(self, step: Float64, alternative_start: Int64, rate: float) -> None:
        self._step, self._start = step, alternative_start
        self.rate = rate

    def of(self, alternatives: Int32) -> tuple[Float64, Float64]:
        """The steps of *alternatives*, along x and along y."""
        rows = np.searchsorted(self._start, alternatives, side="right") - 1
        steps = self._step.reshape(-1, 2)[rows]
        return steps[:, 0].copy(), steps[:, 1].copy()


class Movements:
    """The last step of each subscriber that moved; nothing is kept until one does.

    A timestamp is the time in which each of those reports once.
    """

    def __init__(self) -> None:
        self._step = GrowingArray(np.float64)  # x, y by row
        self._has_moved = GrowingArray(np.uint8)  # by row
        self._moves = 0
        self._movers = 0
        self._messages = 0

    def extend(self, rows: int) -> None:
        """There are so many *rows* now."""
        if self._moves and 2 * rows > len(self._step):
            self._step.extend(0, 2 * rows - len(self._step))
            self._has_moved.extend(0, rows - len(self._has_moved))

    def seen(self, messages: int) -> None:
        """So many *messages* were matched."""
        self._messages += messages

    def add(self, rows: Int64, before: Float64, after: Float64) -> None:
        """*rows* went from *before* to *after* (2 × rows)."""
        self._moves += len(rows)
        if len(rows):
            self.extend(int(rows.max()) + 1)
            self._movers += int(np.count_nonzero(self._has_moved.view[rows] == 0))
            self._has_moved.writable[rows] = 1
            step = np.nan_to_num(after - before).reshape(-1, 2)
            self._step.writable.reshape(-1, 2)[rows] = step

    def motion(self, alternative_start: Int64) -> Motion | None:
        """What is known of it all; None where nobody moves."""
        if not self._moves or not self._movers:
            return None
        self.extend(len(alternative_start) - 1)
        timestamps = self._moves / self._movers
        return Motion(self._step.view, alternative_start, self._messages / timestamps)
