"""What an alternative asks for and what it offers, as sorted 64-bit tokens.

    asked by the coverer                       offered by the covered
    a number, an interval    NUMBER + 2 dims   the same with its own interval; IS NOT NULL: all
    one string               EQUAL             the same
    some strings             STRINGS + 2 dims  the same; anything else that is no number or place
    all of some words        WORD each         the same
    in a box, circle, …      PLACE + 4 dims    the same with its own box; otherwise the world
    IS NULL                  MISSING           the same
    anything else            PRESENT           whatever but IS NULL

Whatever covers an alternative asks for a subset of what it offers, with larger dimensions. A list
of strings or a has_any is a choice: its alternative is filed once for each string or group, under
tokens of their own, and asked about by the first one alone, for whoever covers it covers that one
too. Tokens are hashes: equal ones by accident cost a comparison, nothing else. The rarer sort comes
first, so that few paths of the trie begin alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import (
    BOX,
    KIND_MASK,
    LAST,
    LIKE,
    MISSING,
    NEGATED,
    ONE_OF,
    PRESENT,
    SPANS,
    TERMS,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
)

# Kinds of attributes, by code.
UNKNOWN, NUMBER, BOOLEAN, STRING, POINT = range(5)
#: A longer list is not split: it asks for some string, and the comparison for which.
MOST_CHOICES = 16
# What is known of an alternative.
PLAIN, IMPOSSIBLE = 0, 1

_RANK = np.uint64(62)
_SALT = np.uint64(0x9E3779B97F4A7C15)
_CHOSEN = np.uint64(0xD6E8FEB86659FD93)
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_TAG_MISSING, _TAG_PRESENT, _TAG_NUMBER, _TAG_PLACE, _TAG_STRINGS = range(5)
_TAGS = 8
NO_PREDICATE = -1


#: The first token of all that have several alternatives: they need not cover with one of them.
BRANCHING = np.uint64(0)


class Tokens(NamedTuple):
    """The tokens of one alternative: scratch, filled anew for each."""

    token: UInt64  # (room,) ascending, each once
    predicate: Int64  # (room,) whose dimensions it has; −1: none
    attribute: Int64  # (room,) of those dimensions


class Extras(NamedTuple):
    """Tokens that only the definition finds: of alternatives with odd tests of strings."""

    start: Int64  # (alternatives,)
    stop: Int64  # (alternatives,)
    token: UInt64


@kernel
def word_token(hashed: np.uint64, chosen: bool) -> np.uint64:
    """The token of a word, whose hash knows the attribute; *chosen*: of one group among several."""
    return (hashed ^ (_CHOSEN if chosen else np.uint64(0))) >> np.uint64(2)


@kernel
def equal_token(attribute: int, hashed: np.uint64, chosen: bool) -> np.uint64:
    """The token of a string as an attribute's only value; *chosen*: as one of several."""
    mixed = (hashed ^ (np.uint64(attribute + 1) * _SALT)) * _MIX
    return (mixed ^ (_CHOSEN if chosen else np.uint64(0))) >> np.uint64(2)


@kernel_inline
def attribute_token(rank: int, tag: int, attribute: int) -> np.uint64:
    """The token of an attribute that is present, missing, a number or a place."""
    return (np.uint64(rank) << _RANK) | np.uint64(attribute * _TAGS + tag)


@kernel_inline
def add_token(tokens: Tokens, count: int, token: np.uint64, predicate: int, attribute: int) -> int:
    """Insert a token in its place, if it is new; how many there are now."""
    place = count
    while place > 0 and tokens.token[place - 1] > token:
        place -= 1
    if place > 0 and tokens.token[place - 1] == token:
        return count
    for at in range(count, place, -1):
        tokens.token[at] = tokens.token[at - 1]
        tokens.predicate[at] = tokens.predicate[at - 1]
        tokens.attribute[at] = tokens.attribute[at - 1]
    tokens.token[place] = token
    tokens.predicate[place] = predicate
    tokens.attribute[place] = attribute
    return count + 1


@kernel
def count_choices(columns: SubscriptionColumns, first: int, last: int, counts: Int64) -> None:
    """Into *counts*: under how many sets of tokens each alternative *first* … *last* is filed."""
    for alternative in range(first, last):
        predicate = chosen_from(columns, alternative)
        counts[alternative - first] = 1
        if predicate != NO_PREDICATE:
            counts[alternative - first] = choices(columns, predicate)


@kernel_part
def chosen_from(columns: SubscriptionColumns, alternative: int) -> int:
    """The list or the has_any that splits *alternative* into choices; −1 where there is none."""
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        if 1 < choices(columns, predicate) <= MOST_CHOICES:
            return predicate
    return NO_PREDICATE


@kernel_part
def choices(columns: SubscriptionColumns, predicate: int) -> int:
    """How many strings a list has, or groups a has_any; 0 for other predicates."""
    kind = columns.kind[predicate]
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    if kind == ONE_OF:
        return int(stop - start)
    groups = 0
    if kind == TERMS:
        for string in range(start, stop):
            groups += columns.string_mark[string] == LAST
    return groups


@kernel_part
def keep_common(tokens: Tokens, count: int, others: Tokens, other_count: int) -> int:
    """Leave in *tokens* what is in *others* too; how many are left."""
    kept, at = 0, 0
    for place in range(count):
        while at < other_count and others.token[at] < tokens.token[place]:
            at += 1
        if at < other_count and others.token[at] == tokens.token[place]:
            tokens.token[kept] = tokens.token[place]
            tokens.predicate[kept] = tokens.predicate[place]
            tokens.attribute[kept] = tokens.attribute[place]
            kept += 1
    return kept


