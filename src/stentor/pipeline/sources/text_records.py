"""Worker's side: texts of records (lines of JSON, of CSV, values of Kafka) → canonical tables.

JSON is read by the engine's own reader, so that a line means the same here as there, or is refused
for the same reason. A text may hold no record or several. What a subscription's expression means
is left to the step that encodes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stentor.encoding.columns import Int64
from stentor.errors import RecordError, StentorError
from stentor.model import Constant, Event, Kind, OneOf, Point, Schema, Set
from stentor.model.record import BRINGING_OPS, EVENT_OPS, OPS, Op
from stentor.model.values.members import set_text
from stentor.model.values.string import describe
from stentor.model.values.time import read_time
from stentor.pipeline.sources import DEFAULT_COLUMNS, Columns, What
from stentor.wire.csv import Dialect, is_whole, read_cell, read_json, read_number_or_text
from stentor.wire.events import event_from_dict
from stentor.wire.files import BOM, stripped
from stentor.wire.formats import ReadSettings, objects_of, plain_object
from stentor.wire.json_columns import ATTRIBUTE_TYPES, LOCATION, TIME, PlainLines, set_array
from stentor.wire.json_text import from_json, to_json
from stentor.wire.limits import RecordLimits
from stentor.wire.mapping import NO_MAPPING, ColumnMapping
from stentor.wire.records import (
    change_from_dict,
    head_of,
)

#: What the records of a source may do, and what one does that says nothing.
ALLOWED: Final[dict[What, tuple[tuple[str, ...], Op | None]]] = {
    "events": (EVENT_OPS, "publish"),
    "changes": (tuple(op for op in OPS if op not in EVENT_OPS), "subscribe"),
    "records": (OPS, None),
}
_FIELDS: Final = tuple(name for name in DEFAULT_COLUMNS.__slots__ if name != "order")
_MISFIT: Final = "the line has more or fewer cells than the header"
_NOT_UTF8: Final = (
    "the line holds U+FFFD, which stands for bytes that are not UTF-8; save the text as UTF-8, or "
    "name its encoding in the source's options"
)
#: Tables of Spark have no type for them.
NO_SETS: Final = (
    "Spark's sources do not take one of several values (in, not, not_in); send it as several "
    "events, or to an engine"
)
_INT64: Final = range(-(2**63), 2**63)

Reject = Callable[[int, str, str | bytes], None]


@dataclass(frozen=True, slots=True)
class TextFormat:
    """What the texts of a source hold, and what they call its fields; a *dialect* is CSV's."""

    kind: What
    columns: Columns = DEFAULT_COLUMNS
    dialect: Dialect | None = None
    mapping: ColumnMapping = NO_MAPPING


