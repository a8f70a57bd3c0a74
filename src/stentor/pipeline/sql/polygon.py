"""Points in polygons, over batches of Spark SQL: a polygon is its own well-known text."""

from __future__ import annotations

import sys
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from stentor.encoding.columns import Float64, Int64, read_only
from stentor.language.predicates.polygon import polygon_of_geojson, read_polygon
from stentor.model.region import Ring
from stentor.pipeline.sql.kernels import Booleans, Numbers, points_in_polygon, rows_by_text


class _Rings(NamedTuple):
    """The rings of a polygon, the outer one first."""

    x: Float64
    y: Float64
    start: Int64  # (rings + 1,)


def in_polygons(location: Numbers, texts: Any, plane: bool) -> Booleans:
    """Whether each point is in the polygon of its row's text."""
    found = np.zeros(len(texts), np.bool_)
    by_polygon = np.empty(len(texts), np.bool_)
    for text, rows in rows_by_text(texts):
        for part in _parts(text, plane):
            points_in_polygon(location.x, location.y, *part, by_polygon)
            found |= by_polygon & rows
    return found


@lru_cache(maxsize=64)
def _parts(text: str, plane: bool) -> list[_Rings]:
    read = polygon_of_geojson if text.lstrip()[:1] == "{" else read_polygon
    return [_rings(rings) for rings in read(text, plane, sys.maxsize).parts]


def _rings(rings: tuple[Ring, ...]) -> _Rings:
    points = np.array([point for ring in rings for point in ring])
    x, y = (read_only(np.ascontiguousarray(axis)) for axis in points.T)
    start = read_only(np.array([0, *accumulate(map(len, rings))], np.int64))
    return _Rings(x, y, start)