@kernel_part
def tokens_asked(
    columns: SubscriptionColumns, alternative: int, choice: int, branching: bool, tokens: Tokens
) -> int:
    """What whatever *alternative* covers must offer if it goes by *choice*; how many tokens."""
    count = 0
    if branching:
        count = add_token(tokens, count, BRANCHING, NO_PREDICATE, 0)
    split = chosen_from(columns, alternative)
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        kind = columns.kind[predicate]
        attribute = columns.attribute[predicate]
        if kind <= SPANS:
            token = attribute_token(2, _TAG_NUMBER, attribute)
            count = add_token(tokens, count, token, predicate, attribute)
        elif kind == MISSING:
            token = attribute_token(1, _TAG_MISSING, attribute)
            count = add_token(tokens, count, token, NO_PREDICATE, attribute)
        elif predicate == split:
            count = chosen_tokens(columns, predicate, choice, True, tokens, count)
        elif choices(columns, predicate) == 1:
            count = chosen_tokens(columns, predicate, 0, False, tokens, count)
        elif ONE_OF <= kind <= LIKE:
            token = attribute_token(2, _TAG_STRINGS, attribute)
            count = add_token(tokens, count, token, predicate, attribute)
        elif kind >= BOX and not kind & NEGATED:
            token = attribute_token(3, _TAG_PLACE, attribute)
            count = add_token(tokens, count, token, predicate, attribute)
        else:
            token = attribute_token(1, _TAG_PRESENT, attribute)
            count = add_token(tokens, count, token, NO_PREDICATE, attribute)
    return count


@kernel_part
def chosen_tokens(
    columns: SubscriptionColumns,
    predicate: int,
    choice: int,
    chosen: bool,
    tokens: Tokens,
    count: int,
) -> int:
    """Add the string or the words of one *choice* among those of *predicate*."""
    attribute = columns.attribute[predicate]
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    if columns.kind[predicate] == ONE_OF:
        token = equal_token(attribute, columns.string_hash[start + choice], chosen)
        return add_token(tokens, count, token, NO_PREDICATE, attribute)
    for string in range(start, stop):
        if choice == 0:
            token = word_token(columns.string_hash[string], chosen)
            count = add_token(tokens, count, token, NO_PREDICATE, attribute)
        choice -= columns.string_mark[string] == LAST
    return count


@kernel_part
def strings_offered(
    columns: SubscriptionColumns, predicate: int, tokens: Tokens, count: int
) -> int:
    """Add what a list of strings or a has_any offers.

    To those who chose one of several: its first choice, which they must take too. To those who
    had no choice: the one string, or the words that all groups share.
    """
    attribute = columns.attribute[predicate]
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    count = chosen_tokens(columns, predicate, 0, True, tokens, count)
    if choices(columns, predicate) == 1:
        return chosen_tokens(columns, predicate, 0, False, tokens, count)
    if columns.kind[predicate] == ONE_OF:
        return count
    for string in range(start, stop):
        if in_every_group(columns, start, stop, columns.string_hash[string]):
            token = word_token(columns.string_hash[string], False)
            count = add_token(tokens, count, token, NO_PREDICATE, attribute)
        if columns.string_mark[string] == LAST:
            break
    return count


@kernel_part
def in_every_group(columns: SubscriptionColumns, start: int, stop: int, hashed: np.uint64) -> bool:
    """Whether each group among the words *start* … *stop* has the word *hashed*."""
    has_it = False
    for string in range(start, stop):
        has_it = has_it or columns.string_hash[string] == hashed
        if columns.string_mark[string] == LAST:
            if not has_it:
                return False
            has_it = False
    return True


@kernel_part
def tokens_offered(
    columns: SubscriptionColumns, kinds: UInt8, extras: Extras, alternative: int, tokens: Tokens
) -> int:
    """What a coverer of *alternative* may ask for; how many tokens."""
    count = 0
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        kind = columns.kind[predicate]
        attribute = columns.attribute[predicate]
        if kind == MISSING:
            token = attribute_token(1, _TAG_MISSING, attribute)
            count = add_token(tokens, count, token, NO_PREDICATE, attribute)
            continue
        token = attribute_token(1, _TAG_PRESENT, attribute)
        count = add_token(tokens, count, token, NO_PREDICATE, attribute)
        known = kinds[attribute]
        if kind <= SPANS or (kind == PRESENT and NUMBER <= known <= BOOLEAN):
            token = attribute_token(2, _TAG_NUMBER, attribute)
            count = add_token(tokens, count, token, predicate, attribute)
        elif (kind & KIND_MASK) >= BOX or (kind == PRESENT and known == POINT):
            token = attribute_token(3, _TAG_PLACE, attribute)
            count = add_token(tokens, count, token, predicate, attribute)
        elif kind != PRESENT or known == STRING:
            token = attribute_token(2, _TAG_STRINGS, attribute)
            count = add_token(tokens, count, token, predicate, attribute)
            if kind in (ONE_OF, TERMS):
                count = strings_offered(columns, predicate, tokens, count)
    for place in range(extras.start[alternative], extras.stop[alternative]):
        count = add_token(tokens, count, extras.token[place], NO_PREDICATE, 0)
    return count
