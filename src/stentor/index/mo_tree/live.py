"""Subscriptions → live events: candidates of the buckets, verified."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import EventColumns, Int64, MatchPairs, SubscriptionColumns, read_only
from stentor.index.mo_tree.build import MoTreeLayers
from stentor.index.mo_tree.match import match_subscriptions
from stentor.index.sort import distinct
from stentor.index.verify.candidates import row_of
from stentor.index.verify.predicates import alternative_holds
from stentor.index.verify.scratch import EventScratch, ScratchSize, load_event, scratch_for

#: Candidates that fit at first.
FIRST_CAPACITY = 1 << 12

_NOTHING_ENDS = np.zeros(0, np.int32)


def match_live(
    trees: Sequence[MoTreeLayers],
    columns: SubscriptionColumns,
    live: EventColumns,
    widest: ScratchSize,
    now: int | None,
) -> MatchPairs:
    """For each of *columns* the rows of *live* events in *trees* that it wants.

    Where *now* is known, events that have ended are removed from the buckets that are visited.

    Paper: Algorithm 1.
    """
    candidates = [_candidates(tree, columns, live, now) for tree in trees]
    alternatives, events = (np.concatenate(parts) for parts in zip(*candidates, strict=True))
    rows = np.empty(len(events), np.int64)
    kept = keep_valid(
        columns, live, read_only(alternatives), scratch_for(live, widest), events, rows
    )
    width = len(live.until) + 1
    pairs = distinct(rows[:kept] * width + events[:kept])
    starts = np.searchsorted(pairs, np.arange(len(columns.until) + 1) * width)
    return MatchPairs(starts.astype(np.int64), pairs % width)


def _candidates(
    tree: MoTreeLayers, columns: SubscriptionColumns, live: EventColumns, now: int | None
) -> tuple[Int64, Int64]:
    """Alternatives of *columns*, and the events in *tree* that each of them may want."""
    capacity, found = 0, FIRST_CAPACITY
    while found > capacity:
        capacity = found
        alternatives, events = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        found = match_subscriptions(
            tree.events.writable,
            tree.dimensions,
            tree.cells,
            columns,
            live.until,
            0 if now is None else now,
            _NOTHING_ENDS if now is None else tree.events.slot_of,
            tree.query(),
            alternatives,
            events,
        )
    return alternatives[:found], events[:found]


@kernel
def keep_valid(
    columns: SubscriptionColumns,
    live: EventColumns,
    alternatives: Int64,
    scratch: EventScratch,
    events: Int64,
    rows: Int64,
) -> int:
    """How many pairs hold; they come first in *events*, and the subscriptions are in *rows*."""
    kept = 0
    for position in range(len(alternatives)):
        event = events[position]
        load_event(live, event, scratch)
        if alternative_holds(columns, alternatives[position], scratch):
            events[kept] = event
            rows[kept] = row_of(columns.alternative_start, alternatives[position])
            kept += 1
    return kept
