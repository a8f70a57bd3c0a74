"""Circles inside and apart from one another and from boxes: for expressions and columns alike.

Each answer leaves a margin for rounding: a yes is proved.
"""

from __future__ import annotations

import math

from stentor._jit import inner_kernel, kernel
from stentor.model import geometry
from stentor.model.geometry import EARTH_RADIUS

distance = inner_kernel(geometry.distance)


#: A share of the larger radius: rounding is a millionth of it.
MARGIN = 1e-9


#: Metres on the globe: sines of small angles near the poles are off by less.
CLOSEST = 1e-6


#: Radians: nearer to the opposite point of the globe, arcs are too inexact to be compared.
FARTHEST = 3.0


#: Radii of the plane whose squares neither vanish nor overflow.
TINIEST, HUGEST = 1e-150, 1e150


@inner_kernel
def radius_of(cosine: float, limit: float) -> float:
    """The radius of a circle in metres, or in units of the plane."""
    if limit == math.inf:
        return math.inf
    if cosine < 0.0:
        return math.sqrt(limit)
    return 2.0 * EARTH_RADIUS * math.asin(math.sqrt(min(1.0, limit)))


@inner_kernel
def fits(reach: float, cosine: float, limit: float) -> bool:
    """Whether everything within *reach* of its centre is proved to be in the circle."""
    if limit == math.inf:
        return True
    outer = radius_of(cosine, limit)
    if cosine < 0.0:
        return reach + MARGIN * outer <= outer and TINIEST <= outer <= HUGEST
    return reach + MARGIN * outer + CLOSEST <= outer and reach <= FARTHEST * EARTH_RADIUS


@inner_kernel
def misses(reach: float, cosine: float, limit: float) -> bool:
    """Whether nothing beyond *reach* of its centre is in the circle."""
    radius = radius_of(cosine, limit)
    if cosine < 0.0:
        return reach > radius * (1.0 + MARGIN) and reach >= TINIEST and radius <= HUGEST
    return reach > radius * (1.0 + MARGIN) + CLOSEST and radius <= FARTHEST * EARTH_RADIUS


@kernel
def circle_in_circle(
    x: float,
    y: float,
    cosine: float,
    limit: float,
    outer_x: float,
    outer_y: float,
    outer_cosine: float,
    outer_limit: float,
) -> bool:
    """Whether the first circle is proved to be inside the other."""
    if x == outer_x and y == outer_y:
        return limit <= outer_limit
    apart = distance(x, y, outer_x, outer_y, cosine < 0.0)
    return fits(apart + radius_of(cosine, limit), outer_cosine, outer_limit)


@kernel
def circles_apart(
    x: float,
    y: float,
    cosine: float,
    limit: float,
    other_x: float,
    other_y: float,
    other_cosine: float,
    other_limit: float,
) -> bool:
    """Whether no point is in both circles."""
    between = distance(x, y, other_x, other_y, cosine < 0.0)
    own = radius_of(cosine, limit)
    if own == math.inf or (cosine >= 0.0 and own > FARTHEST * EARTH_RADIUS):
        return False
    slack = own * MARGIN + (0.0 if cosine < 0.0 else CLOSEST)
    return misses(between - own - slack, other_cosine, other_limit)


@kernel
def box_in_circle(
    west: float,
    south: float,
    east: float,
    north: float,
    x: float,
    y: float,
    cosine: float,
    limit: float,
) -> bool:
    """Whether the box, which may cross 180°, is proved to be inside the circle."""
    if west <= east:
        return fits(farthest(x, y, west, south, east, north, cosine < 0.0), cosine, limit)
    return fits(farthest(x, y, west, south, 180.0, north, False), cosine, limit) and fits(
        farthest(x, y, -180.0, south, east, north, False), cosine, limit
    )


@kernel
def box_apart_from_circle(
    west: float,
    south: float,
    east: float,
    north: float,
    x: float,
    y: float,
    cosine: float,
    limit: float,
) -> bool:
    """Whether no point is in both the box, which may cross 180°, and the circle."""
    if west <= east:
        return misses(nearest(x, y, west, south, east, north, cosine < 0.0), cosine, limit)
    return misses(nearest(x, y, west, south, 180.0, north, False), cosine, limit) and misses(
        nearest(x, y, -180.0, south, east, north, False), cosine, limit
    )


@inner_kernel
def farthest(
    x: float, y: float, west: float, south: float, east: float, north: float, plane: bool
) -> float:
    """The distance from (x, y) to the farthest point of the box, which does not cross 180°."""
    if plane:
        return math.hypot(max(x - west, east - x), max(y - south, north - y))
    gap = max(circular(west - x), circular(east - x))
    for opposite in (x - 180.0, x + 180.0):
        if west <= opposite + 1e-9 and opposite - 1e-9 <= east:
            gap = 180.0
    turn = turning_latitude(gap, y)
    turn += 180.0 if turn <= 0.0 else -180.0
    reach = max(arc(gap, y, south), arc(gap, y, north))
    return max(reach, arc(gap, y, turn)) if south <= turn <= north else reach


@inner_kernel
def nearest(
    x: float, y: float, west: float, south: float, east: float, north: float, plane: bool
) -> float:
    """The distance from (x, y) to the nearest point of the box, which does not cross 180°."""
    if plane:
        return math.hypot(max(west - x, 0.0, x - east), max(south - y, 0.0, y - north))
    gap = 0.0 if west <= x <= east else min(circular(west - x), circular(east - x))
    turn = turning_latitude(gap, y)
    reach = min(arc(gap, y, south), arc(gap, y, north))
    return min(reach, arc(gap, y, turn)) if south <= turn <= north else reach


@inner_kernel
def circular(degrees: float) -> float:
    """The smaller angle between two longitudes that differ by *degrees*."""
    return min(abs(degrees), 360.0 - abs(degrees))


@inner_kernel
def arc(gap: float, y: float, other_y: float) -> float:
    """Metres between two latitudes whose longitudes are *gap* degrees apart."""
    return distance(0.0, y, gap, other_y, False)


@inner_kernel
def turning_latitude(gap: float, y: float) -> float:
    """The latitude on the meridian *gap* degrees away that is nearest to the latitude *y*.

    The farthest is on the other side of the globe. It may lie beyond a pole, that is on no map.
    """
    latitude = math.radians(y)
    return math.degrees(
        math.atan2(math.sin(latitude), math.cos(latitude) * math.cos(math.radians(gap)))
    )
