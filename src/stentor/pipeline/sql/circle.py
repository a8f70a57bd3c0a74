"""Points near points, over batches of Spark SQL."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from stentor.model import Kind
from stentor.pipeline.sql.kernels import points_in_circles, read_numbers


def near(locations: Any, centres: Any, metres: Any, plane: bool) -> Any:
    """Which of *locations* are at most *metres* from *centres*; unknown where one is null.

    Whichever of the two points comes first, the truth is the same to the last bit.
    """
    location = read_numbers(locations, Kind.POINT, plane)
    centre = read_numbers(centres, Kind.POINT, plane)
    radius = read_numbers(metres, Kind.NUMBER, plane)
    found = np.empty(len(locations), np.bool_)
    points_in_circles(location.x, location.y, centre.x, centre.y, radius.x, plane, found)
    return pa.array(found, mask=~(location.valid & centre.valid & radius.valid))
