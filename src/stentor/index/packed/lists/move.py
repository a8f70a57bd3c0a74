"""Short moves, in place: new cells for the lanes of what is around a subscriber.

Keys never change by moving, so an entry stays in its list; nor does what is proved, for a circle is
always verified. In a long list a lane that moves far would widen the hull of its granule, which
many more events then visit: it is removed, and the caller keeps the alternative elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._intrinsics import prefetch
from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Int32, Int64, SubscriptionColumns, UInt8
from stentor.encoding.kinds import KIND_MASK, MISSING, OWN_CIRCLE, is_region
from stentor.index.bounds import VALUE, X, Y
from stentor.index.packed.lists.axes import axis_at, cells_between, predicate_hull
from stentor.index.packed.lists.layout import (
    AXIS_A,
    CANDIDATE,
    COLUMNS,
    COUNT,
    COUNT_BITS,
    COVERED,
    FIELDS,
    LANE_BITS,
    LANES,
    LEAST,
    LONG,
    MOST_COUNT,
    NO_AXIS,
    NOT_ASKED,
    POINTER,
    ROOT,
    START,
    Granules,
    ListAxes,
    whole,
)

#: Alternatives ahead that are prefetched.
AHEAD = 4
#: The lane of an entry that was removed.
GONE = -1


class Movers(NamedTuple):
    """The entries of alternatives that move with their subscribers."""

    alternative: Int64  # (entries,) ascending
    lane: Int64  # (entries,) or GONE
    code: Int32  # (entries,) its list


def movers_of(
    columns: SubscriptionColumns, alternatives: Int64, lists: Int32, granules: Granules
) -> Movers:
    """Where those of *alternatives* (ascending) that move are. Cost: a few ns for each of all."""
    base = int(alternatives[0]) if len(alternatives) else 0
    span = int(alternatives[-1]) - base + 1 if len(alternatives) else 0
    moves = np.zeros(span, np.uint8)
    if not mark_movers(columns, alternatives, base, moves):
        nothing = np.zeros(0, np.int64)
        return Movers(nothing, nothing, np.zeros(0, np.int32))
    count = find_movers(lists, granules, base, moves, *(np.empty(0, np.int64),) * 3)
    found = np.empty((3, count), np.int64)
    find_movers(lists, granules, base, moves, *found)
    order = np.argsort(found[0], kind="stable")
    alternative, lane, code = found[:, order]
    return Movers(alternative, lane, code.astype(np.int32))


@kernel
def mark_movers(columns: SubscriptionColumns, alternatives: Int64, base: int, moves: UInt8) -> int:
    """Set *moves*, from *base* on, for those of *alternatives* that move; how many do."""
    count = 0
    for alternative in alternatives:
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            if columns.kind[predicate] & KIND_MASK == OWN_CIRCLE:
                moves[alternative - base] = 1
                count += 1
                break
    return count


@kernel
def find_movers(
    lists: Int32,
    granules: Granules,
    base: int,
    moves: UInt8,
    alternative: Int64,
    lane: Int64,
    code: Int64,
) -> int:
    """Fill in the entries of what *moves*, list by list; those that do not fit are counted."""
    count = 0
    for one in range(len(lists) // FIELDS):
        start = whole(lists[FIELDS * one + START])
        for position in range(start, start + lists[FIELDS * one + COUNT]):
            held = whole(granules.entry[position]) & POINTER
            if moves[held - base] != 0:
                if count < len(alternative):
                    alternative[count], lane[count], code[count] = held, position, one
                count += 1
    return count


@kernel
def move_lanes(
    columns: SubscriptionColumns,
    alternatives: Int64,
    movers: Movers,
    lists: Int32,
    axes: ListAxes,
    granules: Granules,
    is_placed: UInt8,
) -> int:
    """Move *alternatives* where all their lanes can; *is_placed* gets 1 there.

    The lanes of others are removed; of how many alternatives is returned.
    """
    removed = 0
    for position in range(len(alternatives)):
        if position + AHEAD < len(alternatives):
            prefetch(columns.predicate_start, alternatives[position + AHEAD])
        alternative = alternatives[position]
        first = first_mover(movers, alternative)
        last, fits = first, True
        while last < len(movers.lane) and movers.alternative[last] == alternative:
            fits = fits and movers.lane[last] != GONE
            fits = fits and lane_fits(columns, alternative, movers, last, lists, axes, granules)
            last += 1
        is_placed[position] = fits and first < last
        if first < last and movers.lane[first] != GONE:
            removed += not fits
            for mover in range(first, last):
                if fits:
                    move_lane(columns, alternative, movers, mover, lists, axes, granules)
                else:
                    column = column_of(movers.lane[mover])
                    granules.bounds[column] = NOT_ASKED
                    granules.bounds[column + LANES] = LEAST
                    movers.lane[mover] = GONE
    return removed


@kernel_inline
def first_mover(movers: Movers, alternative: int) -> int:
    """The first position of *alternative*, or of the next one."""
    start, stop = 0, len(movers.alternative)
    while start < stop:
        middle = (start + stop) >> 1
        if movers.alternative[middle] < alternative:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel_inline
def column_of(lane: int) -> int:
    """Where the first bound of *lane* is."""
    return lane // LANES * COLUMNS * LANES + lane % LANES


@kernel_inline
def cells_along(
    columns: SubscriptionColumns, alternative: int, axes: ListAxes, axis: int
) -> tuple[int, int]:
    """The cells that *alternative* allows along *axis*, as in `axis_cells`."""
    low, high = whole(LEAST), whole(NOT_ASKED)
    if axis == NO_AXIS:
        return low, high
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        if columns.kind[predicate] == MISSING:
            continue
        sides = 2 if is_region(columns.kind[predicate]) else 1
        for side in range(sides):
            which = VALUE if sides == 1 else X + side
            if axis_at(axes, columns.attribute[predicate], which) == axis:
                bounds = predicate_hull(columns, predicate, which)
                first, last = cells_between(axes, axis, bounds[0], bounds[1])
                low, high = max(low, first), min(high, last)
    return low, high


@kernel_inline
def lane_fits(
    columns: SubscriptionColumns,
    alternative: int,
    movers: Movers,
    mover: int,
    lists: Int32,
    axes: ListAxes,
    granules: Granules,
) -> bool:
    """Whether the lane of *mover* can take the new bounds of *alternative*.

    In a list without a tree it can. In another the hull of its granule may not leave that of the
    granules beside it, and not be more than half as wide, but where it was wider already.
    """
    first = FIELDS * whole(movers.code[mover])
    if lists[first + COUNT] <= LONG:
        return True
    lane = lane_above(lists, first, movers.lane[mover])
    column, fits = column_of(lane), True
    for side in range(2):
        axis = whole(lists[first + AXIS_A + side])
        low, high = cells_along(columns, alternative, axes, axis)
        old_low = whole(granules.bounds[column + 2 * side * LANES])
        old_high = whole(granules.bounds[column + (2 * side + 1) * LANES])
        low, high = min(low, old_low), max(high, old_high)
        if low == old_low and high == old_high:
            continue
        least, most = whole(NOT_ASKED), whole(LEAST)
        beside = column - lane % LANES + 2 * side * LANES
        for one in range(LANES):
            if granules.bounds[column - lane % LANES + one] != NOT_ASKED:
                least = min(least, whole(granules.bounds[beside + one]))
                most = max(most, whole(granules.bounds[beside + LANES + one]))
        fits = fits and least <= low and high <= most and 2 * (high - low) <= most - least
    return fits


@kernel_inline
def lane_above(lists: Int32, first: int, lane: int) -> int:
    """The lane of a tree that stands for the granule of *lane*; *first* is its list's field.

    The granules above a list lie level by level, and the root is the last.
    """
    leaf = (lane >> LANE_BITS) - (whole(lists[first + START]) >> LANE_BITS)
    below = (whole(lists[first + COUNT]) + LANES - 1) >> LANE_BITS
    start = whole(lists[first + ROOT]) + 1
    while below > 1:
        below = (below + LANES - 1) >> LANE_BITS
        start -= below
    return start * LANES + leaf


@kernel_inline
def move_lane(
    columns: SubscriptionColumns,
    alternative: int,
    movers: Movers,
    mover: int,
    lists: Int32,
    axes: ListAxes,
    granules: Granules,
) -> None:
    """Write the cells of *alternative* to a lane, its record, and the hull above."""
    first, lane = FIELDS * whole(movers.code[mover]), movers.lane[mover]
    column, is_long = column_of(lane), lists[first + COUNT] > LONG
    above = column_of(lane_above(lists, first, lane)) if is_long else 0
    for side in range(2):
        axis = whole(lists[first + AXIS_A + side])
        low, high = cells_along(columns, alternative, axes, axis)
        at = 2 * side * LANES
        granules.bounds[column + at], granules.bounds[column + at + LANES] = low, high
        if is_long:
            granules.bounds[above + at] = min(low, whole(granules.bounds[above + at]))
            at += LANES
            granules.bounds[above + at] = max(high, whole(granules.bounds[above + at]))
    if whole(granules.entry[lane]) & (COVERED | CANDIDATE) != 0:
        return
    record = whole(granules.record_start[lane])
    head = whole(granules.record[record])
    at = record + 1 + (head & MOST_COUNT)
    stop = at + 2 * ((head >> COUNT_BITS) & MOST_COUNT)
    while at < stop:
        axis = whole(granules.record[at])
        if has_moved(columns, alternative, axes, axis):
            low, high = cells_along(columns, alternative, axes, axis)
            granules.record[at + 1] = low | high << 16
        at += 2


@kernel_inline
def has_moved(columns: SubscriptionColumns, alternative: int, axes: ListAxes, axis: int) -> bool:
    """Whether a circle around its subscriber bounds *alternative* along *axis*."""
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        if columns.kind[predicate] & KIND_MASK == OWN_CIRCLE:
            attribute = columns.attribute[predicate]
            if axis in (axis_at(axes, attribute, X), axis_at(axes, attribute, Y)):
                return True
    return False


@kernel
def wrong_lanes(
    columns: SubscriptionColumns,
    movers: Movers,
    which: UInt8,
    lists: Int32,
    axes: ListAxes,
    granules: Granules,
) -> int:
    """How many of *which* movers have other bounds than their alternatives: for tests."""
    wrong = 0
    for mover in range(len(movers.lane)):
        if which[mover] != 0 and movers.lane[mover] != GONE:
            first = FIELDS * whole(movers.code[mover])
            column = column_of(movers.lane[mover])
            for side in range(2):
                axis = whole(lists[first + AXIS_A + side])
                low, high = cells_along(columns, movers.alternative[mover], axes, axis)
                at = column + 2 * side * LANES
                wrong += granules.bounds[at] != low or granules.bounds[at + LANES] != high
    return wrong
