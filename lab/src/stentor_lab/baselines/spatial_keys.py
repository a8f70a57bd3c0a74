"""Which lists an alternative, and an event, go to by keyword and cell: IQ-, RQ-Tree, SS, KK.

A keyword is the rarest of each group that an alternative needs; cells are those of a grid that its
box touches, or those of a quadtree that a cost model chooses. What has neither goes to ANY keyword
and to the root, where every event looks.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import (
    LAST,
    EventColumns,
    Float64,
    Int64,
    SubscriptionColumns,
    UInt64,
)
from stentor.encoding.kinds import KEYWORDS, is_negated, is_region
from stentor.index.sort import NO_VALUE, find_value

#: The keyword of those that need none, and the cell that every event is in.
ANY: Final = np.uint64(1)
ROOT: Final = np.uint64(1)
#: Levels of a quadtree below its root: 128 cells a side.
LEVELS: Final = 7


class KeyChoice(NamedTuple):
    """What was measured: the location's attribute, its space, how frequent terms are."""

    attribute: Int64  # (1,) of locations; −1 where there is none
    space: Float64  # (4,) west, south, width, height
    term: UInt64  # (terms,) ascending hashes
    share: Float64  # (terms,) of events that have it
    chance: Float64  # of cells, level by level: 1 + 4 + 16 + …; empty for a grid
    grid: Int64  # (1,) cells a side; 0 for a quadtree
    copy: Float64  # (2,) what a copy costs, in verifications an event; by keyword (1) or not (0)


@kernel_inline
def share_of(choice: KeyChoice, term: np.uint64) -> float:
    """The share of events that have *term*; 0 where it is not known."""
    start, stop = 0, len(choice.term)
    while start < stop:
        middle = (start + stop) >> 1
        if choice.term[middle] < term:
            start = middle + 1
        else:
            stop = middle
    if start < len(choice.term) and choice.term[start] == term:
        return float(choice.share[start])
    return 0.0


@kernel_inline
def cell_number(level: int, column: int, row: int) -> np.uint64:
    """A cell of a level, as a number; the root is ROOT."""
    return np.uint64(1 + ((level << 48) | (row << 24) | column))


@kernel_inline
def line_of(value: float, start: float, width: float, cells: int) -> int:
    """Which of *cells* along an axis *value* is in; those outside are in the outermost."""
    if not width > 0.0 or not value > start:
        return 0
    share = (value - start) / width
    return cells - 1 if share >= 1.0 else min(cells - 1, int(share * cells))


@kernel
def boxes_of(
    columns: SubscriptionColumns, alternatives: Int64, attribute: int, box: Float64
) -> None:
    """The box of each alternative's region on *attribute*: everywhere where it has none."""
    for position in range(len(alternatives)):
        sides = box[4 * position : 4 * position + 4]
        sides[0], sides[1], sides[2], sides[3] = -math.inf, -math.inf, math.inf, math.inf
        alternative = alternatives[position]
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            kind = columns.kind[predicate]
            if columns.attribute[predicate] != attribute or is_negated(kind):
                continue
            if not is_region(kind):
                continue
            pair = columns.operand_start[predicate]
            west, east = columns.pair_low[pair], columns.pair_high[pair]
            south, north = columns.pair_low[pair + 1], columns.pair_high[pair + 1]
            if west <= east and south <= north:
                sides[0], sides[1], sides[2], sides[3] = west, south, east, north
                break


@kernel
def keyword_keys(
    columns: SubscriptionColumns,
    alternatives: Int64,
    choice: KeyChoice,
    of: Int64,
    keyword: UInt64,
) -> int:
    """Positions in *alternatives* and the keywords of each; those that do not fit are counted."""
    found = 0
    for position in range(len(alternatives)):
        alternative = alternatives[position]
        best, fewest = -1, 0
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
            if columns.kind[predicate] != KEYWORDS or start == stop:
                continue
            groups = 0
            for string in range(start, stop):
                groups += columns.string_mark[string] == LAST
            if groups > 0 and (best < 0 or groups < fewest):
                best, fewest = predicate, groups
        if best < 0:
            if found < len(of):
                of[found], keyword[found] = position, ANY
            found += 1
            continue
        rarest, least = ANY, math.inf
        for string in range(columns.operand_start[best], columns.operand_stop[best]):
            share = share_of(choice, columns.string_hash[string])
            if share < least:
                rarest, least = columns.string_hash[string], share
            if columns.string_mark[string] == LAST:
                if found < len(of):
                    of[found], keyword[found] = position, rarest
                found += 1
                rarest, least = ANY, math.inf
    return found