class TextReader:
    """Reads the texts of one source, in the order of their files."""

    def __init__(self, texts: TextFormat, schema: Schema, limits: RecordLimits) -> None:
        """*schema* is closed: an attribute that it does not have is left out unread."""
        self._texts = texts
        self._schema = schema.frozen()
        self._most_bytes = limits.record_bytes
        self._settings = ReadSettings(
            default_op=ALLOWED[texts.kind][1], limits=limits, columns=texts.mapping
        )
        names = {one: texts.columns.of(one) for one in _FIELDS}
        # A field under another name; and what is then no field, though it is called like one.
        self._renamed = {name: one for one, name in names.items() if name not in (None, one)}
        self._hidden = [one for one in self._renamed.values() if one not in self._renamed]
        self._headers: dict[str | None, list[str]] = {}
        # What a record may be called otherwise is looked up one by one.
        is_plain = not self._renamed and not texts.mapping and texts.columns.order not in schema
        is_plain &= texts.dialect is None and texts.kind != "changes"
        needs_op = ALLOWED[texts.kind][1] is None
        self._lines = PlainLines(self._schema, limits, needs_op=needs_op) if is_plain else None

    def read(self, texts: Any, sources: list[str | None], reject: Reject) -> tuple[pa.Table, Any]:
        """The records of *texts*, an Arrow array of bytes, and the row of each one's text.

        *sources* are their files. *reject* is called for bad ones: row, reason, text.
        """
        found = _Gathered()
        plain, others = self._plain(texts)
        for row in others:
            data = texts[row].as_buffer().to_pybytes()
            for raw, shown_as in self._objects(row, data, sources[row], reject):
                try:
                    self._add(found, row, raw)
                except StentorError as error:
                    reject(row, str(error), shown_as)
        table, rows = found.table(self._schema), np.array(found.rows, np.int64)
        if plain is None:
            return table, rows
        table = pa.concat_tables([plain.table(self._schema), table])
        rows = np.concatenate([plain.rows, rows])
        if not len(others):
            return table, rows
        order = np.argsort(rows, kind="stable")
        return table.take(pa.array(order)), rows[order]

    def _plain(self, texts: Any) -> tuple[_Plain | None, Sequence[int]]:
        """The texts that are surely plain events, read at once; and the rows of the others."""
        if self._lines is None:
            return None, range(len(texts))
        found = self._lines.read(texts.to_pylist())
        rows, order = found.rows, None
        if self._texts.columns.order is not None:
            order, is_fine = [], []
            for raw in found.raw:
                try:
                    order.append(self._position(raw.get(self._texts.columns.order)))
                    is_fine.append(True)
                except StentorError:
                    is_fine.append(False)
            if len(order) < len(is_fine):
                return None, range(len(texts))  # seldom: one by one, each with its reason
        others = np.delete(np.arange(len(texts)), rows).tolist()
        time = found.time if self._texts.columns.time is not None else None
        return _Plain(rows, found.ids, order, time, found.until, found.attributes), others

    def _objects(
        self, row: int, data: bytes, source: str | None, reject: Reject
    ) -> Iterator[tuple[Any, str | bytes]]:
        """What the text of a *row* holds, each with how it is shown where it is bad."""
        is_json = self._texts.dialect is None
        line = stripped(data) if is_json else data.removeprefix(BOM)
        if not (line if is_json else line.strip()):
            return
        try:
            if len(line) > self._most_bytes:
                raise RecordError(f"the line is longer than {self._most_bytes:,} bytes")
            if self._texts.dialect is not None:
                raw = self._cells(line.decode("utf-8", "replace"), source, self._texts.dialect)
                objects = [] if raw is None else [raw]
            else:
                objects = list(objects_of(from_json(line), self._settings))
        except StentorError as error:
            reject(row, str(error), line)
            return
        is_alone = len(objects) == 1
        for one in objects:
            yield one, line if is_alone else to_json(one)

    def _add(self, found: _Gathered, row: int, raw: Any) -> None:
        """Take in the record *raw*."""
        order = None
        if isinstance(raw, Mapping):
            raw, order = self._own_names(raw)
        plain, default_op = plain_object(raw, self._settings)
        op, time = head_of(plain, default_op)
        allowed, _ = ALLOWED[self._texts.kind]
        if op not in allowed:
            expected = f"{'one of ' if len(allowed) > 1 else ''}{', '.join(allowed)}"
            raise RecordError(f"expected {expected}, got {describe(op)}", field="op")
        if self._texts.columns.time is None:
            time = None
        position = self._position(order)
        if op in BRINGING_OPS:
            event = event_from_dict(plain, self._schema, self._settings.limits, op)
            check_for_everybody(among=event.among)
            found.add_event(row, op, event, position, time)
        else:
            change = change_from_dict(plain, op, plane=self._schema.plane)
            check_for_everybody(owner=plain.get("owner"), labels=plain.get("labels"))
            found.add(row, op, change.id, position, time, change.until)
            found.expression[len(found.rows) - 1] = change.expression
            found.at[len(found.rows) - 1] = change.at

    def _own_names(self, raw: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any]:
        """*raw* with the fields' own names, and its position in the order apart."""
        named = self._texts.columns.order
        order = None if named is None else raw.get(named)
        is_field = named in _FIELDS or named == "seq" or named in self._renamed
        if not self._renamed and (named is None or is_field):
            return raw, order
        hidden = {*self._hidden, *(() if named is None or is_field else (named,))}
        plain = {
            self._renamed.get(name, name): cell
            for name, cell in raw.items()
            if name not in hidden or name in self._renamed
        }
        return plain, order

    def _position(self, order: Any) -> int | None:
        """The position in the user's order that *order* says: a timestamp's are microseconds."""
        name = self._texts.columns.order
        if name is None:
            return None
        if order is None:
            raise RecordError("every record needs one, because it says the order", field=name)
        if type(order) is str and self._texts.dialect is not None and is_whole(order):
            order = int(order)
        if type(order) is int and order in _INT64:
            return order
        position = None
        if type(order) is str:
            try:
                position = read_time(order, name)
            except StentorError:
                position = None
        if position is None:
            raise RecordError(
                f"expected an integer or a timestamp, got {describe(order)}", field=name
            )
        return position

    # CSV.

    def _cells(self, line: str, source: str | None, dialect: Dialect) -> dict[str, Any] | None:
        """The record of a *line*; None for the first of a file, which is its header."""
        if source not in self._headers:
            self._headers[source] = [name.strip() for name in dialect.cells(line)]
            return None
        if "\ufffd" in line:
            raise RecordError(_NOT_UTF8)
        header, cells = self._headers[source], dialect.cells(line)
        if len({*header}) < len(header):
            raise RecordError("the header of the file has two columns of one name")
        if len(cells) != len(header):
            raise RecordError(_MISFIT)
        given = {
            name: cell
            for name, cell in zip(header, cells, strict=True)
            if cell not in ("", dialect.null)
        }
        return {name: self._value(name, cell) for name, cell in given.items()}

    def _value(self, name: str, cell: str) -> Any:
        """The value of a *cell*'s text, in a column called *name*."""
        columns = self._texts.columns
        if name in ("seq", "time", columns.time, columns.until):
            return read_number_or_text(cell)
        if name in (columns.order, columns.id, columns.op, columns.expression):
            return cell
        if name in (columns.at, columns.weights):
            return read_json(cell, name)
        return read_cell(cell, self._kind(name), name)

    def _kind(self, column: str) -> Kind | None:
        """The kind of what a *column* becomes; coordinates are numbers."""
        for name, columns in self._texts.mapping.sources:
            if column in columns:
                return Kind.NUMBER if len(columns) == 2 else self._schema.kind(name)
        return self._schema.kind(column)


