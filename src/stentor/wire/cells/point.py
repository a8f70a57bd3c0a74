"""Columns of pairs → points; one that may not be a pair on the globe is in doubt.

A pair is a struct<x, y>, <lon, lat> or <longitude, latitude>, a list of two numbers, or GeoJSON's
struct<type, coordinates>.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from stentor.model import Kind
from stentor.wire.cells.layout import Booleans, Cells, either, plain_array, unread, validity
from stentor.wire.cells.string import is_string

ReadCells = Callable[[Any], Cells]


def is_list(kind: Any) -> bool:
    """Whether *kind* is one of Arrow's types of lists."""
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def is_pair(kind: Any) -> bool:
    """Whether *kind* is a type of lists that may be points."""
    if not is_list(kind):
        return False
    of = kind.value_type
    return bool(
        types.is_integer(of) or types.is_floating(of) or types.is_decimal(of) or types.is_null(of)
    )


def list_cells(array: Any, read: ReadCells, *, plane: bool, lengths: Sequence[int] = (2,)) -> Cells:
    """The cells of an Arrow array of lists of numbers; *read* reads the numbers."""
    valid = validity(array)
    if types.is_fixed_size_list(array.type):
        size = array.type.list_size
        start = np.arange(len(array), dtype=np.int64) * size + array.offset * size
        length = np.full(len(array), size)
    else:
        offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
        start, length = offsets[:-1], np.diff(offsets)
    usable = valid & np.isin(length, lengths)
    x, y = (
        read(array.values.take(pa.array(np.where(usable, start + location, 0), mask=~usable)))
        for location in (0, 1)
    )
    return point_cells(x, y, valid, plane)


def geojson_cells(
    kinds: Any, coordinates: Any, valid: Booleans, read: ReadCells, plane: bool
) -> Cells:
    """The cells of GeoJSON's *kinds* and *coordinates*."""
    kinds, coordinates = plain_array(kinds), plain_array(coordinates)
    if not (is_string(kinds.type) and is_pair(coordinates.type)):
        return unread(valid)
    is_point = pc.equal(kinds.cast(pa.large_string()), "Point").fill_null(False)
    found = list_cells(coordinates, read, plane=plane, lengths=(2, 3))
    certain = is_point.to_numpy(zero_copy_only=False) & found.valid
    return found._replace(valid=valid, doubtful=either(found.doubtful, valid & ~certain))


def point_cells(x: Cells, y: Cells, valid: Booleans, plane: bool) -> Cells:
    """The points of the cells of both coordinates."""
    if not {x.kind, y.kind} <= {Kind.NUMBER, None}:
        return unread(valid)
    with np.errstate(invalid="ignore"):
        if plane:
            is_in_range = np.isfinite(x.low) & np.isfinite(y.low)
        else:
            is_in_range = (np.abs(x.low) <= 180.0) & (np.abs(y.low) <= 90.0)
    doubt = valid & ~(x.valid & y.valid & is_in_range)
    return Cells(Kind.POINT, valid, x.low, y.low, doubtful=either(doubt, x.doubtful, y.doubtful))
