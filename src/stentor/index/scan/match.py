"""Events → candidates: which lines of a block an event selects, and their intersection.

A line of 512 bits is eight words, which a compiler keeps in registers.
"""

from __future__ import annotations

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt64,
)
from stentor.index.bounds import X, Y
from stentor.index.row_set import NO_BITS, lowest_bit, trailing_zeros
from stentor.index.scan.filters import MOST_LEFT
from stentor.index.scan.insert import _ONE_BIT, _SHIFT, cell_of, line_of_term
from stentor.index.scan.layout import (
    BLOCK,
    BUCKETS,
    LIVE,
    NO_TERM,
    WORDS,
    EventLines,
    ScanBlockArrays,
    ScanFilters,
)
from stentor.index.signature import event_signature
from stentor.index.table import RowSpans
from stentor.index.verify.scratch import EventScratch
from stentor.index.verify.single import NOTHING_PROVED, SingleMatch, verify_one

Words = tuple[
    np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64
]
#: Where more than this share is left, testing all signatures of a block takes less time.
DENSE = 1 / 64


@inner_kernel
def event_term_lines(events: EventColumns, event: int, lines: Int32) -> int:
    """How many of *lines* are filled with those of the terms of *event*, each once.

    The first is that of alternatives that need no term.
    """
    lines[0] = NO_TERM
    used, seen = 1, np.uint64(0)
    for hashed in events.term_hash[events.term_start[event] : events.term_start[event + 1]]:
        bucket = _ONE_BIT << (hashed >> _SHIFT)
        if seen & bucket == np.uint64(0):
            seen |= bucket
            lines[used] = line_of_term(hashed)
            used += 1
    return used


@kernel
def lines_of_events(
    events: EventColumns, filters: ScanFilters, left: Float64, order: Float64, plan: EventLines
) -> None:
    """Fill *plan*: for each event a line, or several to be joined, for each filter that pays.

    *left* is the share of alternatives that each line leaves; *order* is scratch (filters,).
    """
    width = len(filters.attribute)
    for event in range(len(plan.used)):
        plan.signature[event] = event_signature(events, event, filters.first_of)
        first = plan.first[event * width : (event + 1) * width]
        last = plan.last[event * width : (event + 1) * width]
        used, survival = 0, 1.0
        value, stop = events.value_start[event], events.value_start[event + 1]
        for filter_row in range(width):  # both ascend by attribute
            while value < stop and events.attribute[value] < filters.attribute[filter_row]:
                value += 1
            has_value = value < stop and events.attribute[value] == filters.attribute[filter_row]
            low_line = high_line = filters.line_start[filter_row]
            if has_value:
                axis = filters.axis[filter_row]
                low = events.high[value] if axis == Y else events.low[value]
                high = events.low[value] if axis == X else events.high[value]
                low_line += 1 + cell_of(filters, filter_row, low)
                high_line += 1 + cell_of(filters, filter_row, high)
            share = 0.0
            for line in range(low_line, high_line + 1):
                share += left[line]
            if share <= MOST_LEFT and low_line <= high_line:
                insert_sorted(order, first, last, used, share, low_line, high_line)
                used += 1
                survival *= share
        plan.term_lines[event] = 0
        if len(filters.bucket_use) > 0:
            term_line = plan.term_line[event * (1 + BUCKETS) : (event + 1) * (1 + BUCKETS)]
            term_lines = event_term_lines(events, event, term_line)
            share = 0.0
            for line in term_line[:term_lines]:
                share += left[line]
            if share <= MOST_LEFT:
                plan.term_lines[event] = term_lines
                survival *= share
        plan.used[event] = used
        plan.survival[event] = survival


@kernel_inline
def insert_sorted(
    order: Float64, first: Int32, last: Int32, used: int, share: float, low: int, high: int
) -> None:
    """Insert the lines *low* … *high* among the *used* ones, by the share they leave."""
    position = used
    while position > 0 and order[position - 1] > share:
        order[position] = order[position - 1]
        first[position], last[position] = first[position - 1], last[position - 1]
        position -= 1
    order[position] = share
    first[position], last[position] = low, high


@kernel_inline
def words_of(line: UInt64, number: int) -> Words:
    """The words of the line *number* of a block."""
    w = line[number * WORDS : (number + 1) * WORDS]
    return w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]


