"""`auto` in an engine: by size at first, then by what structures take for its own data.

    few ─▶ scan     many ─▶ packed ─▶ a sample is timed in a thread ─▶ another, if much faster
                                      now, and at each doubling        built in that thread, too

What was built is adopted between two calls: rows keep their numbers, and only what changed in the
meantime is done once more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.kinds import KIND_MASK, OWN_CIRCLE
from stentor.engine import cold
from stentor.index.catalog import (
    PACKED,
    choice,
    is_for_few,
    reconsidered_from,
    structure_class,
    structure_of,
)
from stentor.index.contract import Index
from stentor.index.safe_distance import SafeDistances
from stentor.index.structure import Structure
from stentor.index.trial import OTHERS, TrialResult, measure, sample_of

if TYPE_CHECKING:
    from stentor.engine.state import State

#: Rows that one call adds, and live events that it holds once more, when it adopts an index.
MOST_AT_ONCE: Final = 2_000


class Trial:
    """Structures that are timed in a thread; then the one that is taken is built there."""

    def __init__(self, index: Index) -> None:
        sample = sample_of(index)
        self.is_possible = sample is not None
        self.measurement: TrialResult | None = None
        self.fresh: Structure | None = None
        self._current, self._columns = structure_of(type(index)).name, columns_in(index)
        self._sample = sample
        self._count = len(index.current_rows())
        self._thread: threading.Thread | None = None
        if self.is_possible:
            self._start(self._measure)

    def _start(self, target: Callable[[], object]) -> None:
        self._thread = threading.Thread(target=target, name="stentor auto", daemon=True)
        self._thread.start()

    def _measure(self) -> None:
        assert self._sample is not None
        columns, events = self._sample
        measurement = measure(columns, events, self._count)
        if measurement.name != self._current and self._columns is not None:
            self.fresh = structure_class(measurement.name).build(self._columns, events)
        self.measurement = measurement

    @property
    def is_over(self) -> bool:
        """Whether the thread is over: done, or lost with an error or in a forked process."""
        return self._thread is None or not self._thread.is_alive()

    def wait(self) -> None:
        """Wait until the thread is over: for tests."""
        if self._thread is not None:
            self._thread.join()

    def caught_up(self, index: Structure) -> bool:
        """Whether *fresh* has all but a few rows of *index*; else more are added in a thread."""
        assert self.fresh is not None
        if index.count - self.fresh.count <= MOST_AT_ONCE:
            return True
        columns = index.columns_of(np.arange(self.fresh.count, index.count))
        insert = self.fresh.insert
        self._start(lambda: insert(columns))
        return False


def columns_in(index: Index) -> SubscriptionColumns | None:
    """All rows of *index*, where another index can take its part, row by row; else None.

    Those of an opened index are not in it alone, and those that move change while they are read.
    """
    if not isinstance(index, Structure) or index.live.current_count > MOST_AT_ONCE:
        return None
    columns = index.subscriptions.columns
    moves = (columns.kind & KIND_MASK == OWN_CIRCLE).any()
    return None if moves else columns


class AutoChoice:
    """What an engine's index is, if that is for 'auto' to say, and why."""

    def __init__(self, is_on: bool) -> None:
        self.is_on = is_on
        self.measured: TrialResult | None = None
        self.trial: Trial | None = None
        self._rebuilt_from: float = reconsidered_from(0) if is_on else inf
        self._tried_from: float = reconsidered_from(0) if is_on else inf

    def name_for(self, columns: SubscriptionColumns) -> str:
        """The structure to build for *columns*."""
        chosen = choice(columns).name
        if chosen == PACKED and self.measured is not None:
            return self.measured.name
        return chosen

    def rebuilt(self, count: int) -> None:
        """Know that the index was built anew for *count* subscriptions."""
        self._rebuilt_from = reconsidered_from(count)

    def is_outgrown(self, state: State) -> bool:
        """Whether the index is one for few, and there are many."""
        are_many = len(state.subscribers) >= self._rebuilt_from
        return are_many and cold.is_outgrown(state.index)

    def tidy(self, state: State) -> bool:
        """Begin to measure where it is time, and adopt what came of it; whether that is new.

        Cost: next to nothing, but where a trial begins (a sample is copied) or is over.
        """
        if self.trial is not None:
            return self.trial.is_over and self._adopt(state, self.trial)
        count = len(state.subscribers)
        if count < self._tried_from or is_for_few(state.index):
            return False
        if not all(cold.are_ready(name) for name in OTHERS):  # the first that is not, will be
            return False
        trial = Trial(state.index)
        if trial.is_possible:
            self._tried_from = 2 * count
            self.trial = trial
        return False

    def _adopt(self, state: State, trial: Trial) -> bool:
        """Take over what *trial* came to; whether the index is another."""
        if trial.measurement is not None:
            self.measured = trial.measurement
        fresh, index = trial.fresh, state.index
        if fresh is None or not isinstance(index, Structure) or columns_in(index) is None:
            self.trial = None
            return False
        if not trial.caught_up(index):
            return False
        self.trial = None
        if fresh.count < index.count:
            fresh.insert(index.columns_of(np.arange(fresh.count, index.count)))
        gone = np.ones(index.count, np.bool_)
        gone[index.current_rows()] = False
        fresh.remove(np.flatnonzero(gone))
        live = index.live
        if live.count:
            fresh.hold(live.columns)
            dropped = np.ones(live.count, np.bool_)
            dropped[live.current_rows()] = False
            fresh.drop(np.flatnonzero(dropped))
        state.index = fresh
        state.safe_distances = SafeDistances(fresh.live)
        return True

    def stats(self, index: Index) -> dict[str, object]:
        """For `stats()`: what was chosen, why, and what was measured."""
        if not self.is_on:
            return {}
        name = structure_of(type(index)).name
        if self.measured is not None and self.measured.name == name:
            return {"auto": {"name": name, **self.measured.to_dict()}}
        reason = "few subscriptions" if is_for_few(index) else "many subscriptions"
        return {"auto": {"name": name, "reason": reason}}
