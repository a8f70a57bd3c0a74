"""Alternatives → the keys they need: words, whole strings, equal numbers.

A predicate gives groups of keys: it can hold only where an event has all keys of some group. A
keyword predicate has its own groups, a set of strings or numbers one group for each member.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from stentor._intrinsics import prefetch
from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import LAST, Int32, Int64, SubscriptionColumns, UInt8, UInt64
from stentor.encoding.kinds import INTERVAL, INTERVALS, KEYWORDS, MEMBERSHIP
from stentor.encoding.spread import first_slot
from stentor.index.packed.lists.layout import NO_CODE, whole
from stentor.index.signature import attribute_hash
from stentor.index.verify.scratch import same_bytes

_MIX: Final = np.uint64(0xBF58476D1CE4E5B9)
_HALF: Final = np.uint64(31)
#: What stands in a free slot instead of a code + 1.
FREE: Final = np.uint64(0)
#: KeyTokens ahead whose slots are prefetched.
AHEAD: Final = 8
#: A predicate of more groups is not filed under its keys: each is an entry of some 120 bytes.
MOST_GROUPS: Final = 1024
#: Of more groups, the mean of what their keys are needed counts, instead of the sum: the longer the
#: lists of words are, the fewer of these words an event has.
MANY_GROUPS: Final = 16


class KeyTokens(NamedTuple):
    """The keys of alternatives, those of each one after the other, by predicate and group."""

    start: Int64  # (alternatives + 1,)
    hash: UInt64  # (tokens,)
    predicate: Int64  # (tokens,)
    operand: Int64  # (tokens,) a string, or a pair; of an INTERVAL nothing
    group: Int32  # (tokens,)
    code: Int32  # (tokens,)


# What a table knows of a code, in one cache line with its neighbours.
TOKEN, USES, TEXT_FROM, TEXT_TO = range(4)
KNOWN: Final = 4


class CodeTable(NamedTuple):
    """Hashes → codes, while lists are built."""

    spread: UInt64
    slot: UInt64  # (2 × slots,) a hash and its code + 1, or 0
    known: Int64  # (codes × KNOWN,) the first token, how often it is needed, its bytes
    is_shared: UInt8  # (codes,) 1 where different strings have the same hash
    used: Int64  # (1,) codes in use; they start at 1


@kernel_inline
def are_equalities(columns: SubscriptionColumns, predicate: int) -> bool:
    """Whether INTERVALS are a few single numbers."""
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    if stop - start > MOST_GROUPS or stop == start:
        return False
    for pair in range(start, stop):
        if columns.pair_low[pair] != columns.pair_high[pair]:
            return False
    return True


@kernel_inline
def token_count(columns: SubscriptionColumns, predicate: int) -> int:
    """How many tokens *predicate* has."""
    kind = columns.kind[predicate]
    if kind in (KEYWORDS, MEMBERSHIP):
        groups = 0
        start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
        for string in range(start, stop):
            groups += kind == MEMBERSHIP or columns.string_mark[string] == LAST
        return int(stop - start) if groups <= MOST_GROUPS else 0
    if kind == INTERVAL:
        return 1 if columns.low[predicate] == columns.high[predicate] else 0
    if kind == INTERVALS and are_equalities(columns, predicate):
        return int(columns.operand_stop[predicate] - columns.operand_start[predicate])
    return 0


@kernel
def count_tokens(columns: SubscriptionColumns, alternatives: Int64, start: Int64) -> int:
    """Fill *start*: where the tokens of each of *alternatives* begin; how many there are."""
    count = 0
    for position in range(len(alternatives)):
        start[position] = count
        alternative = alternatives[position]
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            count += token_count(columns, predicate)
    start[len(alternatives)] = count
    return count


@kernel
def write_tokens(columns: SubscriptionColumns, alternatives: Int64, tokens: KeyTokens) -> None:
    """Fill *tokens*, but for their codes."""
    token = 0
    for alternative in alternatives:
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            count = token_count(columns, predicate)
            if count == 0:
                continue
            kind, group = columns.kind[predicate], 0
            first = columns.operand_start[predicate]
            for operand in range(first, first + count):
                tokens.predicate[token] = predicate
                tokens.operand[token] = operand
                tokens.group[token] = group
                tokens.hash[token] = token_hash(columns, predicate, operand)
                group += kind != KEYWORDS or columns.string_mark[operand] == LAST
                token += 1


@kernel_inline
def number_hash(attribute: int, number: float) -> np.uint64:
    """A hash of an attribute's equality with *number*."""
    bits = np.float64(number + 0.0).view(np.uint64)  # −0 is 0
    mixed = bits * _MIX ^ attribute_hash(attribute)
    mixed = (mixed ^ mixed >> _HALF) * _MIX
    return np.uint64(mixed ^ mixed >> _HALF)


@kernel_inline
def token_number(columns: SubscriptionColumns, predicate: int, operand: int) -> float:
    """The number that a token stands for."""
    if columns.kind[predicate] == INTERVAL:
        return float(columns.low[predicate])
    return float(columns.pair_low[operand])


