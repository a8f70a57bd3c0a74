"""Places of a real city: where taxis picked passengers up, and where that happens most.

Paper: MO-Tree, section 6.1: pick-ups are where subscribers are, and 10,000 busy areas where events
are. The paper finds these by k-means; here they are the busiest squares of a grid, each at the
mean of its pick-ups, which needs one pass.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from stentor.encoding.columns import Float64
from stentor.model import Box
from stentor_lab.workloads import real_files

#: Pick-ups of San Francisco's cabs: unix_time, cab, lat, lon.
FILE: Final = "sf_cab_pickups.csv"
BUSY_AREAS: Final = 10_000
#: Of the squares in which pick-ups are counted, in degrees: about fifty metres.
GRID: Final = 0.0005
#: The share of pick-ups at each border that is left out: some are in other cities.
STRAYED: Final = 0.005
#: The share of a hot city's places around its one square.
HOT: Final = 0.7


class Places(NamedTuple):
    """Where subscribers are, and where events happen."""

    space: Box
    x: Float64  # (subscribers,)
    y: Float64
    busy_x: Float64  # (areas,)
    busy_y: Float64


def hot_city(count: int, random: np.random.Generator) -> Places:
    """A city in which 70 % of all that happens happens around one square: *count* subscribers."""
    west, south, east, north = 121.2, 31.0, 121.7, 31.4

    def drawn(number: int) -> tuple[Float64, Float64]:
        hot = random.random(number) < HOT
        x = np.where(hot, random.normal(121.4, 0.005, number), random.uniform(west, east, number))
        y = np.where(hot, random.normal(31.2, 0.004, number), random.uniform(south, north, number))
        return x, y

    return Places(Box(west, south, east, north), *drawn(count), *drawn(BUSY_AREAS))


def read_pickups() -> Places:
    """The places in FILE of the user's folder of real data. Cost: about half a second."""
    return places_of(*real_files.places_of(real_files.table_of(FILE, ["lon", "lat"])))


def places_of(x: Float64, y: Float64) -> Places:
    """Pick-ups at *x*, *y*, without those that lie far out, and the busiest areas among them."""
    (west, east), (south, north) = (np.quantile(one, [STRAYED, 1 - STRAYED]) for one in (x, y))
    near = (x >= west) & (x <= east) & (y >= south) & (y <= north)
    x, y = x[near], y[near]
    column = np.floor((x - west) / GRID).astype(np.int64)
    row = np.floor((y - south) / GRID).astype(np.int64)
    _, square, count = np.unique(
        row * (int(column.max()) + 1) + column, return_inverse=True, return_counts=True
    )
    busy = np.argsort(-count, kind="stable")[:BUSY_AREAS]
    means = (np.bincount(square, one) / count for one in (x, y))
    busy_x, busy_y = (one[busy] for one in means)
    return Places(Box(float(west), float(south), float(east), float(north)), x, y, busy_x, busy_y)
