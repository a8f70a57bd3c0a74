"""Events → alternatives: the lists of an event's keys, granule by granule.

The keys of a few events are looked up first and their lists prefetched; then each event in turn
marks its keys, finds its cells, and looks through its lists. A lane is met where its bounds are
and it needs no key that the event lacks; its record then decides, or says that nothing here can.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from stentor._intrinsics import prefetch, trailing_zeros
from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor._vectors import lanes_having, lanes_inside
from stentor.encoding.columns import EventColumns
from stentor.encoding.spread import first_slot
from stentor.index.bounds import VALUE, X, Y
from stentor.index.packed.homes import Found
from stentor.index.packed.lists.axes import axis_at, cell_at
from stentor.index.packed.lists.keys import FREE
from stentor.index.packed.lists.layout import (
    ALL_LANES,
    ANY_EVENT,
    AXIS_A,
    AXIS_B,
    CANDIDATE,
    CLASSES,
    COLUMNS,
    CONFIRMED,
    COUNT,
    COUNT_BITS,
    COVERED,
    FIELDS,
    GROUP,
    IS_LEAF,
    LACKS_HIGH,
    LACKS_LOW,
    LANE_BITS,
    LANES,
    MOST_COUNT,
    MOST_MET,
    NO_AXIS,
    NO_CODE,
    NO_TREE,
    NOT_ASKED,
    OF_NUMBER,
    OF_SEVERAL,
    OF_TERM,
    OWNER,
    POINTER,
    ROOT,
    START,
    TEXT_START,
    TEXT_STOP,
    UNPROVED,
    Granules,
    ListAxes,
    ListKeys,
    ListScratch,
    whole,
)
from stentor.index.packed.lists.pack import signature_bit
from stentor.index.signature import attribute_hash
from stentor.index.verify.scratch import same_bytes

_NO_LANES: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
#: Cells of an axis as the event has them: first and last, of both axes of a list.
Cells = tuple[int, int, int, int]


@kernel
def match_lists(
    keys: ListKeys,
    axes: ListAxes,
    granules: Granules,
    events: EventColumns,
    scratch: ListScratch,
    found: Found,
) -> int:
    """The number of pairs; those that do not fit into *found* are only counted."""
    count, events_count = 0, len(events.value_start) - 1
    for start in range(0, events_count, GROUP):
        stop = min(start + GROUP, events_count)
        prefetch_slots(keys, events, start, stop)
        used = 0
        for event in range(start, stop):
            scratch.key_start[event - start] = used
            used = find_keys(keys, events, event, scratch, used)
        scratch.key_start[stop - start] = used
        prefetch_lists(keys, granules, scratch, used)
        for event in range(start, stop):
            first, last = scratch.key_start[event - start], scratch.key_start[event - start + 1]
            count = match_event(
                keys, axes, granules, events, event, first, last, scratch, found, count
            )
    return count


@kernel_inline
def prefetch_slots(keys: ListKeys, events: EventColumns, start: int, stop: int) -> None:
    """Prefetch where the words of some events are looked up."""
    for term in range(events.term_start[start], events.term_start[stop]):
        prefetch(keys.slot, 2 * first_slot(keys.spread, events.term_hash[term]))


@kernel_inline
def find_keys(
    keys: ListKeys, events: EventColumns, event: int, scratch: ListScratch, used: int
) -> int:
    """Append the codes of *event* to the scratch, but for those of ranges; how many are used.

    Those of words and strings by their hashes alone: `is_confirmed` looks at their bytes.
    """
    used = add_key(keys, scratch, used, ANY_EVENT, CONFIRMED)
    for term in range(events.term_start[event], events.term_start[event + 1]):
        code = code_of_hash(keys, events.term_hash[term])
        used = add_key(keys, scratch, used, code, term)
    widest = len(keys.attribute_code) // CLASSES
    for value in range(events.value_start[event], events.value_start[event + 1]):
        attribute, string = whole(events.attribute[value]), whole(events.string[value])
        if attribute >= widest:
            continue
        for width in range(CLASSES):
            code = whole(keys.attribute_code[CLASSES * attribute + width])
            used = add_key(keys, scratch, used, code, CONFIRMED)
        if string >= 0:
            hashed = events.string_hash[string] ^ attribute_hash(attribute)
            used = add_key(keys, scratch, used, code_of_hash(keys, hashed), ~value)
        low = events.low[value]
        if low == events.high[value]:
            position = first_number(keys, attribute, low)
            if position < keys.number_start[attribute + 1] and keys.number[position] == low:
                code = whole(keys.number_code[position])
                used = add_key(keys, scratch, used, code, CONFIRMED)
    return used


@kernel_inline
def add_key(keys: ListKeys, scratch: ListScratch, used: int, code: int, term: int) -> int:
    """Append *code*, if there is one, and prefetch what is known of its list."""
    if code == NO_CODE:
        return used
    scratch.key[used] = code
    scratch.term[used] = term
    prefetch(keys.lists, FIELDS * code)
    return used + 1


@kernel_inline
def code_of_hash(keys: ListKeys, hashed: np.uint64) -> int:
    """The code of the words or strings with that hash; or NO_CODE."""
    slot, last = first_slot(keys.spread, hashed), len(keys.slot) // 2 - 1
    while keys.slot[2 * slot + 1] != FREE:
        code = whole(keys.slot[2 * slot + 1]) - 1
        if keys.slot[2 * slot] == hashed and keys.lists[FIELDS * code + OWNER] != OF_NUMBER:
            return code
        slot = (slot + 1) & last
    return NO_CODE


@kernel_inline
def prefetch_lists(keys: ListKeys, granules: Granules, scratch: ListScratch, used: int) -> None:
    """Prefetch the heads of the lists of the first *used* keys, and the bytes that confirm them."""
    for position in range(used):
        first = FIELDS * scratch.key[position]
        if scratch.term[position] != CONFIRMED and keys.lists[first + OWNER] != OF_SEVERAL:
            prefetch(keys.text, whole(keys.lists[first + TEXT_START]))
        if keys.lists[first + COUNT] > 0:
            granule = whole(keys.lists[first + ROOT])
            if granule == NO_TREE:
                granule = whole(keys.lists[first + START]) >> LANE_BITS
            prefetch(granules.bounds, granule * COLUMNS * LANES)
            prefetch(granules.signature, granule * LANES)
            prefetch(granules.entry, granule * LANES)


@kernel_inline
def is_confirmed(keys: ListKeys, events: EventColumns, code: int, term: int) -> bool:
    """Whether a word or string of the event is the one that *code* stands for, by its bytes."""
    if term == CONFIRMED:
        return True
    whose = whole(keys.lists[FIELDS * code + OWNER])
    if whose == OF_SEVERAL:
        return True
    start, stop = keys.lists[FIELDS * code + TEXT_START], keys.lists[FIELDS * code + TEXT_STOP]
    if term >= 0:
        if whose != OF_TERM:
            return False
        text = events.term_bytes[events.term_byte_start[term] : events.term_byte_stop[term]]
        return same_bytes(text, keys.text[start:stop])
    if whose != events.attribute[~term]:
        return False
    string = whole(events.string[~term])
    text = events.string_bytes[events.string_start[string] : events.string_start[string + 1]]
    return same_bytes(text, keys.text[start:stop])


@kernel_inline
def first_number(keys: ListKeys, attribute: int, value: float) -> int:
    """The position of the first number of *attribute* that is not below *value*."""
    start, stop = keys.number_start[attribute], keys.number_start[attribute + 1]
    while start < stop:
        middle = (start + stop) >> 1
        if keys.number[middle] < value:
            start = middle + 1
        else:
            stop = middle
    return int(start)


@kernel_inline
def match_event(
    keys: ListKeys,
    axes: ListAxes,
    granules: Granules,
    events: EventColumns,
    event: int,
    first: int,
    last: int,
    scratch: ListScratch,
    found: Found,
    count: int,
) -> int:
    """Append the pairs of *event*, whose keys are first … last of the scratch's."""
    stamp = scratch.stamp[0] + 1
    scratch.stamp[0] = stamp
    signature = np.uint64(0)
    for position in range(first, last):
        code = scratch.key[position]
        if scratch.key_mark[code] == stamp or not is_confirmed(
            keys, events, code, scratch.term[position]
        ):
            scratch.key[position] = NO_CODE  # another word of that hash, or the same key again
        else:
            scratch.key_mark[code] = stamp
            signature |= signature_bit(code)
    signature |= mark_ranges(keys, events, event, scratch)
    load_cells(axes, events, event, scratch)
    lacking = ~signature
    for position in range(first, last):
        code = scratch.key[position]
        if code != NO_CODE:
            count = match_list(keys, axes, granules, code, lacking, event, scratch, found, count)
    for value in range(events.value_start[event], events.value_start[event + 1]):
        if is_ranged(keys, events, value):
            attribute = whole(events.attribute[value])
            position = first_number(keys, attribute, events.low[value])
            while (
                position < keys.number_start[attribute + 1]
                and keys.number[position] <= events.high[value]
            ):
                code = whole(keys.number_code[position])
                count = match_list_apart(
                    keys, axes, granules, code, lacking, event, scratch, found, count
                )
                position += 1
    unload_cells(axes, events, event, scratch)
    return count


