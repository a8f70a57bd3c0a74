"""What an index holds: subscriptions and when each holds, and live events.

A row is a position in the order of insertion. It is never reused: what is removed is hidden.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from stentor._intrinsics import prefetch
from stentor._jit import direct, kernel, kernel_inline
from stentor.encoding.check import check
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
    event_count,
    read_only,
    read_only_columns,
    subscription_count,
)
from stentor.encoding.kinds import KIND_MASK, OWN_CIRCLE
from stentor.encoding.predicates.circle import write_circle
from stentor.encoding.ragged import take
from stentor.errors import ReadOnlyError
from stentor.index.arena import GrowingArray, GrowingColumns
from stentor.index.sort import distinct
from stentor.model.values.time import NEVER

#: How many rows ahead memory is prefetched, at each step from rows to predicates.
AHEAD = 4
#: The `since` of a subscription that holds for every record: they are numbered from 0.
FROM_THE_START = -1


class RowSpans(NamedTuple):
    """When rows hold.

    Row r holds for an event e exactly where it is not hidden, since[r] < seq(e) < upto[r] (each
    where it is not empty) and time(e) < columns.until[r].
    """

    hidden: UInt8  # (rows,) 1 where the row was removed
    since: Int64  # (rows,) or (0,): always
    upto: Int64  # (rows,) or (0,): for good


class SubscriptionTable:
    """Subscriptions in the order of insertion; those that are removed are hidden.

    Invariant: `columns` and `validity` are sealed views; no kernel meets another form.
    Invariant: `since` and `upto` are empty until a row needs them.
    """

    def __init__(self) -> None:
        self._growing = GrowingColumns(SubscriptionColumns)
        self._mapped: SubscriptionColumns | None = None
        self._hidden = GrowingArray(np.uint8)
        self._hidden_count = 0
        self._since = GrowingArray(np.int64)
        self._upto = GrowingArray(np.int64)
        self._validity: RowSpans | None = None
        self._movable: tuple[SubscriptionColumns, Movable] | None = None  # as of some columns

    @classmethod
    def over(cls, columns: SubscriptionColumns) -> Self:
        """A read-only table of *columns*, of which nothing is copied; rows can be hidden."""
        table = cls()
        table._mapped = read_only_columns(columns)
        table._hidden = GrowingArray(np.uint8, subscription_count(columns))
        return table

    @property
    def columns(self) -> SubscriptionColumns:
        """All rows, hidden ones too; a view, made anew after each insertion only."""
        return self._growing.view if self._mapped is None else self._mapped

    @property
    def validity(self) -> RowSpans:
        """When each row holds; a view, made anew only when it becomes longer."""
        if self._validity is None:
            self._validity = RowSpans(self._hidden.view, self._since.view, self._upto.view)
        return self._validity

    @property
    def count(self) -> int:
        """How many rows there are, hidden ones too."""
        return len(self._hidden)

    @property
    def current_count(self) -> int:
        """How many rows are not hidden."""
        return self.count - self._hidden_count

    @property
    def nbytes(self) -> int:
        """Bytes of capacity, in memory or in mapped files."""
        spans = self._hidden.nbytes + self._since.nbytes + self._upto.nbytes
        return spans + self._growing.nbytes + sum(array.nbytes for array in self._mapped or ())

    def current_rows(self) -> Int64:
        """The rows that are neither hidden nor closed, ascending."""
        is_current = self._hidden.view == 0
        if len(self._upto):
            # `_upto` is longer where an exception interrupted `append`.
            is_current &= self._upto.view[: len(is_current)] == NEVER
        return np.flatnonzero(is_current)

    def is_current(self, row: int) -> bool:
        """Whether *row* is neither hidden nor closed."""
        hidden, _, upto = self.validity
        return not hidden[row] and (not len(upto) or bool(upto[row] == NEVER))

    def append(self, columns: SubscriptionColumns, since: int | Int64 = FROM_THE_START) -> int:
        """Add subscriptions that hold for records after *since*; the row of the first.

        Cost: amortised, what they hold; one row about 30 µs.
        """
        self._refuse_if_mapped("take subscriptions")
        first, added = self.count, subscription_count(columns)
        self._growing.append(columns)
        if len(self._since) or not isinstance(since, int) or since != FROM_THE_START:
            self._since.extend(FROM_THE_START, first - len(self._since))
            self._since.extend(since, added)
        if len(self._upto):
            self._upto.extend(NEVER, added)
        self._hidden.extend(0, added)
        self._validity = None
        return first

    def close(self, rows: Int64, seq: int | Int64) -> None:
        """Let each of *rows* hold only for records before its *seq*."""
        self._refuse_if_mapped("close subscriptions")
        if not len(self._upto):
            self._upto.extend(NEVER, self.count)
            self._validity = None
        self._upto.writable[rows] = seq

    def hide(self, rows: Int64) -> None:
        """Hide *rows*: they hold for no record any more."""
        self._hidden_count += _mark(self._hidden.writable, rows)

    def move(self, rows: Int64, positions: Float64) -> None:
        """Move *rows* to *positions* (n × 2), and their circles around `here()` with them."""
        self._refuse_if_mapped("move subscriptions")
        seen = self.columns
        if self._movable is None or self._movable[0] is not seen:
            arrays = (self._growing[name].writable for name in Movable._fields)
            self._movable = seen, Movable(*arrays)
        rows = read_only(np.ascontiguousarray(rows, np.int64))
        positions = np.ascontiguousarray(positions, np.float64).reshape(-1)
        _move_rows(self._movable[1], rows, read_only(positions))

    def check(self) -> None:
        """Assert what holds for every table."""
        check(self.columns)
        assert self.count == subscription_count(self.columns)
        assert np.isin(self.validity.hidden, (0, 1)).all()
        assert np.count_nonzero(self.validity.hidden) == self._hidden_count
        for span in self.validity[1:]:
            assert len(span) in (0, self.count)
        assert not any(array.flags.writeable for array in self.validity)

    def _refuse_if_mapped(self, wish: str) -> None:
        if self._mapped is not None:
            raise ReadOnlyError(
                f"an opened index is read-only and cannot {wish}; "
                "put a layered index (stentor.index.layered) over it"
            )


class EventTable:
    """Live events in the order in which they came; those that are dropped are hidden."""

    def __init__(self) -> None:
        self._growing = GrowingColumns(EventColumns)
        self._mapped: EventColumns | None = None
        self._hidden = GrowingArray(np.uint8)
        self._hidden_count = 0

    @classmethod
    def over(cls, columns: EventColumns) -> Self:
        """A table of *columns*, of which nothing is copied; rows can be hidden, none added."""
        table = cls()
        table._mapped = read_only_columns(columns)
        table._hidden = GrowingArray(np.uint8, event_count(columns))
        return table

    @property
    def columns(self) -> EventColumns:
        """All rows, hidden ones too; a view, made anew after each insertion only."""
        return self._growing.view if self._mapped is None else self._mapped

    @property
    def hidden(self) -> UInt8:
        """1 where the row was dropped; a view."""
        return self._hidden.view

    @property
    def count(self) -> int:
        """How many rows there are, hidden ones too."""
        return len(self._hidden)

    @property
    def current_count(self) -> int:
        """How many rows are not hidden."""
        return self.count - self._hidden_count

    @property
    def nbytes(self) -> int:
        """Bytes of capacity."""
        mapped = sum(array.nbytes for array in self._mapped or ())
        return self._growing.nbytes + self._hidden.nbytes + mapped

    def current_rows(self) -> Int64:
        """The rows that are not hidden, ascending."""
        return np.flatnonzero(self.hidden == 0)

    def append(self, columns: EventColumns) -> int:
        """Add events; the row of the first. Cost: amortised, what they hold."""
        if self._mapped is not None:
            raise ReadOnlyError("opened events are read-only: keep new ones in another index")
        first = self.count
        self._growing.append(columns)
        self._hidden.extend(0, event_count(columns))
        return first

    def hide(self, rows: Int64) -> None:
        """Hide *rows*."""
        self._hidden_count += _mark(self._hidden.writable, rows)

    def keep(self, rows: Int64) -> None:
        """Keep *rows* alone: the row of each is from now on its position there.

        Cost: a copy of what they hold.
        """
        kept = take(self.columns, rows)
        if self._mapped is None:
            self._growing.keep(kept)
        else:
            self._mapped = read_only_columns(kept)
        self._hidden = GrowingArray(np.uint8, len(rows))
        self._hidden_count = 0

    def check(self) -> None:
        """Assert what holds for every table."""
        check(self.columns)
        assert self.count == event_count(self.columns)
        assert np.isin(self.hidden, (0, 1)).all()
        assert np.count_nonzero(self.hidden) == self._hidden_count
        assert not self.hidden.flags.writeable


def moved(columns: SubscriptionColumns, rows: Int64, positions: Float64) -> SubscriptionColumns:
    """A copy of *columns* in which *rows* are at *positions* (n × 2)."""
    table = SubscriptionTable()
    table.append(columns)
    table.move(rows, positions)
    return table.columns


def _mark(hidden: UInt8, rows: Int64) -> int:
    """Set *hidden* at *rows*; how many were not set before."""
    fresh = rows[hidden[rows] == 0]
    hidden[fresh] = 1
    return len(fresh) if len(fresh) < 2 else len(distinct(fresh))


class Movable(NamedTuple):
    """The columns that say where a subscription's own circles are; the last three change."""

    alternative_start: Int64
    predicate_start: Int64
    kind: UInt8
    operand_start: Int32
    pair_low: Float64
    pair_high: Float64
    position: Float64


