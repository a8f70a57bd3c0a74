"""The naive way: one point after the other, in the order in which they came."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel
from stentor.encoding.columns import Float64, Int64
from stentor_lab.baselines.points import dominates, goes_before


class Rows(NamedTuple):
    """The entries that are there, in no order once some have gone."""

    entries: Int64  # (entries,)
    position_of: Int64  # (entries,)
    used: Int64  # (1,) how many


def new_rows() -> Rows:
    """No entries."""
    return Rows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(1, np.int64))


@inner_kernel
def insert_row(rows: Rows, entry: int) -> None:
    """Add *entry* behind the others."""
    rows.entries[rows.used[0]] = entry
    rows.position_of[entry] = rows.used[0]
    rows.used[0] += 1


@inner_kernel
def remove_row(rows: Rows, entry: int) -> None:
    """Take *entry* out; the last one takes its place."""
    rows.used[0] -= 1
    position, last = rows.position_of[entry], rows.entries[rows.used[0]]
    rows.entries[position] = last
    rows.position_of[last] = position


@inner_kernel
def row_coverers(
    rows: Rows, points: Float64, dims: int, row: int, most: int, state: Int64, found: Int64
) -> int:
    """Up to *most* entries that cover *row*, into *found*; how many."""
    count = 0
    for position in range(rows.used[0]):
        entry = rows.entries[position]
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
