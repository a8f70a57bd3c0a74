"""Where calls wait for the one thread that owns an engine or a broker: taken many at a time."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
#: Seconds that are waited for more where several came at once the last time.
LINGER: Final = 0.001


class Inbox(Generic[Item]):
    """Items in order, each of some size; any thread puts, one takes."""

    def __init__(self, most: int) -> None:
        self._most = most  # of all sizes together
        self._items: deque[tuple[Item, int]] = deque()
        self._wake = threading.Condition()
        self._was_busy = False
        self.size = 0
        self.is_closed = False

    def put(self, item: Item, size: int = 1) -> bool:
        """Let *item* wait; False where it is full, or closed. One that finds it empty always fits.

        Cost: some microseconds; it never waits for whoever takes.
        """
        with self._wake:
            if self.is_closed or (self.size and self.size + size > self._most):
                return False
            self._items.append((item, size))
            self.size += size
            self._wake.notify()
        return True

    def take(self, most: int, timeout: float | None = None) -> list[Item]:
        """What waits, in order, until their sizes reach *most*; none after *timeout*, or closed.

        Where several came the last time, a millisecond is waited for those of the same moment.
        """
        with self._wake:
            if not self._items and not self.is_closed:
                self._wake.wait(timeout)
        if self._was_busy and self.size < most and not self.is_closed:
            time.sleep(LINGER)
        taken: list[Item] = []
        total = 0
        with self._wake:
            while self._items and total < most:
                item, size = self._items.popleft()
                total += size
                self.size -= size
                taken.append(item)
        self._was_busy = len(taken) > 1
        return taken

    def close(self) -> None:
        """Take in nothing any more; what waits can still be taken."""
        with self._wake:
            self.is_closed = True
            self._wake.notify()