@kernel
def move_rows(columns: Movable, rows: Int64, positions: Float64) -> int:
    """Move *rows* to *positions* (n × 2, flat); the number of circles that moved.

    A row given twice ends at its last position.
    """
    moved = 0
    for i in range(len(rows)):
        if i + 3 * AHEAD < len(rows):
            _prefetch_rows(columns, rows[i + AHEAD], rows[i + 2 * AHEAD], rows[i + 3 * AHEAD])
        row = rows[i]
        x, y = positions[2 * i], positions[2 * i + 1]
        columns.position[2 * row] = x
        columns.position[2 * row + 1] = y
        first = columns.predicate_start[columns.alternative_start[row]]
        last = columns.predicate_start[columns.alternative_start[row + 1]]
        for predicate in range(first, last):
            if columns.kind[predicate] & KIND_MASK == OWN_CIRCLE:
                _put_circle(columns, columns.operand_start[predicate], x, y)
                moved += 1
    return moved


@kernel_inline
def _prefetch_rows(columns: Movable, soon: int, later: int, last: int) -> None:
    """Prefetch the columns of three later rows, one step further for each."""
    prefetch(columns.alternative_start, last)
    prefetch(columns.position, 2 * last)
    prefetch(columns.predicate_start, columns.alternative_start[later])
    predicate = columns.predicate_start[columns.alternative_start[soon]]
    if predicate < len(columns.kind):
        prefetch(columns.kind, predicate)
        prefetch(columns.operand_start, predicate)


@kernel
def _put_circle(columns: Movable, start: int, x: float, y: float) -> None:
    """Write the pairs of a circle at *start* anew around (x, y); its radius is the last."""
    low = columns.pair_low[start : start + 5]
    high = columns.pair_high[start : start + 5]
    write_circle(low, high, x, y, low[4], high[4] != 0.0)


_move_rows = direct(move_rows)
