"""The BEQ-Tree: live events in the cells of a quadtree, in sorted lists by attribute.

A subscription visits the cells that its region meets; in each it takes the list of the attribute on
which it is narrowest, from its low end to its high end. Lists are kept sorted: what comes is merged
in. Subscriptions themselves are in no structure: events are matched by the row scan.

Paper: Guo, Zhang, Li, Tan, Bao: Location-aware pub/sub system: when continuous moving queries meet
dynamic event streams (2015), as compared with in MO-Tree, section 6.1.3.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import EventColumns, Float64, Int64, MatchPairs, SubscriptionColumns
from stentor.encoding.kinds import NEGATED, REGIONS, are_among
from stentor.index.structure import Structure
from stentor_lab.baselines.dimensions import AXES, bounded
from stentor_lab.baselines.rows import matched_by_rows
from stentor_lab.baselines.spatial_keys import boxes_of
from stentor_lab.baselines.spatial_rival import verified_live

#: Events of a cell before it is cut in four, and levels at most.
CAPACITY, DEEPEST = 1024, 10
#: The dimension of a list of all events of a cell; its number is that of no other.
_EVERY: Final = 0


class SortedLists(NamedTuple):
    """Values of events by cell and dimension, ascending."""

    cell: Int64  # (values,)
    dimension: Int64  # (values,) 1 + that of the value, or _EVERY
    value: Float64  # (values,)
    event: Int64  # (values,)

    def only(self, chosen: Any) -> SortedLists:
        """The *chosen* ones: positions, or whether."""
        return SortedLists(
            np.ascontiguousarray(self.cell[chosen]),
            np.ascontiguousarray(self.dimension[chosen]),
            np.ascontiguousarray(self.value[chosen]),
            np.ascontiguousarray(self.event[chosen]),
        )

    def in_order(self) -> SortedLists:
        """The same, sorted. Cost: all of them."""
        return self.only(np.lexsort((self.value, self.dimension, self.cell)))


class Cells(NamedTuple):
    """The leaves of the quadtree; the first is of events that are nowhere, or have ranges."""

    box: Float64  # (4 × cells,)


class BeqTree(Structure):
    """Live events by cell, attribute and value."""

    name = "beq_tree"

    def __init__(self) -> None:
        super().__init__()
        self._attribute = -1
        self._build(np.zeros(0, np.int64))

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        return matched_by_rows(self.subscriptions, events)

    # Live events.

    def _build(self, rows: Int64) -> None:
        """Cells for *rows*, and their lists."""
        x, y = self._at(rows)
        known = np.isfinite(x)
        boxes = [np.full(4, np.nan)]
        todo = [(x[known], y[known], _around(x[known], y[known]), 0)] if known.any() else []
        while todo:
            at_x, at_y, box, depth = todo.pop()
            if len(at_x) <= CAPACITY or depth == DEEPEST:
                boxes.append(np.array(box))
                continue
            west, south, east, north = box
            middle, centre = west / 2 + east / 2, south / 2 + north / 2
            for left, right in ((west, middle), (middle, east)):
                for low, high in ((south, centre), (centre, north)):
                    inside = (at_x >= left) & (at_x <= right) & (at_y >= low) & (at_y <= high)
                    part = at_x[inside], at_y[inside]
                    todo.append((*part, (left, low, right, high), depth + 1))
        self._cells = Cells(np.concatenate(boxes))
        self._lists = self._sorted(rows)
        self._built_for = len(rows)

    def _at(self, rows: Int64) -> tuple[Float64, Float64]:
        """Where each of *rows* is; NaN for those that are nowhere, or have a range."""
        x, y = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
        find_points(self.live.columns, rows, self._attribute, x, y)
        return x, y

    def _sorted(self, rows: Int64) -> SortedLists:
        """The lists of *rows*."""
        columns = self.live.columns
        x, y = self._at(rows)
        cell = np.zeros(len(rows), np.int64)
        find_cells(self._cells.box, x, y, cell)
        counts = np.diff(columns.value_start)[rows] + 1
        total = int(counts.sum())
        made = SortedLists(
            np.empty(total, np.int64),
            np.empty(total, np.int64),
            np.empty(total),
            np.empty(total, np.int64),
        )
        write_values(columns, rows, cell, *made)
        return made.in_order()

    def _hold_events(self, first: int) -> None:
        rows = np.arange(first, self.live.count)
        self._choose_attribute()
        if self.live.current_count > 2 * self._built_for:
            self._build(self.live.current_rows())
            return
        self._lists = _merged(self._lists, self._sorted(rows))

    def _choose_attribute(self) -> None:
        """The location that subscriptions ask about; another one calls for other cells."""
        columns = self.subscriptions.columns
        regions = are_among(columns.kind, REGIONS) & (columns.kind & NEGATED == 0)
        found = columns.attribute[regions]
        attribute = int(np.bincount(found).argmax()) if len(found) else -1
        if attribute != self._attribute:
            self._attribute = attribute
            self._built_for = 0

    def _drop_events(self, rows: Int64) -> None:
        gone = np.zeros(self.live.count, np.bool_)
        gone[rows] = True
        self._lists = self._lists.only(~gone[self._lists.event])

    def _renumbered(self, kept: Int64, count: int) -> None:
        self._build(self.live.current_rows())

    def _match_live(self, columns: SubscriptionColumns) -> MatchPairs:
        """For each subscription its live events, from the cells that its region meets."""
        alternatives = np.arange(len(columns.predicate_start) - 1)
        box = np.empty(4 * len(alternatives))
        boxes_of(columns, alternatives, self._attribute, box)
        dimension, low, high = self._narrowest(columns, alternatives)
        capacity, found = 0, 64 + 256 * len(alternatives)
        while found > capacity:
            capacity = found
            pairs = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
            found = find_in_lists(self._lists, self._cells.box, box, dimension, low, high, *pairs)
        some = (one[:found] for one in pairs)
        return verified_live(columns, self.live.columns, self.live.hidden, *some)

    def _narrowest(
        self, columns: SubscriptionColumns, alternatives: Int64
    ) -> tuple[Int64, Float64, Float64]:
        """On which dimension each is narrowest, and from where to where."""
        found = bounded(columns, alternatives, locations=False)
        dimension = np.full(len(alternatives), _EVERY)
        low, high = np.full(len(alternatives), -np.inf), np.full(len(alternatives), np.inf)
        order = np.lexsort((found.high - found.low, found.of))
        of, first = np.unique(found.of[order], return_index=True)
        best = order[first]
        dimension[of] = 1 + found.dimension[best]
        low[of], high[of] = found.low[best], found.high[best]
        return dimension, low, high

    def _check_live(self) -> None:
        every = self._lists.event[self._lists.dimension == _EVERY]
        assert np.array_equal(np.sort(every), self.live.current_rows())

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        beside = sum(array.nbytes for array in self._lists) + self._cells.box.nbytes
        return {**inherited, "bytes": inherited["bytes"] + beside}


def _around(x: Float64, y: Float64) -> tuple[float, float, float, float]:
    return float(x.min()), float(y.min()), float(x.max()), float(y.max())


def _merged(one: SortedLists, other: SortedLists) -> SortedLists:
    """Both, in order. Cost: all of both."""
    return SortedLists(
        np.concatenate((one.cell, other.cell)),
        np.concatenate((one.dimension, other.dimension)),
        np.concatenate((one.value, other.value)),
        np.concatenate((one.event, other.event)),
    ).in_order()


@kernel
def find_points(events: EventColumns, rows: Int64, attribute: int, x: Float64, y: Float64) -> None:
    """Locations of events without ranges."""
    for position in range(len(rows)):
        row = rows[position]
        for value in range(events.value_start[row], events.value_start[row + 1]):
            if events.attribute[value] == attribute:
                x[position], y[position] = events.low[value], events.high[value]
        for value in range(events.value_start[row], events.value_start[row + 1]):
            if events.attribute[value] != attribute and events.low[value] != events.high[value]:
                x[position] = y[position] = np.nan


@kernel
def find_cells(box: Float64, x: Float64, y: Float64, cell: Int64) -> None:
    """The first cell that holds each point; 0 where none does."""
    for position in range(len(x)):
        cell[position] = 0
        for one in range(1, len(box) // 4):
            sides = box[4 * one : 4 * one + 4]
            if sides[0] <= x[position] <= sides[2] and sides[1] <= y[position] <= sides[3]:
                cell[position] = one
                break


@kernel
def write_values(
    events: EventColumns,
    rows: Int64,
    cell: Int64,
    cells: Int64,
    dimension: Int64,
    value: Float64,
    event: Int64,
) -> None:
    """All values of events, and each event once by itself."""
    found = 0
    for position in range(len(rows)):
        row = rows[position]
        cells[found], dimension[found] = cell[position], _EVERY
        value[found], event[found] = 0.0, row
        found += 1
        for one in range(events.value_start[row], events.value_start[row + 1]):
            cells[found], dimension[found] = cell[position], 1 + events.attribute[one] * AXES
            value[found], event[found] = events.low[one], row
            found += 1


@kernel
def find_in_lists(
    lists: SortedLists,
    cells: Float64,
    box: Float64,
    dimension: Int64,
    low: Float64,
    high: Float64,
    event: Int64,
    alternative: Int64,
) -> int:
    """Events of the cells that each box meets; those that do not fit are only counted."""
    found = 0
    for one in range(len(dimension)):
        sides = box[4 * one : 4 * one + 4]
        for cell in range(len(cells) // 4):
            asked = dimension[one]
            if cell == 0:
                asked = _EVERY  # they may have ranges
            else:
                own = cells[4 * cell : 4 * cell + 4]
                if sides[0] > own[2] or sides[2] < own[0]:
                    continue
                if sides[1] > own[3] or sides[3] < own[1]:
                    continue
            least = -np.inf if asked == _EVERY else low[one]
            position = first_from(lists, cell, asked, least)
            while (
                position < len(lists.cell)
                and lists.cell[position] == cell
                and lists.dimension[position] == asked
                and (asked == _EVERY or lists.value[position] <= high[one])
            ):
                if found < len(event):
                    event[found], alternative[found] = lists.event[position], one
                found += 1
                position += 1
    return found


@kernel
def first_from(lists: SortedLists, cell: int, dimension: int, value: float) -> int:
    """The first position of the list from *value* on."""
    start, stop = 0, len(lists.cell)
    while start < stop:
        middle = (start + stop) >> 1
        before = lists.cell[middle] < cell or (
            lists.cell[middle] == cell
            and (
                lists.dimension[middle] < dimension
                or (lists.dimension[middle] == dimension and lists.value[middle] < value)
            )
        )
        if before:
            start = middle + 1
        else:
            stop = middle
    return start
