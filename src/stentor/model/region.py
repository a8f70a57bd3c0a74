"""Regions of space. Borders belong to the inside.

Boxes and polygons compare coordinates as numbers, circles measure on the globe (or on the plane
where the schema says so).
"""

from __future__ import annotations

from dataclasses import dataclass

from stentor.model.geometry import BORDER, INSIDE, circle_terms, in_box, in_circle, in_ring
from stentor.model.values import Point

Ring = tuple[Point, ...]  # closed: the last point repeats the first


@dataclass(frozen=True, slots=True)
class Box:
    """West, south, east, north; a box whose west exceeds its east crosses 180°."""

    west: float
    south: float
    east: float
    north: float

    def contains(self, point: Point) -> bool:
        """Whether *point* is inside or on the border."""
        return in_box(point.x, point.y, self.west, self.south, self.east, self.north)


@dataclass(frozen=True, slots=True)
class Circle:
    """Everything within `radius` metres (or plane units) of `centre`; None is `here()`."""

    centre: Point | None
    radius: float

    def contains(self, point: Point, here: Point | None, plane: bool) -> bool | None:
        """Whether *point* is inside or on the border; None where `here()` is not known."""
        centre = self.centre or here
        if centre is None:
            return None
        cosine, limit = circle_terms(centre.y, self.radius, plane)
        return in_circle(point.x, point.y, centre.x, centre.y, cosine, limit)


@dataclass(frozen=True, slots=True)
class Polygon:
    """An outer ring and holes; straight edges in coordinates; a hole's border is inside.

    One of several parts has the rings of all, and says which of them are `outer` ones.
    """

    rings: tuple[Ring, ...]
    outer: tuple[int, ...] = (0,)

    @property
    def parts(self) -> list[tuple[Ring, ...]]:
        """The rings of each part, its outer one first."""
        stops = (*self.outer[1:], len(self.rings))
        return [self.rings[i:j] for i, j in zip(self.outer, stops, strict=True)]

    def contains(self, point: Point) -> bool:
        """Whether *point* is in one of the parts."""
        return any(_in_part(point, rings) for rings in self.parts)


def _in_part(point: Point, rings: tuple[Ring, ...]) -> bool:
    """Whether *point* is inside or on the border of the outer ring or of a hole."""
    for number, ring in enumerate(rings):
        xs, ys = [p.x for p in ring], [p.y for p in ring]
        side = in_ring(point.x, point.y, xs, ys, 0, len(ring))
        if side == BORDER:
            return True
        if (side == INSIDE) != (number == 0):
            return False
    return True


Region = Box | Circle | Polygon


def surrounding_box(polygon: Polygon) -> Box:
    """The smallest box around *polygon*."""
    xs = [point.x for rings in polygon.parts for point in rings[0]]
    ys = [point.y for rings in polygon.parts for point in rings[0]]
    return Box(min(xs), min(ys), max(xs), max(ys))