@kernel_inline
def both(a: Words, b: Words) -> Words:
    """The bits that are in both."""
    return (
        a[0] & b[0],
        a[1] & b[1],
        a[2] & b[2],
        a[3] & b[3],
        a[4] & b[4],
        a[5] & b[5],
        a[6] & b[6],
        a[7] & b[7],
    )


@kernel_inline
def either(a: Words, b: Words) -> Words:
    """The bits that are in either."""
    return (
        a[0] | b[0],
        a[1] | b[1],
        a[2] | b[2],
        a[3] | b[3],
        a[4] | b[4],
        a[5] | b[5],
        a[6] | b[6],
        a[7] | b[7],
    )


@kernel_inline
def is_empty(a: Words) -> bool:
    """Whether no bit is set."""
    return bool((a[0] | a[1] | a[2] | a[3] | a[4] | a[5] | a[6] | a[7]) == NO_BITS)


@kernel_inline
def store_words(a: Words, words: UInt64) -> None:
    """Write *a* to *words*, which can be indexed."""
    words[0], words[1], words[2], words[3] = a[0], a[1], a[2], a[3]
    words[4], words[5], words[6], words[7] = a[4], a[5], a[6], a[7]


@kernel_inline
def keep_signatures(words: UInt64, signature: UInt64, lacking: np.uint64) -> None:
    """Keep the slots whose signature has no *lacking* bit, without a branch for each."""
    for word in range(WORDS):
        signed = NO_BITS
        for position in range(64):
            fits = signature[64 * word + position] & lacking == NO_BITS
            signed |= np.uint64(fits) << np.uint64(position)
        words[word] &= signed


@kernel
def match_event(
    blocks: ScanBlockArrays,
    lines: int,
    filters: ScanFilters,
    left: Float64,
    order: Float64,
    written: EventLines,
    plan: EventLines,
    words: UInt64,
    columns: SubscriptionColumns,
    validity: RowSpans,
    event: EventColumns,
    scratch: EventScratch,
    scoring: int,
    found: SingleMatch,
) -> int:
    """The rows that want the first event: see `verify_one`.

    *written* and *plan* are the same memory, writable and read-only.
    """
    lines_of_events(event, filters, left, order, written)
    count = scan_blocks(blocks, lines, plan, words, found.event, found.alternative)
    return verify_one(columns, validity, event, scratch, NOTHING_PROVED, scoring, count, found)


@kernel
def scan_blocks(
    blocks: ScanBlockArrays,
    lines: int,
    plan: EventLines,
    words: UInt64,
    found_event: Int64,
    found_alternative: Int64,
) -> int:
    """The number of candidates; those that do not fit into *found_…* are only counted.

    *words* is scratch for one line.
    """
    found = 0
    width = len(plan.first) // max(1, len(plan.used))
    for block in range(len(blocks.line) // (lines * WORDS)):
        line = blocks.line[block * lines * WORDS : (block + 1) * lines * WORDS]
        member = blocks.member[block * BLOCK : (block + 1) * BLOCK]
        signature = blocks.signature[block * BLOCK : (block + 1) * BLOCK]
        for event in range(len(plan.used)):
            alive = words_of(line, LIVE)
            for position in range(event * width, event * width + plan.used[event]):
                allowed = words_of(line, plan.first[position])
                for joined in range(plan.first[position] + 1, plan.last[position] + 1):
                    allowed = either(allowed, words_of(line, joined))
                alive = both(alive, allowed)
                if is_empty(alive):
                    break
            if plan.term_lines[event] > 0:
                position = event * (1 + BUCKETS)
                allowed = words_of(line, NO_TERM)
                for joined in plan.term_line[position + 1 : position + plan.term_lines[event]]:
                    allowed = either(allowed, words_of(line, joined))
                alive = both(alive, allowed)
            if is_empty(alive):
                continue
            lacking = ~plan.signature[event]
            store_words(alive, words)
            if plan.survival[event] > DENSE:
                keep_signatures(words, signature, lacking)
            for word in range(WORDS):
                bits = words[word]
                while bits != NO_BITS:
                    lowest = lowest_bit(bits)
                    bits ^= lowest
                    slot = 64 * word + trailing_zeros(lowest)
                    if signature[slot] & lacking == NO_BITS:
                        if found < len(found_event):
                            found_event[found] = event
                            found_alternative[found] = member[slot]
                        found += 1
    return found
