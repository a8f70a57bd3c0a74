"""Files of CSV → records as objects: the header says what cells are called, the schema their kinds.

A column that the schema does not know is of the kind that all cells of the file's first lines can
be read as.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from stentor.errors import RecordError
from stentor.model import Kind, Schema
from stentor.model.values.geometry import read_geometry
from stentor.model.values.time import read_time
from stentor.wire.csv import Dialect, kind_of_cells, read_cell, read_json, read_number_or_text
from stentor.wire.mapping import ColumnMapping

#: So many lines tell of which kinds columns are.
_LOOKED_AT: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TEXTS: Final = ("id", "op", "expression", "owner")
_INSTANTS: Final = ("time", "until", "seq")
_OBJECTS: Final = ("at", "weights", "labels", "among")
_BOM: Final = b"\xef\xbb\xbf"


class CsvRecord(NamedTuple):
    """One record of a file: its object, or why there is none."""

    raw: dict[str, Any] | RecordError
    text: str
    line: int  # from 1
    offset: int  # of its first byte
    stop: int  # of the byte after its end


class _Text(NamedTuple):
    text: str | None  # None: it is too long, or no UTF-8
    shown: bytes
    line: int
    offset: int
    stop: int


def dialect_of(path: Path, header: str) -> Dialect:
    """How the cells of a file are separated: by what its name or its *header* shows.

    >>> dialect_of(Path("a.csv"), "id;price").separator
    ';'
    """
    separators = "\t,;" if path.suffix.lower() == ".tsv" else ",;\t"
    return Dialect(separator=max(separators, key=header.count))


def csv_records(
    path: Path, stream: BinaryIO, schema: Schema, mapping: ColumnMapping, most_bytes: int
) -> Iterator[CsvRecord]:
    """The records of a file of CSV, whose first line is its header; *mapping* comes after it."""
    lines = _texts(stream, most_bytes, None)
    first = next(lines, None)
    if first is None:
        return
    if first.text is None:
        raise RecordError(f"{path}: the header is longer than {most_bytes:,} bytes, or not UTF-8")
    dialect = dialect_of(path, first.text)
    header = [name.strip() for name in dialect.cells(first.text)]
    if len({*header}) < len(header):
        raise RecordError(f"{path}: the header of the file has two columns of one name")
    texts = _texts(stream, most_bytes, dialect, first.line, first.stop)
    sample = list(islice(texts, _LOOKED_AT))
    kinds = _kinds(
        header, [one.text for one in sample if one.text is not None], dialect, schema, mapping
    )
    for one in chain(sample, texts):
        shown = one.shown.decode("utf-8", "replace")
        record = _record(one, header, dialect, kinds, schema)
        yield CsvRecord(record, shown, one.line, one.offset, one.stop)


def _texts(
    stream: BinaryIO, most_bytes: int, dialect: Dialect | None, line: int = 0, offset: int = 0
) -> Iterator[_Text]:
    """The records' texts: a line each, or several where quotes are open at the end of one."""
    while data := stream.readline(most_bytes + 1):
        first, start = line + 1, offset
        line, offset = first, start + len(data)
        is_whole = data.endswith(b"\n") or len(data) <= most_bytes
        while dialect is not None and is_whole and dialect.opens(data.decode("utf-8", "replace")):
            more = stream.readline(most_bytes + 1 - len(data)) if len(data) <= most_bytes else b""
            if not more:
                break
            data, line, offset = data + more, line + 1, offset + len(more)
        while not is_whole and (rest := stream.readline(1 << 20)):
            offset += len(rest)
            if rest.endswith(b"\n"):
                break
        data = data.removeprefix(_BOM).rstrip(b"\r\n")
        if data.strip():
            text = None
            if is_whole:
                try:
                    text = data.decode()
                except UnicodeDecodeError:
                    text = None
            yield _Text(text, data, first, start, offset)
        if dialect is None:
            return


def _kinds(
    header: list[str], texts: list[str], dialect: Dialect, schema: Schema, mapping: ColumnMapping
) -> dict[str, Kind | None]:
    """The kind of each column; None where cells are JSON of any kind."""
    cells: dict[str, list[str]] = {name: [] for name in header}
    for text in texts:
        try:
            own = dialect.cells(text)
        except RecordError:
            continue
        for name, cell in zip(header, own, strict=False):
            if cell not in ("", dialect.null):
                cells[name].append(cell)
    known = {name: schema.kind(name) for name in header}
    for name, columns in mapping.sources:
        kind = schema.kind(name) if len(columns) == 1 else Kind.NUMBER
        known |= dict.fromkeys(columns, kind)
    return {name: known[name] or _kind(own) for name, own in cells.items()}


def _kind(cells: list[str]) -> Kind | None:
    starts = {cell.strip()[:1] for cell in cells}
    if cells and starts <= {"[", "{"}:
        return None
    if cells and all(map(_is_point, cells)):
        return Kind.POINT
    return kind_of_cells(cells)


def _is_point(cell: str) -> bool:
    try:
        read_geometry(cell)
    except RecordError:
        return False
    return True


def _record(
    text: _Text,
    header: list[str],
    dialect: Dialect,
    kinds: dict[str, Kind | None],
    schema: Schema,
) -> dict[str, Any] | RecordError:
    if text.text is None:
        return RecordError("the line is too long, or not UTF-8; save the text as UTF-8")
    try:
        cells = dialect.cells(text.text)
        if len(cells) != len(header):
            raise RecordError(f"the header has {len(header)} cells, this line {len(cells)}")
        return {
            name: _value(name, cell, kinds[name], schema)
            for name, cell in zip(header, cells, strict=True)
            if cell not in ("", dialect.null)
        }
    except RecordError as error:
        return error


def _value(name: str, cell: str, kind: Kind | None, schema: Schema) -> Any:
    if name in _TEXTS:
        return cell
    if name in _INSTANTS:
        return read_number_or_text(cell)
    if name in _OBJECTS or kind is None:
        return read_json(cell, name)
    is_new = schema.kind(name) is None  # to a schema that knows it, its text says more
    if kind is Kind.TIMESTAMP and is_new and not cell.lstrip().startswith("{"):
        micros = read_time(cell, name)
        return None if micros is None else _EPOCH + timedelta(microseconds=micros)
    if kind is Kind.POINT and cell.strip()[:1] not in ("[", "{"):
        return read_geometry(cell, name)
    return read_cell(cell, kind, name)
