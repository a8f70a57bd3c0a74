"""Segments while they grow: which are merged, and when; large merges in a thread of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from stentor._jit import is_plain
from stentor.encoding.columns import Int64, SubscriptionColumns
from stentor.index.packed.layout import PackedSegment
from stentor.index.packed.settings import PackedSettings


class Merge:
    """Some segments on their way to become one."""

    def __init__(
        self, columns: SubscriptionColumns, merged: tuple[PackedSegment, ...], of: Int64
    ) -> None:
        self.merged = merged
        self.result: PackedSegment | None = None
        self._thread = threading.Thread(
            target=self._run, args=(columns, of), name="stentor packed merge", daemon=True
        )
        self._thread.start()

    def _run(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        self.result = PackedSegment.build(columns, alternatives)

    @property
    def is_over(self) -> bool:
        """Whether there is a result, or will never be one: in a forked process, or on an error."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Wait until it is over."""
        self._thread.join()


class Segments:
    """The segments of an index, the oldest and largest first.

    Invariant: what is being merged is still matched; the result replaces it at once.
    """

    def __init__(self, settings: PackedSettings) -> None:
        self._settings = settings
        self.all: tuple[PackedSegment, ...] = ()
        self._merge: Merge | None = None

    @property
    def is_merging(self) -> bool:
        return self._merge is not None

    def add(
        self,
        columns: SubscriptionColumns,
        alternatives: Int64,
        kept: Callable[[Int64], Int64],
    ) -> None:
        """Add a segment of *alternatives*, merged with others where it is time.

        *kept* says which of some alternatives are still there.
        """
        self.adopt()
        at = len(self.all)
        free = 0 if self._merge is None else len(self._merge.merged)
        size = len(alternatives)
        while at > free and self.all[at - 1].size <= self._settings.fan_in * size:
            at -= 1
            size += self.all[at].size
        merged = self.all[at:]
        if size <= self._settings.foreground or is_plain() or not merged:
            together = self._together(merged, alternatives, kept)
            self.all = (*self.all[:at], PackedSegment.build(columns, together))
        else:
            self.all = (*self.all, PackedSegment.build(columns, alternatives))
            if self._merge is None:
                self._start(columns, self.all, kept)

    def _start(
        self,
        columns: SubscriptionColumns,
        merged: tuple[PackedSegment, ...],
        kept: Callable[[Int64], Int64],
    ) -> None:
        nothing = np.zeros(0, np.int64)
        self._merge = Merge(columns, merged, self._together(merged, nothing, kept))

    def rebuild(self, columns: SubscriptionColumns, kept: Callable[[Int64], Int64]) -> None:
        """Merge all segments, leaving out what is gone."""
        self.adopt()
        if self._merge is not None or not self.all:
            return
        size = sum(segment.size for segment in self.all)
        if size <= self._settings.foreground or is_plain():
            together = self._together(self.all, np.zeros(0, np.int64), kept)
            self.all = (PackedSegment.build(columns, together),) if len(together) else ()
        else:
            self._start(columns, self.all, kept)

    def adopt(self) -> bool:
        """Replace what was merged by the result, where there is one; whether that happened."""
        merge = self._merge
        if merge is None or not merge.is_over:
            return False
        self._merge = None
        if merge.result is None:
            return False
        rest = self.all[len(merge.merged) :]
        self.all = (merge.result, *rest)
        return True

    def wait(self) -> None:
        """Wait for a merge, and adopt it."""
        if self._merge is not None:
            self._merge.wait()
            self.adopt()

    @staticmethod
    def _together(
        segments: tuple[PackedSegment, ...], more: Int64, kept: Callable[[Int64], Int64]
    ) -> Int64:
        """The alternatives of *segments* and *more* that are still there, ascending, each once."""
        parts = [segment.alternatives for segment in segments]
        return kept(np.unique(np.concatenate([*parts, more])))
