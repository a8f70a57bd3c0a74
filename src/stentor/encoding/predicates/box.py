"""BOX: the pairs (west, east) and (south, north)."""

from __future__ import annotations

import numpy as np

from stentor.encoding.kinds import BOX
from stentor.encoding.predicates.filled import (
    FilledPredicate,
    TemplateRows,
    are_on_globe,
    negate,
    unbounded,
)
from stentor.encoding.predicates.growing import Appended, AppendedColumns
from stentor.model import Box


def append(columns: AppendedColumns, region: Box) -> Appended:
    """Its sides."""
    start = len(columns.pair_low)
    columns.add_pairs([(region.west, region.east), (region.south, region.north)])
    return columns.with_pairs(BOX, start)


def fill(box: Box, negated: bool, rows: TemplateRows) -> FilledPredicate:
    """A box; one that crosses 180° too, on the globe."""
    west, south, east, north = (
        rows.number(side) for side in (box.west, box.south, box.east, box.north)
    )
    odd = ~(are_on_globe(west, south, rows.plane) & are_on_globe(east, north, rows.plane))
    odd |= south > north
    if rows.plane:
        odd |= west > east
    filled = unbounded(BOX, rows.count, odd)
    filled.pair_low = np.column_stack([west, south])
    filled.pair_high = np.column_stack([east, north])
    return negate(filled) if negated else filled
