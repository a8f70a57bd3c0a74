"""Bits of blocks: entering alternatives, planning events, scanning."""

from __future__ import annotations

import numpy as np

from stentor.index.lean import kernel
from stentor.encoding.columns import (
    BOX,
    KIND_MASK,
    LAST,
    MISSING,
    NEGATED,
    ONE_OF,
    TERMS,
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt64,
)
from stentor.index.scan.layout import BLOCK, LIVE_LINE, VALUE, WORDS, X, Blocks, Filters, Plan
from stentor.index.table import Validity
from stentor.index.verify.alternatives import holds_at, subscription_matches
from stentor.index.verify.scratch import EventScratch, scatter

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_SIX = np.uint64(6)
_LOW_6 = np.uint64(63)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
_TOP_6 = np.uint64(58)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACES = np.zeros(64, np.int64)
for _place in range(64):
    _PLACES[(int(_DE_BRUIJN) << _place & 0xFFFFFFFFFFFFFFFF) >> 58] = _place


@kernel
def match_rows(
    columns: SubscriptionColumns,
    validity: Validity,
    events: EventColumns,
    scratch: EventScratch,
    starts: Int64,
    rows: Int64,
) -> int:
    found = 0
    for event in range(len(starts) - 1):
        starts[event] = found
        scatter(events, event, scratch)
        for row in range(len(validity.hidden)):
            if holds_at(columns, validity, row, events, event) and subscription_matches(columns, row, scratch):
                if found < len(rows):
                    rows[found] = row
                found += 1
    starts[len(starts) - 1] = found
    return found


@kernel
def bits_of(hash: np.uint64) -> np.uint64:
    """Two bits of a signature."""
    return (_ONE << (hash & _LOW_6)) | (_ONE << ((hash >> _SIX) & _LOW_6))


@kernel
def attribute_hash(attribute: int) -> np.uint64:
    hash = (np.uint64(attribute) + _ONE) * _GOLDEN
    return hash ^ (hash >> np.uint64(32))


@kernel
def first_filter(filters: Filters, attribute: int) -> int:
    return filters.first_of[attribute] if attribute < len(filters.first_of) else -1


@kernel
def alternative_signature(columns: SubscriptionColumns, alternative: int, filters: Filters) -> np.uint64:
    signature = _ZERO
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        kind = columns.kind[predicate]
        attribute = columns.attribute[predicate]
        start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
        if kind == MISSING:
            continue
        if kind == ONE_OF and stop - start == 1:
            signature |= bits_of(columns.string_hash[start] ^ attribute_hash(attribute))
            continue
        if kind == TERMS:
            groups = 0
            for string in range(start, stop):
                groups += columns.string_mark[string] == LAST
            if groups == 1:
                for string in range(start, stop):
                    signature |= bits_of(columns.string_hash[string])
                continue
        if first_filter(filters, attribute) < 0:
            signature |= bits_of(attribute_hash(attribute))
    return signature


@kernel
def event_signature(events: EventColumns, event: int, filters: Filters) -> np.uint64:
    signature = _ZERO
    for value in range(events.value_start[event], events.value_start[event + 1]):
        attribute = events.attribute[value]
        string = events.string[value]
        hash = attribute_hash(attribute)
        if string >= 0:
            signature |= bits_of(events.string_hash[string] ^ hash)
        if first_filter(filters, attribute) < 0:
            signature |= bits_of(hash)
    for term in range(events.term_start[event], events.term_start[event + 1]):
        signature |= bits_of(events.term_hash[term])
    return signature


@kernel
def cell_of(filters: Filters, filter: int, value: float) -> int:
    cell = 0
    for place in range(filters.edge_start[filter], filters.edge_start[filter + 1]):
        cell += filters.edge[place] <= value
    return cell


@kernel
def enter(columns: SubscriptionColumns, filters: Filters, blocks: Blocks, start: int, stop: int) -> None:
    lines = filters.line_start[len(filters.line_start) - 1]
    slot = start
    while slot < stop:
        block = slot // BLOCK
        block_stop = min(stop, (block + 1) * BLOCK)
        line = blocks.line[block * lines * WORDS : (block + 1) * lines * WORDS]
        for word in range(WORDS):
            first = max(0, slot - block * BLOCK - 64 * word)
            last = min(64, block_stop - block * BLOCK - 64 * word)
            if first < last:
                mask = (_FULL >> np.uint64(64 - (last - first))) << np.uint64(first)
                for one in range(lines):
                    line[one * WORDS + word] |= mask
        for one in range(slot, block_stop):
            restrict(columns, filters, line, one - block * BLOCK, blocks.member[one])
            blocks.signature[one] = alternative_signature(columns, blocks.member[one], filters)
        slot = block_stop


@kernel
def restrict(
    columns: SubscriptionColumns, filters: Filters, line: UInt64, slot: int, alternative: int
) -> None:
    word = slot >> 6
    bit = _ONE << np.uint64(slot & 63)
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        attribute = columns.attribute[predicate]
        filter = first_filter(filters, attribute)
        if filter < 0:
            continue
        while filter < len(filters.attribute) and filters.attribute[filter] == attribute:
            restrict_by(columns, predicate, filters, filter, line[word:], bit)
            filter += 1


