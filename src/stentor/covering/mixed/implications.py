"""Whether one predicate implies another, over columns: the tests of `meaning/asked.py` compiled.

YES and NO are what the definition says. ASK leaves it to the definition: patterns, ranges of
strings, polygons around other things, several tests of one string.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import kernel_inline, kernel_part
from stentor.covering.mixed.decode import is_wild
from stentor.covering.mixed.dims import booleans
from stentor.covering.mixed.places import place_implies
from stentor.covering.mixed.tokens import BOOLEAN
from stentor.covering.mixed.verdicts import ASK, NO, YES
from stentor.encoding.columns import (
    BOX,
    KIND_MASK,
    LAST,
    LIKE,
    MISSING,
    NEGATED,
    ONE_OF,
    PRESENT,
    SPAN,
    SPANS,
    STRING_SPAN,
    TERMS,
    SubscriptionColumns,
    UInt8,
)
from stentor.index.verify.text import in_string_span, is_like, is_one_of, same_bytes


@kernel_part
def implies(columns: SubscriptionColumns, kinds: UInt8, plane: bool, narrow: int, wide: int) -> int:
    """Whether the predicate *narrow* implies *wide*, both on one attribute."""
    kind, asked = columns.kind[narrow], columns.kind[wide]
    if kind == MISSING or asked == MISSING:
        return YES if kind == asked else NO
    if asked == PRESENT:
        return YES
    if asked <= SPANS:
        return numbers_imply(columns, kinds, narrow, wide)
    if (asked & KIND_MASK) >= BOX:
        return (
            YES
            if kind != PRESENT and same_operands(columns, narrow, wide)
            else (place_implies(columns, plane, narrow, wide))
        )
    if kind == PRESENT:
        return ASK if (asked & KIND_MASK) in (STRING_SPAN, LIKE) else NO
    return string_implies(columns, narrow, wide)


@kernel_part
def numbers_imply(columns: SubscriptionColumns, kinds: UInt8, narrow: int, wide: int) -> int:
    """Whether every number that satisfies *narrow* satisfies *wide*."""
    kind, asked = columns.kind[narrow], columns.kind[wide]
    low, high = columns.low[narrow], columns.high[narrow]  # of IS NOT NULL: everything
    if kinds[columns.attribute[narrow]] == BOOLEAN:
        has_false, has_true = booleans(columns, narrow, kind, low, high)
        wants_false, wants_true = booleans(
            columns, wide, asked, columns.low[wide], columns.high[wide]
        )
        return YES if (wants_false or not has_false) and (wants_true or not has_true) else NO
    if asked == SPAN:  # a hull inside an interval: all of it is
        return YES if columns.low[wide] <= low and high <= columns.high[wide] else NO
    if kind != SPANS:
        return YES if in_spans(columns, wide, low, high) else NO
    for pair in range(columns.operand_start[narrow], columns.operand_stop[narrow]):
        if not in_spans(columns, wide, columns.pair_low[pair], columns.pair_high[pair]):
            return NO
    return YES


@kernel_part
def in_spans(columns: SubscriptionColumns, predicate: int, low: float, high: float) -> bool:
    """Whether low … high lies in the predicate's intervals, neighbours taken as one."""
    for pair in range(columns.operand_start[predicate], columns.operand_stop[predicate]):
        start, stop = columns.pair_low[pair], columns.pair_high[pair]
        if start <= low <= stop:
            if high <= stop:
                return True
            low = np.nextafter(stop, math.inf)
    return False


@kernel_part
def same_operands(columns: SubscriptionColumns, one: int, other: int) -> bool:
    """Whether two predicates are the same region, or the same test of strings."""
    kind = columns.kind[one] & KIND_MASK
    if columns.kind[one] != columns.kind[other]:
        return False
    start, stop = columns.operand_start[one], columns.operand_stop[one]
    shift = columns.operand_start[other] - start
    if columns.operand_stop[other] - stop != shift:
        return False
    if kind >= BOX:
        for pair in range(start, stop):
            low, high = columns.pair_low[pair], columns.pair_high[pair]
            other_low, other_high = columns.pair_low[pair + shift], columns.pair_high[pair + shift]
            ends_ring = math.isnan(low) and math.isnan(other_low) and pair > start + 1
            if not ends_ring and (low != other_low or high != other_high):
                return False
        return True
    for string in range(start, stop):
        if columns.string_mark[string] != columns.string_mark[string + shift]:
            return False
        if not same_string(columns, string, string + shift):
            return False
    return True


@kernel_inline
def same_string(columns: SubscriptionColumns, one: int, other: int) -> bool:
    """Whether two strings are the same: their hashes say not, their bytes decide."""
    return columns.string_hash[one] == columns.string_hash[other] and same_bytes(
        columns.string_bytes[columns.string_start[one] : columns.string_start[one + 1]],
        columns.string_bytes[columns.string_start[other] : columns.string_start[other + 1]],
    )


