"""JSON lines → records, one per line; a bad line is data and never stops the next.

A line may also hold an array of records or a GeoJSON FeatureCollection. Empty lines are skipped; a
byte order mark at the beginning, CRLF and the record separators of RFC 8142 are fine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from io import TextIOBase
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from stentor.errors import RecordError, SettingsError, StentorError
from stentor.model import Schema
from stentor.model.record import Record
from stentor.wire.formats import ReadSettings, objects_of, record_from_object
from stentor.wire.json_text import from_json, to_json
from stentor.wire.records import record_to_dict
from stentor.wire.rejected import Place, Rejected, raw_text

Source = str | PathLike[str] | BinaryIO

_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r\n\x1e"


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
    for found, _, _ in read_with_places(source, schema, settings or ReadSettings()):
        yield found


def read_with_places(
    source: Source, schema: Schema, settings: ReadSettings
) -> Iterator[tuple[Record | Rejected, Place, int]]:
    """`read_records`, each with where it stood and how many bytes have been read by then."""
    with _opened(source) as stream:
        for line in lines_of(stream, settings.limits.record_bytes):
            place = Place(line.number, line.offset)
            for found in records_of_line(line, schema, settings):
                yield found, place, line.stop


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
        if number == 1:
            data = data.removeprefix(_BOM)
        data = data.strip(_BLANK)
        if data:
            yield Line(number, offset, stop, data, whole)
        offset = stop


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
