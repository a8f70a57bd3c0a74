"""`stentor size`: the memory and the cores that so many subscriptions and events will need."""

from __future__ import annotations

import gc
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import process_time
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from stentor.cli.inputs import ColumnsOption, JsonOption, SchemaOption, read_schema, read_settings
from stentor.engine import Engine
from stentor.errors import RecordError
from stentor.model import Schema
from stentor.model.record import Op, Publish, Subscribe
from stentor.wire.events import event_to_dict
from stentor.wire.files import open_records
from stentor.wire.records import (
    subscription_to_dict,
)

#: The sample is measured whole and by its quarter; what is larger is cut.
MOST_SAMPLED: Final = 100_000
MOST_EVENTS: Final = 2_000
#: Above this share of a core's time, queues grow.
BUSY: Final = 0.6
#: What a process takes before anything is subscribed: Python, Arrow, compiled kernels.
BASE_BYTES: Final = 250_000_000
ROUNDS: Final = 3


class Measured(NamedTuple):
    """What a sample of so many subscriptions took."""

    subscriptions: int
    bytes: float  # for a subscription, ids and texts included
    seconds: float  # for an event, of one core
    matches: float  # for an event


class Estimate(NamedTuple):
    """What is to be expected; seconds are of one core."""

    subscriptions: int
    rate: float
    bytes: float
    seconds: float
    cores: int

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form."""
        return {
            "subscriptions": self.subscriptions,
            "events/s": self.rate,
            "bytes": round(self.bytes),
            "µs/event": self.seconds * 1e6,
            "cores": self.cores,
        }


def command(
    count: Annotated[
        int, typer.Argument(metavar="SUBSCRIPTIONS", min=1, help="How many there will be.")
    ],
    rate: Annotated[float, typer.Argument(metavar="RATE", min=0.001, help="Events a second.")],
    subscriptions: Annotated[
        Path | None,
        typer.Option(
            "--subscriptions", "-s", help="A file of some of them, as for `stentor match`."
        ),
    ] = None,
    events: Annotated[
        Path | None, typer.Option("--events", "-e", help="A file of some events, likewise.")
    ] = None,
    columns: ColumnsOption = None,
    schema: SchemaOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate the memory and the cores that SUBSCRIPTIONS and RATE need.

    A sample is measured on this machine, whole and by its quarter, and drawn out to what you ask
    for: your own with `-s` and `-e`, the demonstration's city where you have none. Give as many of
    yours as you can.

        stentor size 2000000 500 -s subscriptions.jsonl -e events.jsonl
    """
    if (subscriptions is None) != (events is None):
        raise typer.BadParameter("--subscriptions and --events go together")
    known = read_schema(schema)
    wishes, arrivals = _city() if subscriptions is None else (
        list(_records(subscriptions, "subscribe", known)),
        list(_records(events or subscriptions, "publish", known, columns)),
    )  # fmt: skip
    if len(wishes) < 8 or not arrivals:
        raise RecordError("a sample needs at least eight subscriptions and an event")
    measured = measure(wishes[:MOST_SAMPLED], arrivals[:MOST_EVENTS])
    estimate = drawn_out(measured, count, rate)
    if as_json:
        samples = [one._asdict() for one in measured]
        print(json.dumps(estimate.to_dict() | {"samples": samples}))
        return
    _show(measured, estimate, "your files" if subscriptions else "the demonstration's city")


def measure(wishes: list[dict[str, Any]], events: list[dict[str, Any]]) -> list[Measured]:
    """What the quarter of the *wishes* takes, and the whole."""
    return [_measured(wishes[: len(wishes) // 4], events), _measured(wishes, events)]


def _measured(wishes: list[dict[str, Any]], events: list[dict[str, Any]]) -> Measured:
    engine = Engine(clock=None)
    texts = sum(len(str(one["id"])) + len(str(one["expression"])) for one in wishes)
    engine.step([{**one, "op": "subscribe"} for one in wishes])
    engine.publish_batch(events[:8])  # compiles what is not compiled yet
    gc.collect()
    rounds = []
    found = 0
    for _ in range(ROUNDS):
        start = process_time()
        found = engine.publish_batch(events).matches.num_rows
        rounds.append((process_time() - start) / len(events))
    # Python keeps about a hundred bytes for each id and each text beside their characters.
    held = engine.stats()["bytes"] + texts + 200 * len(wishes)
    return Measured(len(wishes), held / len(wishes), median(rounds), found / len(events))


def drawn_out(measured: list[Measured], count: int, rate: float) -> Estimate:
    """What *count* subscriptions and *rate* events a second take, from two samples.

    Bytes grow with the subscriptions. Seconds grow by a power between none and one, which the two
    samples tell; from 20,000 alternatives on the index is another than below, so a larger sample
    tells more.
    """
    small, large = measured
    grown = math.log(large.seconds / small.seconds) / math.log(
        large.subscriptions / small.subscriptions
    )
    power = min(1.0, max(0.0, grown))
    seconds = large.seconds * (count / large.subscriptions) ** power
    return Estimate(
        count,
        rate,
        BASE_BYTES + large.bytes * count,
        seconds,
        max(1, math.ceil(rate * seconds / BUSY)),
    )


def _city() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    from stentor.demo.afternoon import Afternoon

    day = Afternoon(people=20_000, events=500, moves=0, leaving=0, bad=0)
    found: dict[str, list[dict[str, Any]]] = {"subscribe": [], "publish": []}
    for record in day.records():
        found[str(record["op"])].append({key: record[key] for key in record if key not in _DROPPED})
    return found["subscribe"], found["publish"]


_DROPPED: Final = ("op", "seq", "time", "until")


def _records(
    path: Path, op: Op, schema: Schema, columns: list[str] | None = None
) -> Iterator[dict[str, Any]]:
    """The good records of a file, as dicts without an end."""
    for chunk in open_records(path, schema, read_settings(op, columns)):
        for record in chunk.records:
            if isinstance(record, Subscribe) and op == "subscribe":
                found = subscription_to_dict(record.subscription)
                yield {key: found[key] for key in ("id", "expression", "at") if key in found}
            elif isinstance(record, Publish) and op == "publish":
                yield event_to_dict(record.event)


def _show(measured: list[Measured], estimate: Estimate, sample: str) -> None:
    screen = Console(highlight=False, width=None if sys.stdout.isatty() else 100)
    table = Table(box=None, pad_edge=False)
    for name in ("subscriptions", "bytes each", "µs/event", "matches/event"):
        table.add_column(name, justify="right")
    for one in measured:
        table.add_row(
            f"{one.subscriptions:,}",
            f"{one.bytes:,.0f}",
            f"{one.seconds * 1e6:,.1f}",
            f"{one.matches:,.1f}",
        )
    screen.print(f"Measured here on {sample}, one core, in batches:")
    screen.print(table)
    screen.print(
        f"\n{estimate.subscriptions:,} subscriptions and {estimate.rate:,g} events a second:\n"
        f"  memory  {estimate.bytes / 1e6:,.0f} MB in a process\n"
        f"  time    {estimate.seconds * 1e6:,.1f} µs of a core for an event\n"
        f"  cores   {estimate.cores}, busy to {BUSY:.0%} at most"
    )
