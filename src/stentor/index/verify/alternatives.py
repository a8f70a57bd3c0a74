"""Whether predicates, alternatives and subscriptions hold of the event in the scratch.

`language/evaluate.py` is the definition; this is the same over columns.
"""

from __future__ import annotations

import math

from stentor._jit import kernel_inline, kernel_part
from stentor.encoding.columns import (
    BOX,
    HERE,
    KIND_MASK,
    MISSING,
    NEGATED,
    ONE_OF,
    PRESENT,
    SPAN,
    SPANS,
    STRING_SPAN,
    TERMS,
    EventColumns,
    SubscriptionColumns,
)
from stentor.index.table import Validity
from stentor.index.verify.place import in_region
from stentor.index.verify.scratch import EventScratch, has_value, weight_of
from stentor.index.verify.text import (
    has_some_group,
    in_string_span,
    is_like,
    is_one_of,
)
from stentor.model.scoring import combined

combine = kernel_inline(combined)

#: Stands for a predicate where there is none: every predicate of an alternative holds.
ALL_HOLD = -1


@kernel_inline
def holds_at(
    columns: SubscriptionColumns, validity: Validity, row: int, events: EventColumns, event: int
) -> bool:
    """Whether subscription *row* is there, and not over, when *event* comes."""
    if validity.hidden[row] != 0 or events.time[event] >= columns.until[row]:
        return False
    seq = events.seq[event]
    if len(validity.since) > 0 and validity.since[row] >= seq:
        return False
    return len(validity.upto) == 0 or seq < validity.upto[row]


@kernel_inline
def subscription_matches(columns: SubscriptionColumns, row: int, scratch: EventScratch) -> bool:
    """Whether some alternative of *row* holds."""
    for alternative in range(columns.alternative_start[row], columns.alternative_start[row + 1]):
        if alternative_holds(columns, alternative, scratch):
            return True
    return False


@kernel_inline
def subscription_score(
    columns: SubscriptionColumns, row: int, scratch: EventScratch, scoring: int
) -> float:
    """The best score among the alternatives of *row* that hold; −∞ where none does."""
    best = -math.inf
    for alternative in range(columns.alternative_start[row], columns.alternative_start[row + 1]):
        score = alternative_score(columns, alternative, scratch, scoring)
        if score > best and alternative_holds(columns, alternative, scratch):
            best = score
    return best


@kernel_inline
def alternative_score(
    columns: SubscriptionColumns, alternative: int, scratch: EventScratch, scoring: int
) -> float:
    """Weights times the event's weights, put together in the order of the predicates."""
    score = 0.0
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        weight = columns.weight[predicate] * weight_of(scratch, columns.attribute[predicate])
        score = combine(scoring, score, weight)
    return score


@kernel_inline
def alternative_holds(
    columns: SubscriptionColumns, alternative: int, scratch: EventScratch
) -> bool:
    """Whether every predicate of *alternative* holds."""
    return first_failing(columns, alternative, scratch) == ALL_HOLD


@kernel_inline
def first_failing(columns: SubscriptionColumns, alternative: int, scratch: EventScratch) -> int:
    """The first predicate of *alternative* that does not hold, or `ALL_HOLD`."""
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        if not predicate_holds(columns, predicate, scratch):
            return predicate
    return ALL_HOLD


@kernel_inline
def predicate_holds(columns: SubscriptionColumns, predicate: int, scratch: EventScratch) -> bool:
    """Whether *predicate* is true: of a missing attribute only `IS NULL` is."""
    kind = columns.kind[predicate]
    attribute = columns.attribute[predicate]
    if not has_value(scratch, attribute):
        return bool(kind == MISSING)
    low, high = scratch.low[attribute], scratch.high[attribute]
    if kind == SPAN:
        return bool(low <= columns.high[predicate] and high >= columns.low[predicate])
    if kind == SPANS:
        return in_some_span(columns, predicate, low, high)
    if kind <= PRESENT:
        return bool(kind == PRESENT)
    negated = bool(kind & NEGATED)
    which = kind & KIND_MASK
    if which >= BOX:
        if which == HERE and math.isnan(columns.pair_low[columns.operand_start[predicate] + 2]):
            return False  # nobody knows where the subscriber is: unknown, negated or not
        return in_region(columns, predicate, low, high) != negated
    string = scratch.string[attribute]
    if string < 0:
        return False  # no string: unknown, negated or not
    if which == TERMS:
        return has_some_group(columns, predicate, scratch) != negated
    text = scratch.string_bytes[scratch.string_start[string] : scratch.string_start[string + 1]]
    if which == ONE_OF:
        return is_one_of(columns, predicate, scratch.string_hash[string], text) != negated
    if which == STRING_SPAN:
        return in_string_span(columns, predicate, text) != negated
    pattern = columns.operand_start[predicate]
    start, stop = columns.string_start[pattern], columns.string_start[pattern + 1]
    return is_like(text, columns.string_bytes[start:stop]) != negated


@kernel_part
def in_some_span(columns: SubscriptionColumns, predicate: int, low: float, high: float) -> bool:
    """Whether low … high meets one of the predicate's intervals; cost: O(log n) for n of them."""
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    last = stop
    while start < stop:  # to the first interval that does not end below `low`
        middle = (start + stop) >> 1
        if columns.pair_high[middle] < low:
            start = middle + 1
        else:
            stop = middle
    return bool(start < last and columns.pair_low[start] <= high)
