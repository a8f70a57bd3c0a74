"""What commands read: options, files into an engine; rejected files; exit codes."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Final, NoReturn, Self, TextIO

import msgspec
import typer
from typer.core import TyperGroup

from stentor.cli.screen import progress, size_of
from stentor.engine import Engine
from stentor.engine.report import Report
from stentor.errors import DisagreementError, JavaEndedError, SettingsError, StentorError
from stentor.model import Schema
from stentor.model.record import EVENT_OPS, Op, Publish, Record, Update
from stentor.wire.files import open_records
from stentor.wire.formats import ReadSettings
from stentor.wire.json_text import to_json
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits
from stentor.wire.mapping import NO_MAPPING, ColumnMapping
from stentor.wire.records import (
    record_to_dict,
)
from stentor.wire.rejected import RecordLocation, Rejected, raw_text

SubscriptionsOption = Annotated[
    Path | None,
    typer.Option(
        "--subscriptions",
        "-s",
        help="JSON lines, CSV or Parquet: `id`, `expression`, `at`, `until`; `-` is stdin.",
    ),
]
EventsOption = Annotated[
    Path,
    typer.Option(
        "--events",
        "-e",
        help="JSON lines, GeoJSON, CloudEvents, CSV or Parquet: `id`, attributes; `-` is stdin.",
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
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        help="What attributes of events are made of: `loc=lon,lat` is a point of two columns, "
        "`price=Preis` another name. May be given several times.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Give the summary as JSON, for programs.")]
OnRejected = Callable[[Path, Rejected], None]
#: Done, and the answer is no: bad lines were found, the event is not wanted, a strict run stopped.
ANSWER_NO: Final = 1
#: The command was called wrongly; Typer's own code for it.
WRONG_USAGE: Final = 2
#: An input cannot be used at all: a missing file, a foreign folder, a broken expression.
UNUSABLE: Final = 3
#: Stentor itself is at fault: nothing can be said about the input.
DEFECT: Final = 70
#: The user wants no more of it, as shells say it.
INTERRUPTED: Final = 130
#: Whoever read the output went away, as shells say it.
UNREAD: Final = 141
#: What the command runs on has ended, Spark's Java process say: start it again, nothing is lost.
ENDED: Final = 4


class RejectedFile:
    """A file of JSON lines that comes into being with the first bad record.

    One that an earlier run left behind is emptied where there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
        elif kind is None and self.path.is_file():
            self.path.write_text("")

    def add(self, source: Path, rejected: Rejected) -> None:
        """Write down one bad record of *source*."""
        if self._file is None:
            self._file = self.path.open("w", encoding="utf-8")
        self.count += 1
        line = {"source": str(source), **location_of(rejected)}
        line |= {"reason": rejected.reason, "raw": rejected.raw}
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")


def location_of(rejected: Rejected) -> dict[str, int]:
    """Where a bad record was: its line and offset in a file, or its row in a table."""
    locations = {"line": rejected.line, "offset": rejected.offset, "row": rejected.row}
    return {name: location for name, location in locations.items() if location is not None}


def shown_location(source: Path, rejected: Rejected) -> str:
    """Where a bad record was, for people: `file:line`, or `file, row n`."""
    if rejected.line is not None:
        return f"{source}:{rejected.line}"
    return f"{source}, row {rejected.row}" if rejected.row is not None else str(source)


def refused(record: Record, reason: str, location: RecordLocation) -> Rejected:
    """A record that was read, but that the engine refused."""
    return Rejected(reason, raw_text(to_json(record_to_dict(record))), *location)


def read_schema(path: Path | None) -> Schema:
    """The schema in the file *path*; one that learns where there is none."""
    if path is None:
        return Schema()
    try:
        kinds = msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except msgspec.DecodeError as error:
        raise SettingsError(f"{path} is no object of attribute types: {error}") from None
    return Schema.declare(kinds)


def read_settings(
    op: Op, columns: list[str] | None = None, limits: RecordLimits = DEFAULT_RECORD_LIMITS
) -> ReadSettings:
    """How a file of records is read that do *op*; *columns* are those of events."""
    mapping = ColumnMapping.of_texts(columns or []) if op in EVENT_OPS else NO_MAPPING
    return ReadSettings(default_op=op, limits=limits, columns=mapping)


def feed(
    engine: Engine,
    path: Path,
    op: Op,
    on_rejected: OnRejected,
    top: int | None = None,
    columns: list[str] | None = None,
) -> Iterator[tuple[Report, Counter[str]]]:
    """Let the records of *path* happen to *engine*: a report at a time, and what was done in it.

    That is how many good records there were of each operation. With *top* an update is refused:
    who enters by it has no score.
    """
    settings = read_settings(op, columns, engine.limits)
    with progress(f"Reading {path.name}", size_of(path)) as advance:
        for chunk in open_records(path, engine.schema, settings):
            good = []
            for one, location in zip(chunk.records, chunk.locations, strict=True):
                if isinstance(one, Rejected):
                    on_rejected(path, one)
                elif op == "subscribe" and isinstance(one, Publish):
                    on_rejected(
                        path, refused(one, "this is an event, not a subscription", location)
                    )
                elif top is not None and isinstance(one, Update):
                    on_rejected(path, refused(one, "an update has no k best: publish it", location))
                else:
                    good.append((one, location))
            report = engine.step([record for record, _ in good], top=top)
            taken: Counter[str] = Counter()
            for (record, location), answer in zip(good, report, strict=True):
                if isinstance(answer, StentorError):
                    on_rejected(path, refused(record, str(answer), location))
                else:
                    taken[type(record).__name__.lower()] += 1
            advance(chunk.bytes_read)
            yield report, taken


class Commands(TyperGroup):
    """All commands; Typer's own exit code for an end from outside would be 1, which means no."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that *ctx* names."""
        try:
            found = super().invoke(ctx)
            sys.stdout.flush()  # later than here nobody could say that it is not read
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
        except BrokenPipeError:
            _leave_output()
            raise SystemExit(UNREAD) from None
        return found


def run_to_exit(app: typer.Typer) -> None:
    """Run the command line that *app* describes, and exit."""
    name = app.info.name
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, TextIOWrapper):
            output.reconfigure(errors="replace")  # a plain locale has no ✓
    try:
        app()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except SettingsError as error:
        _stop(name, str(error), WRONG_USAGE)
    except DisagreementError as error:
        _stop(name, str(error), DEFECT)
    except JavaEndedError as error:
        _stop(name, str(error), ENDED)
    except StentorError as error:
        _stop(name, str(error), UNUSABLE)
    except OSError as error:
        named = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        _stop(name, named, UNUSABLE)
    except Exception as error:  # noqa: BLE001  # the last word on what nobody foresaw
        traceback.print_exc()
        named = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        _stop(name, f"this is a defect of Stentor, please report it: {named}", DEFECT)


def _leave_output() -> None:
    """Let what is still to be written go nowhere: Python flushes it at its end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _stop(program: str | None, message: str, code: int) -> NoReturn:
    print(f"{program}: {message}", file=sys.stderr)
    raise SystemExit(code)
