"""Subscriptions → live events, for structures without an own `match_live`; what a move changes.

The signatures of live events are in one array; most events lack a bit that an alternative needs,
and the verifier tests the rest.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import (
    EventColumns,
    Int32,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    UInt8,
    UInt64,
    event_count,
    read_only,
    subscription_count,
)
from stentor.encoding.kinds import is_negated, is_region
from stentor.index.arena import GrowingArray
from stentor.index.signature import alternative_signature, event_signature
from stentor.index.sort import NO_VALUE, find_value
from stentor.index.table import EventTable
from stentor.index.verify.box import box_contains
from stentor.index.verify.candidates import group_by_event
from stentor.index.verify.predicates import alternative_holds
from stentor.index.verify.scratch import EventScratch, load_event, scratch_for

#: The bounding predicate of an alternative that has none.
NO_BOUND = -1


#: Pairs that fit at first.
FIRST_CAPACITY = 1 << 12


#: No attribute has a filter that would make its signature superfluous.
SIGN_ALL_ATTRIBUTES = read_only(np.zeros(0, np.int32))


class LiveSignatures:
    """The signatures of live events, by which most of them are ruled out."""

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
        """Append the signatures of *events*, which follow those that were added before."""
        signature = signatures_of(events)
        self._signature.extend(signature, len(signature))

    def keep(self, rows: Int64) -> None:
        """Keep *rows* alone; the row of each is its position there."""
        self._signature.keep(self._signature.view[rows])

    def match(self, columns: SubscriptionColumns, live: EventTable) -> MatchPairs:
        """For each of *columns* the rows of the *live* events that it wants.

        Cost: a signature compared per event and alternative, the verifier for what is left.
        """
        alternatives = len(columns.predicate_start) - 1
        needed, bound = np.empty(alternatives, np.uint64), np.empty(alternatives, np.int64)
        prepare_alternatives(columns, SIGN_ALL_ATTRIBUTES, needed, bound)
        capacity, found = 0, FIRST_CAPACITY
        while found > capacity:
            capacity = found
            rows, events = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
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
        group_by_event(read_only(rows[:found]), starts, order)
        return MatchPairs(starts, events[order])

    def check(self, live: EventTable) -> None:
        """Assert that each of *live* has its signature."""
        assert np.array_equal(signatures_of(live.columns), self._signature.view)


def signatures_of(events: EventColumns) -> UInt64:
    """The signature of each of *events*."""
    signature = np.empty(event_count(events), np.uint64)
    sign_events(events, SIGN_ALL_ATTRIBUTES, signature)
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
    """Fill *signature*, and *bound* with a predicate that bounds each."""
    for alternative in range(len(signature)):
        signature[alternative] = alternative_signature(columns, alternative, first_of)
        bound[alternative] = bounding_predicate(columns, alternative)


@inner_kernel
def bounding_predicate(columns: SubscriptionColumns, alternative: int) -> int:
    """A predicate of *alternative* that bounds a location, or else a value; or NO_BOUND."""
    bound = NO_BOUND
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        kind = columns.kind[predicate]
        if is_negated(kind):
            continue
        if is_region(kind):
            return predicate
        bounded = columns.low[predicate] > -math.inf or columns.high[predicate] < math.inf
        if bounded and bound == NO_BOUND:
            bound = predicate
    return bound


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
                if not meets_bounds(columns, bound[alternative], events, event):
                    continue
                if not is_spread:
                    load_event(events, event, scratch)
                    is_spread = True
                if alternative_holds(columns, alternative, scratch):
                    if found < len(found_row):
                        found_row[found] = row
                        found_event[found] = event
                    found += 1
                    break
    return found


@kernel_inline
def meets_bounds(
    columns: SubscriptionColumns, predicate: int, events: EventColumns, event: int
) -> bool:
    """Whether *predicate*, by its hull or its surrounding box, leaves *event* possible."""
    if predicate == NO_BOUND:
        return True
    value = find_value(events, event, columns.attribute[predicate])
    if value == NO_VALUE:
        return False
    low, high = events.low[value], events.high[value]
    if not is_region(columns.kind[predicate]):
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
