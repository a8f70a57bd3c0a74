"""Whether predicates, alternatives and subscriptions hold of the event in the scratch.

Predicates are tested in the order of attribute names; the first that fails ends an alternative.
"""

from __future__ import annotations

import math

from stentor._jit import kernel_inline
from stentor.encoding.columns import EventColumns, SubscriptionColumns
from stentor.encoding.kinds import (
    BOX,
    INTERVAL,
    INTERVALS,
    KEYWORDS,
    KIND_MASK,
    MEMBERSHIP,
    PATTERN,
    PHRASE,
    POLYGON,
    REGULAR,
    STRING_INTERVAL,
    is_circle,
    is_negated,
    is_region,
)
from stentor.index.table import RowSpans
from stentor.index.verify.box import in_own_box
from stentor.index.verify.circle import in_own_circle, is_around_nobody
from stentor.index.verify.comparison import in_intervals, in_string_span
from stentor.index.verify.keywords import has_phrase, has_some_group
from stentor.index.verify.membership import is_one_of
from stentor.index.verify.null_test import holds_of_any_value, holds_without_value, is_null_test
from stentor.index.verify.pattern import is_accepted, is_like
from stentor.index.verify.polygon import in_polygon
from stentor.index.verify.scratch import EventScratch, has_value, weight_of
from stentor.model.scoring import combined


@kernel_inline
def in_region(columns: SubscriptionColumns, predicate: int, x: float, y: float) -> bool:
    """Whether (x, y) is in the predicate's region; its surrounding box is tried first."""
    kind = columns.kind[predicate] & KIND_MASK
    if not in_own_box(columns, predicate, x, y):
        return False
    if kind == BOX:
        return True
    if kind == POLYGON:
        return in_polygon(columns, predicate, x, y)
    return is_circle(kind) and in_own_circle(columns, predicate, x, y)


combine = kernel_inline(combined)


#: Instead of a failing predicate: every predicate of an alternative holds.
ALL_HOLD = -1


@kernel_inline
def is_valid_at(
    columns: SubscriptionColumns, validity: RowSpans, row: int, events: EventColumns, event: int
) -> bool:
    """Whether subscription *row* holds at the seq and time of *event*."""
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
        return holds_without_value(kind)
    low, high = scratch.low[attribute], scratch.high[attribute]
    if kind == INTERVAL:
        return bool(low <= columns.high[predicate] and high >= columns.low[predicate])
    if kind == INTERVALS:
        return in_intervals(columns, predicate, low, high)
    if is_null_test(kind):
        return holds_of_any_value(kind)
    negated = is_negated(kind)
    which = kind & KIND_MASK
    if is_region(which):
        if is_around_nobody(columns, predicate, which):
            return False  # the subscriber's location is unknown: so is the result, negated or not
        return in_region(columns, predicate, low, high) != negated
    string = scratch.string[attribute]
    if string < 0:
        return False  # no string: unknown, negated or not
    if which == KEYWORDS:
        return has_some_group(columns, predicate, scratch) != negated
    if which == PHRASE:
        return has_phrase(columns, predicate, scratch) != negated
    text = scratch.string_bytes[scratch.string_start[string] : scratch.string_start[string + 1]]
    if which == MEMBERSHIP:
        return is_one_of(columns, predicate, scratch.string_hash[string], text) != negated
    if which == STRING_INTERVAL:
        return in_string_span(columns, predicate, text) != negated
    if which == PATTERN:
        pattern = columns.operand_start[predicate]
        start, stop = columns.string_start[pattern], columns.string_start[pattern + 1]
        return is_like(text, columns.string_bytes[start:stop]) != negated
    if which == REGULAR:
        table = columns.operand_start[predicate] + 1
        start, stop = columns.string_start[table], columns.string_start[table + 1]
        return is_accepted(text, columns.string_bytes[start:stop]) != negated
    return False  # what is not known here matches nothing, negated or not