@kernel_inline
def is_ranged(keys: ListKeys, events: EventColumns, value: int) -> bool:
    """Whether an event's value is a range of an attribute that has equalities."""
    attribute = whole(events.attribute[value])
    return bool(
        events.low[value] < events.high[value] and attribute < len(keys.attribute_code) // CLASSES
    )


@kernel_inline
def mark_ranges(
    keys: ListKeys, events: EventColumns, event: int, scratch: ListScratch
) -> np.uint64:
    """Mark the numbers that ranges of *event* span; the bits that stand for them."""
    signature, stamp = np.uint64(0), scratch.stamp[0]
    for value in range(events.value_start[event], events.value_start[event + 1]):
        if not is_ranged(keys, events, value):
            continue
        attribute = whole(events.attribute[value])
        position = first_number(keys, attribute, events.low[value])
        while (
            position < keys.number_start[attribute + 1]
            and keys.number[position] <= events.high[value]
        ):
            code = whole(keys.number_code[position])
            scratch.key_mark[code] = stamp
            signature |= signature_bit(code)
            position += 1
    return signature


@kernel_inline
def load_cells(axes: ListAxes, events: EventColumns, event: int, scratch: ListScratch) -> None:
    """Find the cells of the event's values along all axes that they are on."""
    for value in range(events.value_start[event], events.value_start[event + 1]):
        attribute = whole(events.attribute[value])
        low, high = events.low[value], events.high[value]
        axis = axis_at(axes, attribute, VALUE)
        if axis != NO_AXIS:
            cell = cell_at(axes, axis, low)
            scratch.low[axis] = cell
            scratch.high[axis] = cell if low == high else cell_at(axes, axis, high)
        axis = axis_at(axes, attribute, X)
        if axis != NO_AXIS:
            scratch.low[axis] = scratch.high[axis] = cell_at(axes, axis, low)
        axis = axis_at(axes, attribute, Y)
        if axis != NO_AXIS:
            scratch.low[axis] = scratch.high[axis] = cell_at(axes, axis, high)


