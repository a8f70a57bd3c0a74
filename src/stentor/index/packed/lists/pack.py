"""Entries in their order → granules, records, and trees above long lists."""

from __future__ import annotations

from typing import Final

import numpy as np

from stentor._intrinsics import prefetch
from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Int32, Int64, SubscriptionColumns
from stentor.encoding.kinds import BOX, INTERVAL, MISSING, PRESENT, is_region
from stentor.index.bounds import VALUE, X
from stentor.index.packed.lists.axes import axis_at, predicate_hull
from stentor.index.packed.lists.entries import (
    NO_TOKEN,
    Assigned,
    Entries,
    axis_cells,
    needed_tokens,
    next_predicate,
)
from stentor.index.packed.lists.layout import (
    AXIS_A,
    AXIS_B,
    CANDIDATE,
    COLUMNS,
    COUNT,
    COUNT_BITS,
    COVERED,
    FIELDS,
    IS_LEAF,
    LANES,
    LEAST,
    LONG,
    MOST_COUNT,
    NO_AXIS,
    NO_CODE,
    NOT_ASKED,
    ROOT,
    START,
    UNPROVED,
    Granules,
    ListAxes,
    UInt32,
    whole,
)

#: Entries ahead that are prefetched.
AHEAD: Final = 8
_ONE: Final = np.uint64(1)
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_TOP_SIX: Final = np.uint64(58)
_NOTHING: Final = np.uint64(0)
_ALL_BITS: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


@kernel_inline
def signature_bit(code: int) -> np.uint64:
    """The bit that stands for *code*."""
    return _ONE << (np.uint64(code) * _GOLDEN >> _TOP_SIX)


@kernel
def pack_entries(
    assigned: Assigned, entries: Entries, order: Int64, lists: Int32, granules: Granules
) -> int:
    """Fill the granules of entries and their records; how many words these take.

    Words past the end are only counted.
    """
    words, before, lane = 0, whole(NO_CODE), whole(0)
    for position in range(len(order)):
        if position + 2 * AHEAD < len(order):
            prefetch_owner(assigned, entries.owner[order[position + 2 * AHEAD]])
            prefetch_predicates(assigned, entries.owner[order[position + AHEAD]])
        entry = order[position]
        owner, code, key = entries.owner[entry], entries.code[entry], entries.token[entry]
        lane = lane + 1 if code == before else whole(lists[FIELDS * code + START])
        before = code
        axis_a, axis_b = lists[FIELDS * code + AXIS_A], lists[FIELDS * code + AXIS_B]
        put_bounds(assigned, owner, axis_a, axis_b, granules, lane)
        granules.record_start[lane] = words
        words, flags, signature = put_record(
            assigned, owner, key, axis_a, axis_b, granules.record, words
        )
        granules.signature[lane] = signature
        granules.entry[lane] = assigned.alternatives[owner] | flags
    return words


@kernel_inline
def prefetch_owner(assigned: Assigned, owner: int) -> None:
    """Prefetch where the tokens and predicates of *owner* are."""
    prefetch(assigned.tokens.start, owner)
    prefetch(assigned.predicate_at, owner)
    prefetch(assigned.columns.predicate_start, assigned.alternatives[owner])


@kernel_inline
def prefetch_predicates(assigned: Assigned, owner: int) -> None:
    """Prefetch the tokens and predicates of *owner*."""
    tokens, columns = assigned.tokens, assigned.columns
    if tokens.start[owner] < tokens.start[owner + 1]:
        prefetch(tokens.code, tokens.start[owner])
        prefetch(tokens.predicate, tokens.start[owner])
        prefetch(tokens.group, tokens.start[owner])
    if assigned.predicate_at[owner] < assigned.predicate_at[owner + 1]:
        first = columns.predicate_start[assigned.alternatives[owner]]
        prefetch(assigned.cells, 4 * assigned.predicate_at[owner])
        prefetch(columns.kind, first)
        prefetch(columns.attribute, first)
        prefetch(columns.operand_start, first)


@kernel_inline
def put_bounds(
    assigned: Assigned, owner: int, axis_a: int, axis_b: int, granules: Granules, lane: int
) -> None:
    """Write the cells of *owner* along both axes of its list."""
    column = lane // LANES * COLUMNS * LANES + lane % LANES
    low, high = axis_cells(assigned, owner, axis_a)
    granules.bounds[column], granules.bounds[column + LANES] = low, high
    low, high = axis_cells(assigned, owner, axis_b)
    granules.bounds[column + 2 * LANES], granules.bounds[column + 3 * LANES] = low, high


