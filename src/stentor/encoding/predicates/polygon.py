"""POLYGON: the box around it, then its rings. It has no template: one text holds all of it."""

from __future__ import annotations

import math

from stentor.encoding.kinds import PART, POLYGON
from stentor.encoding.predicates.growing import Appended, AppendedColumns
from stentor.model import Polygon
from stentor.model.region import surrounding_box


def append(columns: AppendedColumns, region: Polygon) -> Appended:
    """Point after point; NaN ends a ring, with `PART` beside it a part."""
    start = len(columns.pair_low)
    box = surrounding_box(region)
    columns.add_pairs([(box.west, box.east), (box.south, box.north)])
    for number, ring in enumerate(region.rings, start=1):
        columns.add_pairs([(point.x, point.y) for point in ring])
        columns.add_pairs([(math.nan, PART if number in region.outer else math.nan)])
    return columns.with_pairs(POLYGON, start)