class _Plain(NamedTuple):
    """Plain events that become a table."""

    rows: Int64
    ids: list[str]
    order: list[int | None] | None
    time: list[int | None] | None
    until: list[int | None]
    attributes: dict[str, Any]

    def table(self, schema: Schema) -> pa.Table:
        """All of them, with the attributes of *schema*."""
        count = len(self.rows)
        names = list(schema)
        empty = pa.array(np.zeros(count + 1, np.int32))
        of = pa.map_(pa.string(), pa.float64())
        nothing = pa.array([], pa.string()), pa.array([], pa.float64())
        return pa.table(
            {
                "op": pa.array(["publish"], pa.string()).take(pa.array(np.zeros(count, np.int64))),
                "id": pa.array(self.ids, pa.string()),
                "order": _or_nulls(self.order, count, pa.int64()),
                "time": _or_nulls(self.time, count, pa.int64()).cast(TIME),
                "until": pa.array(self.until, pa.int64()).cast(TIME),
                "weights": pa.MapArray.from_arrays(empty, *nothing).cast(of),
                "expression": pa.nulls(count, pa.string()),
                "at": pa.nulls(count, LOCATION),
                "attributes": pa.StructArray.from_arrays(
                    [self.attributes[name] for name in names], names
                )
                if names
                else pa.array([{}] * count, pa.struct([])),
            }
        )


def _or_nulls(given: list[int | None] | None, count: int, of: Any) -> Any:
    return pa.nulls(count, of) if given is None else pa.array(given, of)


@dataclass(slots=True)
class _Cells:
    """The values of one attribute, and which records have them."""

    rows: list[int] = field(default_factory=list)
    low: list[Any] = field(default_factory=list)
    high: list[Any] = field(default_factory=list)


