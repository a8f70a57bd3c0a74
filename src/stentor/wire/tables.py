"""Any table → records: `RecordTable`, its fields as columns; events as columns; rows one by one.

The columns `id until time weights seq op` mean what they mean in a dict (`events.py`), every other
one is an attribute; or all attributes are the fields of one struct column `attributes`, and then
every name is free (but see `events.py`). A bad cell takes its row out, with the sentence that a
dict would get. A column of a type that no attribute can have is left out where nobody wants
that attribute yet. What fails a table are its own columns: an id of doubles, two of one name, a
kind that conflicts with the schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from stentor.encoding.columns import EventColumns, Float64, Int64, all_read_only, read_only
from stentor.encoding.events import (
    AttributeColumn,
    EventTimes,
    StringColumn,
    encode_attribute_columns,
)
from stentor.encoding.parameters import UNREADABLE
from stentor.errors import RecordError, StentorError
from stentor.model import Kind, Schema, Subscription
from stentor.model.record import Record
from stentor.model.schema import AttributeUse
from stentor.model.values.object import check_fields
from stentor.model.values.one_of import check_choices, choices
from stentor.model.values.string import (
    MOST_ID_BYTES,
    check_record_bytes,
    read_attribute_name,
    read_id,
)
from stentor.model.values.time import BEGINNING, FOR_GOOD, NEVER
from stentor.wire.cells import is_odd, read_cells
from stentor.wire.cells.layout import (
    Booleans,
    Cells,
    fixed_width,
    missing,
    one_array,
    plain_array,
    validity,
)
from stentor.wire.cells.nested import attribute_arrays
from stentor.wire.cells.raw import raw_cell, raw_cells
from stentor.wire.cells.string import is_string, lengths, string_array, string_cells
from stentor.wire.cells.time import Instants, filled, no_instants, read_instants
from stentor.wire.cells.weights import WeightCells, encode_weights, weight_cells
from stentor.wire.events import NESTED, RESERVED, check_event_op, is_wanted
from stentor.wire.formats import ReadSettings
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits
from stentor.wire.records import check_seq, record_from_dict, subscription_from_dict
from stentor.wire.rejected import Rejected, raw_text

#: How a table is named in the message of a type conflict.
WHERE = "a table of events"
#: What is never an attribute of a flat table of records.
_FIELDS = (*RESERVED, NESTED, "expression", "at", "owner", "labels")
#: A row of a table as a dict, or why it has none.
PlainRow = dict[str, Any] | RecordError
Found = TypeVar("Found")


class RecordTable(NamedTuple):
    """What the rows of a table hold; a rejected row's cells mean nothing."""

    ids: Cells
    attributes: dict[str, Cells]
    others: dict[str, Cells]
    until: Instants
    time: Instants
    seq: tuple[Int64, Booleans]
    op: Cells
    weights: WeightCells | None
    rejected: dict[int, str]  # row → sentence


class EventBatch(NamedTuple):
    """The usable events of a table, and what became of the others."""

    ids: Any  # pyarrow.LargeStringArray (events,)
    columns: EventColumns
    rows: Int64  # (events,) each event's row in the table
    rejected: list[Rejected]


def read_table(
    table: Any, schema: Schema, limits: RecordLimits, *, others: Collection[str] = ()
) -> RecordTable:
    """The fields of *table*; a RecordError where a field's column is of a type that it never has.

    Strings are read as timestamps where *schema* says so. The columns *others* are read apart from
    the attributes.
    """
    columns = columns_of(table)
    arrays = attribute_arrays(_attribute_arrays(columns, others), schema.kind)
    if len(arrays) > limits.attributes:
        raise RecordError(
            f"the table has {len(arrays):,} attributes; the limit is {limits.attributes:,}"
        )

    def read(name: str, array: Any) -> Cells:
        kind = schema.kind(name)
        return read_cells(array, field=name, kind=kind, plane=schema.plane, limits=limits)

    rows = table.num_rows
    found = RecordTable(
        ids=_ids(columns.get("id")),
        attributes={
            name: read(name, array)
            for name, array in arrays.items()
            if is_wanted(read_attribute_name(name), schema)
            and (schema.kind(name) is not None or not is_odd(array.type))
        },
        others={name: read(name, columns[name]) for name in others if name in columns},
        until=_instants(columns, "until", rows),
        time=_instants(columns, "time", rows),
        seq=_seq(columns.get("seq"), rows),
        op=_op(columns.get("op"), rows),
        weights=_weights(columns.get("weights"), limits.attributes),
        rejected={},
    )
    found.rejected.update(_reasons(found, columns, limits))
    return found


