"""`ST_DWithin`, `ST_Within` and `ST_Contains` over batches of Spark SQL: places in, truths out.

A place is what an event can have: an array of two numbers, or a struct of x and y, lon and lat,
longitude and latitude. A box is what `ST_MakeEnvelope` makes, a polygon its own well-known text.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types

from stentor.encoding.columns import Float64, Int64
from stentor.encoding.readonly import read_only
from stentor.errors import RecordError
from stentor.language.wkt import read_polygon
from stentor.model import Kind
from stentor.pipeline.sql.kernels import Booleans, points_in_circles, points_in_polygon
from stentor.pipeline.sql.literals import rows_by_text
from stentor.wire.cells.arrays import cells_of
from stentor.wire.cells.layout import unwrapped, validity
from stentor.wire.cells.strings import is_string


class _Numbers(NamedTuple):
    """Numbers or places by row; a place that is none (NaN, off the globe) is not valid."""

    x: Float64
    y: Float64
    valid: Booleans


class _Rings(NamedTuple):
    """The rings of a polygon, the outer one first."""

    x: Float64
    y: Float64
    start: Int64  # (rings + 1,)


@dataclass(frozen=True)
class PlacePredicates:
    """The predicates on places, on the globe or on a plane.

    Spark reads their annotations to know that they take and return whole batches.
    """

    plane: bool

    def dwithin(self, places: pa.Array, centres: pa.Array, metres: pa.Array) -> pa.Array:
        """Which of *places* are at most *metres* from *centres*; unknown where one is null.

        Whichever of the two places comes first, the truth is the same to the last bit.
        """
        place = _read(places, Kind.POINT, self.plane)
        centre = _read(centres, Kind.POINT, self.plane)
        radius = _read(metres, Kind.NUMBER, self.plane)
        held = np.empty(len(places), np.bool_)
        points_in_circles(place.x, place.y, centre.x, centre.y, radius.x, self.plane, held)
        return pa.array(held, mask=~(place.valid & centre.valid & radius.valid))

    def within(self, places: pa.Array, regions: pa.Array) -> pa.Array:
        """Which of *places* are in *regions* or on their borders; unknown where one is null."""
        regions = unwrapped(regions)
        place = _read(places, Kind.POINT, self.plane)
        if types.is_struct(regions.type):
            held = _in_boxes(place, regions)
        elif is_string(regions.type):
            held = _in_polygons(place, regions, self.plane)
        elif types.is_null(regions.type):
            held = np.zeros(len(regions), np.bool_)
        else:
            raise RecordError(
                f"a region is ST_MakeEnvelope(…) or ST_GeomFromText(…), got {regions.type}"
            )
        return pa.array(held, mask=~(place.valid & validity(regions)))

    def contains(self, regions: pa.Array, places: pa.Array) -> pa.Array:
        """Which of *regions* hold *places*, inside or on their borders."""
        return self.within(places, regions)


def _read(column: Any, kind: Kind, plane: bool) -> _Numbers:
    cells = cells_of(column, field="of a place", plane=plane)
    valid = cells.valid.copy()
    for problem in cells.problems:
        valid &= ~problem.bad
    if cells.kind not in (kind, None):
        valid[:] = False
    if not valid.any():  # its values may be strings
        nothing = read_only(np.zeros(len(valid)))
        return _Numbers(nothing, nothing, valid)
    x, y = (read_only(np.ascontiguousarray(numbers)) for numbers in (cells.low, cells.high))
    return _Numbers(x, y, valid)


def _in_boxes(place: _Numbers, boxes: Any) -> Booleans:
    """As `in_box` has it: a box whose west exceeds its east crosses 180°."""
    sides = (boxes.field(name) for name in ("west", "south", "east", "north"))
    west, south, east, north = (side.to_numpy(zero_copy_only=False) for side in sides)
    from_west, to_east = west <= place.x, place.x <= east
    in_width = np.where(west <= east, from_west & to_east, from_west | to_east)
    held: Booleans = (south <= place.y) & (place.y <= north) & in_width
    return held


def _in_polygons(place: _Numbers, texts: Any, plane: bool) -> Booleans:
    held = np.zeros(len(texts), np.bool_)
    by_polygon = np.empty(len(texts), np.bool_)
    for text, rows in rows_by_text(texts):
        points_in_polygon(place.x, place.y, *_rings(text, plane), by_polygon)
        held |= by_polygon & rows
    return held


@lru_cache(maxsize=64)
def _rings(text: str, plane: bool) -> _Rings:
    rings = read_polygon(text, plane, sys.maxsize).rings
    points = np.array([point for ring in rings for point in ring])
    x, y = (read_only(np.ascontiguousarray(axis)) for axis in points.T)
    start = read_only(np.array([0, *accumulate(map(len, rings))], np.int64))
    return _Rings(x, y, start)