@kernel_inline
def put_record(
    assigned: Assigned, owner: int, key: int, axis_a: int, axis_b: int, record: UInt32, start: int
) -> tuple[int, int, np.uint64]:
    """Write what the granule leaves open; where it stops, the entry's flags, its signature."""
    tokens, columns = assigned.tokens, assigned.columns
    is_proved, signature = True, _NOTHING
    if key != NO_TOKEN and assigned.is_shared[tokens.code[key]] != 0:
        is_proved = False
    at, keys, ranges = start + 1, 0, 0
    token, stop = tokens.start[owner], tokens.start[owner + 1]
    while token < stop:
        after = next_predicate(tokens, token, stop)
        first, last = needed_tokens(tokens, key, token, after)
        for one in range(first, last):
            if one != key:
                code = tokens.code[one]
                signature |= signature_bit(code)
                is_proved &= assigned.is_shared[code] == 0
                if keys < MOST_COUNT:
                    at, keys = put_word(record, at, code), keys + 1
                else:
                    is_proved = False
        token = after
    first = columns.predicate_start[assigned.alternatives[owner]]
    for number in range(assigned.predicate_at[owner + 1] - assigned.predicate_at[owner]):
        predicate = first + number
        if are_keys_enough(assigned, owner, predicate, key):
            continue
        is_proved &= is_decided(columns, assigned.axes, predicate)
        if columns.kind[predicate] == MISSING:
            continue
        sides = 2 if is_region(columns.kind[predicate]) else 1
        cell = 4 * (assigned.predicate_at[owner] + number)
        for side in range(sides):
            axis = axis_at(
                assigned.axes, columns.attribute[predicate], VALUE if sides == 1 else X + side
            )
            low, high = (
                whole(assigned.cells[cell + 2 * side]),
                whole(assigned.cells[cell + 2 * side + 1]),
            )
            if axis in (axis_a, axis_b) or axis == NO_AXIS:
                continue
            if ranges < MOST_COUNT:
                at = put_word(record, at, axis)
                at, ranges = put_word(record, at, low | high << 16), ranges + 1
            else:
                is_proved = False
    if keys == 0 and ranges == 0:
        return start, COVERED if is_proved else CANDIDATE, signature
    put_word(record, start, keys | ranges << COUNT_BITS | (0 if is_proved else UNPROVED))
    return at, 0, signature


@kernel_inline
def put_word(record: UInt32, position: int, word: int) -> int:
    """Write *word* where it fits; the next position."""
    if position < len(record):
        record[position] = word
    return position + 1


@kernel_inline
def are_keys_enough(assigned: Assigned, owner: int, predicate: int, key: int) -> bool:
    """Whether *predicate* holds exactly where the event has the keys that *owner* needs."""
    tokens = assigned.tokens
    token, stop = tokens.start[owner], tokens.start[owner + 1]
    while token < stop and tokens.predicate[token] != predicate:
        token = next_predicate(tokens, token, stop)
    if token == stop:
        return False
    after = next_predicate(tokens, token, stop)
    return bool(tokens.group[after - 1] == 0 or token <= key < after)


@kernel_inline
def is_decided(columns: SubscriptionColumns, axes: ListAxes, predicate: int) -> bool:
    """Whether the cells of *predicate*, but for border cases, say all that it asks."""
    kind, attribute = columns.kind[predicate], columns.attribute[predicate]
    if kind == BOX:
        first = columns.operand_start[predicate]
        is_plain = columns.pair_low[first] <= columns.pair_high[first]
        is_plain &= columns.pair_low[first + 1] <= columns.pair_high[first + 1]
        is_cut = axis_at(axes, attribute, X) != NO_AXIS
        return bool(is_plain and is_cut)
    if kind in (INTERVAL, PRESENT):
        low, high = predicate_hull(columns, predicate, VALUE)
        is_plain = kind == PRESENT or columns.low[predicate] <= columns.high[predicate]
        return bool(is_plain and low <= high and axis_at(axes, attribute, VALUE) != NO_AXIS)
    return False


@kernel
def build_trees(lists: Int32, leaves: int, granules: Granules) -> None:
    """Put a tree above each long list, from granule *leaves* on."""
    free = leaves
    for code in range(len(lists) // FIELDS):
        count = lists[FIELDS * code + COUNT]
        if count <= LONG:
            continue
        start = whole(lists[FIELDS * code + START]) // LANES
        stop = start + (count + LANES - 1) // LANES
        flag = whole(IS_LEAF)
        while stop - start > 1:
            above = free
            for below in range(start, stop):
                lane = above * LANES + below - start
                put_hull(granules, below, lane)
                granules.entry[lane] = below | flag
            free = above + (stop - start + LANES - 1) // LANES
            start, stop, flag = above, free, whole(0)
        lists[FIELDS * code + ROOT] = start


@kernel_inline
def put_hull(granules: Granules, below: int, lane: int) -> None:
    """Write the hull of the used lanes of granule *below* to *lane*."""
    column = lane // LANES * COLUMNS * LANES + lane % LANES
    first = below * COLUMNS * LANES
    needed = _ALL_BITS
    low_a, high_a = whole(NOT_ASKED), whole(LEAST)
    low_b, high_b = whole(NOT_ASKED), whole(LEAST)
    for one in range(LANES):
        a, b = (
            whole(granules.bounds[first + one]),
            whole(granules.bounds[first + LANES + one]),
        )
        c = whole(granules.bounds[first + 2 * LANES + one])
        d = whole(granules.bounds[first + 3 * LANES + one])
        if a == NOT_ASKED:
            continue  # unused
        low_a, high_a = min(low_a, a), max(high_a, b)
        low_b, high_b = min(low_b, c), max(high_b, d)
        needed &= granules.signature[below * LANES + one]
    granules.bounds[column], granules.bounds[column + LANES] = low_a, high_a
    granules.bounds[column + 2 * LANES], granules.bounds[column + 3 * LANES] = low_b, high_b
    granules.signature[lane] = needed
