"""Columns of structs and lists → points and ranges.

    point   struct<x, y>, <lon, lat> or <longitude, latitude>, a list of two numbers, or GeoJSON's
            struct<type, coordinates>
    range   struct<low, high> of two numbers or two timestamps

A struct whose fields are all null is missing, as it is itself where it is null: Spark and others
build structs from columns without looking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from stentor.encoding.columns import Float64
from stentor.errors import RecordError
from stentor.model import Kind
from stentor.wire.cells.layout import (
    Booleans,
    Cells,
    Problem,
    missing,
    problems,
    unwrapped,
    validity,
    within,
)
from stentor.wire.cells.strings import is_string

ReadCells = Callable[[Any], Cells]

_PAIRS: Final = (("x", "y"), ("lon", "lat"), ("longitude", "latitude"))
_NOT_A_PAIR: Final = "a point is a pair of numbers [longitude, latitude]"


def struct_cells(array: Any, read: ReadCells, *, plane: bool) -> Cells:
    """The cells of an Arrow array of structs; *read* reads the fields' own arrays."""
    # `flatten` applies the struct's own nulls and its slice to the fields.
    fields = {field.name: one for field, one in zip(array.type, array.flatten(), strict=True)}
    valid = validity(array)
    if valid.any():
        valid &= np.logical_or.reduce([validity(one) for one in fields.values()])
    if set(fields) == {"low", "high"}:
        return _ranges(read(fields["low"]), read(fields["high"]), valid)
    for x, y in _PAIRS:
        if set(fields) == {x, y}:
            return _points(read(fields[x]), read(fields[y]), valid, plane)
    if set(fields) == {"type", "coordinates"}:
        kinds, coordinates = unwrapped(fields["type"]), unwrapped(fields["coordinates"])
        return _geojson_points(kinds, coordinates, valid, read, plane)
    raise RecordError(
        f"a struct of the fields {', '.join(sorted(fields))} is not supported; expected low and "
        "high, x and y, lon and lat, longitude and latitude, or a GeoJSON Point's"
    )


def is_list(kind: Any) -> bool:
    """Whether *kind* is one of Arrow's types of lists."""
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def list_cells(array: Any, read: ReadCells, *, plane: bool, lengths: Sequence[int] = (2,)) -> Cells:
    """The cells of an Arrow array of lists: pairs of numbers."""
    of = array.type.value_type
    if not (
        types.is_integer(of) or types.is_floating(of) or types.is_decimal(of) or types.is_null(of)
    ):
        raise RecordError(
            f"lists of {of} are not supported, only points [longitude, latitude]; "
            "join words into one text, or give each element a column of its own"
        )
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
        read(array.values.take(pa.array(np.where(usable, start + place, 0), mask=~usable)))
        for place in (0, 1)
    )
    found = _points(x, y, usable, plane)
    wrong = problems((valid & ~usable, _NOT_A_PAIR))
    return found._replace(kind=Kind.POINT, valid=valid, problems=[*wrong, *found.problems])


def _geojson_points(
    kinds: Any, coordinates: Any, valid: Booleans, read: ReadCells, plane: bool
) -> Cells:
    if not (is_string(kinds.type) or types.is_null(kinds.type)):
        raise RecordError(f"a GeoJSON Point's type is a string, got {kinds.type}")
    is_point = pc.equal(kinds.cast(pa.large_string()), "Point").fill_null(False)
    is_point = is_point.to_numpy(zero_copy_only=False)
    if types.is_null(coordinates.type):
        places = missing(len(kinds))
    elif is_list(coordinates.type):
        places = list_cells(coordinates, read, plane=plane, lengths=(2, 3))
    else:
        raise RecordError(f"a GeoJSON Point's coordinates are a list, got {coordinates.type}")
    bad = valid & ~(is_point & places.valid)
    return places._replace(
        valid=valid,
        problems=[
            *within(valid & is_point, places.problems),
            *problems((bad, 'a GeoJSON Point has the type "Point" and two coordinates')),
        ],
    )


def _points(x: Cells, y: Cells, valid: Booleans, plane: bool) -> Cells:
    if not {x.kind, y.kind} <= {Kind.NUMBER, None}:
        raise RecordError(f"{_NOT_A_PAIR}, got {x.kind} and {y.kind}")
    incomplete = valid & ~(x.valid & y.valid)
    places = valid & ~incomplete
    with np.errstate(invalid="ignore"):
        infinite = places & ~(np.isfinite(x.low) & np.isfinite(y.low))
        outside = places & ~infinite & (_beyond(x.low, 180.0) | _beyond(y.low, 90.0))
    found = problems((incomplete, _NOT_A_PAIR), (infinite, "coordinates must be finite"))
    if not plane:
        found += problems(
            (outside, "not on the globe (longitude −180…180, latitude −90…90, in this order)")
        )
    return Cells(Kind.POINT, valid, x.low, y.low, problems=[*_both(x, y, valid), *found])


def _ranges(low: Cells, high: Cells, valid: Booleans) -> Cells:
    kinds = {low.kind, high.kind} - {None}
    if not (kinds <= {Kind.NUMBER} or kinds <= {Kind.TIMESTAMP}):
        raise RecordError(
            f"a range goes between two numbers or two timestamps, not {low.kind} and {high.kind}"
        )
    incomplete = valid & ~(low.valid & high.valid)
    with np.errstate(invalid="ignore"):
        upside_down = valid & ~incomplete & (low.low > high.low)
    found = problems(
        (incomplete, "a range needs both of its ends"),
        (upside_down, "the range's low end is above its high end"),
    )
    return Cells(
        low.kind or high.kind, valid, low.low, high.low, problems=[*_both(low, high, valid), *found]
    )


def _both(first: Cells, second: Cells, valid: Booleans) -> list[Problem]:
    return within(valid, [*first.problems, *second.problems])


def _beyond(values: Float64, most: float) -> Booleans:
    return np.abs(values) > most
