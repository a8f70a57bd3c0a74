"""Structures timed on a sample of a user's own subscriptions and events: what `auto` goes by.

Packed is taken unless another structure matches the sample's events more than 1.3 times as fast.
Nothing that is answered depends on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns, event_count
from stentor.encoding.ragged import events_between
from stentor.index.catalog import PACKED, structure_class
from stentor.index.contract import Index

#: Subscriptions and events that structures are timed on, at most.
MOST_ROWS, MOST_EVENTS = 30_000, 256
#: Fewer events say too little.
FEWEST_EVENTS: Final = 64
#: What packed is compared with: the papers' structures.
OTHERS: Final = ("ap_tree", "be_star_tree", "mo_tree")
#: Another structure is taken where it is so many times as fast.
MUCH_FASTER: Final = 1.3
#: Each is timed so often; the fastest counts.
_TIMES: Final = 3
_SEED: Final = 0x5EED

#: Says how long something took, in seconds.
Stopwatch = Callable[[], float]


class TrialResult(NamedTuple):
    """How long structures took for an event of the sample, and which is taken for it."""

    name: str
    reason: str
    microseconds: dict[str, float]  # for an event, by structure
    subscriptions: int  # in the sample
    events: int
    measured_at: int  # subscriptions in the index when it was measured

    def to_dict(self) -> dict[str, Any]:
        """For `stats()`."""
        return {**self._asdict(), "microseconds": dict(self.microseconds)}


def sample_of(index: Index) -> tuple[SubscriptionColumns, EventColumns] | None:
    """Some of the subscriptions and events of *index*, drawn at random; None where it knows few.

    Cost: one look at all rows, and a copy of the sample.
    """
    events = index.sample()
    if events is None or event_count(events) < FEWEST_EVENTS:
        return None
    rows: Int64 = index.current_rows()
    if len(rows) > MOST_ROWS:
        random = np.random.default_rng(_SEED)
        rows = np.unique(rows[random.integers(0, len(rows), MOST_ROWS)])
    return index.columns_of(rows), events_between(events, 0, min(MOST_EVENTS, event_count(events)))


def measure(
    columns: SubscriptionColumns,
    events: EventColumns,
    count: int,
    others: Sequence[str] = OTHERS,
    stopwatch: Stopwatch = time.thread_time,
) -> TrialResult:
    """Time packed and *others* on a sample of *count* subscriptions in all, and choose.

    A structure that cannot hold the sample, or answers otherwise than packed, is left out.
    """
    found: dict[str, float] = {}
    expected: Int64 | None = None
    for name in (PACKED, *others):
        try:
            index = structure_class(name).build(columns, events)
            rows = index.match(events).rows
            if expected is not None and not np.array_equal(rows, expected):
                continue
            expected = rows
            found[name] = _microseconds(index, events, stopwatch)
        except Exception:
            if name == PACKED:
                raise
    best = min(found, key=found.__getitem__)
    sizes = len(columns.alternative_start) - 1, event_count(events)
    ratio = found[PACKED] / max(found[best], 1e-9)
    if best != PACKED and ratio > MUCH_FASTER:
        reason = f"on a sample it is {ratio:.1f} times as fast as packed"
        return TrialResult(best, reason, found, *sizes, count)
    beside = min((name for name in found if name != PACKED), key=found.__getitem__, default=None)
    reason = "no other structure could hold the sample"
    if beside is not None:
        reason = f"on a sample {beside}, the next, is {1 / _ratio(found, beside):.1f} times as fast"
    return TrialResult(PACKED, reason, found, *sizes, count)


def _ratio(found: dict[str, float], name: str) -> float:
    return max(found[name], 1e-9) / max(found[PACKED], 1e-9)


def _microseconds(index: Index, events: EventColumns, stopwatch: Stopwatch) -> float:
    """How long one of *events* takes."""
    least = float("inf")
    for _ in range(_TIMES):
        start = stopwatch()
        index.match(events)
        least = min(least, stopwatch() - start)
    return 1e6 * least / event_count(events)
