"""CIRCLE and OWN_CIRCLE: the box around it, its centre, and the limit of what is inside."""

from __future__ import annotations

import numpy as np

from stentor.encoding.circles import write_circles
from stentor.encoding.kinds import CIRCLE, OWN_CIRCLE
from stentor.encoding.predicates.filled import (
    FilledPredicate,
    TemplateRows,
    are_on_globe,
    negate,
    unbounded,
)
from stentor.encoding.predicates.growing import Appended, AppendedColumns
from stentor.model import Circle, Point, geometry


def append(columns: AppendedColumns, region: Circle, at: Point | None, plane: bool) -> Appended:
    """A circle around its centre, or around the subscriber *at* some point."""
    start = len(columns.pair_low)
    centre = region.centre or at
    assert centre is not None, "NormalisedSubscription.checked() was not called"
    x, y = centre
    west, south, east, north = geometry.circle_box(x, y, region.radius, plane)
    columns.add_pairs([(west, east), (south, north), (x, y)])
    columns.add_pairs([geometry.circle_terms(y, region.radius, plane)])
    if region.centre is not None:
        return columns.with_pairs(CIRCLE, start)
    columns.add_pairs([(region.radius, float(plane))])
    return columns.with_pairs(OWN_CIRCLE, start)


def fill(circle: Circle, negated: bool, rows: TemplateRows) -> FilledPredicate:
    """A circle around a point or around the subscriber."""
    radius = rows.number(circle.radius)
    if circle.centre is None:
        kind, x, y = OWN_CIRCLE, rows.position[:, 0].copy(), rows.position[:, 1].copy()
    else:
        kind, x, y = CIRCLE, rows.number(circle.centre.x), rows.number(circle.centre.y)
    odd = ~(np.isfinite(radius) & (radius >= 0) & are_on_globe(x, y, rows.plane))
    pairs = 5 if kind == OWN_CIRCLE else 4
    low, high = np.zeros((rows.count, pairs)), np.zeros((rows.count, pairs))
    write_circles(
        low, high, np.where(odd, 0.0, x), np.where(odd, 0.0, y), np.where(odd, 0.0, radius),
        rows.plane,
    )  # fmt: skip
    if kind == OWN_CIRCLE:
        low[:, 4], high[:, 4] = radius, float(rows.plane)
    filled = unbounded(kind, rows.count, odd)
    filled.pair_low, filled.pair_high = low, high
    return negate(filled) if negated else filled
