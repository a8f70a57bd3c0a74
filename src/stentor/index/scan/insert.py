"""Alternatives → bits of their block's lines; the lines of terms."""

from __future__ import annotations

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import Int64, SubscriptionColumns, UInt64
from stentor.encoding.kinds import KEYWORDS, MISSING, is_negated, is_region
from stentor.index.bounds import VALUE, Y
from stentor.index.scan.layout import (
    BLOCK,
    BUCKET_SHIFT,
    LIVE,
    NO_TERM,
    WORDS,
    ScanBlockArrays,
    ScanFilters,
)
from stentor.index.signature import alternative_signature, is_filtered, is_one_group

_ONE_BIT = np.uint64(1)
_SHIFT = np.uint64(BUCKET_SHIFT)
_ONE = np.uint64(1)


@kernel_inline
def line_of_term(hashed: np.uint64) -> int:
    """The line for alternatives that need the term."""
    return int(NO_TERM + 1 + np.int64(hashed >> _SHIFT))


@inner_kernel
def term_line(columns: SubscriptionColumns, alternative: int, bucket_use: Int64) -> int:
    """The line of *alternative*: of the terms that it needs, the least used one's."""
    chosen, least = NO_TERM, -1
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
        if columns.kind[predicate] == KEYWORDS and is_one_group(columns, start, stop):
            for string in range(start, stop):
                line = line_of_term(columns.string_hash[string])
                use = bucket_use[line - NO_TERM - 1]
                if least < 0 or use < least:
                    chosen, least = line, use
    return chosen


@kernel
def insert_slots(
    columns: SubscriptionColumns, filters: ScanFilters, blocks: ScanBlockArrays, slots: Int64
) -> None:
    """Set the bits and signatures of *slots* (ascending) to what their members want.

    Bits are first set in all lines, then cleared where they must not be: a reader in between
    finds too many candidates, never too few.
    """
    lines = filters.line_start[len(filters.line_start) - 1]
    for start in range(len(slots)):
        slot = slots[start]
        block = slot // BLOCK
        line = blocks.line[block * lines * WORDS : (block + 1) * lines * WORDS]
        if start == 0 or slots[start - 1] // BLOCK != block:
            set_lines(line, filters.line_start[0], lines, slots, start)
        alternative = blocks.member[slot]
        if len(filters.bucket_use) > 0:
            one = term_line(columns, alternative, filters.bucket_use)
            line[one * WORDS + slot % BLOCK // 64] |= _ONE << np.uint64(slot % 64)
        clear_lines(columns, alternative, filters, line, slot % BLOCK)
        blocks.signature[slot] = alternative_signature(columns, alternative, filters.first_of)


@inner_kernel
def set_lines(line: UInt64, first: int, lines: int, slots: Int64, start: int) -> None:
    """Set the bits of the slots from *start* on that are in one block.

    In the live line, and in those from *first* on, which belong to attributes.
    """
    block = slots[start] // BLOCK
    for word in range(WORDS):
        bits = np.uint64(0)
        while start < len(slots) and slots[start] // 64 == block * WORDS + word:
            bits |= _ONE << np.uint64(slots[start] % 64)
            start += 1
        if bits:
            line[LIVE * WORDS + word] |= bits
            for one in range(first, lines):
                line[one * WORDS + word] |= bits


@kernel_inline
def clear_lines(
    columns: SubscriptionColumns, alternative: int, filters: ScanFilters, line: UInt64, slot: int
) -> None:
    """Clear the bit of *slot* in the lines of cells in which *alternative* cannot hold."""
    word = line[slot >> 6 :]
    bit = _ONE << np.uint64(slot & 63)
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        attribute = columns.attribute[predicate]
        if is_filtered(filters.first_of, attribute):
            filter_row = filters.first_of[attribute]
            while (
                filter_row < len(filters.attribute) and filters.attribute[filter_row] == attribute
            ):
                clear_lines_of(columns, predicate, filters, filter_row, word, ~bit)
                filter_row += 1


@inner_kernel
def clear_lines_of(
    columns: SubscriptionColumns,
    predicate: int,
    filters: ScanFilters,
    filter_row: int,
    word: UInt64,
    others: np.uint64,
) -> None:
    """Keep only *others* in the lines of *filter_row* in whose cells *predicate* cannot hold."""
    lacking, stop = filters.line_start[filter_row], filters.line_start[filter_row + 1]
    kind, axis = columns.kind[predicate], filters.axis[filter_row]
    if kind == MISSING:
        for line in range(lacking + 1, stop):
            word[line * WORDS] &= others
        return
    word[lacking * WORDS] &= others
    if is_negated(kind) or is_region(kind) != (axis != VALUE):
        return
    low, high = columns.low[predicate], columns.high[predicate]
    if is_region(kind):
        pair = columns.operand_start[predicate] + (axis == Y)
        low, high = columns.pair_low[pair], columns.pair_high[pair]
    first, last = (
        lacking + 1 + cell_of(filters, filter_row, low),
        lacking + 1 + cell_of(filters, filter_row, high),
    )
    wraps = low > high  # a box across 180°
    for line in range(lacking + 1, stop):
        above, below = line >= first, line <= last
        if not (above or below if wraps else above and below):
            word[line * WORDS] &= others


@kernel_inline
def cell_of(filters: ScanFilters, filter_row: int, value: float) -> int:
    """The cell that *value* falls into."""
    cell = 0
    for edge in filters.edge[filters.edge_start[filter_row] : filters.edge_start[filter_row + 1]]:
        cell += edge <= value
    return cell
