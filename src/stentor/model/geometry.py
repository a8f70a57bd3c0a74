"""Exact tests of a point against regions, written once.

`language/evaluate.py` calls these as they are; the verifier compiles the same functions, so that a
border is decided by the same operations in the same order everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Mean radius of the earth in metres.
EARTH_RADIUS = 6_371_008.8
#: Instead of a centre's cosine where the space is a plane.
PLANE = -1.0

OUTSIDE, BORDER, INSIDE = 0, 1, 2


def in_box(x: float, y: float, west: float, south: float, east: float, north: float) -> bool:
    """Whether (x, y) is in the box; one whose west exceeds its east crosses 180°."""
    if not (south <= y <= north):
        return False
    if west <= east:
        return west <= x <= east
    return x >= west or x <= east


def in_circle(
    x: float, y: float, centre_x: float, centre_y: float, cosine: float, limit: float
) -> bool:
    """Whether (x, y) is in the circle that `circle_terms` prepared (haversine, or a plane)."""
    if cosine < 0.0:
        dx = x - centre_x
        dy = y - centre_y
        return dx * dx + dy * dy <= limit
    a = math.sin(math.radians(y - centre_y) / 2.0)
    b = math.sin(math.radians(x - centre_x) / 2.0)
    return a * a + math.cos(math.radians(y)) * cosine * (b * b) <= limit


def circle_terms(centre_y: float, radius: float, plane: bool) -> tuple[float, float]:
    """What `in_circle` needs of a circle: its centre's cosine (or PLANE) and its limit."""
    if plane:
        return PLANE, radius * radius
    cosine = max(0.0, math.cos(math.radians(centre_y)))
    if radius >= math.pi * EARTH_RADIUS:
        return cosine, math.inf
    half = math.sin(radius / (2.0 * EARTH_RADIUS))
    return cosine, half * half


def distance(x1: float, y1: float, x2: float, y2: float, plane: bool) -> float:
    """Metres along the great circle, or units of the plane: for people, not for matching."""
    if plane:
        return math.hypot(x1 - x2, y1 - y2)
    a = math.sin(math.radians(y1 - y2) / 2.0)
    b = math.sin(math.radians(x1 - x2) / 2.0)
    h = a * a + math.cos(math.radians(y1)) * math.cos(math.radians(y2)) * (b * b)
    return 2.0 * EARTH_RADIUS * math.asin(math.sqrt(min(1.0, h)))


def circle_box(x: float, y: float, radius: float, plane: bool) -> tuple[float, float, float, float]:
    """A box (west, south, east, north) around the circle; never crosses 180°."""
    if plane:
        slack = 1e-12 * (abs(x) + abs(y) + radius)
        reach = radius + slack
        return x - reach, y - reach, x + reach, y + reach
    angle = radius / EARTH_RADIUS
    reach = math.degrees(angle) * (1.0 + 1e-9) + 1e-9
    south, north = y - reach, y + reach
    if south <= -90.0 or north >= 90.0:
        return -180.0, max(south, -90.0), 180.0, min(north, 90.0)
    sine = math.sin(angle) / math.cos(math.radians(y))
    spread = math.degrees(math.asin(min(1.0, sine))) * (1.0 + 1e-9) + 1e-9
    west, east = x - spread, x + spread
    if west < -180.0 or east > 180.0:
        west, east = -180.0, 180.0
    return west, south, east, north


def in_ring(
    x: float, y: float, xs: Sequence[float], ys: Sequence[float], start: int, stop: int
) -> int:
    """OUTSIDE, BORDER or INSIDE the closed ring xs[start:stop], ys[start:stop] (even–odd)."""
    inside = False
    for i in range(start, stop - 1):
        x1, y1, x2, y2 = xs[i], ys[i], xs[i + 1], ys[i + 1]
        if min(y1, y2) <= y <= max(y1, y2):
            cross = (x2 - x1) * (y - y1) - (x - x1) * (y2 - y1)
            if cross == 0.0 and min(x1, x2) <= x <= max(x1, x2):
                return BORDER
            if (y1 > y) != (y2 > y) and (cross > 0.0) == (y2 > y1):
                inside = not inside
    return INSIDE if inside else OUTSIDE