@kernel_inline
def token_hash(columns: SubscriptionColumns, predicate: int, operand: int) -> np.uint64:
    """The hash of a token: the term's own, the string's and the attribute's, or the number's."""
    kind, attribute = columns.kind[predicate], columns.attribute[predicate]
    if kind == KEYWORDS:
        return np.uint64(columns.string_hash[operand])
    if kind == MEMBERSHIP:
        return np.uint64(columns.string_hash[operand] ^ attribute_hash(attribute))
    return number_hash(attribute, token_number(columns, predicate, operand))


@kernel_inline
def is_text(columns: SubscriptionColumns, predicate: int) -> bool:
    """Whether the tokens of *predicate* are words or strings."""
    return bool(columns.kind[predicate] == KEYWORDS or columns.kind[predicate] == MEMBERSHIP)


@kernel_inline
def same_token(
    columns: SubscriptionColumns, tokens: KeyTokens, table: CodeTable, code: int, token: int
) -> bool:
    """Whether *token* stands for the key *code*."""
    first = table.known[KNOWN * code + TOKEN]
    left, right = tokens.predicate[first], tokens.predicate[token]
    if not is_text(columns, right):
        if is_text(columns, left) or columns.attribute[left] != columns.attribute[right]:
            return False
        number = token_number(columns, left, tokens.operand[first])
        return number == token_number(columns, right, tokens.operand[token])
    if columns.kind[left] != columns.kind[right]:
        return False
    if columns.kind[left] == MEMBERSHIP and columns.attribute[left] != columns.attribute[right]:
        return False
    start, stop = table.known[KNOWN * code + TEXT_FROM], table.known[KNOWN * code + TEXT_TO]
    string = tokens.operand[token]
    return same_bytes(
        columns.string_bytes[start:stop],
        columns.string_bytes[columns.string_start[string] : columns.string_start[string + 1]],
    )


@kernel
def assign_codes(
    columns: SubscriptionColumns, tokens: KeyTokens, start: int, table: CodeTable
) -> int:
    """Give the tokens from *start* on their codes; the first for which the table is too small.

    Different strings of the same hash share a code: whoever needs it is never proved by it.
    """
    last = len(table.slot) // 2 - 1
    for token in range(start, len(tokens.hash)):
        if token + 2 * AHEAD < len(tokens.hash):
            prefetch_slots(tokens, table, token + AHEAD, token + 2 * AHEAD)
        hashed = tokens.hash[token]
        slot = first_slot(table.spread, hashed)
        while table.slot[2 * slot + 1] != FREE:
            code = whole(table.slot[2 * slot + 1]) - 1
            if table.slot[2 * slot] == hashed:
                if same_token(columns, tokens, table, code, token):
                    break
                first = table.known[KNOWN * code + TOKEN]
                both = is_text(columns, tokens.predicate[first])
                if both and is_text(columns, tokens.predicate[token]):
                    table.is_shared[code] = 1
                    break
            slot = (slot + 1) & last
        code = whole(table.slot[2 * slot + 1]) - 1
        if code == NO_CODE:
            code = table.used[0]
            if code >= len(table.is_shared):
                return token
            table.used[0] = code + 1
            table.slot[2 * slot] = hashed
            table.slot[2 * slot + 1] = np.uint64(code + 1)
            know_code(columns, tokens, table, code, token)
        table.known[KNOWN * code + USES] += 1
        tokens.code[token] = code
    return len(tokens.hash)


@kernel_inline
def prefetch_slots(tokens: KeyTokens, table: CodeTable, soon: int, later: int) -> None:
    """Prefetch the slot of a later token, and what is known of the code of a sooner one."""
    prefetch(table.slot, 2 * first_slot(table.spread, tokens.hash[later]))
    code = whole(table.slot[2 * first_slot(table.spread, tokens.hash[soon]) + 1]) - 1
    if code != NO_CODE:
        prefetch(table.known, KNOWN * code)


@kernel_inline
def know_code(
    columns: SubscriptionColumns, tokens: KeyTokens, table: CodeTable, code: int, token: int
) -> None:
    """Write down what the new *code* stands for."""
    table.known[KNOWN * code + TOKEN] = token
    if is_text(columns, tokens.predicate[token]):
        string = tokens.operand[token]
        table.known[KNOWN * code + TEXT_FROM] = columns.string_start[string]
        table.known[KNOWN * code + TEXT_TO] = columns.string_start[string + 1]


@kernel
def copy_slots(spread: UInt64, old: UInt64, slots: UInt64) -> None:
    """Enter what the *old* slots hold into *slots*, which are free."""
    last = len(slots) // 2 - 1
    for position in range(len(old) // 2):
        if old[2 * position + 1] != FREE:
            slot = first_slot(spread, old[2 * position])
            while slots[2 * slot + 1] != FREE:
                slot = (slot + 1) & last
            slots[2 * slot] = old[2 * position]
            slots[2 * slot + 1] = old[2 * position + 1]
