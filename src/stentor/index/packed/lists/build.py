"""Everything at once: keys, axes, entries in order, granules, and trees above long lists."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import (
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt64,
    all_read_only,
    read_only,
)
from stentor.encoding.ragged import expand_slices
from stentor.encoding.spread import spread_over
from stentor.errors import CapacityError
from stentor.index.packed.lists.axes import choose_axes, with_cells
from stentor.index.packed.lists.entries import (
    Assigned,
    Entries,
    axis_cells,
    choose_keys,
    choose_list_axes,
    needed_tokens,
    next_predicate,
)
from stentor.index.packed.lists.keys import (
    KNOWN,
    TOKEN,
    USES,
    CodeTable,
    KeyTokens,
    assign_codes,
    copy_slots,
    count_tokens,
    is_text,
    token_number,
    write_tokens,
)
from stentor.index.packed.lists.layout import (
    ALTERNATIVE_BITS,
    AXIS_A,
    AXIS_B,
    CLASSES,
    COLUMNS,
    COUNT,
    FIELDS,
    LANES,
    LEAST,
    LONG,
    NO_AXIS,
    NO_CODE,
    NO_TREE,
    NOT_ASKED,
    OF_ATTRIBUTE,
    OF_NUMBER,
    OF_SEVERAL,
    OF_TERM,
    OWNER,
    ROOT,
    START,
    TEXT_START,
    TEXT_STOP,
    Granules,
    ListAxes,
    ListKeys,
)
from stentor.index.packed.lists.pack import build_trees, pack_entries

_FIRST_SLOTS: Final = 1 << 10
_ONE: Final = np.uint64(1)
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_TOP_SIX: Final = np.uint64(58)
#: Entries ahead that are prefetched.
AHEAD: Final = 8
_CURVE_BITS: Final = 10  # of each axis in the order within a list
_NOTHING: Final = np.uint64(0)
_ALL_BITS: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


class ListArrays(NamedTuple):
    """All arrays of lists."""

    keys: ListKeys
    axes: ListAxes
    granules: Granules


def build_lists(columns: SubscriptionColumns, alternatives: Int64) -> ListArrays:
    """The lists of *alternatives*; their granules can be written to.

    Cost: about 1 µs each, and a sort.
    """
    if len(alternatives) and alternatives[-1] >> ALTERNATIVE_BITS:
        most = 1 << ALTERNATIVE_BITS
        raise CapacityError(f"a packed index numbers at most {most:,} alternatives; split them")
    alternatives = read_only(np.ascontiguousarray(alternatives, np.int64))
    tokens, table = _tokens_of(columns, alternatives)
    predicate_at = np.zeros(len(alternatives) + 1, np.int64)
    starts = columns.predicate_start
    np.cumsum(starts[alternatives + 1] - starts[alternatives], out=predicate_at[1:])
    axes, cells = with_cells(
        columns, alternatives, choose_axes(columns, alternatives), read_only(predicate_at)
    )
    codes = int(table.used[0])
    assigned = Assigned(
        columns,
        alternatives,
        read_only(predicate_at),
        read_only(cells),
        axes,
        tokens,
        read_only(table.known.reshape(-1, KNOWN)[:codes, USES].copy()),
        read_only(table.is_shared[:codes]),
    )
    entries, attribute_code, codes = _entries_of(assigned, codes)
    lists, order = _ordered(assigned, entries, codes)
    granules = _granules_of(assigned, entries, lists, order)
    return ListArrays(_keys_of(assigned, table, lists, attribute_code), axes, granules)


def _tokens_of(columns: SubscriptionColumns, alternatives: Int64) -> tuple[KeyTokens, CodeTable]:
    """The tokens of *alternatives* with their codes, and the table of these."""
    start = np.empty(len(alternatives) + 1, np.int64)
    count = count_tokens(columns, alternatives, start)
    tokens = KeyTokens(
        read_only(start),
        np.empty(count, np.uint64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
    )
    write_tokens(columns, alternatives, tokens)
    table = _table(_FIRST_SLOTS)
    table.used[0] = 1  # the first is ANY_EVENT
    done = 0
    while (done := assign_codes(columns, tokens, done, table)) < count:
        table = _grown(table)
    return all_read_only(tokens), table


def _table(slots: int) -> CodeTable:
    """A table without codes."""
    return CodeTable(
        spread_over(slots),
        np.zeros(2 * slots, np.uint64),
        np.zeros(slots // 2 * KNOWN, np.int64),
        np.zeros(slots // 2, np.uint8),
        np.zeros(1, np.int64),
    )


def _grown(table: CodeTable) -> CodeTable:
    """*table* with four times as many slots."""
    fresh = _table(2 * len(table.slot))
    copy_slots(fresh.spread, read_only(table.slot), fresh.slot)
    fresh.known[: len(table.known)] = table.known
    fresh.is_shared[: len(table.is_shared)] = table.is_shared
    fresh.used[0] = table.used[0]
    return fresh


def _entries_of(assigned: Assigned, codes: int) -> tuple[Entries, Int32, int]:
    """Entries, the codes of attributes, and how many codes there are with these."""
    columns, count = assigned.columns, len(assigned.alternatives)
    most = count + len(assigned.tokens.hash)
    entries = Entries(*(np.empty(most, np.int64) for _ in Entries._fields))
    width = 1 + columns.attribute.max(initial=-1)
    first = columns.predicate_start[assigned.alternatives]
    predicates, _ = expand_slices(first, columns.predicate_start[assigned.alternatives + 1])
    attribute_uses = np.bincount(columns.attribute[predicates], minlength=width)
    attribute_code = np.full(CLASSES * width, NO_CODE, np.int32)
    used, codes = choose_keys(
        assigned, read_only(attribute_uses.astype(np.int64)), attribute_code, codes, entries
    )
    return Entries(*(read_only(one[:used]) for one in entries)), attribute_code, codes


def _ordered(assigned: Assigned, entries: Entries, codes: int) -> tuple[Int32, Int64]:
    """The lists, and all entries in their order."""
    counts = np.bincount(entries.code, minlength=codes)
    starts = np.concatenate([[0], np.cumsum(counts)])
    by_list = np.argsort(entries.code, kind="stable")
    axes = np.resize(np.array([1, 2], np.int32), 2 * codes)
    if (width := len(assigned.axes.is_exact)) != 3:  # else these two are all there are
        axes[:] = 0
        weight = np.zeros(width)
        choose_list_axes(assigned, entries, read_only(starts), read_only(by_list), weight, axes)
    key = np.empty(len(entries.owner), np.uint64)
    code_bits = max(1, int(codes).bit_length())
    order_keys(assigned, entries, read_only(axes), code_bits, key)
    order = np.argsort(key, kind="stable")
    lists = np.zeros((codes, FIELDS), np.int32)
    is_long = counts > LONG
    # A long list takes whole granules; a short one begins where the one before ends.
    location = _starts(counts, is_long)
    lists[:, START], lists[:, COUNT], lists[:, ROOT] = location, counts, NO_TREE
    lists[:, AXIS_A], lists[:, AXIS_B] = axes[::2], axes[1::2]
    return lists.reshape(-1), order


def _starts(counts: Int64, is_long: npt.NDArray[np.bool_]) -> Int64:
    """Where each list begins: long ones first, each on granules of its own."""
    location = np.zeros(len(counts), np.int64)
    whole = -(-counts[is_long] // LANES) * LANES
    ends = np.cumsum(whole)
    location[is_long] = ends - whole
    after = int(ends[-1]) if len(ends) else 0
    short = counts[~is_long]
    location[~is_long] = after + np.cumsum(short) - short
    return location


def _granules_of(assigned: Assigned, entries: Entries, lists: Int32, order: Int64) -> Granules:
    """Granules of entries, then of trees; roots are written to *lists*."""
    table = lists.reshape(-1, FIELDS)
    counts = table[:, COUNT].astype(np.int64)
    used = int((table[:, START] + counts).max(initial=0))
    leaves = -(-used // LANES)
    above = sum(int(_levels(count).sum()) for count in counts[counts > LONG].tolist())
    total = leaves + above
    # One granule more: its lanes are never looked at, but may be prefetched.
    bounds = np.full((total + 1) * COLUMNS * LANES, LEAST, np.uint16)
    bounds.reshape(-1, COLUMNS, LANES)[:, ::2] = NOT_ASKED  # an unused lane is never met
    granules = Granules(
        bounds,
        np.zeros((total + 1) * LANES, np.uint64),
        np.zeros((total + 1) * LANES, np.uint32),
        np.zeros(max(1, used), np.uint32),
        np.zeros(0, np.uint32),
    )
    capacity, words = 0, 4 * len(order) + 64
    while words > capacity:
        capacity = words
        granules = granules._replace(record=np.zeros(capacity, np.uint32))
        words = pack_entries(assigned, entries, read_only(order), lists, granules)
    if words >> 32:
        raise CapacityError("the records of a packed index take more than 16 GB; split it")
    granules = granules._replace(record=granules.record[: max(1, words)].copy())
    build_trees(lists, leaves, granules)
    return granules


def _levels(count: int) -> Int64:
    """How many granules each level above *count* entries has, from the lowest up."""
    levels, below = [], -(-count // LANES)
    while below > 1:
        below = -(-below // LANES)
        levels.append(below)
    return np.array(levels, np.int64)


def _keys_of(assigned: Assigned, table: CodeTable, lists: Int32, attribute_code: Int32) -> ListKeys:
    """What events look their keys up in."""
    codes, known = int(table.used[0]), lists.reshape(-1, FIELDS)
    first = table.known.reshape(-1, KNOWN)[:codes, TOKEN].copy()
    owner, numbers = np.full(len(known), OF_ATTRIBUTE, np.int32), np.zeros(len(known))
    start, stop = np.zeros(len(known), np.int64), np.zeros(len(known), np.int64)
    describe_keys(assigned.columns, assigned.tokens, read_only(first), owner, start, stop, numbers)
    shared = table.is_shared[:codes] != 0
    is_number = owner == OF_NUMBER
    attribute = np.zeros(len(known), np.int64)
    attribute[is_number] = assigned.columns.attribute[
        assigned.tokens.predicate[first[np.flatnonzero(is_number)]]
    ]
    owner[:codes][shared] = OF_SEVERAL
    text_bytes, text_start = expand_slices(start, stop)
    known[:, TEXT_START], known[:, TEXT_STOP] = text_start[:-1], text_start[1:]
    known[:, OWNER] = owner
    code = np.flatnonzero(is_number)
    code = code[np.lexsort((numbers[code], attribute[code]))]
    width = len(attribute_code) // CLASSES
    number_start = np.searchsorted(attribute[code], np.arange(width + 1))
    return all_read_only(
        ListKeys(
            table.spread,
            table.slot,
            lists,
            assigned.columns.string_bytes[text_bytes],
            attribute_code,
            number_start.astype(np.int64),
            numbers[code],
            code.astype(np.int32),
        )
    )


@kernel
def describe_keys(
    columns: SubscriptionColumns,
    tokens: KeyTokens,
    first: Int64,
    owner: Int32,
    start: Int64,
    stop: Int64,
    number: Float64,
) -> None:
    """Fill in what the keys from code 1 on stand for, by their *first* tokens."""
    for code in range(1, len(first)):
        predicate, operand = tokens.predicate[first[code]], tokens.operand[first[code]]
        if not is_text(columns, predicate):
            owner[code] = OF_NUMBER
            number[code] = token_number(columns, predicate, operand) + 0.0
            continue
        start[code], stop[code] = columns.string_start[operand], columns.string_start[operand + 1]
        is_term = tokens.hash[first[code]] == columns.string_hash[operand]
        owner[code] = OF_TERM if is_term else columns.attribute[predicate]


@kernel
def order_keys(
    assigned: Assigned, entries: Entries, list_axes: Int32, code_bits: int, key: UInt64
) -> None:
    """Fill *key*, by which entries are sorted: list, second-rarest key, position on a curve."""
    second_bits = min(24, 64 - code_bits - 2 * _CURVE_BITS)
    for entry in range(len(key)):
        owner, code = entries.owner[entry], entries.code[entry]
        second = second_key(assigned, owner, entries.token[entry])
        x, y = (
            middle_cell(assigned, owner, list_axes[2 * code]),
            middle_cell(assigned, owner, list_axes[2 * code + 1]),
        )
        ordered = np.uint64(code) << np.uint64(second_bits)
        ordered |= np.uint64(second) & ((_ONE << np.uint64(second_bits)) - _ONE)
        key[entry] = ordered << np.uint64(2 * _CURVE_BITS) | curve_position(x, y)


@kernel_inline
def middle_cell(assigned: Assigned, owner: int, axis: int) -> int:
    """Where *owner* is along *axis*, as a number of `_CURVE_BITS` bits."""
    low, high = axis_cells(assigned, owner, axis)
    if high == NOT_ASKED or axis == NO_AXIS:
        return 0
    cuts = assigned.axes.cut_start[axis + 1] - assigned.axes.cut_start[axis]
    middle = (max(low, 1) + min(high, cuts)) // 2
    return int(min(middle * (1 << _CURVE_BITS) // (cuts + 1), (1 << _CURVE_BITS) - 1))


@kernel_inline
def curve_position(x: int, y: int) -> np.uint64:
    """The number of the cell (x, y) on the Hilbert curve."""
    position, side = 0, 1 << (_CURVE_BITS - 1)
    while side > 0:
        right, upper = 1 if x & side else 0, 1 if y & side else 0
        position += side * side * ((3 * right) ^ upper)
        if upper == 0:
            if right == 1:
                x, y = (1 << _CURVE_BITS) - 1 - x, (1 << _CURVE_BITS) - 1 - y
            x, y = y, x
        side >>= 1
    return np.uint64(position)


@kernel_inline
def second_key(assigned: Assigned, owner: int, key: int) -> int:
    """The rarest code that *owner* needs beside the token *key*; 0 where there is none."""
    tokens = assigned.tokens
    second, least = 0, -1
    token, stop = tokens.start[owner], tokens.start[owner + 1]
    while token < stop:
        after = next_predicate(tokens, token, stop)
        first, last = needed_tokens(tokens, key, token, after)
        for one in range(first, last):
            if one != key:
                uses = assigned.uses[tokens.code[one]]
                if least < 0 or uses < least:
                    second, least = tokens.code[one], uses
        token = after
    return second