def _reasons(
    found: RecordTable, columns: Mapping[str, Any], limits: RecordLimits
) -> dict[int, str]:
    """Why rows are rejected: of several reasons the one that a dict would get, as a rule."""
    seq, has_seq = found.seq
    bad_seqs = {
        row: _sentence(check_seq, columns["seq"][row].as_py())
        for row in np.flatnonzero(has_seq & (seq < 0)).tolist()
    }
    reasons: dict[int, str] = {}
    for own in (
        found.op.reasons,
        found.time.reasons,
        bad_seqs,
        *(cells.reasons for cells in found.attributes.values()),
        _too_large(found, limits.record_bytes),
        _too_many_choices(found, limits.choices),
        *(cells.reasons for cells in found.others.values()),
        found.weights.reasons if found.weights else {},
        found.ids.reasons,
        found.until.reasons,
    ):
        for row, sentence in own.items():
            reasons.setdefault(row, sentence)
    return reasons


def read_event_table(
    frame: Any,
    schema: Schema,
    *,
    first_seq: int = 0,
    default_time: int = BEGINNING,
    searched: frozenset[str] | None = None,
    limits: RecordLimits = DEFAULT_RECORD_LIMITS,
    op: str = "publish",
) -> EventBatch:
    """The events of *frame*, an Arrow table or a DataFrame that does *op*; *schema* learns of them.

    An event without a `seq` of its own has *first_seq* and its row, one without a `time` has
    *default_time*. *searched* names the attributes whose terms are wanted: all strings where it is
    None.

    Cost: a table is read column by column, without a Python object for a row, and once more without
    its bad rows where it has any.
    """
    table = to_arrow(frame)
    rows = np.arange(table.num_rows)
    found = read_table(table, schema, limits)
    rejected = {**_other_ops(found.op, op), **found.rejected}
    if rejected:
        rows = np.delete(rows, list(rejected))
        found = read_table(take_rows(table, rows), schema, limits)
    _learn(found, schema)
    seq, has_seq = found.seq
    columns = encode_attribute_columns(
        [_attribute_column(name, cells) for name, cells in found.attributes.items()],
        EventTimes(
            until=filled(found.until, FOR_GOOD if op == "update" else NEVER),
            time=filled(found.time, default_time),
            seq=np.where(has_seq, seq, rows + first_seq),
        ),
        schema,
        None if found.weights is None else encode_weights(found.weights, len(rows), schema),
        searched=searched,
    )
    bad_rows = [rejected_row(table, row, reason) for row, reason in sorted(rejected.items())]
    return EventBatch(string_array(found.ids), columns, rows, bad_rows)


def records_from_table(
    frame: Any, schema: Schema, settings: ReadSettings | None = None
) -> Iterator[Record | Rejected]:
    """The record of each row of *frame*, an Arrow table or a DataFrame; *schema* learns of them.

    A table may mix kinds: its column `op` says what each row does, and a null is a field that the
    row does not have. Of the *settings*, `format` and `point` say nothing about tables.
    """
    chosen = settings or ReadSettings()
    return _each_row(
        chosen.columns.table(to_arrow(frame)),
        schema,
        lambda raw: record_from_dict(raw, schema, chosen.limits, chosen.default_op),
    )


def subscriptions_from_table(
    frame: Any, schema: Schema, limits: RecordLimits = DEFAULT_RECORD_LIMITS
) -> Iterator[Subscription | Rejected]:
    """The subscription of each row of *frame*: the columns `id`, `expression`, `at`, `until`."""
    return _each_row(
        to_arrow(frame), schema, lambda raw: subscription_from_dict(raw, schema, limits)
    )


def _each_row(
    table: Any, schema: Schema, read: Callable[[dict[str, Any]], Found]
) -> Iterator[Found | Rejected]:
    # A row may teach the schema what the next one is read as: each is read for itself.
    for row, raw in enumerate(plain_rows(table, schema)):
        found: Found | Rejected
        try:
            if isinstance(raw, RecordError):
                raise raw
            found = read(raw)
        except StentorError as error:
            found = rejected_row(table, row, str(error))
        yield found