@kernel_inline
def unload_cells(axes: ListAxes, events: EventColumns, event: int, scratch: ListScratch) -> None:
    """Forget the cells of the event."""
    for value in range(events.value_start[event], events.value_start[event + 1]):
        attribute = whole(events.attribute[value])
        for side in range(3):
            axis = axis_at(axes, attribute, side)
            scratch.low[axis], scratch.high[axis] = LACKS_LOW, LACKS_HIGH


@kernel_inline
def met_lanes(granules: Granules, granule: int, cells: Cells, lacking: np.uint64) -> np.uint64:
    """The lanes of *granule* that are met, a bit each."""
    inside = lanes_inside(granules.bounds, granule, cells[0], cells[1], cells[2], cells[3])
    return inside & lanes_having(granules.signature, granule, lacking)


@kernel_inline
def match_list(
    keys: ListKeys,
    axes: ListAxes,
    granules: Granules,
    code: int,
    lacking: np.uint64,
    event: int,
    scratch: ListScratch,
    found: Found,
    count: int,
) -> int:
    """Append the pairs of the list *code*."""
    size = whole(keys.lists[FIELDS * code + COUNT])
    if size == 0:
        return count
    axis_a = whole(keys.lists[FIELDS * code + AXIS_A])
    axis_b = whole(keys.lists[FIELDS * code + AXIS_B])
    cells = scratch.low[axis_a], scratch.high[axis_a], scratch.low[axis_b], scratch.high[axis_b]
    is_exact = axes.is_exact[axis_a] & axes.is_exact[axis_b] != 0
    root = whole(keys.lists[FIELDS * code + ROOT])
    met = 0
    if root == NO_TREE:
        start = whole(keys.lists[FIELDS * code + START])
        stop = start + size
        for granule in range(start >> LANE_BITS, (stop + LANES - 1) >> LANE_BITS):
            lanes = met_lanes(granules, granule, cells, lacking)
            skipped = max(0, start - granule * LANES)
            beyond = max(0, (granule + 1) * LANES - stop)
            lanes &= np.uint64((ALL_LANES << skipped) & (ALL_LANES >> beyond))
            met = gather_lanes(granules, granule, lanes, scratch, met)
        return take_lanes(granules, axes, cells, is_exact, event, scratch, met, found, count)
    scratch.stack[0], waiting = root, 1
    while waiting > 0:
        waiting -= 1
        granule = scratch.stack[waiting]
        if granule < 0:  # one of entries
            lanes = met_lanes(granules, ~granule, cells, lacking)
            met = gather_lanes(granules, ~granule, lanes, scratch, met)
            if met + LANES > MOST_MET:
                count = take_lanes(
                    granules, axes, cells, is_exact, event, scratch, met, found, count
                )
                met = 0
            continue
        lanes = met_lanes(granules, granule, cells, lacking)
        while lanes != _NO_LANES:
            lane = whole(trailing_zeros(lanes))
            lanes &= lanes - _ONE
            child = whole(granules.entry[granule * LANES + lane])
            below = child & POINTER
            prefetch(granules.bounds, below * COLUMNS * LANES)
            prefetch(granules.signature, below * LANES)
            scratch.stack[waiting] = ~below if child & IS_LEAF != 0 else below
            waiting += 1
    return take_lanes(granules, axes, cells, is_exact, event, scratch, met, found, count)


