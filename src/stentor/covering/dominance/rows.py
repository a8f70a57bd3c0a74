"""The naive way: one point after the other, in the order in which they came."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import kernel_part
from stentor.covering.dominance.points import dominates, goes_before
from stentor.encoding.columns import Float64, Int64


class Rows(NamedTuple):
    """The entries that are there, in no order once some have gone."""

    entries: Int64  # (entries,)
    place_of: Int64  # (entries,)
    used: Int64  # (1,) how many


def new_rows() -> Rows:
    """No entries."""
    return Rows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(1, np.int64))


@kernel_part
def insert_row(rows: Rows, entry: int) -> None:
    """Add *entry* behind the others."""
    rows.entries[rows.used[0]] = entry
    rows.place_of[entry] = rows.used[0]
    rows.used[0] += 1


@kernel_part
def remove_row(rows: Rows, entry: int) -> None:
    """Take *entry* out; the last one takes its place."""
    rows.used[0] -= 1
    place, last = rows.place_of[entry], rows.entries[rows.used[0]]
    rows.entries[place] = last
    rows.place_of[last] = place


@kernel_part
def row_coverers(
    rows: Rows, points: Float64, dims: int, row: int, most: int, state: Int64, found: Int64
) -> int:
    """Up to *most* entries that cover *row*, into *found*; how many."""
    count = 0
    for place in range(rows.used[0]):
        entry = rows.entries[place]
        state[1] += 1
        if (
            dominates(points, dims, entry, row)
            and entry != row
            and goes_before(points, dims, entry, row)
        ):
            found[count] = entry
            count += 1
            if count == most:
                break
    return count