def positions_of(cells: Cells | None, rows: int) -> Float64:
    """The locations of a column `at`, (rows, 2); NaN where there is none."""
    position = np.full((rows, 2), np.nan)
    if cells is None or cells.kind is None:
        return position
    if cells.kind is not Kind.POINT:
        raise RecordError(f"expected places [longitude, latitude], got {cells.kind}s", field="at")
    position[cells.valid, 0] = cells.low[cells.valid]
    position[cells.valid, 1] = cells.high[cells.valid]
    return position


# Tables as Arrow has them.


def to_arrow(frame: Any) -> Any:
    """*frame* as an Arrow table; a pandas index counts as columns where it has names.

    Takes Arrow tables and record batches, pandas DataFrames, and everything else with Arrow's
    PyCapsule interface (Polars, DuckDB, …).
    """
    if isinstance(frame, pa.Table):
        table = frame
    elif isinstance(frame, pa.RecordBatch):
        table = pa.Table.from_batches([frame])
    elif any(base.__module__.startswith("pandas.") for base in type(frame).__mro__):
        table = _from_pandas(frame)
    elif hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__"):
        table = _from_capsule(frame)
    else:
        raise RecordError(
            f"expected an Arrow table or a DataFrame, got {type(frame).__name__}; "
            "a list of dicts becomes one by pyarrow.Table.from_pylist"
        )
    _check_names(table.column_names)
    return table


