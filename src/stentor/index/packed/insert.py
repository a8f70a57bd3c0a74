"""Segments while they grow: which are merged, and when; large merges in threads of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import numpy as np

from stentor._jit import is_plain
from stentor.encoding.columns import Int64, SubscriptionColumns
from stentor.index.packed.layout import PackedSegment
from stentor.index.packed.settings import PackedSettings
from stentor.index.sort import distinct

#: Says which of some alternatives are still there.
Kept = Callable[[Int64], Int64]
#: Merges that go on at the same time, at most: a large one, and smaller ones behind it.
MOST_MERGES: Final = 3
#: Of more segments, what adds another waits for the smallest merge that is under way.
MOST_SEGMENTS: Final = 64
#: An event that is matched pays for so many alternatives that are merged. All become one segment
#: where as many as they all were paid for; many more, where few of them, less than one in so many,
#: are beside the first segment or are out of date.
_MATCHED, _GROWN = 64, 8


def together(segments: tuple[PackedSegment, ...], more: Int64, kept: Kept) -> Int64:
    """The alternatives of *segments* and *more* that are still there, ascending, each once."""
    parts = [segment.alternatives for segment in segments]
    return kept(distinct(np.concatenate([*parts, more])))


class Merge:
    """Some segments on their way to become one."""

    def __init__(
        self, columns: SubscriptionColumns, merged: tuple[PackedSegment, ...], kept: Kept, home: str
    ) -> None:
        self.merged = merged
        self._home = home
        self.result: PackedSegment | None = None
        self._thread = threading.Thread(
            target=self._run, args=(columns, kept), name="stentor packed merge", daemon=True
        )
        self._thread.start()

    def _run(self, columns: SubscriptionColumns, kept: Kept) -> None:
        alternatives = together(self.merged, np.zeros(0, np.int64), kept)
        self.result = PackedSegment.build(columns, alternatives, self._home)

    @property
    def is_over(self) -> bool:
        """Whether there is a result, or will never be one: in a forked process, or on an error."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Wait until it is over."""
        self._thread.join()


