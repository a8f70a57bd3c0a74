"""Exact tests of regions: the functions of `model/geometry.py`, compiled as they are."""

from __future__ import annotations

from stentor._jit import kernel_inline
from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.kinds import BOX, KIND_MASK, POLYGON, is_circle
from stentor.index.verify.box import in_own_box
from stentor.index.verify.circle import in_own_circle
from stentor.index.verify.polygon import in_polygon


@kernel_inline
def in_region(columns: SubscriptionColumns, predicate: int, x: float, y: float) -> bool:
    """Whether (x, y) is in the predicate's region; its surrounding box is tried first."""
    kind = columns.kind[predicate] & KIND_MASK
    if not in_own_box(columns, predicate, x, y):
        return False
    if kind == BOX:
        return True
    if kind == POLYGON:
        return in_polygon(columns, predicate, x, y)
    return is_circle(kind) and in_own_circle(columns, predicate, x, y)
