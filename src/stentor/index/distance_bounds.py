"""Distances as intervals that surely hold the true one, whatever rounding did."""

from __future__ import annotations

import math

from stentor._jit import kernel, kernel_part
from stentor.model.geometry import EARTH_RADIUS

#: Relative error of a haversine far from the poles, twice over.
_ROUNDING = 4e-15
#: Squares of shorter lengths vanish, so that no circle can tell them from 0.
_SHORTEST = 1e-140


@kernel
def distance_bounds(x1: float, y1: float, x2: float, y2: float, plane: bool) -> tuple[float, float]:
    """What the distance of two places lies between: metres, or units of the plane."""
    if plane:
        return length_bounds(math.hypot(x1 - x2, y1 - y2))
    a = math.sin(math.radians(y1 - y2) / 2.0)
    b = math.sin(math.radians(x1 - x2) / 2.0)
    cosine1, cosine2 = math.cos(math.radians(y1)), math.cos(math.radians(y2))
    return arc_bounds(a * a + cosine1 * cosine2 * (b * b), min(cosine1, cosine2))


@kernel
def radius_bounds(y: float, radius: float, plane: bool) -> tuple[float, float]:
    """How near a centre must be for `in_circle` to be sure of a place at height *y*, and how far.

    Nearer than the first, it says that the place is inside; farther than the second, outside.
    """
    if plane:
        if radius * radius == math.inf:
            return math.inf, math.inf
        return length_bounds(radius)
    if radius >= math.pi * EARTH_RADIUS:
        return math.inf, math.inf
    half = math.sin(radius / (2.0 * EARTH_RADIUS))
    nearest_pole = min(90.0, abs(y) + math.degrees(radius / EARTH_RADIUS))
    return arc_bounds(half * half, math.cos(math.radians(nearest_pole)))


@kernel_part
def length_bounds(length: float) -> tuple[float, float]:
    """What a length on the plane lies between."""
    return length * (1.0 - _ROUNDING) - _SHORTEST, length * (1.0 + _ROUNDING) + _SHORTEST


@kernel_part
def arc_bounds(haversine: float, cosine: float) -> tuple[float, float]:
    """What an arc lies between, in metres; *cosine* is the least of the latitudes concerned.

    Cosines are off by some 5e-16, which counts the more the smaller they are; and across the globe
    an arc hardly changes its haversine. There the bounds are up to a metre apart, and elsewhere
    less than any instrument can tell.
    """
    share = min(1.0, haversine / cosine) if cosine > 1e-6 else 1.0
    error = _ROUNDING * share
    low = math.asin(math.sqrt(min(1.0, max(0.0, haversine - error))))
    high = math.asin(math.sqrt(min(1.0, haversine + error)))
    diameter = 2.0 * EARTH_RADIUS
    return (
        diameter * low * (1.0 - _ROUNDING) - _SHORTEST,
        diameter * high * (1.0 + _ROUNDING) + _SHORTEST,
    )
