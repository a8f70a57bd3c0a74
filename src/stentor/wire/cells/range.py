"""Columns of structs of low and high → ranges; one that may not be in order is in doubt."""

from __future__ import annotations

import numpy as np

from stentor.model import Kind
from stentor.wire.cells.layout import Booleans, Cells, either, unread


def range_cells(low: Cells, high: Cells, valid: Booleans) -> Cells:
    """The ranges between the cells of both ends."""
    kinds = {low.kind, high.kind} - {None}
    if not (kinds <= {Kind.NUMBER} or kinds <= {Kind.TIMESTAMP}):
        return unread(valid)
    with np.errstate(invalid="ignore"):
        in_order = low.valid & high.valid & (low.low <= high.low)
    doubt = either(valid & ~in_order, low.doubtful, high.doubtful)
    return Cells(low.kind or high.kind, valid, low.low, high.low, doubtful=doubt)
