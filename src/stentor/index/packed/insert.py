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
#: Merges that go on at the same time, at most: a large one, and small ones behind it.
MOST_MERGES: Final = 3
#: All segments become one where the first has less than so many times what the others have,
#: and one event was matched for so many of their alternatives: it must be worth its while.
_GROWN, _MATCHED = 8, 64


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
    """The segments of an index, the oldest first.

    Invariant: what is being merged is still matched; the result replaces it at once.
    Invariant: a merge has neighbours, and no segment is in two.
    """

    def __init__(self, settings: PackedSettings) -> None:
        self._settings = settings
        self.all: tuple[PackedSegment, ...] = ()
        self._merges: list[Merge] = []
        self._matched = 0  # events since the last merge of all began
        self._adopting = threading.Lock()  # threads that match may come together

    @property
    def is_merging(self) -> bool:
        return bool(self._merges)

    def add(self, columns: SubscriptionColumns, alternatives: Int64, kept: Kept) -> None:
        """Add a segment of *alternatives*, merged with others where it is time."""
        self.adopt()
        least, at, size = self._free(), len(self.all), len(alternatives)
        while at > least and self.all[at - 1].size * (self._settings.fan_in - 1) <= size:
            at -= 1
            size += self.all[at].size
        is_small = size <= self._settings.foreground or is_plain()
        if is_small or at == len(self.all):
            whole = together(self.all[at:], alternatives, kept)
            self.all = (*self.all[:at], PackedSegment.build(columns, whole, self._settings.home))
        else:
            self.all = (*self.all, PackedSegment.build(columns, alternatives, self._settings.home))
            if len(self._merges) < MOST_MERGES:
                self._merges.append(Merge(columns, self.all[at:], kept, self._settings.home))

    def _free(self) -> int:
        """The position of the first segment behind all that are being merged."""
        if not self._merges:
            return 0
        last = self._merges[-1].merged[-1]
        return 1 + next(at for at, segment in enumerate(self.all) if segment is last)

    def matched(self, events: int, columns: SubscriptionColumns, kept: Kept) -> None:
        """Know that so many *events* are matched now; merge all segments where that pays."""
        if self._merges:
            self.adopt()
        if len(self.all) < 2 or self._merges:
            return
        self._matched += events
        size = sum(segment.size for segment in self.all)
        if _GROWN * (size - self.all[0].size) > size and _MATCHED * self._matched >= size:
            self.rebuild(columns, kept)

    def rebuild(self, columns: SubscriptionColumns, kept: Kept) -> None:
        """Merge all segments, leaving out what is gone."""
        self.adopt()
        if self._merges or not self.all or not self._adopting.acquire(blocking=False):
            return
        try:
            self._matched = 0
            size = sum(segment.size for segment in self.all)
            if size > self._settings.foreground and not is_plain():
                self._merges.append(Merge(columns, self.all, kept, self._settings.home))
            else:
                whole = together(self.all, np.zeros(0, np.int64), kept)
                self.all = (
                    (PackedSegment.build(columns, whole, self._settings.home),)
                    if len(whole)
                    else ()
                )
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
                    self.all = (*self.all[:at], merge.result, *after)
                self._merges.remove(merge)
        finally:
            self._adopting.release()

    def wait(self) -> None:
        """Wait for merges, and adopt them."""
        for merge in list(self._merges):
            merge.wait()
        self.adopt()
