"""Many lines of JSON → columns: what is surely a plain event is read here, all else by record.

A line is read into one dict, and a value into one list for each attribute; no object is made for
an event. Whatever is not surely fine is left to the reader of single records, which finds the
value or the sentence: this module refuses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stentor.encoding.columns import Int64
from stentor.errors import RecordError
from stentor.model import Kind, Schema
from stentor.model.record import RECORD_FIELDS
from stentor.model.values import is_readable
from stentor.model.values.members import read_set, set_text
from stentor.model.values.string import MOST_ID_BYTES, read_attribute_name
from stentor.model.values.time import read_time, read_timestamp
from stentor.wire.json_text import MOST_DEPTH
from stentor.wire.limits import RecordLimits

TIME: Final = pa.timestamp("us", tz="UTC")
LOCATION: Final = pa.struct([("x", pa.float64()), ("y", pa.float64())])
#: In a table that was read from texts a number or a timestamp is a range, most often of one value.
ATTRIBUTE_TYPES: Final = {
    Kind.NUMBER: pa.struct([("low", pa.float64()), ("high", pa.float64())]),
    Kind.TIMESTAMP: pa.struct([("low", TIME), ("high", TIME)]),
    Kind.STRING: pa.string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.POINT: LOCATION,
    Kind.SET: pa.struct([("set", pa.string())]),  # the text of a set
}
#: Fields that other formats, nested events or weights have: such a line is not plain.
_NOT_PLAIN: Final = frozenset({"attributes", "specversion", "type", "weights", "among"})
_MOST_SHAPES: Final = 1_000
_MISSING: Final = type(None)

Cell = TypeVar("Cell")

_DECODE: Final = msgspec.json.Decoder().decode
_NUMBER: Final = {int, float}
_TYPES: Final[dict[Kind, set[type]]] = {
    Kind.NUMBER: {*_NUMBER, _MISSING},
    Kind.STRING: {str, _MISSING},
    Kind.BOOLEAN: {bool, _MISSING},
    Kind.TIMESTAMP: {str, _MISSING},
    Kind.POINT: {list, _MISSING},
    Kind.SET: {list, _MISSING},
}


class PlainEvents(NamedTuple):
    """The lines that are surely plain events, as columns."""

    rows: Int64  # (events,) of the lines
    ids: list[str]
    until: list[int | None]
    time: list[int | None]
    raw: list[dict[str, Any]]
    attributes: dict[str, Any]  # by name, in `ATTRIBUTE_TYPES`


class PlainLines:
    """Reads lines of JSON that hold plain events of a closed schema."""

    def __init__(self, schema: Schema, limits: RecordLimits, *, needs_op: bool) -> None:
        """*needs_op* is whether a record without an `op` is none."""
        self._schema = schema
        self._ops = ("publish",) if needs_op else (None, "publish")
        self._limits = limits
        self._most_id = MOST_ID_BYTES // 4  # characters: each has at most four bytes
        self._shapes: dict[tuple[str, ...], bool] = {}

    def read(self, lines: Iterable[bytes]) -> PlainEvents:
        """Those of *lines* that are surely plain events."""
        rows, found = [], []
        for row, line in enumerate(lines):
            event = self._plain(line)
            if event is not None:
                rows.append(row)
                found.append(event)
        doubtful, attributes = self._attributes(found)
        until, time = (self._times(found, field, doubtful) for field in ("until", "time"))
        if doubtful:
            kept = np.delete(np.arange(len(rows)), sorted(doubtful))
            rows, found = _taken(rows, kept), _taken(found, kept)
            until, time = _taken(until, kept), _taken(time, kept)
            attributes = {name: array.take(pa.array(kept)) for name, array in attributes.items()}
        ids = [event["id"] for event in found]
        return PlainEvents(np.array(rows, np.int64), ids, until, time, found, attributes)

    def _plain(self, line: bytes) -> dict[str, Any] | None:
        """The object of *line*, where it is surely one event whose keys are there once each."""
        # Too long, too deep perhaps, or with a colon (3a) that cannot be counted.
        if len(line) > self._limits.record_bytes or b"\\u003" in line:
            return None
        if line.count(b"[") + line.count(b"{") > MOST_DEPTH:
            return None
        try:
            event = _DECODE(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if type(event) is not dict:
            return None
        # Each member has one colon. More are in strings, in objects, or of a key that comes twice.
        more = line.count(b":") - len(event)
        if more and more != sum([one.count(":") for one in event.values() if type(one) is str]):
            return None
        shape = tuple(event)
        is_plain = self._shapes.get(shape)
        if is_plain is None:
            is_plain = self._is_plain(shape)
            if len(self._shapes) < _MOST_SHAPES:
                self._shapes[shape] = is_plain
        if not is_plain or event.get("op") not in self._ops:
            return None
        id, seq = event.get("id"), event.get("seq")
        if type(id) is not str or not 0 < len(id) <= self._most_id:
            return None
        if seq is not None and (type(seq) is not int or not 0 <= seq < 2**63):
            return None
        return event

    def _is_plain(self, shape: Sequence[str]) -> bool:
        """Whether an event may have keys of this *shape*, and no more is to be said of them."""
        if not _NOT_PLAIN.isdisjoint(shape) or len(shape) > self._limits.attributes:
            return False
        if any(":" in name for name in shape):
            return False
        try:
            return all(read_attribute_name(name) for name in shape)
        except RecordError:
            return False

    def _attributes(self, events: list[dict[str, Any]]) -> tuple[set[int], dict[str, Any]]:
        """The attributes, and the events of which one is not surely fine."""
        doubtful: set[int] = set()
        attributes = {}
        for name in self._schema:
            kind = self._schema.kind(name) or Kind.STRING
            if name in RECORD_FIELDS:
                attributes[name] = pa.nulls(len(events), ATTRIBUTE_TYPES[kind])
                continue
            cells = [event.get(name) for event in events]
            kinds = set(map(type, cells))
            if kinds == {_MISSING}:
                attributes[name] = pa.nulls(len(events), ATTRIBUTE_TYPES[kind])
                continue
            if not kinds <= _TYPES[kind]:
                doubtful |= _clear(cells, lambda cell, fine=_TYPES[kind]: type(cell) in fine)
            doubtful |= self._doubts(cells, kind)
            attributes[name] = _array(cells, kind)
        return doubtful, attributes

    def _doubts(self, cells: list[Any], kind: Kind) -> set[int]:
        """The positions of *cells* that are not surely fine: they are missing from here on."""
        if kind is Kind.NUMBER:
            integers = [cell for cell in cells if type(cell) is int]
            if integers and not -(2**53) <= min(integers) <= max(integers) <= 2**53:
                return _clear(cells, lambda cell: type(cell) is float or abs(cell) <= 2**53)
        elif kind is Kind.STRING:
            most = self._limits.string_bytes // 4
            if max((len(cell) for cell in cells if cell is not None), default=0) > most:
                return _clear(cells, lambda cell: len(cell) <= most)
        elif kind is Kind.SET:
            doubtful = _clear(cells, is_readable)
            cells[:] = [None if cell is None else self._set_text(cell) for cell in cells]
            return doubtful | _clear(cells, bool)
        elif kind is Kind.POINT:
            return _clear(cells, self._is_point)
        elif kind is Kind.TIMESTAMP:
            instants: dict[str, int | None] = {}
            doubtful = _clear(cells, lambda cell: _micros(cell, instants) is not None)
            cells[:] = [None if cell is None else instants[cell] for cell in cells]
            return doubtful
        return set()

    def _set_text(self, cell: list[Any]) -> str:
        """The text of the set *cell*; empty where it is not surely fine."""
        try:
            text = set_text(read_set(cell))
        except RecordError:
            return ""
        return text if len(text) <= self._limits.string_bytes // 4 else ""

    def _is_point(self, cell: list[Any]) -> bool:
        if len(cell) != 2 or not (type(cell[0]) in _NUMBER and type(cell[1]) in _NUMBER):
            return False
        x, y = cell
        if self._schema.plane:
            return bool(-(2**53) <= x <= 2**53 and -(2**53) <= y <= 2**53)
        return bool(-180 <= x <= 180 and -90 <= y <= 90)

    def _times(
        self, events: list[dict[str, Any]], field: str, doubtful: set[int]
    ) -> list[int | None]:
        found: list[int | None] = [None] * len(events)
        for position, event in enumerate(events):
            given = event.get(field)
            if given is not None:
                try:
                    found[position] = read_time(given, field)
                except RecordError:
                    doubtful.add(position)
        return found


def _taken(cells: list[Cell], positions: Int64) -> list[Cell]:
    return [cells[position] for position in positions.tolist()]


def _clear(cells: list[Any], is_fine: Any) -> set[int]:
    """Replace what is not fine in *cells* by None; the positions of that."""
    doubtful = {
        position for position, cell in enumerate(cells) if cell is not None and not is_fine(cell)
    }
    for position in doubtful:
        cells[position] = None
    return doubtful


def _micros(text: str, known: dict[str, int | None]) -> int | None:
    if text not in known:
        try:
            known[text] = int(read_timestamp(text))
        except RecordError:
            known[text] = None
    return known[text]


def set_array(texts: Any) -> Any:
    """The sets of which *texts* are the texts."""
    fields = list(ATTRIBUTE_TYPES[Kind.SET])
    return pa.StructArray.from_arrays([texts], fields=fields, mask=texts.is_null())


def _numbers(cells: list[Any]) -> Any:
    values = pa.array(cells, pa.float64())
    if pc.any(pc.equal(values, 0.0)).as_py():
        values = pc.add(values, 0.0)  # turns -0.0 into 0.0
    return _struct(values, values, Kind.NUMBER)


def _instants(cells: list[Any]) -> Any:
    values = pa.array(cells, pa.int64()).cast(TIME)
    return _struct(values, values, Kind.TIMESTAMP)


def _points(cells: list[Any]) -> Any:
    x, y = (
        pc.add(pa.array([cell and float(cell[end]) for cell in cells], pa.float64()), 0.0)
        for end in (0, 1)
    )
    return _struct(x, y, Kind.POINT)


def _struct(first: Any, second: Any, kind: Kind) -> Any:
    of = ATTRIBUTE_TYPES[kind]
    return pa.StructArray.from_arrays([first, second], fields=list(of), mask=first.is_null())


def _array(cells: list[Any], kind: Kind) -> Any:
    if kind is Kind.SET:
        return set_array(pa.array(cells, pa.string()))
    if kind in (Kind.STRING, Kind.BOOLEAN):
        return pa.array(cells, ATTRIBUTE_TYPES[kind])
    return _ARRAYS[kind](cells)


_ARRAYS: Final = {
    Kind.NUMBER: _numbers,
    Kind.TIMESTAMP: _instants,
    Kind.POINT: _points,
}
