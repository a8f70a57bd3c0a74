"""Exact tests of strings, on their UTF-8 bytes: bytewise order is the order of code points."""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel_inline, kernel_part
from stentor.encoding.columns import CLOSED, LAST, UNBOUNDED, SubscriptionColumns, UInt8
from stentor.index.verify.scratch import EventScratch

_ANY_TEXT = ord("%")
_ANY_CHARACTER = ord("_")
_ESCAPE = ord("\\")


@kernel_inline
def same_bytes(left: UInt8, right: UInt8) -> bool:
    """Whether *left* and *right* hold the same bytes."""
    if len(left) != len(right):
        return False
    for place in range(len(left)):
        if left[place] != right[place]:
            return False
    return True


@kernel_part
def compare_bytes(left: UInt8, right: UInt8) -> int:
    """−1, 0 or 1 where *left* comes before, is, or comes after *right*."""
    for place in range(min(len(left), len(right))):
        if left[place] != right[place]:
            return -1 if left[place] < right[place] else 1
    if len(left) == len(right):
        return 0
    return -1 if len(left) < len(right) else 1


@kernel_part
def is_one_of(columns: SubscriptionColumns, predicate: int, hashed: np.uint64, text: UInt8) -> bool:
    """Whether *text* is one of the predicate's strings; cost: O(log n) for n of them."""
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    last = stop
    while start < stop:
        middle = (start + stop) >> 1
        if columns.string_hash[middle] < hashed:
            start = middle + 1
        else:
            stop = middle
    while start < last and columns.string_hash[start] == hashed:
        if same_bytes(
            text,
            columns.string_bytes[columns.string_start[start] : columns.string_start[start + 1]],
        ):
            return True
        start += 1
    return False


@kernel_part
def in_string_span(columns: SubscriptionColumns, predicate: int, text: UInt8) -> bool:
    """Whether *text* lies between the predicate's two strings."""
    low = columns.operand_start[predicate]
    for end in range(2):
        mark = columns.string_mark[low + end]
        if mark == UNBOUNDED:
            continue
        start, stop = columns.string_start[low + end], columns.string_start[low + end + 1]
        order = compare_bytes(text, columns.string_bytes[start:stop])
        if end == 1:
            order = -order
        if order < 0 or (order == 0 and mark != CLOSED):
            return False
    return True


@kernel_part
def is_like(text: UInt8, pattern: UInt8) -> bool:
    """Whether the whole of *text* is of the LIKE form *pattern*; cost: O(text × pattern).

    Only the last `%` ever needs to take more: an earlier one could only leave less for the rest.
    """
    at_text, at_pattern = 0, 0
    retry_text, retry_pattern = 0, -1
    while at_text < len(text):
        byte = pattern[at_pattern] if at_pattern < len(pattern) else 0
        plain = at_pattern + (byte == _ESCAPE)
        if byte == _ANY_TEXT:
            at_pattern += 1
            retry_text, retry_pattern = at_text, at_pattern
        elif byte == _ANY_CHARACTER:
            at_pattern += 1
            at_text = next_character(text, at_text)
        elif plain < len(pattern) and pattern[plain] == text[at_text]:
            at_pattern = plain + 1
            at_text += 1
        elif retry_pattern >= 0:
            retry_text = next_character(text, retry_text)
            at_text, at_pattern = retry_text, retry_pattern
        else:
            return False
    while at_pattern < len(pattern) and pattern[at_pattern] == _ANY_TEXT:
        at_pattern += 1
    if at_pattern == len(pattern) - 1 and pattern[at_pattern] == _ESCAPE:
        at_pattern += 1  # an escape with nothing behind it stands for nothing
    return at_pattern == len(pattern)


@kernel_part
def next_character(text: UInt8, place: int) -> int:
    """Where the character after the one at *place* starts."""
    place += 1
    while place < len(text) and text[place] & 0xC0 == 0x80:
        place += 1
    return place


@kernel_inline
def has_some_group(columns: SubscriptionColumns, predicate: int, scratch: EventScratch) -> bool:
    """Whether the event has all terms of at least one of the predicate's groups."""
    held = True
    for string in range(columns.operand_start[predicate], columns.operand_stop[predicate]):
        held = held and has_term(columns, string, scratch)
        if columns.string_mark[string] == LAST:
            if held:
                return True
            held = True
    return False


@kernel_inline
def has_term(columns: SubscriptionColumns, string: int, scratch: EventScratch) -> bool:
    """Whether the event has the term *string*: its hash finds it, its bytes decide."""
    hashed = columns.string_hash[string]
    last_slot = len(scratch.term_mark) - 1
    slot = np.int64(hashed & np.uint64(last_slot))
    while scratch.term_mark[slot] == scratch.stamp[0]:
        if scratch.term_hash[slot] == hashed:
            term = scratch.term_bytes[scratch.term_start[slot] : scratch.term_stop[slot]]
            start, stop = columns.string_start[string], columns.string_start[string + 1]
            if same_bytes(term, columns.string_bytes[start:stop]):
                return True
        slot = (slot + 1) & last_slot
    return False
