"""Subscriptions → live events, for structures that know no better way.

Live events keep their signatures. An event is spread out only where an alternative's signature
fits, and the first predicate that bounds a place or a value does not rule it out.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import (
    BOX,
    NEGATED,
    EventColumns,
    Int32,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    UInt8,
    UInt64,
    event_count,
    subscription_count,
)
from stentor.encoding.readonly import read_only
from stentor.index.event_values import NO_VALUE, find_value
from stentor.index.growing import GrowingArray
from stentor.index.signature import alternative_signature, event_signature
from stentor.index.table import EventTable
from stentor.index.verify.alternatives import alternative_holds
from stentor.index.verify.candidates import by_event
from stentor.index.verify.place import box_contains
from stentor.index.verify.scratch import EventScratch, scatter, scratch_for

#: The bounding predicate of an alternative that has none.
NO_BOUND = -1


#: Pairs that there is room for at first.
ROOM = 1 << 12
#: No attribute has a filter that would make its signature superfluous.
NO_FILTERS = read_only(np.zeros(0, np.int32))


class Signatures:
    """The signatures of live events, by which most of them are passed over."""

    def __init__(self) -> None:
        self._signature = GrowingArray(np.uint64)

    @property
    def nbytes(self) -> int:
        return self._signature.nbytes

    @property
    def view(self) -> UInt64:
        """By the row of the event."""
        return self._signature.view

    def add(self, events: EventColumns) -> None:
        """Sign *events*, the live ones that come after all before."""
        signature = signatures_of(events)
        self._signature.extend(signature, len(signature))

    def match(self, columns: SubscriptionColumns, live: EventTable) -> MatchPairs:
        """For each of *columns* the rows of the *live* events that it wants.

        Cost: a signature compared per event and alternative, the verifier for what is left.
        """
        alternatives = len(columns.predicate_start) - 1
        needed, bound = np.empty(alternatives, np.uint64), np.empty(alternatives, np.int64)
        prepare_alternatives(columns, NO_FILTERS, needed, bound)
        room, found = 0, ROOM
        while found > room:
            room = found
            rows, events = np.empty(room, np.int64), np.empty(room, np.int64)
            found = match_events(
                columns,
                read_only(needed),
                read_only(bound),
                live.columns,
                live.hidden,
                self._signature.view,
                scratch_for(live.columns),
                rows,
                events,
            )
        starts = np.zeros(subscription_count(columns) + 1, np.int64)
        order = np.empty(found, np.int64)
        by_event(read_only(rows[:found]), starts, order)
        return MatchPairs(starts, events[order])

    def check(self, live: EventTable) -> None:
        """Assert that each of *live* has its signature."""
        assert np.array_equal(signatures_of(live.columns), self._signature.view)


def signatures_of(events: EventColumns) -> UInt64:
    """The signature of each of *events*."""
    signature = np.empty(event_count(events), np.uint64)
    sign_events(events, NO_FILTERS, signature)
    return signature


@kernel
def sign_events(events: EventColumns, first_of: Int32, signature: UInt64) -> None:
    """Fill *signature* for each event."""
    for event in range(len(signature)):
        signature[event] = event_signature(events, event, first_of)


@kernel
def prepare_alternatives(
    columns: SubscriptionColumns, first_of: Int32, signature: UInt64, bound: Int64
) -> None:
    """Fill *signature*, and *bound* with a predicate that bounds a place, or else a value."""
    for alternative in range(len(signature)):
        signature[alternative] = alternative_signature(columns, alternative, first_of)
        bound[alternative] = NO_BOUND
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            kind = columns.kind[predicate]
            if BOX <= kind < NEGATED:
                bound[alternative] = predicate
                break
            if kind >= BOX:
                continue
            bounded = columns.low[predicate] > -math.inf or columns.high[predicate] < math.inf
            if bounded and bound[alternative] == NO_BOUND:
                bound[alternative] = predicate


@kernel
def match_events(
    columns: SubscriptionColumns,
    needed: UInt64,
    bound: Int64,
    events: EventColumns,
    hidden: UInt8,
    signature: UInt64,
    scratch: EventScratch,
    found_row: Int64,
    found_event: Int64,
) -> int:
    """The number of pairs, each once, by event; those that do not fit are only counted."""
    found = 0
    for event in range(len(hidden)):
        if hidden[event] != 0:
            continue
        lacking = ~signature[event]
        is_spread = False
        for row in range(len(columns.until)):
            for alternative in range(
                columns.alternative_start[row], columns.alternative_start[row + 1]
            ):
                if needed[alternative] & lacking != np.uint64(0):
                    continue
                if not within_bound(columns, bound[alternative], events, event):
                    continue
                if not is_spread:
                    scatter(events, event, scratch)
                    is_spread = True
                if alternative_holds(columns, alternative, scratch):
                    if found < len(found_row):
                        found_row[found] = row
                        found_event[found] = event
                    found += 1
                    break
    return found


@kernel_inline
def within_bound(
    columns: SubscriptionColumns, predicate: int, events: EventColumns, event: int
) -> bool:
    """Whether *predicate*, by its hull or its surrounding box, leaves *event* possible."""
    if predicate == NO_BOUND:
        return True
    value = find_value(events, event, columns.attribute[predicate])
    if value == NO_VALUE:
        return False
    low, high = events.low[value], events.high[value]
    if columns.kind[predicate] < BOX:
        return bool(low <= columns.high[predicate] and high >= columns.low[predicate])
    pair = columns.operand_start[predicate]
    return box_contains(
        low,
        high,
        columns.pair_low[pair],
        columns.pair_low[pair + 1],
        columns.pair_high[pair],
        columns.pair_high[pair + 1],
    )