class Segments:
    """The segments of an index, the oldest first, in tiers by their size.

    A tier is `fan_in` times as large as the one before. As many segments as `fan_in` that have no
    larger one between or after them become one, so that an index of n has O(log n).

    Invariant: what is being merged is still matched; the result replaces it at once.
    Invariant: a merge has neighbours, and no segment is in two.
    """

    def __init__(self, settings: PackedSettings) -> None:
        self._settings = settings
        self.all: tuple[PackedSegment, ...] = ()
        self.size = 0  # alternatives that all segments were built of
        self._merges: list[Merge] = []
        self._matched = 0  # events since the last merge of all began
        self._matched_later = 0  # and since that of all but the first
        self._adopting = threading.Lock()  # threads that match may come together

    def put(self, segments: tuple[PackedSegment, ...]) -> None:
        """Let *segments* be all that there are."""
        self.all, self.size = segments, sum(segment.size for segment in segments)

    @property
    def is_merging(self) -> bool:
        return bool(self._merges)

    def add(self, columns: SubscriptionColumns, alternatives: Int64, kept: Kept) -> None:
        """Add a segment of *alternatives*, merged with others where it is time."""
        self.adopt()
        while len(self.all) >= MOST_SEGMENTS and self._merges:
            self._merges[-1].wait()
            self.adopt()
        at = self._merged_from(len(alternatives))
        size = len(alternatives) + sum(segment.size for segment in self.all[at:])
        is_small = size <= self._settings.foreground or is_plain()
        if is_small or at == len(self.all):
            whole = together(self.all[at:], alternatives, kept)
            self.put((*self.all[:at], PackedSegment.build(columns, whole, self._settings.home)))
        else:
            self.put((*self.all, PackedSegment.build(columns, alternatives, self._settings.home)))
            if len(self._merges) < MOST_MERGES:
                self._merges.append(Merge(columns, self.all[at:], kept, self._settings.home))

    def _merged_from(self, size: int) -> int:
        """The position of the first segment that becomes one with a new one of *size*."""
        least, at, fan_in = self._free(), len(self.all), self._settings.fan_in
        first = at
        while True:
            while first > least and self._tier(self.all[first - 1].size) <= self._tier(size):
                first -= 1
            if at - first < max(1, fan_in - 1):
                return at
            size += sum(segment.size for segment in self.all[first:at])
            at = first

    def _tier(self, size: int) -> int:
        """Which tier a segment of *size* is in, from 0 up."""
        fan_in = max(2, self._settings.fan_in)
        tier, most = 0, fan_in * max(1, self._settings.pending)
        while size >= most:
            tier, most = tier + 1, most * fan_in
        return tier

    def _free(self) -> int:
        """The position of the first segment behind all that are being merged."""
        if not self._merges:
            return 0
        last = self._merges[-1].merged[-1]
        return 1 + next(at for at, segment in enumerate(self.all) if segment is last)

    def move(self, columns: SubscriptionColumns, alternatives: Int64) -> Int64:
        """Bring *alternatives* (ascending) to their new bounds; those that no segment has there.

        What is being merged is not touched: the thread may have read the old bounds, or may not.
        """
        self.adopt()
        merging = {id(segment) for merge in self._merges for segment in merge.merged}
        left = [np.zeros(0, np.int64)]
        for segment in reversed(self.all):
            if not len(alternatives):
                break
            if id(segment) in merging:
                here = np.concatenate([left[0], *segment.here(alternatives)])
                left.append(here)
            else:
                here = segment.move(columns, alternatives)
            alternatives = np.setdiff1d(alternatives, here, assume_unique=True)
        return distinct(np.concatenate([*left, alternatives]))

    def matched(self, events: int, current: int, columns: SubscriptionColumns, kept: Kept) -> None:
        """Know that so many *events* are matched now; merge what they have paid for.

        So many alternatives as *current* are in segments, each counted once.
        """
        if self._merges:
            self.adopt()
        if self._merges or (len(self.all) < 2 and current == self.size):
            return
        self._matched += events
        self._matched_later += events
        later = self.size - self.all[0].size
        beside = max(later, self.size - current)
        if _MATCHED * self._matched * min(self.size, _GROWN * beside) >= self.size**2:
            self.rebuild(columns, kept)
        elif len(self.all) > 2 and _MATCHED * self._matched_later >= later:
            self.rebuild(columns, kept, 1)

    def rebuild(self, columns: SubscriptionColumns, kept: Kept, first: int = 0) -> None:
        """Merge all segments from *first* on, leaving out what is gone; but for what is merged now.

        Nothing is done while a merge is under way: who asks, asks again.
        """
        self.adopt()
        merged = self.all[first:]
        if self._merges or not merged or not self._adopting.acquire(blocking=False):
            return
        try:
            self._matched_later = 0
            if first == 0:
                self._matched = 0
            size = sum(segment.size for segment in merged)
            if size > self._settings.foreground and not is_plain():
                self._merges.append(Merge(columns, merged, kept, self._settings.home))
            else:
                whole = together(merged, np.zeros(0, np.int64), kept)
                built = (PackedSegment.build(columns, whole, self._settings.home),)
                self.put((*self.all[:first], *(built if len(whole) else ())))
        finally:
            self._adopting.release()

    def adopt(self) -> None:
        """Replace what was merged by the results, where there are any."""
        if not self._merges or not self._adopting.acquire(blocking=False):
            return
        try:
            for merge in [one for one in self._merges if one.is_over]:
                if merge.result is not None:
                    first = merge.merged[0]
                    at = next(at for at, segment in enumerate(self.all) if segment is first)
                    after = self.all[at + len(merge.merged) :]
                    self.put((*self.all[:at], merge.result, *after))
                self._merges.remove(merge)
        finally:
            self._adopting.release()

    def wait(self) -> None:
        """Wait for merges, and adopt them."""
        for merge in list(self._merges):
            merge.wait()
        self.adopt()
