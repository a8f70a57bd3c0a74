"""Options that several commands share, and files read into an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from stentor.cli.rejects import refused
from stentor.cli.screen import progress, size_of
from stentor.engine import Engine
from stentor.engine.report import Report
from stentor.errors import SettingsError, StentorError
from stentor.model import Schema
from stentor.model.record import Publish
from stentor.wire.files import open_records
from stentor.wire.formats import ReadSettings
from stentor.wire.records import Op
from stentor.wire.rejected import Rejected

SubscriptionsOption = Annotated[
    Path | None,
    typer.Option(
        "--subscriptions",
        "-s",
        help="JSON lines or Parquet: `id`, `expression`, `at`, `until`; `-` is stdin.",
    ),
]
EventsOption = Annotated[
    Path,
    typer.Option(
        "--events",
        "-e",
        help="JSON lines, GeoJSON, CloudEvents or Parquet: `id`, attributes; `-` is stdin.",
    ),
]
SchemaOption = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        help='A JSON object of attribute types, like `{"price": "number", "loc": "point"}`; '
        "learned from the data where it is not given.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Give the summary as JSON, for programs.")]

OnRejected = Callable[[Path, Rejected], None]


def read_schema(path: Path | None) -> Schema:
    """The schema in the file *path*; one that learns where there is none."""
    if path is None:
        return Schema()
    try:
        kinds = msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except msgspec.DecodeError as error:
        raise SettingsError(f"{path} is no object of attribute types: {error}") from None
    return Schema.declare(kinds)


def feed(
    engine: Engine, path: Path, op: Op, on_rejected: OnRejected, top: int | None = None
) -> Iterator[tuple[Report, int]]:
    """Let the records of *path* happen to *engine*: a report at a time, and how many were good."""
    settings = ReadSettings(default_op=op, limits=engine.limits)
    with progress(f"Reading {path.name}", size_of(path)) as advance:
        for chunk in open_records(path, engine.schema, settings):
            good = []
            for one, place in zip(chunk.records, chunk.places, strict=True):
                if isinstance(one, Rejected):
                    on_rejected(path, one)
                elif op == "subscribe" and isinstance(one, Publish):
                    on_rejected(path, refused(one, "this is an event, not a subscription", place))
                else:
                    good.append((one, place))
            report = engine.step([record for record, _ in good], top=top)
            taken = 0
            for (record, place), answer in zip(good, report, strict=True):
                if isinstance(answer, StentorError):
                    on_rejected(path, refused(record, str(answer), place))
                else:
                    taken += 1
            advance(chunk.bytes_read)
            yield report, taken
