"""`stentor explain`: why a subscription wants an event, or why not."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from stentor.cli.inputs import (
    ANSWER_NO,
    ColumnsOption,
    SchemaOption,
    feed,
    read_schema,
    read_settings,
    shown_location,
)
from stentor.engine import Engine
from stentor.errors import NeverMatchesWarning, SettingsError, UnknownIdError
from stentor.model.record import Publish
from stentor.wire.files import open_records
from stentor.wire.json_text import from_json
from stentor.wire.rejected import Rejected

#: Refused records that are shown where the wanted one is not found.
MOST_SHOWN: Final = 10


def command(
    subscription: Annotated[
        str, typer.Argument(help="An expression; with --subscriptions, the id of one in the file.")
    ],
    event: Annotated[
        str, typer.Argument(help="An event as JSON; with --events, the id of one in the file.")
    ],
    subscriptions: Annotated[
        Path | None, typer.Option("--subscriptions", "-s", help="A file of subscriptions.")
    ] = None,
    events: Annotated[Path | None, typer.Option("--events", "-e", help="A file of events.")] = None,
    at: Annotated[
        str | None, typer.Option(help="Where the subscriber stands: `longitude,latitude`.")
    ] = None,
    columns: ColumnsOption = None,
    schema: SchemaOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Give the answer as JSON.")] = False,
) -> None:
    """Say why a subscription wants an event, or why not, predicate by predicate.

    The exit code is 0 where it does and 1 where it does not.

        stentor explain "price < 300 AND has_all(text, 'ipad')" '{"text": "iPad", "price": 350}'
    """
    engine = Engine(schema=read_schema(schema), clock=None)
    if subscriptions is None:
        with warnings.catch_warnings(category=NeverMatchesWarning, action="ignore"):
            engine.subscribe("the expression", subscription, at=read_location_option(at))
        subscription = "the expression"
    else:
        subscribe_all(engine, subscriptions, subscription)
    explanation = engine.explain(subscription, _event(engine, event, events, columns))
    print(json.dumps(asdict(explanation)) if as_json else explanation)
    if not explanation:
        raise typer.Exit(ANSWER_NO)


def read_location_option(at: str | None) -> list[float] | None:
    """The location that an option names; None where it is not given."""
    if at is None:
        return None
    try:
        x, y = map(float, at.split(","))
    except ValueError:
        raise SettingsError(
            f"--at is {at!r}; expected longitude,latitude like 151.2,-33.9"
        ) from None
    return [x, y]


def subscribe_all(engine: Engine, path: Path, *wanted: str) -> None:
    """Subscribe what a file holds; where one *wanted* is not among it, say what was refused."""
    refused: list[str] = []

    def on_rejected(source: Path, bad: Rejected) -> None:
        refused.append(f"{shown_location(source, bad)}: {bad.reason}")

    for _ in feed(engine, path, "subscribe", on_rejected):
        pass
    for id in wanted:
        if id not in engine:
            raise UnknownIdError(
                f"no subscription in {path} has the id {id!r}{_refusal_lines(refused)}", id=id
            )


def _event(
    engine: Engine, event: str, events: Path | None, columns: list[str] | None = None
) -> Any:
    """The event that the argument names: JSON text, or an id in a file."""
    if events is None:
        raw = from_json(event.encode())
        return {"id": "the event", **raw} if isinstance(raw, dict) else raw
    refused: list[str] = []
    for chunk in open_records(events, engine.schema, read_settings("publish", columns)):
        for record in chunk.records:
            if isinstance(record, Publish) and record.event.id == event:
                return record.event
            if isinstance(record, Rejected):
                refused.append(f"{shown_location(events, record)}: {record.reason}")
    raise UnknownIdError(
        f"no event in {events} has the id {event!r}{_refusal_lines(refused)}", id=event
    )


def _refusal_lines(refused: list[str]) -> str:
    """What was refused, which may be what was looked for."""
    return "".join(f"\n  refused: {one}" for one in refused[:MOST_SHOWN])
