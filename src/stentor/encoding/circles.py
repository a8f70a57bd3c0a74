"""The pairs of a circle, written by one kernel wherever circles are made or moved."""

from __future__ import annotations

from stentor._jit import kernel
from stentor.encoding.columns import Float64
from stentor.model import geometry

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
