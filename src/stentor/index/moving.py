"""Circles around a subscriber, put around another place."""

from __future__ import annotations

from typing import NamedTuple

from stentor._jit import kernel, kernel_inline
from stentor._prefetch import prefetch
from stentor.encoding.circles import write_circle
from stentor.encoding.columns import HERE, KIND_MASK, Float64, Int32, Int64, UInt8

#: How many rows ahead memory is asked for, at each step from rows to predicates.
AHEAD = 4


class Movable(NamedTuple):
    """The columns that say where a subscription's `HERE` predicates are; the last three change."""

    alternative_start: Int64
    predicate_start: Int64
    kind: UInt8
    operand_start: Int32
    pair_low: Float64
    pair_high: Float64
    position: Float64


@kernel
def move_rows(columns: Movable, rows: Int64, positions: Float64) -> int:
    """Put *rows* at *positions* (n × 2, flat); the number of circles that moved.

    A row given twice ends where it was put last.
    """
    moved = 0
    for i in range(len(rows)):
        if i + 3 * AHEAD < len(rows):
            _call_for(columns, rows[i + AHEAD], rows[i + 2 * AHEAD], rows[i + 3 * AHEAD])
        row = rows[i]
        x, y = positions[2 * i], positions[2 * i + 1]
        columns.position[2 * row] = x
        columns.position[2 * row + 1] = y
        first = columns.predicate_start[columns.alternative_start[row]]
        last = columns.predicate_start[columns.alternative_start[row + 1]]
        for predicate in range(first, last):
            if columns.kind[predicate] & KIND_MASK == HERE:
                _put_circle(columns, columns.operand_start[predicate], x, y)
                moved += 1
    return moved


@kernel_inline
def _call_for(columns: Movable, soon: int, later: int, last: int) -> None:
    """Have what is known of three rows to come brought near, one step further for each."""
    prefetch(columns.alternative_start, last)
    prefetch(columns.position, 2 * last)
    prefetch(columns.predicate_start, columns.alternative_start[later])
    predicate = columns.predicate_start[columns.alternative_start[soon]]
    if predicate < len(columns.kind):
        prefetch(columns.kind, predicate)
        prefetch(columns.operand_start, predicate)


@kernel
def _put_circle(columns: Movable, start: int, x: float, y: float) -> None:
    """Write the pairs of a circle at *start* anew around (x, y); its radius stands last."""
    low = columns.pair_low[start : start + 5]
    high = columns.pair_high[start : start + 5]
    write_circle(low, high, x, y, low[4], high[4] != 0.0)
