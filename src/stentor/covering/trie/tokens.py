"""What an alternative wants and what it offers, as sorted 64-bit tokens.

    wanted by the coverer                      offered by the covered
    a number, an interval    NUMBER + 2 dims   the same with its own interval; IS NOT NULL: all
    one string               EQUAL             the same
    some strings             STRINGS + 2 dims  the same; anything else that is no number or location
    all of some words        WORD each         the same
    in a box, circle, …      LOCATION + 4 dims  the same with its own box; otherwise the world
    IS NULL                  MISSING           the same
    anything else            PRESENT           whatever but IS NULL

Whatever covers an alternative wants a subset of what it offers, with larger dimensions. A list of
strings or a has_any is a choice: its alternative is inserted once for each string or group, under
tokens of their own, and looked up by the first one alone, for what covers it covers that one too.
Tokens are hashes: equal ones by accident cost a comparison, nothing else. The rarer sort comes
first, so that few paths of the trie begin alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.covering.covers import Alternative
from stentor.covering.implies.operands import BOOLEAN, NUMBER, POINT, STRING
from stentor.covering.implies.strings import StringSet
from stentor.encoding.columns import LAST, Int64, SubscriptionColumns, UInt8, UInt64
from stentor.encoding.hashing import attribute_seed, hash_bytes
from stentor.encoding.kinds import (
    KEYWORDS,
    MEMBERSHIP,
    MISSING,
    PRESENT,
    is_negated,
    is_number_test,
    is_region,
    is_string_test,
)
from stentor.language.terms import fold_terms
from stentor.model import Schema

#: A longer list is not split: its token wants some string, and the comparison decides which.
MOST_CHOICES = 16
# What `states` holds of an alternative.
PLAIN, IMPOSSIBLE = 0, 1

_RANK = np.uint64(62)
_SALT = np.uint64(0x9E3779B97F4A7C15)
_CHOSEN = np.uint64(0xD6E8FEB86659FD93)
_MIX = np.uint64(0xFF51AFD7ED558CCD)

_TAG_MISSING, _TAG_PRESENT, _TAG_NUMBER, _TAG_LOCATION, _TAG_STRINGS = range(5)
_TAGS = 8

NO_PREDICATE = -1
#: Instead of a predicate: the token of one choice among several.
CHOICE = -2
#: The first token of all that have several alternatives: they need not cover with one of them.
BRANCHING = np.uint64(0)


class Tokens(NamedTuple):
    """The tokens of one alternative: scratch, filled anew for each."""

    token: UInt64  # (capacity,) ascending, each once
    predicate: Int64  # (capacity,) whose dimensions it has; −1: none
    attribute: Int64  # (capacity,) of those dimensions


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
    """The token of an attribute that is present, missing, a number or a location."""
    return (np.uint64(rank) << _RANK) | np.uint64(attribute * _TAGS + tag)


@kernel_inline
def add_token(tokens: Tokens, count: int, token: np.uint64, predicate: int, attribute: int) -> int:
    """Insert a token in order, if it is new; how many there are now."""
    position = count
    while position > 0 and tokens.token[position - 1] > token:
        position -= 1
    if position > 0 and tokens.token[position - 1] == token:
        return count
    for at in range(count, position, -1):
        tokens.token[at] = tokens.token[at - 1]
        tokens.predicate[at] = tokens.predicate[at - 1]
        tokens.attribute[at] = tokens.attribute[at - 1]
    tokens.token[position] = token
    tokens.predicate[position] = predicate
    tokens.attribute[position] = attribute
    return count + 1


@kernel
def count_choices(columns: SubscriptionColumns, first: int, last: int, counts: Int64) -> None:
    """Into *counts*: under how many sets of tokens each alternative *first* … *last* goes."""
    for alternative in range(first, last):
        predicate = chosen_from(columns, alternative)
        counts[alternative - first] = 1
        if predicate != NO_PREDICATE:
            counts[alternative - first] = choices(columns, predicate)


@inner_kernel
def chosen_from(columns: SubscriptionColumns, alternative: int) -> int:
    """The list or the has_any that splits *alternative* into choices; −1 where there is none."""
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        if 1 < choices(columns, predicate) <= MOST_CHOICES:
            return predicate
    return NO_PREDICATE


@inner_kernel
def choices(columns: SubscriptionColumns, predicate: int) -> int:
    """How many strings a list has, or groups a has_any; 0 for other predicates."""
    kind = columns.kind[predicate]
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    if kind == MEMBERSHIP:
        return int(stop - start)
    groups = 0
    if kind == KEYWORDS:
        for string in range(start, stop):
            groups += columns.string_mark[string] == LAST
    return groups


@inner_kernel
def keep_common(tokens: Tokens, count: int, others: Tokens, other_count: int) -> int:
    """Leave in *tokens* what is in *others* too, and all choices; how many are left.

    A coverer that wants one of several strings may use another of them in each alternative.
    """
    kept, at = 0, 0
    for position in range(count):
        while at < other_count and others.token[at] < tokens.token[position]:
            at += 1
        is_common = at < other_count and others.token[at] == tokens.token[position]
        if is_common or tokens.predicate[position] == CHOICE:
            tokens.token[kept] = tokens.token[position]
            tokens.predicate[kept] = tokens.predicate[position]
            tokens.attribute[kept] = tokens.attribute[position]
            kept += 1
    return kept


@inner_kernel
def wanted_tokens(
    columns: SubscriptionColumns, alternative: int, choice: int, branching: bool, tokens: Tokens
) -> int:
    """What must be offered by all that *alternative* covers by its *choice*; how many tokens."""
    count = 0
    if branching:
        count = add_token(tokens, count, BRANCHING, NO_PREDICATE, 0)
    split = chosen_from(columns, alternative)
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        kind = columns.kind[predicate]
        attribute = columns.attribute[predicate]
        if is_number_test(kind):
            token = attribute_token(2, _TAG_NUMBER, attribute)
            count = add_token(tokens, count, token, predicate, attribute)
        elif kind == MISSING:
            token = attribute_token(1, _TAG_MISSING, attribute)
            count = add_token(tokens, count, token, NO_PREDICATE, attribute)
        elif predicate == split:
            count = chosen_tokens(columns, predicate, choice, True, tokens, count)
        elif choices(columns, predicate) == 1:
            count = chosen_tokens(columns, predicate, 0, False, tokens, count)
        elif is_string_test(kind) and kind != KEYWORDS and not is_negated(kind):
            token = attribute_token(2, _TAG_STRINGS, attribute)
            count = add_token(tokens, count, token, predicate, attribute)
        elif is_region(kind) and not is_negated(kind):
            token = attribute_token(3, _TAG_LOCATION, attribute)
            count = add_token(tokens, count, token, predicate, attribute)
        else:
            token = attribute_token(1, _TAG_PRESENT, attribute)
            count = add_token(tokens, count, token, NO_PREDICATE, attribute)
    return count


@inner_kernel
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
    mark = CHOICE if chosen else NO_PREDICATE
    if columns.kind[predicate] == MEMBERSHIP:
        token = equal_token(attribute, columns.string_hash[start + choice], chosen)
        return add_token(tokens, count, token, mark, attribute)
    for string in range(start, stop):
        if choice == 0:
            token = word_token(columns.string_hash[string], chosen)
            count = add_token(tokens, count, token, mark, attribute)
        choice -= columns.string_mark[string] == LAST
    return count


@inner_kernel
def offered_strings(
    columns: SubscriptionColumns, predicate: int, tokens: Tokens, count: int
) -> int:
    """Add what a list of strings or a has_any offers.

    To coverers with a choice: its own first choice, which they must contain too. To coverers
    without one: the one string, or the words that all groups share.
    """
    attribute = columns.attribute[predicate]
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    count = chosen_tokens(columns, predicate, 0, True, tokens, count)
    if choices(columns, predicate) == 1:
        return chosen_tokens(columns, predicate, 0, False, tokens, count)
    if columns.kind[predicate] == MEMBERSHIP:
        return count
    for string in range(start, stop):
        if in_every_group(columns, start, stop, columns.string_hash[string]):
            token = word_token(columns.string_hash[string], False)
            count = add_token(tokens, count, token, NO_PREDICATE, attribute)
        if columns.string_mark[string] == LAST:
            break
    return count


@inner_kernel
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


@inner_kernel
def offered_tokens(
    columns: SubscriptionColumns, kinds: UInt8, extras: Extras, alternative: int, tokens: Tokens
) -> int:
    """What a coverer of *alternative* may want; how many tokens."""
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
        if is_number_test(kind) or (kind == PRESENT and NUMBER <= known <= BOOLEAN):
            token = attribute_token(2, _TAG_NUMBER, attribute)
            count = add_token(tokens, count, token, predicate, attribute)
        elif is_region(kind) or (kind == PRESENT and known == POINT):
            token = attribute_token(3, _TAG_LOCATION, attribute)
            count = add_token(tokens, count, token, predicate, attribute)
        elif is_string_test(kind) or (kind == PRESENT and known == STRING):
            token = attribute_token(2, _TAG_STRINGS, attribute)
            count = add_token(tokens, count, token, predicate, attribute)
            if kind in (MEMBERSHIP, KEYWORDS):
                count = offered_strings(columns, predicate, tokens, count)
    for position in range(extras.start[alternative], extras.stop[alternative]):
        count = add_token(tokens, count, extras.token[position], CHOICE, 0)
    return count


def extra_tokens(alternative: Alternative, schema: Schema) -> list[int]:
    """What an alternative offers where several tests, or a few strings, mean it together.

    Whatever covers it covers its first text, or the first case of its words, too.
    """
    found: list[int] = []
    for name, wanted in alternative.items():
        if not isinstance(wanted, StringSet):
            continue
        groups = list(wanted.words.cases)
        if wanted.texts is not None:
            groups = [frozenset(fold_terms(text)) for text in wanted.texts]
            hashed = np.uint64(hash_bytes(wanted.texts[0].encode()))
            kinds = (True, False) if len(wanted.texts) == 1 else (True,)
            found += [int(equal_token(schema.code(name), hashed, chosen)) for chosen in kinds]
        seed = attribute_seed(name)
        for chosen, words in ((True, groups[0]), (False, frozenset.intersection(*groups))):
            hashes = [np.uint64(hash_bytes(word.encode(), seed)) for word in words]
            found += [int(word_token(one, chosen)) for one in hashes]
    return found
