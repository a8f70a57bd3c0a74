"""CIRCLE and OWN_CIRCLE: the box around it, its centre, and the limit of what is inside."""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import Float64
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

_circle_box = kernel(geometry.circle_box)
_circle_terms = kernel(geometry.circle_terms)


@kernel
def write_circle(
    low: Float64, high: Float64, x: float, y: float, radius: float, plane: bool
) -> None:
    """Write the four pairs of a circle: the box around it, its centre, what `in_circle` needs."""
    low[0], low[1], high[0], high[1] = _circle_box(x, y, radius, plane)
    low[2], high[2] = x, y
    low[3], high[3] = _circle_terms(y, radius, plane)


@kernel
def write_circles(
    low: Float64, high: Float64, x: Float64, y: Float64, radius: Float64, plane: bool
) -> None:
    """The pairs of circle i into row i of *low* and *high* (circles × 4 or more)."""
    for i in range(len(x)):
        write_circle(low[i], high[i], x[i], y[i], radius[i], plane)


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
