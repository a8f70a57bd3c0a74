"""The columns of a table of records, read and checked, whichever kinds of records it holds.

The columns `id until time weights seq op` mean what they mean in a dict (`events.py`), every other
one is an attribute; or all attributes are the fields of one struct column `attributes`, and then
every name is free.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types

from stentor.encoding.columns import Float64, Int64
from stentor.errors import RecordError
from stentor.model import Kind, Schema
from stentor.wire.cells.arrays import cells_of
from stentor.wire.cells.layout import (
    Booleans,
    Cells,
    FieldProblem,
    Problem,
    fixed_width,
    missing,
    problems,
    unwrapped,
    validity,
)
from stentor.wire.cells.strings import is_string, lengths, string_cells
from stentor.wire.cells.times import Instants, instants, no_instants
from stentor.wire.cells.weights import WeightCells, weight_cells
from stentor.wire.events import NESTED, RESERVED, is_wanted
from stentor.wire.fields import MOST_ID_BYTES, check_fields, name_of
from stentor.wire.frames import columns_of
from stentor.wire.limits import RecordLimits


class TableFields(NamedTuple):
    """What the rows of a table hold; a row with a problem is bad, and its cells mean nothing."""

    ids: Cells
    attributes: dict[str, Cells]
    is_nested: bool
    others: dict[str, Cells]
    until: Instants
    time: Instants
    seq: tuple[Int64, Booleans]
    op: Cells
    weights: WeightCells | None
    problems: list[FieldProblem]


def read_fields(
    table: Any,
    schema: Schema,
    limits: RecordLimits,
    *,
    expects_kinds: bool = True,
    others: Collection[str] = (),
) -> TableFields:
    """The fields of *table*; a RecordError where a column is of a type that no record has.

    *expects_kinds* reads strings as timestamps where *schema* says so. The columns *others* are
    read apart from the attributes.
    """
    columns = columns_of(table)
    arrays, is_nested = _attribute_arrays(columns, others)
    if len(arrays) > limits.attributes:
        raise RecordError(
            f"the table has {len(arrays):,} attributes; the limit is {limits.attributes:,}"
        )

    def read(name: str, array: Any) -> Cells:
        kind = schema.kind(name) if expects_kinds else None
        return cells_of(array, field=name, kind=kind, plane=schema.plane, limits=limits)

    fields = TableFields(
        ids=_ids(columns.get("id")),
        attributes={
            name: read(name, array)
            for name, array in arrays.items()
            if is_wanted(name_of(name), schema)
        },
        is_nested=is_nested,
        others={name: read(name, columns[name]) for name in others if name in columns},
        until=_instants(columns, "until", table.num_rows),
        time=_instants(columns, "time", table.num_rows),
        seq=_seq(columns.get("seq"), table.num_rows),
        op=_op(columns.get("op"), table.num_rows),
        weights=_weights(columns.get("weights")),
        problems=[],
    )
    fields.problems.extend(_problems(fields, limits))
    return fields


def positions_of(cells: Cells | None, rows: int) -> Float64:
    """The places of a column `at`, (rows, 2); NaN where there is none."""
    position = np.full((rows, 2), np.nan)
    if cells is None or cells.kind is None:
        return position
    if cells.kind is not Kind.POINT:
        raise RecordError(f"expected places [longitude, latitude], got {cells.kind}s", field="at")
    position[cells.valid, 0] = cells.low[cells.valid]
    position[cells.valid, 1] = cells.high[cells.valid]
    return position


def _attribute_arrays(
    columns: dict[str, Any], others: Collection[str]
) -> tuple[dict[str, Any], bool]:
    nested = columns.get(NESTED)
    if nested is not None and types.is_struct(nested.type):
        check_fields(columns, (*RESERVED, NESTED, *others), 'a table with a column "attributes"')
        names = [field.name for field in nested.type]
        return dict(zip(names, nested.flatten(), strict=True)), True
    taken = {*RESERVED, *others}
    return {name: array for name, array in columns.items() if name not in taken}, False


def _ids(array: Any) -> Cells:
    if array is None:
        raise RecordError("the table has no such column, and every record needs an id", field="id")
    array = unwrapped(array)
    if types.is_integer(array.type) or types.is_null(array.type):
        array = array.cast(pa.large_string())
    if not is_string(array.type):
        raise RecordError(f"expected strings or integers, got {array.type}", field="id")
    cells = string_cells(array, MOST_ID_BYTES)
    is_missing = lengths(cells) == 0  # a null is empty here
    return cells._replace(
        problems=[*cells.problems, *problems((is_missing, "every record needs one"))]
    )


def _instants(columns: dict[str, Any], name: str, rows: int) -> Instants:
    return instants(unwrapped(columns[name]), name) if name in columns else no_instants(rows)


def _seq(array: Any, rows: int) -> tuple[Int64, Booleans]:
    if array is None or array.null_count == len(array):
        return np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
    if not types.is_integer(array.type):
        raise RecordError(f"expected integers, got {array.type}", field="seq")
    values = fixed_width(array, array.type.to_pandas_dtype())
    # What is beyond 64 bits becomes negative, and thereby bad.
    return values.astype(np.int64), validity(array)


def _op(array: Any, rows: int) -> Cells:
    if array is None:
        return missing(rows)
    cells = cells_of(array, field="op")
    if cells.kind not in (Kind.STRING, None):
        raise RecordError(f"expected strings, got {array.type}", field="op")
    return cells


def _weights(array: Any) -> WeightCells | None:
    if array is None or array.null_count == len(array):
        return None
    return weight_cells(unwrapped(array))


def _problems(fields: TableFields, limits: RecordLimits) -> list[FieldProblem]:
    seq, has_seq = fields.seq
    by_field: list[tuple[str, Sequence[Problem]]] = [
        ("id", fields.ids.problems),
        *((name, cells.problems) for name, cells in fields.attributes.items()),
        *((name, cells.problems) for name, cells in fields.others.items()),
        ("until", fields.until.problems),
        ("time", fields.time.problems),
        ("op", fields.op.problems),
        ("seq", problems((has_seq & (seq < 0), "expected a whole number from 0 to 2^63 − 1"))),
        ("weights", fields.weights.problems if fields.weights else ()),
        ("the event", _too_large(fields, limits.record_bytes)),
    ]
    return [(field, problem) for field, found in by_field for problem in found]


def _too_large(fields: TableFields, most_bytes: int) -> list[Problem]:
    sizes = [lengths(one) for one in fields.attributes.values() if one.strings is not None]
    if sum(int(one.max(initial=0)) for one in sizes) <= most_bytes:
        return []
    reason = f"its strings are together above the limit of {most_bytes:,} bytes"
    return problems((np.add.reduce(sizes) > most_bytes, reason))
