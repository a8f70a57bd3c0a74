"""Files of records: JSON lines, JSON documents, Parquet; told apart by what they hold.

A file that begins as Parquet does is Parquet. One called `.json` or `.geojson` that is one JSON
document is read as a whole: an array, a FeatureCollection or a single record. All others are JSON
lines.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

from stentor.errors import RecordError, StentorError
from stentor.model import Schema
from stentor.model.record import Record
from stentor.wire.formats import ReadSettings, objects_of
from stentor.wire.json_lines import read_with_places, record_or_error
from stentor.wire.json_text import from_json, to_json
from stentor.wire.rejected import Place, Rejected, raw_text

#: A larger document is read line by line, or not at all.
MOST_DOCUMENT_BYTES: Final = 256_000_000

_PARQUET: Final = b"PAR1"
_COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2"}
_BOM: Final = b"\xef\xbb\xbf"


class Chunk(NamedTuple):
    """Some records of a file, in order, and how many of its bytes have been read by then."""

    records: list[Record | Rejected]
    places: list[Place]  # where each stood
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
    found: Iterable[tuple[Record | Rejected, Place, int]] | None = None
    if Path(path).suffix.lower() in (".json", ".geojson") and Path(path).is_file():
        found = _document_records(Path(path), schema, chosen)
    source = sys.stdin.buffer if is_standard_input(path) else path
    yield from _chunks(found or read_with_places(source, schema, chosen), chunk_records)


def open_tables(path: str | PathLike[str], *, chunk_rows: int = 65_536) -> Iterator[TableChunk]:
    """The rows of the Parquet file *path* as Arrow tables, a chunk at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = Path(path).stat().st_size
    try:
        with pq.ParquetFile(path) as file:
            rows_read = 0
            for batch in file.iter_batches(chunk_rows):
                rows_read += len(batch)
                share = rows_read / file.metadata.num_rows
                yield TableChunk(pa.Table.from_batches([batch]), round(size * share))
    except pa.ArrowException as error:
        raise RecordError(f"{path} is no Parquet file that can be read: {error}") from None


def read_table(path: str | PathLike[str]) -> Any:
    """The Parquet file *path* as one Arrow table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path)
    except pa.ArrowException as error:
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
    return beginning == _PARQUET


def _beginning(path: str | PathLike[str]) -> bytes:
    if is_standard_input(path) or not Path(path).is_file():
        return b""
    with Path(path).open("rb") as file:
        return file.read(len(_PARQUET))


def is_standard_input(path: str | PathLike[str]) -> bool:
    """Whether *path* is the `-` that stands for standard input."""
    return str(path) == "-"


def _parquet_chunks(
    path: str | PathLike[str], schema: Schema, settings: ReadSettings, chunk_records: int
) -> Iterator[Chunk]:
    from stentor.wire.row_tables import records_from_table

    rows_before = 0
    for table, bytes_read in open_tables(path, chunk_rows=chunk_records):
        found = records_from_table(table, schema, settings)
        records = [_in_file(one, rows_before) for one in found]
        places = [Place(row=rows_before + row) for row in range(table.num_rows)]
        yield Chunk(records, places, bytes_read)
        rows_before += table.num_rows


def _in_file(found: Record | Rejected, rows_before: int) -> Record | Rejected:
    """*found*, its row counted from the beginning of the file."""
    if isinstance(found, Rejected) and found.row is not None:
        return replace(found, row=found.row + rows_before)
    return found


def _document_records(
    path: Path, schema: Schema, settings: ReadSettings
) -> Iterator[tuple[Record | Rejected, Place, int]] | None:
    """The records of the one JSON document *path* with its size; None where it is not one."""
    size = path.stat().st_size
    if size > MOST_DOCUMENT_BYTES:
        return None
    try:
        objects = list(objects_of(from_json(path.read_bytes().removeprefix(_BOM)), settings))
    except StentorError:
        return None
    return (
        (_record(row, raw, schema, settings), Place(row=row), size)
        for row, raw in enumerate(objects)
    )


def _record(row: int, raw: Any, schema: Schema, settings: ReadSettings) -> Record | Rejected:
    found = record_or_error(raw, schema, settings)
    if isinstance(found, StentorError):
        return Rejected(str(found), raw_text(to_json(raw)), row=row)
    return found


def _chunks(
    found: Iterable[tuple[Record | Rejected, Place, int]], chunk_records: int
) -> Iterator[Chunk]:
    remaining = iter(found)
    while taken := list(islice(remaining, chunk_records)):
        records, places, bytes_read = zip(*taken, strict=True)
        yield Chunk(list(records), list(places), bytes_read[-1])
