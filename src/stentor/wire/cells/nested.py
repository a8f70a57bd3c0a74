"""Columns of structs and maps → attributes with dots, by the rule of `model/values/nested`.

A struct says by its type what it is, but for one of GeoJSON; of a map each row does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from stentor.errors import RecordError
from stentor.model.values.nested import (
    GEOJSON,
    MOST_NESTED,
    KindOf,
    is_value,
    names_of_a_value,
)
from stentor.wire.cells.layout import plain_array
from stentor.wire.cells.raw import raw_cells


def attribute_arrays(arrays: dict[str, Any], kind_of: KindOf) -> dict[str, Any]:
    """*arrays* by name, those of nested objects by the names of what is in them."""
    if not any(types.is_struct(one.type) or types.is_map(one.type) for one in arrays.values()):
        return arrays
    flat: dict[str, Any] = {}
    for name, array in arrays.items():
        for path, inner in _leaves(name, array, kind_of, MOST_NESTED):
            if path in flat:
                raise RecordError(
                    "it stands twice, once as a name with dots and once nested; keep one of them",
                    field=path,
                )
            flat[path] = inner
    return flat


def _leaves(name: str, array: Any, kind_of: KindOf, depth: int) -> Iterator[tuple[str, Any]]:
    array = plain_array(array)
    of = array.type
    if kind_of(name) is not None or not (types.is_struct(of) or types.is_map(of)):
        yield name, array
        return
    if depth == 0:
        raise RecordError(f"columns are nested more than {MOST_NESTED} deep; flatten them")
    fields = _fields_of_map(array) if types.is_map(of) else _fields_of_struct(array)
    names = set(fields)
    if names_of_a_value(names):
        yield name, array
        return
    if types.is_map(of) or names == GEOJSON:
        are_values = pa.array(
            [isinstance(raw, dict) and is_value(raw) for raw in raw_cells(array, name)]
        )
        if pc.any(are_values).as_py():
            yield name, _only(array, are_values)
            fields = {inner: _only(one, pc.invert(are_values)) for inner, one in fields.items()}
    for inner, one in fields.items():
        yield from _leaves(f"{name}.{inner}", one, kind_of, depth - 1)


def _fields_of_struct(array: Any) -> dict[str, Any]:
    # `flatten` applies the struct's own nulls and its slice to the fields.
    return {one.name: cells for one, cells in zip(array.type, array.flatten(), strict=True)}


def _fields_of_map(array: Any) -> dict[str, Any]:
    """The entries of maps, by key; null where a map does not have it."""
    rows: dict[str, dict[int, int]] = {}
    offsets = array.offsets.to_pylist()
    keys = array.keys.to_pylist()
    for row in range(len(array)):
        if array[row].is_valid:
            for entry in range(offsets[row], offsets[row + 1]):
                rows.setdefault(str(keys[entry]), {})[row] = entry
    return {
        key: array.items.take(pa.array([own.get(row) for row in range(len(array))], pa.int64()))
        for key, own in rows.items()
    }


def _only(array: Any, chosen: Any) -> Any:
    """*array*, null where it is not *chosen*."""
    rows = np.arange(len(array))
    positions = pa.array(rows, mask=~chosen.to_numpy(zero_copy_only=False))
    return plain_array(array).take(positions)
