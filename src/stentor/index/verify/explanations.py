"""Why a subscription does not match an event: a code, and the predicate that failed."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import (
    HERE,
    KIND_MASK,
    MISSING,
    NEGATED,
    SPANS,
    TERMS,
    EventColumns,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    UInt8,
)
from stentor.encoding.readonly import all_read_only
from stentor.index.table import Validity
from stentor.index.verify.alternatives import ALL_HOLD, first_failing, holds_at
from stentor.index.verify.scratch import EventScratch, has_value, scatter, scratch_for

MATCHES = 0
NOT_HOLDING = 1  # removed, or the event's place in the order is outside its span
OVER = 2  # its `until` has been reached
NEVER_MATCHES = 3  # the expression contradicts itself
ATTRIBUTE_MISSING = 4
ATTRIBUTE_PRESENT = 5  # and the subscription wants it missing
NUMBER_OUTSIDE = 6
STRING_DIFFERS = 7
TERM_MISSING = 8
TERM_PRESENT = 9  # and the subscription wants it absent
PLACE_OUTSIDE = 10
PLACE_INSIDE = 11  # and the subscription wants it outside
PLACE_UNKNOWN = 12  # the subscriber's own

#: Stands where no predicate is to blame.
NO_PREDICATE = -1


class Reasons(NamedTuple):
    """For each pair why it does not match."""

    code: UInt8  # (pairs,)
    predicate: Int64  # (pairs,) the row of the predicate, or NO_PREDICATE


def reasons(
    columns: SubscriptionColumns, validity: Validity, events: EventColumns, pairs: MatchPairs
) -> Reasons:
    """Why each of *pairs* (an event's rows) does not match, or `MATCHES`.

    Of several alternatives the one is blamed that got furthest before a predicate failed.
    """
    count = len(pairs.rows)
    found = Reasons(np.empty(count, np.uint8), np.empty(count, np.int64))
    explain_pairs(columns, validity, events, all_read_only(pairs), scratch_for(events), found)
    return found


@kernel
def explain_pairs(
    columns: SubscriptionColumns,
    validity: Validity,
    events: EventColumns,
    pairs: MatchPairs,
    scratch: EventScratch,
    found: Reasons,
) -> None:
    """Fill *found* for each of *pairs*."""
    for event in range(len(pairs.starts) - 1):
        scatter(events, event, scratch)
        for place in range(pairs.starts[event], pairs.starts[event + 1]):
            row = pairs.rows[place]
            predicate = NO_PREDICATE
            if events.time[event] >= columns.until[row]:
                code = OVER
            elif not holds_at(columns, validity, row, events, event):
                code = NOT_HOLDING
            elif columns.alternative_start[row] == columns.alternative_start[row + 1]:
                code = NEVER_MATCHES
            else:
                predicate = furthest_failing(columns, row, scratch)
                code = MATCHES if predicate == ALL_HOLD else blame(columns, predicate, scratch)
            found.code[place] = code
            found.predicate[place] = predicate


@kernel_inline
def furthest_failing(columns: SubscriptionColumns, row: int, scratch: EventScratch) -> int:
    """The first failing predicate of the alternative that got furthest, or `ALL_HOLD`."""
    furthest, most_held = ALL_HOLD, -1
    for alternative in range(columns.alternative_start[row], columns.alternative_start[row + 1]):
        predicate = first_failing(columns, alternative, scratch)
        if predicate == ALL_HOLD:
            return ALL_HOLD
        held = predicate - columns.predicate_start[alternative]
        if held > most_held:
            furthest, most_held = predicate, held
    return furthest


@kernel_part
def blame(columns: SubscriptionColumns, predicate: int, scratch: EventScratch) -> int:
    """What is wrong with the event, in the eyes of a *predicate* that failed."""
    kind = columns.kind[predicate]
    which = kind & KIND_MASK
    negated = (kind & NEGATED) != 0
    if which == MISSING:
        return ATTRIBUTE_PRESENT
    if not has_value(scratch, columns.attribute[predicate]):
        return ATTRIBUTE_MISSING
    if which <= SPANS:
        return NUMBER_OUTSIDE
    if which < TERMS:
        return STRING_DIFFERS
    if which == TERMS:
        return TERM_PRESENT if negated else TERM_MISSING
    if which == HERE and math.isnan(columns.pair_low[columns.operand_start[predicate] + 2]):
        return PLACE_UNKNOWN
    return PLACE_INSIDE if negated else PLACE_OUTSIDE