@inner_kernel
def match_list_apart(
    keys: ListKeys,
    axes: ListAxes,
    granules: Granules,
    code: int,
    lacking: np.uint64,
    event: int,
    scratch: ListScratch,
    found: Found,
    count: int,
) -> int:
    """`match_list` where it is called seldom: its text is compiled in one location only."""
    return match_list(keys, axes, granules, code, lacking, event, scratch, found, count)


@kernel_inline
def gather_lanes(
    granules: Granules, granule: int, lanes: np.uint64, scratch: ListScratch, met: int
) -> int:
    """Append *lanes* to those that are met, and prefetch where their records start."""
    while lanes != _NO_LANES:
        lane = granule * LANES + whole(trailing_zeros(lanes))
        lanes &= lanes - _ONE
        prefetch(granules.record_start, lane)
        scratch.met[met] = lane
        met += 1
    return met


@kernel_inline
def take_lanes(
    granules: Granules,
    axes: ListAxes,
    cells: Cells,
    is_exact: bool,
    event: int,
    scratch: ListScratch,
    met: int,
    found: Found,
    count: int,
) -> int:
    """Append the alternatives of the lanes *met*, but for those whose record rules them out."""
    for position in range(met):
        lane = scratch.met[position]
        if whole(granules.entry[lane]) & (COVERED | CANDIDATE) == 0:
            prefetch(granules.record, whole(granules.record_start[lane]))
    for position in range(met):
        lane = scratch.met[position]
        entry = whole(granules.entry[lane])
        covered = 1
        if entry & CANDIDATE != 0:
            covered = 0
        elif entry & COVERED == 0:
            verdict = read_record(granules, axes, lane, scratch)
            if verdict < 0:
                continue
            covered = verdict
        if covered == 1 and not is_exact:
            covered = is_inside(granules, lane, cells)
        if count < len(found.event):
            found.event[count] = event
            found.alternative[count] = entry & POINTER
            found.covered[count] = covered
        count += 1
    return count


@kernel_inline
def read_record(granules: Granules, axes: ListAxes, entry: int, scratch: ListScratch) -> int:
    """−1 where the record of *entry* rules it out; 1 where it proves it, else 0."""
    at = whole(granules.record_start[entry])
    head = whole(granules.record[at])
    stamp = scratch.stamp[0]
    at += 1
    stop = at + (head & MOST_COUNT)
    while at < stop:
        if scratch.key_mark[whole(granules.record[at])] != stamp:
            return -1
        at += 1
    proved = 0 if head & UNPROVED != 0 else 1
    stop = at + 2 * ((head >> COUNT_BITS) & MOST_COUNT)
    while at < stop:
        axis, bounds = whole(granules.record[at]), whole(granules.record[at + 1])
        low, high = bounds & NOT_ASKED, bounds >> 16
        if low > scratch.high[axis] or high < scratch.low[axis]:
            return -1
        if axes.is_exact[axis] == 0 and (low >= scratch.high[axis] or high <= scratch.low[axis]):
            proved = 0
        at += 2
    return proved


@kernel_inline
def is_inside(granules: Granules, lane: int, cells: Cells) -> int:
    """1 where the event shares no cell with a bound of the lane, else 0."""
    column = lane // LANES * COLUMNS * LANES + lane % LANES
    low_a, high_a = granules.bounds[column], granules.bounds[column + LANES]
    low_b, high_b = granules.bounds[column + 2 * LANES], granules.bounds[column + 3 * LANES]
    inside = high_a == NOT_ASKED or (low_a < cells[1] and high_a > cells[0])
    return 1 if inside and (high_b == NOT_ASKED or (low_b < cells[3] and high_b > cells[2])) else 0
