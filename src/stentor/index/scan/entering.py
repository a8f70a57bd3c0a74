"""Alternatives → bits of their block's lines."""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import BOX, MISSING, NEGATED, Int64, SubscriptionColumns, UInt64
from stentor.index.bounds import VALUE, Y
from stentor.index.scan.layout import BLOCK, LIVE, WORDS, Blocks, Filters
from stentor.index.scan.term_lines import term_line
from stentor.index.signature import alternative_signature, is_filtered

_ONE = np.uint64(1)


@kernel
def enter(columns: SubscriptionColumns, filters: Filters, blocks: Blocks, slots: Int64) -> None:
    """Set the bits and signatures of *slots* (ascending) to what their members ask for.

    Bits are first set in all lines, then cleared where they must not be: a reader in between
    finds too many candidates, never too few.
    """
    lines = filters.line_start[len(filters.line_start) - 1]
    for start in range(len(slots)):
        slot = slots[start]
        block = slot // BLOCK
        line = blocks.line[block * lines * WORDS : (block + 1) * lines * WORDS]
        if start == 0 or slots[start - 1] // BLOCK != block:
            open_lines(line, filters.line_start[0], lines, slots, start)
        alternative = blocks.member[slot]
        if len(filters.bucket_use) > 0:
            one = term_line(columns, alternative, filters.bucket_use)
            line[one * WORDS + slot % BLOCK // 64] |= _ONE << np.uint64(slot % 64)
        restrict(columns, alternative, filters, line, slot % BLOCK)
        blocks.signature[slot] = alternative_signature(columns, alternative, filters.first_of)


@kernel_part
def open_lines(line: UInt64, first: int, lines: int, slots: Int64, start: int) -> None:
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
def restrict(
    columns: SubscriptionColumns, alternative: int, filters: Filters, line: UInt64, slot: int
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
                restrict_by(columns, predicate, filters, filter_row, word, ~bit)
                filter_row += 1


@kernel_part
def restrict_by(
    columns: SubscriptionColumns,
    predicate: int,
    filters: Filters,
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
    if kind >= NEGATED or (kind >= BOX) != (axis != VALUE):
        return
    low, high = columns.low[predicate], columns.high[predicate]
    if kind >= BOX:
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
def cell_of(filters: Filters, filter_row: int, value: float) -> int:
    """The cell that *value* falls into."""
    cell = 0
    for edge in filters.edge[filters.edge_start[filter_row] : filters.edge_start[filter_row + 1]]:
        cell += edge <= value
    return cell