def columns_of(table: Any) -> dict[str, Any]:
    """The columns of *table* by name, each as one array."""
    return {
        name: one_array(column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def take_rows(table: Any, rows: Int64) -> Any:
    """The given *rows* of *table*, in ascending order."""
    try:
        return table.take(pa.array(rows))
    except pa.ArrowNotImplementedError:  # Arrow cannot take from string views, for one
        if not len(rows):
            return table.slice(0, 0)
        gaps = np.flatnonzero(np.diff(rows) != 1) + 1
        runs = np.split(rows, gaps)
        return pa.concat_tables([table.slice(int(run[0]), len(run)) for run in runs])


def plain_rows(table: Any, schema: Schema) -> list[PlainRow]:
    """The rows of *table* as dicts of Python's values; one that has no such form as its error.

    A column of a type that no attribute can have is left out where *schema* has no kind for it.
    """
    columns = [
        (name, raw_cells(array, name))
        for name, array in columns_of(table).items()
        if name in _FIELDS or schema.kind(name) is not None or not is_odd(array.type)
    ]
    rows: list[PlainRow] = []
    for row in range(table.num_rows):
        cells = {name: values[row] for name, values in columns}
        wrong = next((one for one in cells.values() if isinstance(one, RecordError)), None)
        rows.append(cells if wrong is None else wrong)
    return rows


def unreadable_cells(name: str, array: Any) -> dict[int, RecordError]:
    """The cells of *array* that Python has no value for, by row. Numbers always have one."""
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        return {}
    cells = enumerate(raw_cells(array, name))
    return {row: cell for row, cell in cells if isinstance(cell, RecordError)}


def rejected_row(table: Any, row: int, reason: str) -> Rejected:
    """The row of *table* that is rejected for this *reason*."""
    return Rejected(reason, raw_text(row_text(table, row)), row=row)


def row_text(table: Any, row: int) -> str:
    """One row of *table* as JSON, for people; what has no JSON form is shown as Arrow shows it."""
    cells = {
        name: _cell(column.slice(row, 1))
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return json.dumps(cells, ensure_ascii=False, default=str)


def _cell(column: Any) -> Any:
    try:
        return column[0].as_py()
    except UNREADABLE:
        return " ".join(column.to_string().split())


def _from_capsule(frame: Any) -> Any:
    try:
        return pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise RecordError(f"{type(frame).__name__} is no table: {error}") from None


def _from_pandas(frame: Any) -> Any:
    if not hasattr(frame, "columns"):
        raise RecordError(f"expected a DataFrame, got a {type(frame).__name__}; try .to_frame()")
    has_named_index = any(name is not None for name in frame.index.names)
    try:
        return pa.Table.from_pandas(frame, preserve_index=has_named_index)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        # pandas adds the column's name as the last argument.
        raise RecordError(
            f"a DataFrame's column holds what has no one type: {'; '.join(map(str, error.args))}"
        ) from None


def _check_names(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise RecordError("the table has two columns of this name", field=name)
        seen.add(name)


# The fields of records.


def _attribute_arrays(columns: dict[str, Any], others: Collection[str]) -> dict[str, Any]:
    nested = columns.get(NESTED)
    if nested is not None and types.is_struct(nested.type):
        check_fields(columns, (*RESERVED, NESTED, *others), 'a table with a column "attributes"')
        names = [field.name for field in nested.type]
        return dict(zip(names, nested.flatten(), strict=True))
    taken = {*RESERVED, *others}
    return {name: array for name, array in columns.items() if name not in taken}


def _ids(array: Any) -> Cells:
    if array is None:
        raise RecordError("the table has no such column, and every record needs an id", field="id")
    array = plain_array(array)
    if types.is_integer(array.type) or types.is_null(array.type):
        array = array.cast(pa.large_string())
    if not is_string(array.type):
        raise RecordError(f"expected strings or integers, got {array.type}", field="id")
    cells = string_cells(array, MOST_ID_BYTES)
    doubt = lengths(cells) == 0  # a null is empty here
    if cells.doubtful is not None:
        doubt |= cells.doubtful
    reasons = {
        row: _sentence(lambda row: read_id(raw_cell(array, row, "id")), row)
        for row in np.flatnonzero(doubt).tolist()
    }
    return cells._replace(doubtful=None, reasons=reasons)


def _sentence(check: Callable[[Any], object], raw: Any) -> str:
    """What *check* refuses *raw* with."""
    try:
        check(raw)
    except RecordError as error:
        return str(error)
    raise AssertionError(f"{raw!r} was in doubt, and nothing is wrong with it")


def _instants(columns: dict[str, Any], name: str, rows: int) -> Instants:
    if name not in columns:
        return no_instants(rows)
    return read_instants(plain_array(columns[name]), name)


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
    cells = read_cells(array, field="op")
    if cells.kind not in (Kind.STRING, None):
        raise RecordError(f"expected strings, got {array.type}", field="op")
    return cells


def _other_ops(op: Cells, expected: str) -> dict[int, str]:
    if not op.valid.any():
        return {}
    ops = string_array(op)
    rows = np.flatnonzero(op.valid & ~pc.equal(ops, expected).to_numpy(zero_copy_only=False))
    return {
        row: _sentence(lambda said: check_event_op(said, expected), ops[row].as_py())
        for row in rows.tolist()
        if row not in op.reasons
    }


def _weights(array: Any, most: int) -> WeightCells | None:
    if array is None or array.null_count == len(array):
        return None
    return weight_cells(plain_array(array), most)


def _too_large(found: RecordTable, most_bytes: int) -> dict[int, str]:
    sizes = [lengths(one) for one in found.attributes.values() if one.strings is not None]
    if sum(int(one.max(initial=0)) for one in sizes) <= most_bytes:
        return {}
    size = np.add.reduce(sizes)
    return {
        row: _sentence(lambda size: check_record_bytes(size, most_bytes), int(size[row]))
        for row in np.flatnonzero(size > most_bytes).tolist()
    }


def _too_many_choices(found: RecordTable, most: int) -> dict[int, str]:
    columns = [cells.one_of for cells in found.attributes.values()]
    ways = {row: [one[row] for one in columns if row in one] for row in set().union(*columns)}
    bad = {row: values for row, values in ways.items() if choices(values) > most}
    return {row: _sentence(lambda one: check_choices(one, most), one) for row, one in bad.items()}


def _learn(found: RecordTable, schema: Schema) -> None:
    uses = [
        AttributeUse(name, cells.kind, WHERE)
        for name, cells in found.attributes.items()
        if cells.valid.any()
    ]
    if found.weights is not None:
        used = np.unique(found.weights.name).tolist()
        names = (found.weights.names[one] for one in used)
        uses += [AttributeUse(name, None, WHERE) for name in names if is_wanted(name, schema)]
    schema.learn(uses, is_asked=False)


def _attribute_column(name: str, cells: Cells) -> AttributeColumn:
    """*cells* for `assemble`; read-only like Arrow's buffers, so that one kernel serves all."""
    strings = None if cells.strings is None else all_read_only(StringColumn(*cells.strings))
    ends = read_only(cells.low), read_only(cells.high)
    return AttributeColumn(name, read_only(cells.valid), *ends, strings, cells.one_of)
