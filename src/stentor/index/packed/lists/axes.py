"""Bounds → cells: which attributes and coordinates there are, and where they are cut.

A cell is the number of cuts that do not exceed a value. Where every bound is a cut (the low end,
and the number after the high end), comparing cells is comparing values; elsewhere it decides all
but the values that share a cell with a bound.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import (
    Float64,
    Int64,
    SubscriptionColumns,
    UInt8,
    all_read_only,
    read_only,
)
from stentor.encoding.kinds import (
    KEYWORDS,
    MEMBERSHIP,
    MISSING,
    REGIONS,
    are_among,
    is_negated,
    is_region,
)
from stentor.encoding.ragged import children
from stentor.index.bounds import VALUE, X, Y, bounds_of
from stentor.index.packed.lists.layout import (
    LEAST,
    MOST_CELL,
    MOST_CUTS,
    NO_AXIS,
    NOT_ASKED,
    ListAxes,
    UInt16,
)
from stentor.index.sort import distinct

#: Alternatives that are looked at to choose cuts, and cuts of an axis that is not exact.
SAMPLE: Final = 1 << 16
MANY_CUTS: Final = 1 << 14
#: Axes at most: an axis beyond is not cut, and what it bounds is verified.
MOST_AXES: Final = 1 << 15
#: Bounds that are no cuts are collected up to so many, and made cuts.
MOST_MISSED: Final = 1 << 17
_SEED: Final = 0x5EED


def choose_axes(columns: SubscriptionColumns, alternatives: Int64) -> ListAxes:
    """The axes of *alternatives*; of a sample's bounds all that are few are cuts.

    The sample is drawn at random: a fixed step could meet the same predicate of each.
    """
    sample = alternatives
    if len(alternatives) > SAMPLE:
        sample = np.sort(np.random.default_rng(_SEED).choice(alternatives, SAMPLE, replace=False))
    predicates, _ = children(columns.predicate_start, sample)
    ends: dict[tuple[int, int], list[Float64]] = {}
    for attribute, axis in _axes_in_use(
        columns, children(columns.predicate_start, alternatives)[0]
    ):
        ends[attribute, axis] = []
    for bounds in bounds_of(columns, predicates):
        order = np.argsort(bounds.attribute, kind="stable")
        attributes, first = np.unique(bounds.attribute[order], return_index=True)
        for attribute, rows in zip(
            attributes.tolist(), np.split(order, first[1:]) if len(order) else (), strict=True
        ):
            if (attribute, bounds.axis) in ends:
                with np.errstate(over="ignore"):  # after the largest double: ∞, which is no cut
                    after = np.nextafter(bounds.high[rows], np.inf)
                ends[attribute, bounds.axis] += [bounds.low[rows], after]
    width = 1 + columns.attribute.max(initial=-1)
    return _axes(width, {key: _thinned(values) for key, values in ends.items()})


def _axes_in_use(columns: SubscriptionColumns, predicates: Int64) -> list[tuple[int, int]]:
    """The axes that *predicates* are about: a value, or both coordinates; words are keys."""
    kind, attribute = columns.kind[predicates], columns.attribute[predicates]
    of_regions = are_among(kind, REGIONS)
    values, regions = (
        np.flatnonzero(np.bincount(attribute[chosen])).tolist()
        for chosen in (~of_regions & ~np.isin(kind, (MISSING, KEYWORDS, MEMBERSHIP)), of_regions)
    )
    found = [(one, VALUE) for one in values]
    found += [(one, axis) for one in regions for axis in (X, Y)]
    return sorted(found)[:MOST_AXES]


def _thinned(ends: list[Float64]) -> Float64:
    """Cuts at *ends*: all of them, or where they are many at quantiles."""
    values = np.concatenate(ends) if ends else np.zeros(0)
    values = values[np.isfinite(values)]
    cuts = distinct(values)
    if len(cuts) > MANY_CUTS:
        values.sort()
        cuts = distinct(values[np.linspace(0, len(values) - 1, MANY_CUTS).astype(np.int64)])
    return cuts


def _axes(width: int, cuts: dict[tuple[int, int], Float64]) -> ListAxes:
    """Axes in the order of *cuts*, after NO_AXIS."""
    axis_of = np.full(3 * width, NO_AXIS, np.int32)
    for number, (attribute, axis) in enumerate(cuts, start=1):
        axis_of[3 * attribute + axis] = number
    parts = [np.zeros(0), *(np.concatenate([[-np.inf], one]) for one in cuts.values())]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    return all_read_only(
        ListAxes(axis_of, starts, np.concatenate(parts), np.ones(len(parts), np.uint8))
    )


def with_cells(
    columns: SubscriptionColumns, alternatives: Int64, axes: ListAxes, start: Int64
) -> tuple[ListAxes, UInt16]:
    """The cells of all predicates of *alternatives*, and *axes* that know whether they are exact.

    Bounds that the sample did not have become cuts too, where they are few.
    """
    cells: UInt16 = np.empty(4 * int(start[-1]), np.uint16)
    for attempt in range(3):
        is_exact = np.ones(len(axes.is_exact), np.uint8)
        missed = np.empty(MOST_MISSED), np.empty(MOST_MISSED, np.int64)
        # An axis with many cuts already is not worth another attempt.
        is_open = read_only(np.diff(axes.cut_start) <= MANY_CUTS)
        count = cells_of_predicates(
            columns, alternatives, start, axes, is_open, cells, is_exact, *missed
        )
        axes = axes._replace(is_exact=read_only(is_exact))
        if count == 0 or attempt == 2:
            break
        kept = min(count, MOST_MISSED)
        fuller = _with_cuts(axes, missed[0][:kept], missed[1][:kept])
        if fuller is None:
            break
        axes = fuller
    return axes, cells


def _with_cuts(axes: ListAxes, value: Float64, axis: Int64) -> ListAxes | None:
    """*axes* with more cuts; None where none of them can take any."""
    parts, has_more = [], False
    for number in range(len(axes.cut_start) - 1):
        cuts = axes.cut[axes.cut_start[number] : axes.cut_start[number + 1]]
        more = distinct(np.concatenate([cuts, value[axis == number]]))
        has_more |= len(cuts) < len(more) <= MOST_CUTS
        parts.append(more if len(more) <= MOST_CUTS else cuts)
    if not has_more:
        return None
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    return axes._replace(cut_start=read_only(starts), cut=read_only(np.concatenate(parts)))


@kernel_inline
def cell_at(axes: ListAxes, axis: int, value: float) -> int:
    """How many cuts of *axis* do not exceed *value*. Cost: O(log cuts)."""
    cuts = axes.cut[axes.cut_start[axis] : axes.cut_start[axis + 1]]
    start, size = 0, len(cuts)
    while size > 1:
        half = size >> 1
        start += half * (cuts[start + half] <= value)
        size -= half
    return start + 1


@kernel_inline
def axis_at(axes: ListAxes, attribute: int, axis: int) -> int:
    """The number of an axis of *attribute*, or NO_AXIS."""
    position = 3 * attribute + axis
    return int(axes.axis_of[position]) if position < len(axes.axis_of) else NO_AXIS


@kernel_inline
def predicate_hull(columns: SubscriptionColumns, predicate: int, axis: int) -> tuple[float, float]:
    """The bounds of *predicate* along *axis*; infinite where it has none."""
    kind = columns.kind[predicate]
    low, high = columns.low[predicate], columns.high[predicate]
    if is_region(kind):
        pair = columns.operand_start[predicate] + (axis == Y)
        low, high = columns.pair_low[pair], columns.pair_high[pair]
    if is_negated(kind) or not low <= high:  # across 180°, around nobody, or never true
        return -math.inf, math.inf
    return low, high


@kernel_inline
def cells_between(axes: ListAxes, axis: int, low: float, high: float) -> tuple[int, int]:
    """The first and the last cell of low … high."""
    first = LEAST if low == -math.inf else cell_at(axes, axis, low)
    last = MOST_CELL if high == math.inf else cell_at(axes, axis, high)
    return first, last


@kernel
def cells_of_predicates(
    columns: SubscriptionColumns,
    alternatives: Int64,
    start: Int64,
    axes: ListAxes,
    is_open: npt.NDArray[np.bool_],
    cells: UInt16,
    is_exact: UInt8,
    missed: Float64,
    missed_axis: Int64,
) -> int:
    """Fill *cells*: low and high along the predicate's axis, or along x and y; four each.

    Clears *is_exact* of axes that have a bound which is no cut; how many of these bounds are of
    axes that are open for more. *start* says where the predicates of each alternative begin.
    """
    count = 0
    for position in range(len(alternatives)):
        first = columns.predicate_start[alternatives[position]]
        for number in range(start[position + 1] - start[position]):
            predicate = first + number
            cell = 4 * (start[position] + number)
            kind, attribute = columns.kind[predicate], columns.attribute[predicate]
            for side in range(2):
                cells[cell + 2 * side] = LEAST
                cells[cell + 2 * side + 1] = NOT_ASKED
            if kind == MISSING:
                continue
            sides = 2 if is_region(kind) else 1
            for side in range(sides):
                which = VALUE if sides == 1 else X + side
                axis = axis_at(axes, attribute, which)
                if axis == NO_AXIS:
                    continue
                low, high = predicate_hull(columns, predicate, which)
                first_cell, last_cell = cells_between(axes, axis, low, high)
                cells[cell + 2 * side] = first_cell
                cells[cell + 2 * side + 1] = last_cell
                cuts = axes.cut[axes.cut_start[axis] : axes.cut_start[axis + 1]]
                if low != -math.inf and cuts[first_cell - 1] != low:
                    is_exact[axis] = 0
                    if is_open[axis]:
                        if count < len(missed):
                            missed[count], missed_axis[count] = low, axis
                        count += 1
                if high != math.inf:
                    after = np.nextafter(high, math.inf)
                    if last_cell >= len(cuts) or cuts[last_cell] != after:
                        is_exact[axis] = 0
                        if is_open[axis]:
                            if count < len(missed):
                                missed[count], missed_axis[count] = after, axis
                            count += 1
    return count
