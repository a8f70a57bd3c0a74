"""`stentor check`: every bad line of the files, with its reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from stentor.cli.inputs import (
    ANSWER_NO,
    ColumnsOption,
    JsonOption,
    SchemaOption,
    location_of,
    read_schema,
    read_settings,
    refused,
    shown_location,
)
from stentor.cli.screen import progress, size_of, summarise
from stentor.errors import SettingsError, StentorError
from stentor.language.normalise import normalise
from stentor.model import Schema
from stentor.model.record import Op, Subscribe
from stentor.wire.files import open_records
from stentor.wire.formats import ReadSettings
from stentor.wire.rejected import RecordLocation, Rejected


def command(
    subscriptions: Annotated[
        Path | None, typer.Option("--subscriptions", "-s", help="A file of subscriptions.")
    ] = None,
    events: Annotated[Path | None, typer.Option("--events", "-e", help="A file of events.")] = None,
    columns: ColumnsOption = None,
    schema: SchemaOption = None,
    as_json: JsonOption = False,
) -> None:
    """Validate files: list every bad line with its reason, and subscriptions that can never match.

    The exit code is 1 where a bad line was found. With `--json`, each finding is a JSON line.

        stentor check -s subscriptions.jsonl -e events.jsonl
    """
    if subscriptions is None and events is None:
        raise SettingsError("nothing to check: give --subscriptions, --events or both")
    known = read_schema(schema)
    counts: dict[str, Any] = {"good": 0, "bad": 0, "can never match": 0}
    inputs: list[tuple[Path | None, Op]] = [(subscriptions, "subscribe"), (events, "publish")]
    for path, op in inputs:
        if path is not None:
            _check(path, read_settings(op, columns), known, counts, as_json)
    summarise(counts, as_json=as_json, to_output=not as_json)
    if counts["bad"]:
        raise typer.Exit(ANSWER_NO)


def _check(
    path: Path, settings: ReadSettings, schema: Schema, counts: dict[str, Any], as_json: bool
) -> None:
    with progress(f"Checking {path.name}", size_of(path)) as advance:
        for chunk in open_records(path, schema, settings):
            for found, location in zip(chunk.records, chunk.locations, strict=True):
                bad = found if isinstance(found, Rejected) else None
                if isinstance(found, Subscribe):
                    bad = _unusable(found, location, path, counts, as_json)
                if bad is None:
                    counts["good"] += 1
                else:
                    counts["bad"] += 1
                    _show(path, "bad", bad, as_json)
            advance(chunk.bytes_read)


def _unusable(
    record: Subscribe, location: RecordLocation, path: Path, counts: dict[str, Any], as_json: bool
) -> Rejected | None:
    """What an engine would refuse in a subscription that was read; reports contradictions."""
    subscription = record.subscription
    try:
        form = normalise(subscription.expression)
    except StentorError as error:
        return refused(record, str(error), location)
    if form.never:
        counts["can never match"] += 1
        reason = "it asks for a contradiction, so no event can match it"
        _show(path, "can never match", refused(record, reason, location), as_json)
    return None


def _show(path: Path, what: str, found: Rejected, as_json: bool) -> None:
    if as_json:
        line = {"source": str(path), "finding": what, **location_of(found)}
        print(json.dumps(line | {"reason": found.reason, "raw": found.raw}, ensure_ascii=False))
        return
    print(f"{shown_location(path, found)}: {what}: {found.reason}")
