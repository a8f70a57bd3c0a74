"""Files of records: JSON lines, JSON documents, CSV, Parquet; bad records are data."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from io import TextIOBase
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from stentor.errors import RecordError, SettingsError, StentorError
from stentor.model import Schema
from stentor.model.record import Record
from stentor.wire.csv_files import csv_records
from stentor.wire.formats import ReadSettings, objects_of, record_from_object
from stentor.wire.json_text import from_json, to_json
from stentor.wire.records import record_to_dict
from stentor.wire.rejected import RecordLocation, Rejected, raw_text

Source = str | PathLike[str] | BinaryIO


#: A byte order mark.
BOM: Final = b"\xef\xbb\xbf"

_BLANK: Final = b" \t\r\n\x1e"
#: A larger document is read line by line, or not at all.
MOST_DOCUMENT_BYTES: Final = 256_000_000
_PARQUET: Final = b"PAR1"
_COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2"}
_BOM: Final = b"\xef\xbb\xbf"
_TABLES_OF_TEXT: Final = (".csv", ".tsv")
#: Two names with a separator between them: no JSON begins like this.
_HEADER: Final = re.compile(rb'"?[A-Za-z_][\w .-]*"?[,;\t]"?[A-Za-z_]')
#: So much of a file says what it is.
_LOOKED_AT: Final = 256


class Line(NamedTuple):
    """One line of a file, without its end; a longer one than allowed is cut, and not whole."""

    number: int  # from 1
    offset: int  # of its first byte
    stop: int  # of the byte after its end
    data: bytes
    whole: bool


def read_records(
    source: Source, schema: Schema, settings: ReadSettings | None = None
) -> Iterator[Record | Rejected]:
    """The records of *source*, a path or a binary stream, each as soon as its line is there."""
    for found, _, _ in read_with_locations(source, schema, settings or ReadSettings()):
        yield found


def read_with_locations(
    source: Source, schema: Schema, settings: ReadSettings
) -> Iterator[tuple[Record | Rejected, RecordLocation, int]]:
    """`read_records`, each with where it was and how many bytes have been read by then."""
    with _opened(source) as stream:
        for line in lines_of(stream, settings.limits.record_bytes):
            location = RecordLocation(line.number, line.offset)
            for found in records_of_line(line, schema, settings):
                yield found, location, line.stop


def write_records(records: Iterable[Record], stream: BinaryIO) -> int:
    """Write *records* to *stream* as JSON lines; returns how many there were."""
    count = 0
    for record in records:
        stream.write(to_json(record_to_dict(record)).encode() + b"\n")
        count += 1
    return count


def lines_of(stream: BinaryIO, most: int) -> Iterator[Line]:
    """The lines of *stream* that are not blank; of those above *most* bytes only the beginning.

    Memory: never more than *most* bytes of a line.
    """
    number = offset = 0
    while data := stream.readline(most + 1):
        number += 1
        stop = offset + len(data)
        whole = data.endswith(b"\n") or len(data) <= most
        while not whole and (rest := stream.readline(1 << 20)):
            stop += len(rest)
            if rest.endswith(b"\n"):
                break
        data = stripped(data)
        if data:
            yield Line(number, offset, stop, data, whole)
        offset = stop


def stripped(line: bytes) -> bytes:
    """*line* without what may be around a record: blanks, separators, a byte order mark."""
    return line.strip(_BLANK).removeprefix(BOM).strip(_BLANK)


def records_of_line(
    line: Line, schema: Schema, settings: ReadSettings
) -> Iterator[Record | Rejected]:
    """The records of one line: most often one."""
    try:
        if not line.whole:
            raise RecordError(f"the line is longer than {settings.limits.record_bytes:,} bytes")
        objects = list(objects_of(from_json(line.data), settings))
    except StentorError as error:
        yield Rejected(str(error), raw_text(line.data), line.number, line.offset)
        return
    for raw in objects:
        found = record_or_error(raw, schema, settings)
        if isinstance(found, StentorError):
            text = line.data if len(objects) == 1 else to_json(raw)
            yield Rejected(str(found), raw_text(text), line.number, line.offset)
        else:
            yield found


def _opened(source: Source) -> AbstractContextManager[BinaryIO]:
    if isinstance(source, TextIOBase):
        raise SettingsError("records are read from bytes; open the file with mode 'rb'")
    if isinstance(source, (str, PathLike)):
        return Path(source).open("rb")
    return nullcontext(source)


def record_or_error(raw: Any, schema: Schema, settings: ReadSettings) -> Record | StentorError:
    """The record of *raw*, or why there is none."""
    try:
        return record_from_object(raw, schema, settings)
    except StentorError as error:
        return error


class Chunk(NamedTuple):
    """Some records of a file, in order, and how many of its bytes have been read by then."""

    records: list[Record | Rejected]
    locations: list[RecordLocation]  # where each was
    bytes_read: int


class TableChunk(NamedTuple):
    """Some rows of a Parquet file, and about how many of its bytes have been read by then."""

    table: Any
    bytes_read: int


def open_records(
    path: str | PathLike[str],
    schema: Schema,
    settings: ReadSettings | None = None,
    *,
    chunk_records: int = 10_000,
) -> Iterator[Chunk]:
    """The records of the file *path*, a chunk at a time, whatever form it has; `-` is stdin."""
    chosen = settings or ReadSettings()
    if is_parquet(path):
        yield from _parquet_chunks(path, schema, chosen, chunk_records)
        return
    found: Iterable[tuple[Record | Rejected, RecordLocation, int]] | None = None
    if is_csv(path):
        yield from _chunks(_csv_records(Path(path), schema, chosen), chunk_records)
        return
    if Path(path).suffix.lower() in (".json", ".geojson") and Path(path).is_file():
        found = _document_records(Path(path), schema, chosen)
    source = sys.stdin.buffer if is_standard_input(path) else path
    yield from _chunks(found or read_with_locations(source, schema, chosen), chunk_records)


def open_tables(path: str | PathLike[str], *, chunk_rows: int = 65_536) -> Iterator[TableChunk]:
    """The rows of the Parquet file *path* as Arrow tables, a chunk at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = Path(path).stat().st_size
    with _reading(path), pq.ParquetFile(path) as file:
        rows_read, rows = 0, max(1, file.metadata.num_rows)
        for batch in file.iter_batches(chunk_rows):
            rows_read += len(batch)
            table = pa.Table.from_batches([batch])
            table.validate(full=False)
            yield TableChunk(table, round(size * min(1.0, rows_read / rows)))


