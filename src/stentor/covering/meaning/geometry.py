"""Circles and boxes inside or apart from one another: for expressions and for columns alike.

A circle is what `circle_terms` prepared: centre, cosine (or PLANE) and limit. Two circles around
one centre compare by their limits alone, which is exact: `in_circle` holds the same number against
both. Everything else is measured, and a measured distance may be off by rounding: the answer is
"inside" or "apart" only where it is so by a margin, `MARGIN` of the radius and on the globe
`CLOSEST` metres besides. What touches from inside, or nearly so, is missed; nothing is claimed that
an event could refute.
"""

from __future__ import annotations

import math

from stentor._jit import kernel, kernel_part
from stentor.model import geometry
from stentor.model.geometry import EARTH_RADIUS

distance = kernel_part(geometry.distance)

#: A share of the larger radius: rounding is a millionth of it.
MARGIN = 1e-9
#: Metres on the globe: sines of small angles near the poles are off by less.
CLOSEST = 1e-6
#: Radians: nearer to the opposite point of the globe, arcs are too inexact to be compared.
FARTHEST = 3.0
#: Radii of the plane whose squares neither vanish nor overflow.
TINIEST, HUGEST = 1e-150, 1e150


@kernel_part
def radius_of(cosine: float, limit: float) -> float:
    """The radius of a circle in metres, or in units of the plane."""
    if limit == math.inf:
        return math.inf
    if cosine < 0.0:
        return math.sqrt(limit)
    return 2.0 * EARTH_RADIUS * math.asin(math.sqrt(min(1.0, limit)))


@kernel_part
def fits(reach: float, cosine: float, limit: float) -> bool:
    """Whether everything within *reach* of its centre is surely in the circle."""
    if limit == math.inf:
        return True
    outer = radius_of(cosine, limit)
    if cosine < 0.0:
        return reach + MARGIN * outer <= outer and TINIEST <= outer <= HUGEST
    return reach + MARGIN * outer + CLOSEST <= outer and reach <= FARTHEST * EARTH_RADIUS


@kernel_part
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
    """Whether the first circle is surely inside the other."""
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
    """Whether the box, which may cross 180°, is surely inside the circle."""
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


@kernel
def box_in_box(
    west: float,
    south: float,
    east: float,
    north: float,
    outer_west: float,
    outer_south: float,
    outer_east: float,
    outer_north: float,
) -> bool:
    """Whether the first box is inside the other; either may cross 180°. Exact."""
    if not (outer_south <= south and north <= outer_north):
        return False
    if west <= east:
        if outer_west <= outer_east:
            return outer_west <= west and east <= outer_east
        return outer_west <= west or east <= outer_east
    if outer_west <= outer_east:
        return outer_west <= -180.0 and outer_east >= 180.0
    return outer_west <= west and east <= outer_east


@kernel
def boxes_apart(
    west: float,
    south: float,
    east: float,
    north: float,
    other_west: float,
    other_south: float,
    other_east: float,
    other_north: float,
) -> bool:
    """Whether no point is in both boxes; either may cross 180°. Exact."""
    if south > other_north or other_south > north:
        return True
    crossing = (west > east) + (other_west > other_east)
    if crossing == 2:
        return False
    if crossing == 1:
        return west > other_east and other_west > east
    return west > other_east or other_west > east


@kernel_part
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


@kernel_part
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


@kernel_part
def circular(degrees: float) -> float:
    """The smaller way around between two longitudes that differ by *degrees*."""
    return min(abs(degrees), 360.0 - abs(degrees))


@kernel_part
def arc(gap: float, y: float, other_y: float) -> float:
    """Metres between two latitudes whose longitudes are *gap* degrees apart."""
    return distance(0.0, y, gap, other_y, False)


@kernel_part
def turning_latitude(gap: float, y: float) -> float:
    """The latitude on the meridian *gap* degrees away that is nearest to the latitude *y*.

    The farthest is on the other side of the globe. It may lie beyond a pole, that is on no map.
    """
    latitude = math.radians(y)
    return math.degrees(
        math.atan2(math.sin(latitude), math.cos(latitude) * math.cos(math.radians(gap)))
    )
