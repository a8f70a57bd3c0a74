"""Places of a real city: where taxis picked passengers up, and where that happens most.

Paper: MO-Tree, section 6.1: pick-ups are where subscribers are, and 10,000 busy areas where events
are. The paper finds these by k-means; here they are the busiest squares of a grid, each at the
mean of its pick-ups, which needs one pass.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from stentor.encoding.columns import Float64
from stentor.errors import SettingsError
from stentor.model import Box

#: Pick-ups of San Francisco's cabs (unix_time, cab, lat, lon), plain or compressed.
FILES: Final = ("sf_cab_pickups.csv", "sf_cab_pickups.csv.zst")
BUSY_AREAS: Final = 10_000
#: Of the squares in which pick-ups are counted, in degrees: about fifty metres.
GRID: Final = 0.0005
#: The share of pick-ups at each border that is left out: some are in other cities.
STRAYED: Final = 0.005


class Places(NamedTuple):
    """Where subscribers are, and where events happen."""

    space: Box
    x: Float64  # (subscribers,)
    y: Float64
    busy_x: Float64  # (areas,)
    busy_y: Float64


def pickups_file(folder: Path) -> Path | None:
    """The file of pick-ups in *folder*, if it is there."""
    return next((folder / name for name in FILES if (folder / name).exists()), None)


def read_pickups(file: Path) -> Places:
    """The places in *file*. Cost: about half a second for half a million."""
    compression = "zstd" if file.suffix == ".zst" else None
    with pa.input_stream(str(file), compression=compression) as stream:
        table = csv.read_csv(stream)
    if not {"lon", "lat"} <= set(table.column_names):
        raise SettingsError(
            f"{file} has the columns {', '.join(table.column_names)}; expected lon and lat"
        )
    x, y = (table[name].to_numpy() for name in ("lon", "lat"))
    return places_of(x, y)


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