@kernel
def cell_keys(
    box: Float64, of: Int64, keyword: UInt64, choice: KeyChoice, entry: Int64, cell: UInt64
) -> int:
    """For each pair of *of* and *keyword* its cells; those that do not fit are only counted."""
    found = 0
    for pair in range(len(of)):
        sides = box[4 * of[pair] : 4 * of[pair] + 4]
        west, south, wide, high = choice.space
        if choice.attribute[0] < 0 or sides[0] == -math.inf:
            if found < len(entry):
                entry[found], cell[found] = pair, ROOT
            found += 1
            continue
        if choice.grid[0] > 0:
            side = choice.grid[0]
            for row in range(
                line_of(sides[1], south, high, side), line_of(sides[3], south, high, side) + 1
            ):
                for column in range(
                    line_of(sides[0], west, wide, side), line_of(sides[2], west, wide, side) + 1
                ):
                    if found < len(entry):
                        entry[found], cell[found] = pair, cell_number(1, column, row)
                    found += 1
            continue
        likely = share_of(choice, keyword[pair]) if choice.copy[1] > 0.0 else 1.0
        if keyword[pair] == ANY:
            likely = 1.0
        found = quadtree_cells(sides, choice, likely, pair, entry, cell, found)
    return found


@inner_kernel
def quadtree_cells(
    sides: Float64,
    choice: KeyChoice,
    likely: float,
    pair: int,
    entry: Int64,
    cell: UInt64,
    found: int,
) -> int:
    """The cells of one box: a cell becomes its children where that saves more than copies cost.

    A level is gone through in Z-order: (level, column, row) is enough to go on, without a stack.
    """
    west, south, wide, high = choice.space
    price = choice.copy[0]
    level, column, row = 0, 0, 0
    while True:
        side = 1 << level
        left, right = line_of(sides[0], west, wide, side), line_of(sides[2], west, wide, side)
        below, above = line_of(sides[1], south, high, side), line_of(sides[3], south, high, side)
        touches = left <= column <= right and below <= row <= above
        descends = False
        if touches and level < LEVELS:
            inner = 2 * side
            least, most = (
                line_of(sides[0], west, wide, inner),
                line_of(sides[2], west, wide, inner),
            )
            low, top = (
                line_of(sides[1], south, high, inner),
                line_of(sides[3], south, high, inner),
            )
            saved, copies = chance_of(choice, level, column, row), -1
            for down in range(2):
                for across in range(2):
                    x, y = 2 * column + across, 2 * row + down
                    if least <= x <= most and low <= y <= top:
                        saved -= chance_of(choice, level + 1, x, y)
                        copies += 1
            descends = saved * likely > copies * price
        if touches and not descends:
            if found < len(entry):
                entry[found], cell[found] = pair, cell_number(level, column, row)
            found += 1
        if descends:
            level, column, row = level + 1, 2 * column, 2 * row
            continue
        while level > 0 and column & 1 and row & 1:
            level, column, row = level - 1, column >> 1, row >> 1
        if level == 0:
            return found
        if column & 1:
            column, row = column - 1, row + 1
        else:
            column += 1


@kernel_inline
def chance_of(choice: KeyChoice, level: int, column: int, row: int) -> float:
    """The share of events in a cell."""
    first = ((1 << (2 * level)) - 1) // 3
    return float(choice.chance[first + (row << level) + column])


@inner_kernel
def cells_of_event(
    events: EventColumns, event: int, choice: KeyChoice, cell: UInt64, at: Float64
) -> int:
    """The cells that *event* is in, the root first; *at* gets its location, or NaN."""
    cell[0] = ROOT
    at[0] = at[1] = math.nan
    if choice.attribute[0] < 0:
        return 1
    value = find_value(events, event, choice.attribute[0])
    if value == NO_VALUE:
        return 1
    at[0], at[1] = events.low[value], events.high[value]
    west, south, wide, high = choice.space
    if choice.grid[0] > 0:
        side = choice.grid[0]
        column, row = line_of(at[0], west, wide, side), line_of(at[1], south, high, side)
        cell[1] = cell_number(1, column, row)
        return 2
    for level in range(1, LEVELS + 1):
        side = 1 << level
        column, row = line_of(at[0], west, wide, side), line_of(at[1], south, high, side)
        cell[level] = cell_number(level, column, row)
    return LEVELS + 1
