"""What else an alternative wants, in bytes: most that share a cell of the curve differ there.

Each filter cuts an attribute, or a coordinate of a location, into 127 cells; cell 0 is for events
that lack it. An alternative keeps the first and the last cell that suit it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
    all_read_only,
    event_count,
    read_only,
)
from stentor.encoding.partition import ANYTHING, NEEDED, NULL
from stentor.index.live import sign_events
from stentor.index.mics.bounds import Axes, AxisBounds
from stentor.index.signature import alternative_signature

#: The last cell: seven bits, so that eight of them can be compared in one word.
LAST_CELL: Final = 127
TOP_BIT: Final = np.uint8(128)
#: As many bits of a signature are kept in a byte.
SIGN_BITS: Final = 7
#: Bytes of a signature beside a range, where alternatives want words: all but one bit.
SIGNS: Final = 9
#: Where the cells but the first begin: so many edges of each filter.
EDGES: Final = LAST_CELL - 1


class RangeFilters(NamedTuple):
    """The attributes, or coordinates of locations, that are filters, the best first."""

    dimensions: Axes
    edges: Float64  # (filters × EDGES,) ascending for each
    first_of: Int32  # (attributes,) ≥ 0 where an attribute is a filter: its signature has no bit
    signs: int  # bytes of a signature beside each range

    @property
    def width(self) -> int:
        """How many there are."""
        return len(self.dimensions.attribute)

    @property
    def rows(self) -> int:
        """Bytes of an alternative."""
        return 2 * self.width + self.signs


class FilterCells(NamedTuple):
    """The cells from … to of each item and filter, and the signature of the rest."""

    low: UInt8  # (items × filters,)
    high: UInt8  # (items × filters,)
    signature: UInt64  # (items,)

    def bytes_of(self, filters: RangeFilters) -> UInt8:
        """The bytes beside the ranges (items × rows): last cells have the top bit."""
        items = len(self.signature)
        byte = np.empty((items, filters.rows), np.uint8)
        last = filters.rows - filters.signs
        byte[:, 0:last:2] = self.low.reshape(items, last // 2)
        byte[:, 1:last:2] = self.high.reshape(items, last // 2) | TOP_BIT
        for sign in range(filters.signs):
            part = self.signature >> np.uint64(SIGN_BITS * sign)
            byte[:, last + sign] = part & np.uint64(LAST_CELL)
        return byte


def filters_of(dimensions: Axes, samples: Sequence[Float64], *, signs: int) -> RangeFilters:
    """Filters whose cells hold equally many of the values in *samples*; each has a finite one."""
    shares = np.linspace(0.0, 1.0, LAST_CELL + 1)[1:-1]
    edges = [
        np.quantile(sample[np.isfinite(sample)], shares, method="inverted_cdf")
        for sample in samples
    ]
    return with_edges(dimensions, np.concatenate([np.zeros(0), *edges]), signs)


def with_edges(dimensions: Axes, edges: Float64, signs: int) -> RangeFilters:
    """Filters whose cells begin at *edges*."""
    first_of = np.full(int(dimensions.attribute.max(initial=-1)) + 1, -1, np.int32)
    first_of[dimensions.attribute] = 0
    return RangeFilters(all_read_only(dimensions), read_only(edges), read_only(first_of), signs)


def cells_of_alternatives(
    columns: SubscriptionColumns, alternatives: Int64, bounds: AxisBounds, filters: RangeFilters
) -> FilterCells:
    """What suits each of *alternatives*, whose bounds are *bounds*."""
    signature = np.empty(len(alternatives), np.uint64)
    _sign_alternatives(columns, read_only(alternatives), filters.first_of, signature)
    return FilterCells(*_cells(bounds, filters), signature)


def cells_of_events(events: EventColumns, bounds: AxisBounds, filters: RangeFilters) -> FilterCells:
    """Where each of *events* is, whose bounds are *bounds*."""
    signature = np.empty(event_count(events), np.uint64)
    sign_events(events, filters.first_of, signature)
    return FilterCells(*_cells(bounds, filters), signature)


def _cells(bounds: AxisBounds, filters: RangeFilters) -> tuple[UInt8, UInt8]:
    low, high, need = bounds.first(filters.width)
    first, last = np.empty((2, low.size), np.uint8)
    flat = low.reshape(-1), high.reshape(-1), need.reshape(-1)
    _find_cells(*flat, filters.edges, first, last)
    return first, last


@kernel
def _sign_alternatives(
    columns: SubscriptionColumns, alternatives: Int64, first_of: Int32, signature: UInt64
) -> None:
    """Fill *signature* for each of *alternatives*."""
    for position in range(len(alternatives)):
        signature[position] = alternative_signature(columns, alternatives[position], first_of)


@kernel
def _find_cells(
    low: Float64, high: Float64, need: UInt8, edges: Float64, first: UInt8, last: UInt8
) -> None:
    """Fill the *first* and *last* cells between *low* and *high* of each item and filter."""
    filters = len(edges) // EDGES
    for item in range(len(low)):
        if need[item] != NEEDED:
            first[item] = NULL
            last[item] = LAST_CELL if need[item] == ANYTHING else NULL
            continue
        of = item % filters
        mine = edges[of * EDGES : (of + 1) * EDGES]
        first[item] = last[item] = _cell_of(mine, low[item])
        if high[item] != low[item]:
            last[item] = _cell_of(mine, high[item])


@kernel_inline
def _cell_of(edges: Float64, value: float) -> int:
    """The cell of *value*: one more than there are *edges* up to it."""
    start, stop = 0, len(edges)
    while start < stop:
        middle = (start + stop) >> 1
        if edges[middle] <= value:
            start = middle + 1
        else:
            stop = middle
    return 1 + start
