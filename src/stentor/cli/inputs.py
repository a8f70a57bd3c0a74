"""Options that several commands share, and files read into an engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from stentor.cli.rejects import refused
from stentor.cli.screen import progress, size_of
from stentor.engine import Engine
from stentor.errors import SettingsError, StentorError
from stentor.model import Schema
from stentor.wire.files import open_records
from stentor.wire.formats import ReadSettings
from stentor.wire.records import Op
from stentor.wire.rejected import Rejected

SubscriptionsOption = Annotated[
    Path,
    typer.Option(
        "--subscriptions", "-s", help="JSON lines or Parquet: `id`, `expression`, `at`, `until`."
    ),
]
EventsOption = Annotated[
    Path,
    typer.Option(
        "--events", "-e", help="JSON lines, GeoJSON, CloudEvents or Parquet: `id`, attributes."
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


def feed(engine: Engine, path: Path, op: Op, on_rejected: OnRejected) -> int:
    """Let all records of *path* happen to *engine*; how many were taken in."""
    taken = 0
    settings = ReadSettings(default_op=op, limits=engine.limits)
    with progress(f"Reading {path.name}", size_of(path)) as advance:
        for chunk in open_records(path, engine.schema, settings):
            good = [one for one in chunk.records if not isinstance(one, Rejected)]
            for one in chunk.records:
                if isinstance(one, Rejected):
                    on_rejected(path, one)
            for record, answer in zip(good, engine.step(good), strict=True):
                if isinstance(answer, StentorError):
                    on_rejected(path, refused(record, str(answer)))
                else:
                    taken += 1
            advance(chunk.bytes_read, f"{taken:,} taken in")
    return taken