@kernel_part
def string_implies(columns: SubscriptionColumns, narrow: int, wide: int) -> int:
    """Whether the test of strings *narrow* implies *wide*; YES also where both are the same."""
    kind, asked = columns.kind[narrow] & KIND_MASK, columns.kind[wide] & KIND_MASK
    negated = (columns.kind[narrow] & NEGATED) != 0
    refused = (columns.kind[wide] & NEGATED) != 0
    if kind == ONE_OF and not negated:
        return ASK if asked == TERMS else list_implies(columns, narrow, wide)
    if same_operands(columns, narrow, wide):
        return YES
    if kind == ONE_OF and asked == ONE_OF:
        if not refused:
            return NO  # all but a few are not among a few
        for string in range(columns.operand_start[wide], columns.operand_stop[wide]):
            if not string_is_one_of(columns, narrow, string):
                return NO
        return YES
    if kind == TERMS and asked == TERMS:
        return YES if negated == refused and groups_imply(columns, narrow, wide, refused) else NO
    if kind in (ONE_OF, TERMS) and asked in (ONE_OF, TERMS):
        return NO
    if kind == LIKE and asked == LIKE and not negated and not refused:
        return pattern_implies(columns, narrow, wide)
    return ASK


@kernel_part
def pattern_implies(columns: SubscriptionColumns, narrow: int, wide: int) -> int:
    """Whether one LIKE pattern implies another: by what they begin with, if that says it.

    NO where texts of the one need not begin as the other asks; YES where it asks for no more.
    """
    inner, outer = columns.operand_start[narrow], columns.operand_start[wide]
    mine = columns.string_bytes[columns.string_start[inner] : columns.string_start[inner + 1]]
    asked = columns.string_bytes[columns.string_start[outer] : columns.string_start[outer + 1]]
    for place in range(len(asked)):
        byte = asked[place]
        if byte == ord("\\") or (place < len(mine) and mine[place] == ord("\\")):
            return ASK
        if byte == ord("%") or byte == ord("_"):
            return YES if byte == ord("%") and place == len(asked) - 1 else ASK
        if place == len(mine):
            return ASK  # without a wildcard: one string
        if mine[place] != byte:
            return NO if mine[place] == ord("%") or is_wild(mine[place:]) else ASK
    return ASK


@kernel_part
def list_implies(columns: SubscriptionColumns, narrow: int, wide: int) -> int:
    """Whether each string of the list *narrow* satisfies *wide*."""
    asked = columns.kind[wide] & KIND_MASK
    refused = (columns.kind[wide] & NEGATED) != 0
    for string in range(columns.operand_start[narrow], columns.operand_stop[narrow]):
        text = columns.string_bytes[columns.string_start[string] : columns.string_start[string + 1]]
        if asked == ONE_OF:
            held = is_one_of(columns, wide, columns.string_hash[string], text)
        elif asked == STRING_SPAN:
            held = in_string_span(columns, wide, text)
        else:
            pattern = columns.operand_start[wide]
            start, stop = columns.string_start[pattern], columns.string_start[pattern + 1]
            held = is_like(text, columns.string_bytes[start:stop])
        if held == refused:
            return NO
    return YES


@kernel_inline
def string_is_one_of(columns: SubscriptionColumns, predicate: int, string: int) -> bool:
    """Whether *string* is one of the predicate's strings."""
    start, stop = columns.string_start[string], columns.string_start[string + 1]
    return is_one_of(
        columns, predicate, columns.string_hash[string], columns.string_bytes[start:stop]
    )


@kernel_part
def groups_imply(columns: SubscriptionColumns, narrow: int, wide: int, refused: bool) -> bool:
    """Whether each group of *narrow* holds one of *wide*; of negated tests the other way round."""
    inner, outer = (wide, narrow) if refused else (narrow, wide)
    start = columns.operand_start[inner]
    for string in range(start, columns.operand_stop[inner]):
        if columns.string_mark[string] == LAST:
            if not holds_a_group(columns, start, string + 1, outer):
                return False
            start = string + 1
    return True


@kernel_part
def holds_a_group(columns: SubscriptionColumns, start: int, stop: int, predicate: int) -> bool:
    """Whether the words *start* … *stop* hold all words of some group of *predicate*."""
    held = True
    for string in range(columns.operand_start[predicate], columns.operand_stop[predicate]):
        if held:
            found = False
            for word in range(start, stop):
                found = found or same_string(columns, word, string)
            held = found
        if columns.string_mark[string] == LAST:
            if held:
                return True
            held = True
    return False
