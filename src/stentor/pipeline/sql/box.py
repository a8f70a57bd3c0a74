"""Points in boxes, over batches of Spark SQL: a box is what `ST_MakeEnvelope` makes."""

from __future__ import annotations

from typing import Any

import numpy as np

from stentor.pipeline.sql.kernels import Booleans, Numbers

ENVELOPE = """
ST_MakeEnvelope(west DOUBLE, south DOUBLE, east DOUBLE, north DOUBLE)
RETURNS STRUCT<west DOUBLE, south DOUBLE, east DOUBLE, north DOUBLE>
RETURN named_struct('west', west, 'south', south, 'east', east, 'north', north)
"""


def in_boxes(location: Numbers, boxes: Any) -> Booleans:
    """Whether each point is in its box, as `in_box` has it: with west above east across 180°."""
    sides = (boxes.field(name) for name in ("west", "south", "east", "north"))
    west, south, east, north = (side.to_numpy(zero_copy_only=False) for side in sides)
    from_west, to_east = west <= location.x, location.x <= east
    in_width = np.where(west <= east, from_west & to_east, from_west | to_east)
    found: Booleans = (south <= location.y) & (location.y <= north) & in_width
    return found
