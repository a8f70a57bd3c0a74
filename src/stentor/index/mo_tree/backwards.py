"""Subscriptions → live events: the search's candidates, verified."""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import EventColumns, Int64, MatchPairs, SubscriptionColumns
from stentor.encoding.readonly import read_only
from stentor.index.mo_tree.searching import search_events
from stentor.index.mo_tree.tree import Tree
from stentor.index.verify.alternatives import alternative_holds
from stentor.index.verify.candidates import row_of
from stentor.index.verify.scratch import EventScratch, Widest, scatter, scratch_for

#: Candidates that there is room for at first.
ROOM = 1 << 12

_NOTHING_ENDS = np.zeros(0, np.int32)


def match_live(
    tree: Tree, columns: SubscriptionColumns, live: EventColumns, widest: Widest, now: int | None
) -> MatchPairs:
    """For each of *columns* the rows of *live* events in *tree* that it wants.

    Where *now* is known, events that have ended leave the buckets that are visited.

    Paper: Algorithm 1.
    """
    room, found = 0, ROOM
    while found > room:
        room = found
        alternatives, events = np.empty(room, np.int64), np.empty(room, np.int64)
        found = search_events(
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
    rows = np.empty(found, np.int64)
    kept = keep_holding(
        columns,
        live,
        read_only(alternatives[:found]),
        scratch_for(live, widest),
        events[:found],
        rows,
    )
    width = len(live.until) + 1
    pairs = np.unique(rows[:kept] * width + events[:kept])
    starts = np.searchsorted(pairs, np.arange(len(columns.until) + 1) * width)
    return MatchPairs(starts.astype(np.int64), pairs % width)


@kernel
def keep_holding(
    columns: SubscriptionColumns,
    live: EventColumns,
    alternatives: Int64,
    scratch: EventScratch,
    events: Int64,
    rows: Int64,
) -> int:
    """How many pairs hold; they come first in *events*, and the subscriptions are in *rows*."""
    kept = 0
    for place in range(len(alternatives)):
        event = events[place]
        scatter(live, event, scratch)
        if alternative_holds(columns, alternatives[place], scratch):
            events[kept] = event
            rows[kept] = row_of(columns.alternative_start, alternatives[place])
            kept += 1
    return kept
