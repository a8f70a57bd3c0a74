"""Why a subscription does not match an event: a code, and the predicate that failed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.choices import choices_of_pairs, with_choices
from stentor.encoding.columns import (
    EventColumns,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    UInt8,
    all_read_only,
)
from stentor.encoding.kinds import (
    KEYWORDS,
    KIND_MASK,
    MISSING,
    PHRASE,
    is_negated,
    is_number_test,
    is_string_test,
)
from stentor.index.table import RowSpans
from stentor.index.verify.circle import is_around_nobody
from stentor.index.verify.predicates import ALL_HOLD, first_failing, is_valid_at
from stentor.index.verify.scratch import EventScratch, has_value, load_event, scratch_for

MATCHES = 0
NOT_HOLDING = 1  # removed, or the event's seq is outside its span
OVER = 2  # its `until` has been reached
NEVER_MATCHES = 3  # the expression contradicts itself
ATTRIBUTE_MISSING = 4
ATTRIBUTE_PRESENT = 5  # and the subscription wants it missing
NUMBER_OUTSIDE = 6
STRING_DIFFERS = 7
TERM_MISSING = 8
TERM_PRESENT = 9  # and the subscription wants it absent
LOCATION_OUTSIDE = 10
LOCATION_INSIDE = 11  # and the subscription wants it outside
LOCATION_UNKNOWN = 12  # the subscriber's own

#: Instead of a predicate, where none failed.
NO_PREDICATE = -1


class Reasons(NamedTuple):
    """For each pair why it does not match."""

    code: UInt8  # (pairs,)
    predicate: Int64  # (pairs,) the row of the predicate, or NO_PREDICATE


def reasons_of(
    columns: SubscriptionColumns, validity: RowSpans, events: EventColumns, pairs: MatchPairs
) -> Reasons:
    """Why each of *pairs* (an event's rows) does not match, or `MATCHES`.

    Of several alternatives the one is blamed that got furthest before a predicate failed.
    """
    if len(with_choices(events)):
        choices, named, of = choices_of_pairs(events, pairs)
        own = reasons_of(columns, validity, choices, named)
        order = np.lexsort((-own.predicate, own.code != MATCHES, of))  # a choice that matches first
        first = order[np.unique(of[order], return_index=True)[1]]
        return Reasons(own.code[first], own.predicate[first])
    count = len(pairs.rows)
    found = Reasons(np.empty(count, np.uint8), np.empty(count, np.int64))
    explain_pairs(columns, validity, events, all_read_only(pairs), scratch_for(events), found)
    return found


@kernel
def explain_pairs(
    columns: SubscriptionColumns,
    validity: RowSpans,
    events: EventColumns,
    pairs: MatchPairs,
    scratch: EventScratch,
    found: Reasons,
) -> None:
    """Fill *found* for each of *pairs*."""
    for event in range(len(pairs.starts) - 1):
        load_event(events, event, scratch)
        for position in range(pairs.starts[event], pairs.starts[event + 1]):
            row = pairs.rows[position]
            predicate = NO_PREDICATE
            if events.time[event] >= columns.until[row]:
                code = OVER
            elif not is_valid_at(columns, validity, row, events, event):
                code = NOT_HOLDING
            elif columns.alternative_start[row] == columns.alternative_start[row + 1]:
                code = NEVER_MATCHES
            else:
                predicate = best_failing_predicate(columns, row, scratch)
                code = MATCHES if predicate == ALL_HOLD else reason_of(columns, predicate, scratch)
            found.code[position] = code
            found.predicate[position] = predicate


@kernel_inline
def best_failing_predicate(columns: SubscriptionColumns, row: int, scratch: EventScratch) -> int:
    """The first failing predicate of the alternative that got furthest, or `ALL_HOLD`."""
    furthest, most_passed = ALL_HOLD, -1
    for alternative in range(columns.alternative_start[row], columns.alternative_start[row + 1]):
        predicate = first_failing(columns, alternative, scratch)
        if predicate == ALL_HOLD:
            return ALL_HOLD
        passed = predicate - columns.predicate_start[alternative]
        if passed > most_passed:
            furthest, most_passed = predicate, passed
    return furthest


@inner_kernel
def reason_of(columns: SubscriptionColumns, predicate: int, scratch: EventScratch) -> int:
    """The reason code of a *predicate* that failed."""
    kind = columns.kind[predicate]
    which = kind & KIND_MASK
    negated = is_negated(kind)
    if which == MISSING:
        return ATTRIBUTE_PRESENT
    if not has_value(scratch, columns.attribute[predicate]):
        return ATTRIBUTE_MISSING
    if is_number_test(which):
        return NUMBER_OUTSIDE
    if which in (KEYWORDS, PHRASE):
        return TERM_PRESENT if negated else TERM_MISSING
    if is_string_test(which):
        return STRING_DIFFERS
    if is_around_nobody(columns, predicate, which):
        return LOCATION_UNKNOWN
    return LOCATION_INSIDE if negated else LOCATION_OUTSIDE