def read_table(path: str | PathLike[str]) -> Any:
    """The Parquet file *path* as one Arrow table."""
    import pyarrow.parquet as pq

    with _reading(path):
        return pq.read_table(path)


@contextmanager
def _reading(path: str | PathLike[str]) -> Iterator[None]:
    """Whatever Arrow says of a damaged file is a RecordError; a file that is missing stays so."""
    import pyarrow as pa

    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except StentorError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError, MemoryError) as error:
        raise RecordError(f"{path} is no Parquet file that can be read: {error}") from None


def write_table(table: Any, path: str | PathLike[str]) -> None:
    """Write *table* to the Parquet file *path*."""
    import pyarrow.parquet as pq

    pq.write_table(table, path)


def is_parquet(path: str | PathLike[str]) -> bool:
    """Whether the file *path* begins as a Parquet file does, or at least is called one.

    Nothing is read from a pipe, which could not be read again.
    """
    if Path(path).suffix.lower() == ".parquet":
        return True
    beginning = _beginning(path)
    for magic, name in _COMPRESSED.items():
        if beginning.startswith(magic):
            raise RecordError(f"{path} is compressed with {name}; unpack it first")
    return beginning.startswith(_PARQUET)


def is_csv(path: str | PathLike[str]) -> bool:
    """Whether the file *path* is called CSV, or begins with a header of it."""
    if Path(path).suffix.lower() in _TABLES_OF_TEXT:
        return True
    return _HEADER.match(_beginning(path).removeprefix(_BOM)) is not None


def _beginning(path: str | PathLike[str]) -> bytes:
    if is_standard_input(path) or not Path(path).is_file():
        return b""
    with Path(path).open("rb") as file:
        return file.read(_LOOKED_AT)


def is_standard_input(path: str | PathLike[str]) -> bool:
    """Whether *path* is the `-` that means standard input."""
    return str(path) == "-"


def _parquet_chunks(
    path: str | PathLike[str], schema: Schema, settings: ReadSettings, chunk_records: int
) -> Iterator[Chunk]:
    from stentor.wire.tables import records_from_table

    rows_before = 0
    for table, bytes_read in open_tables(path, chunk_rows=chunk_records):
        found = records_from_table(table, schema, settings)
        records = [_in_file(one, rows_before) for one in found]
        locations = [RecordLocation(row=rows_before + row) for row in range(table.num_rows)]
        yield Chunk(records, locations, bytes_read)
        rows_before += table.num_rows


def _in_file(found: Record | Rejected, rows_before: int) -> Record | Rejected:
    """*found*, its row counted from the beginning of the file."""
    if isinstance(found, Rejected) and found.row is not None:
        return replace(found, row=found.row + rows_before)
    return found


def _csv_records(
    path: Path, schema: Schema, settings: ReadSettings
) -> Iterator[tuple[Record | Rejected, RecordLocation, int]]:
    """The records of the file of CSV *path*."""
    with path.open("rb") as stream:
        most = settings.limits.record_bytes
        for one in csv_records(path, stream, schema, settings.columns, most):
            found: Record | StentorError
            if isinstance(one.raw, StentorError):
                found = one.raw
            else:
                found = record_or_error(one.raw, schema, settings)
            record = (
                Rejected(str(found), raw_text(one.text), one.line, one.offset)
                if isinstance(found, StentorError)
                else found
            )
            yield record, RecordLocation(one.line, one.offset), one.stop


def _document_records(
    path: Path, schema: Schema, settings: ReadSettings
) -> Iterator[tuple[Record | Rejected, RecordLocation, int]] | None:
    """The records of the one JSON document *path* with its size; None where it is not one."""
    size = path.stat().st_size
    if size > MOST_DOCUMENT_BYTES:
        return None
    try:
        objects = list(objects_of(from_json(path.read_bytes().removeprefix(_BOM)), settings))
    except StentorError:
        return None
    return (
        (_record(row, raw, schema, settings), RecordLocation(row=row), size)
        for row, raw in enumerate(objects)
    )


def _record(row: int, raw: Any, schema: Schema, settings: ReadSettings) -> Record | Rejected:
    found = record_or_error(raw, schema, settings)
    if isinstance(found, StentorError):
        return Rejected(str(found), raw_text(to_json(raw)), row=row)
    return found


def _chunks(
    found: Iterable[tuple[Record | Rejected, RecordLocation, int]], chunk_records: int
) -> Iterator[Chunk]:
    remaining = iter(found)
    while taken := list(islice(remaining, chunk_records)):
        records, locations, bytes_read = zip(*taken, strict=True)
        yield Chunk(list(records), list(locations), bytes_read[-1])