class _Gathered:
    """Records that become a table."""

    def __init__(self) -> None:
        self.rows: list[int] = []  # of their texts
        self._fields: dict[str, list[Any]] = {
            name: [] for name in ("op", "id", "order", "time", "until")
        }
        self.expression: dict[int, str | None] = {}
        self.at: dict[int, Point | None] = {}
        self._weights: dict[int, Mapping[str, float]] = {}
        self._cells: dict[str, _Cells] = {}

    def add(
        self, row: int, op: str, id: str, order: int | None, time: int | None, until: int | None
    ) -> None:
        """Take in the fields that every record has."""
        self.rows.append(row)
        for cells, cell in zip(self._fields.values(), (op, id, order, time, until), strict=True):
            cells.append(cell)

    def add_event(
        self, row: int, op: str, event: Event, order: int | None, time: int | None
    ) -> None:
        """Take in an event."""
        for name, value in event.attributes.items():
            if isinstance(value, OneOf):
                raise RecordError(NO_SETS, field=name)
        position = len(self.rows)
        self.add(row, op, event.id, order, time, event.until)
        if event.weights:
            self._weights[position] = event.weights
        for name, value in event.attributes.items():
            cells = self._cells.get(name)
            if cells is None:
                cells = self._cells[name] = _Cells()
            cells.rows.append(position)
            low: float | str
            high: float | str
            if isinstance(value, Constant):
                low = high = value.value
            elif isinstance(value, Set):
                low = high = set_text(value)
            else:
                assert not isinstance(value, OneOf)
                low, high = value[-2], value[-1]
            cells.low.append(low)
            cells.high.append(high)

    def table(self, schema: Schema) -> pa.Table:
        """All of it, with the attributes of *schema*."""
        count = len(self.rows)
        names = list(schema)
        attributes = [
            self._attribute(name, schema.kind(name) or Kind.STRING, count) for name in names
        ]
        weights = (
            [list(self._weights.get(position, {}).items()) for position in range(count)]
            if self._weights
            else [[]] * count
        )
        at = [self.at.get(position) for position in range(count)] if self.at else [None] * count
        texts = [self.expression.get(position) for position in range(count)]
        return pa.table(
            {
                "op": pa.array(self._fields["op"], pa.string()),
                "id": pa.array(self._fields["id"], pa.string()),
                "order": pa.array(self._fields["order"], pa.int64()),
                "time": pa.array(self._fields["time"], pa.int64()).cast(TIME),
                "until": pa.array(self._fields["until"], pa.int64()).cast(TIME),
                "weights": pa.array(weights, pa.map_(pa.string(), pa.float64())),
                "expression": pa.array(texts, pa.string()),
                "at": pa.array([one and one._asdict() for one in at], LOCATION),
                "attributes": pa.StructArray.from_arrays(attributes, names)
                if names
                else pa.array([{}] * count, pa.struct([])),
            }
        )

    def _attribute(self, name: str, kind: Kind, count: int) -> Any:
        cells = self._cells.get(name)
        of = ATTRIBUTE_TYPES[kind]
        if cells is None:
            return pa.nulls(count, of)
        rows = np.array(cells.rows, np.int64)
        is_missing = np.ones(count, np.bool_)
        is_missing[rows] = False
        if kind in (Kind.STRING, Kind.SET):
            texts: list[str | None] = [None] * count
            for row, text in zip(cells.rows, cells.low, strict=True):
                texts[row] = text
            if kind is Kind.SET:
                return set_array(pa.array(texts, pa.string()))
            return pa.array(texts, of)
        ends = []
        for given in (cells.low, cells.high):
            values = np.zeros(count)
            values[rows] = given
            ends.append(values)
        if kind is Kind.BOOLEAN:
            return pa.array(ends[0] != 0.0, of, mask=is_missing)
        if kind is Kind.TIMESTAMP:
            finite = [np.isfinite(one) for one in ends]  # a half-open range has one end
            whole = [
                np.where(is_there, one, 0.0) for is_there, one in zip(finite, ends, strict=True)
            ]
            both = [
                pa.array(one.astype(np.int64), mask=~is_there).cast(TIME)
                for is_there, one in zip(finite, whole, strict=True)
            ]
        else:
            both = [pa.array(one) for one in ends]
        return pa.StructArray.from_arrays(both, fields=list(of), mask=pa.array(is_missing))


def as_stored(attributes: Any, of: Any) -> Any:
    """*attributes*, a struct that was read from texts, as tables keep it, in the type *of*.

    A range where the table has single values is left out there: deliveries do not depend on it.
    """
    given = {
        one.name: cells for one, cells in zip(attributes.type, attributes.flatten(), strict=True)
    }
    stored = [
        pa.nulls(len(attributes), one.type)
        if one.name not in given
        else _as_stored(given[one.name], one.type)
        for one in of
    ]
    return pa.StructArray.from_arrays(stored, fields=list(of)) if stored else attributes


def _as_stored(cells: Any, of: Any) -> Any:
    if cells.type == of:
        return cells
    if pa.types.is_struct(cells.type) and pa.types.is_struct(of):
        ends = [end.cast(field.type) for end, field in zip(cells.flatten(), of, strict=True)]
        return pa.StructArray.from_arrays(ends, fields=list(of), mask=cells.is_null())
    if pa.types.is_struct(cells.type):
        low, high = cells.flatten()
        is_one = pc.equal(low, high)
        return pc.if_else(is_one, low, pa.scalar(None, low.type)).cast(of, safe=False)
    return cells.cast(of)


def check_for_everybody(
    *, among: object = None, owner: object = None, labels: object = None
) -> None:
    """Refuse what a stream does not keep: whom an event is for, whose a subscription is."""
    if among:
        raise RecordError("a stream's events are for everybody", field="among")
    for name, said in (("owner", owner), ("labels", labels)):
        if said:
            raise RecordError(
                f"a stream's subscriptions have no {name}; give each tenant a stream", field=name
            )
