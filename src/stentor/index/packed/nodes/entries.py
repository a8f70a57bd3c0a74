"""Alternatives → entries of leaves: cells of their predicates, weights, and what they go by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import (
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
    all_read_only,
    read_only,
)
from stentor.encoding.kinds import MISSING, is_region
from stentor.index.bounds import VALUE, X
from stentor.index.packed.lists.axes import axis_at, choose_axes, with_cells
from stentor.index.packed.lists.layout import LEAST, MOST_CELL, NO_AXIS, ListAxes, UInt16, whole
from stentor.index.packed.lists.pack import is_decided
from stentor.index.packed.nodes.layout import CLASSES, MIDDLING, MOST_COLUMNS, NARROW


class NodeEntries(NamedTuple):
    """What leaves hold of each alternative, one after the other."""

    start: Int64  # (alternatives + 1,) where the columns of each begin
    axis: Int32  # (columns,)
    low: Int32  # (columns,) cells; LEAST and MOST_CELL where there is no bound
    high: Int32  # (columns,)
    weight: Float64  # (columns,)
    covered: UInt8  # (alternatives,) 1 where its columns say everything
    other: Float64  # (alternatives,) the sum of weights that are in no column
    first: Int32  # (alternatives,) the column that leaves the least, and the next; from its start
    second: Int32
    run: Int64  # (alternatives,) axis × CLASSES + class of the first


def entries_of(columns: SubscriptionColumns, alternatives: Int64) -> tuple[NodeEntries, ListAxes]:
    """The entries of *alternatives*, each of which bounds something, and their axes."""
    predicate_at = np.zeros(len(alternatives) + 1, np.int64)
    starts = columns.predicate_start
    np.cumsum(starts[alternatives + 1] - starts[alternatives], out=predicate_at[1:])
    axes, cells = with_cells(
        columns, alternatives, choose_axes(columns, alternatives), read_only(predicate_at)
    )
    count = len(alternatives)
    start = np.zeros(count + 1, np.int64)
    uses = np.zeros(len(axes.is_exact), np.int64)
    used = count_columns(columns, alternatives, axes, start, uses)
    entries = NodeEntries(
        start,
        np.empty(used, np.int32),
        np.empty(used, np.int32),
        np.empty(used, np.int32),
        np.empty(used),
        np.empty(count, np.uint8),
        np.empty(count),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.int64),
    )
    fill_columns(columns, alternatives, read_only(predicate_at), read_only(cells), axes, entries)
    choose_first(axes, read_only(uses), entries)
    return all_read_only(entries), axes


@kernel_inline
def sides_of(columns: SubscriptionColumns, axes: ListAxes, predicate: int) -> int:
    """How many columns *predicate* has: two of a region, none where it is along no axis."""
    kind = columns.kind[predicate]
    if kind == MISSING:
        return 0
    sides = 2 if is_region(kind) else 1
    axis = axis_at(axes, columns.attribute[predicate], VALUE if sides == 1 else X)
    return 0 if axis == NO_AXIS else sides


@kernel
def count_columns(
    columns: SubscriptionColumns, alternatives: Int64, axes: ListAxes, start: Int64, uses: Int64
) -> int:
    """Fill *start*, and *uses*: how often each axis is bounded; how many columns there are."""
    count = 0
    for position in range(len(alternatives)):
        start[position] = count
        own, alternative = 0, alternatives[position]
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            sides = sides_of(columns, axes, predicate)
            if own + sides > MOST_COLUMNS:
                continue
            own += sides
            for side in range(sides):
                which = VALUE if sides == 1 else X + side
                uses[axis_at(axes, columns.attribute[predicate], which)] += 1
        count += own
    start[len(alternatives)] = count
    return count


@kernel
def fill_columns(
    columns: SubscriptionColumns,
    alternatives: Int64,
    predicate_at: Int64,
    cells: UInt16,
    axes: ListAxes,
    entries: NodeEntries,
) -> None:
    """Fill the columns of all entries; of an attribute's predicates the first has its weight."""
    for position in range(len(alternatives)):
        at, stop = entries.start[position], entries.start[position + 1]
        other, covered, before = 0.0, True, whole(-1)
        first = columns.predicate_start[alternatives[position]]
        for number in range(predicate_at[position + 1] - predicate_at[position]):
            predicate = first + number
            attribute, weight = whole(columns.attribute[predicate]), columns.weight[predicate]
            sides = sides_of(columns, axes, predicate)
            if sides == 0 or at + sides > stop:
                covered = False
                other += weight
                continue
            covered &= is_decided(columns, axes, predicate)
            if attribute == before:
                other, weight = other + weight, 0.0
            before = attribute
            cell = 4 * (predicate_at[position] + number)
            for side in range(sides):
                which = VALUE if sides == 1 else X + side
                entries.axis[at] = axis_at(axes, attribute, which)
                entries.low[at] = cells[cell + 2 * side]
                entries.high[at] = cells[cell + 2 * side + 1]
                entries.weight[at] = weight if side == 0 else 0.0
                at += 1
        entries.covered[position] = covered
        entries.other[position] = other


@kernel
def choose_first(axes: ListAxes, uses: Int64, entries: NodeEntries) -> None:
    """Fill in which columns leave the least of all events, and the run that follows from it."""
    for position in range(len(entries.first)):
        start = entries.start[position]
        first, second, best, next_best, share_of_first = 0, -1, np.inf, np.inf, 1.0
        for column in range(start, entries.start[position + 1]):
            axis = entries.axis[column]
            cuts = axes.cut_start[axis + 1] - axes.cut_start[axis]
            low, high = max(entries.low[column], 1), min(entries.high[column], cuts)
            share = min(1.0, max(0.0, (high - low + 1) / max(1, cuts)))
            cost = uses[axis] * (share + 1e-6)
            if cost < best:
                second, next_best = first if best < np.inf else -1, best
                first, best, share_of_first = column - start, cost, share
            elif cost < next_best:
                second, next_best = column - start, cost
        width = 0 if share_of_first <= NARROW else (1 if share_of_first <= MIDDLING else 2)
        entries.first[position], entries.second[position] = first, second
        entries.run[position] = CLASSES * whole(entries.axis[start + first]) + width


@kernel_inline
def framed(cell: int, base: int, shift: int) -> int:
    """The byte of an event's *cell* in a frame; see `layout.py`."""
    if cell < base:
        return 1 if cell >= 0 else 0
    return min(2 + ((cell - base) >> shift), 254)


@kernel_inline
def framed_low(cell: int, base: int, shift: int) -> int:
    """The byte of the lower end of a bound, which the frame holds if there is one."""
    return 1 if cell == LEAST else 2 + ((cell - base) >> shift)


@kernel_inline
def framed_high(cell: int, base: int, shift: int) -> int:
    """The byte of the upper end of a bound, which the frame holds if there is one."""
    return 254 if cell >= MOST_CELL else 2 + ((cell - base) >> shift)