@kernel
def restrict_by(
    columns: SubscriptionColumns, predicate: int, filters: Filters, filter: int, line: UInt64, bit: np.uint64
) -> None:
    absent = filters.line_start[filter]
    cells = filters.line_start[filter + 1] - absent - 1
    kind = columns.kind[predicate]
    if kind == MISSING:
        for cell in range(cells):
            line[(absent + 1 + cell) * WORDS] &= ~bit
        return
    line[absent * WORDS] &= ~bit
    if kind & NEGATED:
        return
    low, high = columns.low[predicate], columns.high[predicate]
    if kind >= BOX:
        if filters.axis[filter] == VALUE:
            return
        pair = columns.operand_start[predicate]
        if filters.axis[filter] != X:
            pair += 1
        low, high = columns.pair_low[pair], columns.pair_high[pair]
    elif filters.axis[filter] != VALUE:
        return
    first, last = cell_of(filters, filter, low), cell_of(filters, filter, high)
    for cell in range(cells):
        if low <= high:
            inside = first <= cell <= last
        else:
            inside = cell >= first or cell <= last
        if not inside:
            line[(absent + 1 + cell) * WORDS] &= ~bit


@kernel
def plan_events(events: EventColumns, filters: Filters, share: Float64, plan: Plan, shares: Float64) -> None:
    width = len(filters.attribute)
    for event in range(len(plan.signature)):
        plan.signature[event] = event_signature(events, event, filters)
        first = plan.first[event * width : (event + 1) * width]
        last = plan.last[event * width : (event + 1) * width]
        used = 0
        value, stop = events.value_start[event], events.value_start[event + 1]
        for filter in range(width):
            while value < stop and events.attribute[value] < filters.attribute[filter]:
                value += 1
            line = filters.line_start[filter]
            low_line = high_line = line
            if value < stop and events.attribute[value] == filters.attribute[filter]:
                low, high = events.low[value], events.high[value]
                axis = filters.axis[filter]
                if axis == X:
                    high = low
                elif axis != VALUE:
                    low = high
                low_line += 1 + cell_of(filters, filter, low)
                high_line += 1 + cell_of(filters, filter, high)
                if low_line > high_line:
                    continue
            passing = 0.0
            for one in range(low_line, high_line + 1):
                passing += share[one]
            if passing > 0.95:
                continue
            place = used
            while place > 0 and shares[place - 1] > passing:
                shares[place] = shares[place - 1]
                first[place] = first[place - 1]
                last[place] = last[place - 1]
                place -= 1
            shares[place] = passing
            first[place] = low_line
            last[place] = high_line
            used += 1
        plan.used[event] = used


@kernel
def scan_blocks(
    blocks: Blocks, plan: Plan, lines: int, start: int, stop: int, words: UInt64, found_event: Int64, found_alternative: Int64
) -> int:
    found = 0
    events = len(plan.signature)
    width = len(plan.first) // max(1, events)
    for block in range(start, stop):
        line = blocks.line[block * lines * WORDS : (block + 1) * lines * WORDS]
        signature = blocks.signature[block * BLOCK : (block + 1) * BLOCK]
        member = blocks.member[block * BLOCK : (block + 1) * BLOCK]
        for event in range(events):
            a0, a1, a2, a3, a4, a5, a6, a7 = (
                line[0], line[1], line[2], line[3], line[4], line[5], line[6], line[7]
            )
            base = event * width
            for place in range(base, base + plan.used[event]):
                at = plan.first[place] * WORDS
                last = plan.last[place] * WORDS
                one = line[at : at + WORDS]
                b0, b1, b2, b3, b4, b5, b6, b7 = (
                    one[0], one[1], one[2], one[3], one[4], one[5], one[6], one[7]
                )
                while at < last:
                    at += WORDS
                    one = line[at : at + WORDS]
                    b0 |= one[0]
                    b1 |= one[1]
                    b2 |= one[2]
                    b3 |= one[3]
                    b4 |= one[4]
                    b5 |= one[5]
                    b6 |= one[6]
                    b7 |= one[7]
                a0 &= b0
                a1 &= b1
                a2 &= b2
                a3 &= b3
                a4 &= b4
                a5 &= b5
                a6 &= b6
                a7 &= b7
                if (a0 | a1 | a2 | a3 | a4 | a5 | a6 | a7) == _ZERO:
                    break
            else:
                lacking = ~plan.signature[event]
                words[0], words[1], words[2], words[3] = a0, a1, a2, a3
                words[4], words[5], words[6], words[7] = a4, a5, a6, a7
                for word in range(WORDS):
                    alive = words[word]
                    while alive != _ZERO:
                        lowest = alive & (~alive + _ONE)
                        slot = 64 * word + _PLACES[(lowest * _DE_BRUIJN) >> _TOP_6]
                        alive ^= lowest
                        if (signature[slot] & lacking) == _ZERO:
                            if found < len(found_event):
                                found_event[found] = event
                                found_alternative[found] = member[slot]
                            found += 1
    return found
