"""`stentor size`: the memory and the cores that so many subscriptions and events will need."""

from __future__ import annotations

import gc
import json
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import thread_time
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
from stentor.wire.records import subscription_to_dict

#: The sample is measured whole and by its quarter; what is larger is cut. It is also the size of
#: the sample that is drawn where none is given.
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
    matches: float  # for an event
    cores: int

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form."""
        return {
            "subscriptions": self.subscriptions,
            "events/s": self.rate,
            "bytes": round(self.bytes),
            "µs/event": self.seconds * 1e6,
            "matches/event": self.matches,
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
    for: your own with `-s` and `-e`, and as many as you can. Where you give none one is drawn, of
    100,000 people with two words, a price and a circle, who live in a country that grows with
    them: an event is wanted by as many of ten million as of ten thousand.

        stentor size 2000000 500 -s subscriptions.jsonl -e events.jsonl
    """
    if (subscriptions is None) != (events is None):
        raise typer.BadParameter("--subscriptions and --events go together")
    known = read_schema(schema)
    if subscriptions is None:
        measured = [_measured(*drawn(number)) for number in (MOST_SAMPLED // 4, MOST_SAMPLED)]
    else:
        wishes = list(_records(subscriptions, "subscribe", known))
        arrivals = list(_records(events or subscriptions, "publish", known, columns))
        if len(wishes) < 8 or not arrivals:
            raise RecordError("a sample needs at least eight subscriptions and an event")
        measured = measure(wishes[:MOST_SAMPLED], arrivals[:MOST_EVENTS])
    estimate = drawn_out(measured, count, rate)
    if as_json:
        samples = [one._asdict() for one in measured]
        print(json.dumps(estimate.to_dict() | {"samples": samples}))
        return
    _show(measured, estimate, "your files" if subscriptions else "a sample that was drawn")


def measure(wishes: list[dict[str, Any]], events: list[dict[str, Any]]) -> list[Measured]:
    """What the quarter of the *wishes* takes, and the whole."""
    return [_measured(wishes[: len(wishes) // 4], events), _measured(wishes, events)]


def _measured(wishes: list[dict[str, Any]], events: list[dict[str, Any]]) -> Measured:
    engine = Engine(clock=None)
    texts = sum(len(str(one["id"])) + len(str(one["expression"])) for one in wishes)
    engine.step([{**one, "op": "subscribe"} for one in wishes])
    engine.rebuild()  # into the index that so many end up in: nothing is merged behind the scenes
    engine.publish_batch(events[:8])  # compiles what is not compiled yet
    gc.collect()
    rounds = []
    found = 0
    for _ in range(ROUNDS):
        start = thread_time()
        found = engine.publish_batch(events).matches.num_rows
        rounds.append((thread_time() - start) / len(events))
    # Python keeps about a hundred bytes for each id and each text beside their characters.
    held = engine.stats()["bytes"] + texts + 200 * len(wishes)
    return Measured(len(wishes), held / len(wishes), median(rounds), found / len(events))


def drawn_out(measured: list[Measured], count: int, rate: float) -> Estimate:
    """What *count* subscriptions and *rate* events a second take, from two samples.

    Bytes grow with the subscriptions. Seconds and matches grow by a power between none and one,
    which the two samples tell; from 20,000 alternatives on the index is another than below, so a
    larger sample tells more.
    """
    small, large = measured
    times = large.subscriptions / small.subscriptions
    more = count / large.subscriptions
    seconds = large.seconds * more ** _power(large.seconds / small.seconds, times)
    grown = large.matches / small.matches if small.matches else 1.0
    return Estimate(
        count,
        rate,
        BASE_BYTES + large.bytes * count,
        seconds,
        large.matches * more ** _power(grown, times),
        max(1, math.ceil(rate * seconds / BUSY)),
    )


def _power(grown: float, times: float) -> float:
    """By which power of a size that is so many *times* another something has *grown*."""
    return min(1.0, max(0.0, math.log(grown) / math.log(times))) if grown > 0 else 0.0


def drawn(count: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """*count* people who live as densely as any number of them, and events where they live."""
    draw = random.Random(count)
    words = [f"word{number}" for number in range(5_000)]
    ranks = [1 / (number + 10) for number in range(5_000)]  # a few are common, most are rare
    spread = 0.1 * math.sqrt(count / 50_000)  # degrees

    def place() -> list[float]:
        return [round(draw.gauss(13.4, 1.5 * spread), 5), round(draw.gauss(0, spread), 5)]

    wishes: list[dict[str, Any]] = []
    for number in range(count):
        wanted = "', '".join(draw.choices(words, ranks, k=2))
        price, metres = draw.randrange(10, 500), draw.choice((500, 2000, 5000))
        text = (
            f"has_all(text, '{wanted}') AND price < {price} AND ST_DWithin(loc, here(), {metres})"
        )
        wishes.append({"id": f"s{number}", "expression": text, "at": place()})
    events = [
        {
            "id": f"e{number}",
            "text": " ".join(draw.choices(words, ranks, k=12)),
            "price": draw.randrange(500),
            "loc": place(),
        }
        for number in range(MOST_EVENTS)
    ]
    return wishes, events


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
        f"  time    {estimate.seconds * 1e6:,.1f} µs of a core for an event,"
        f" which {estimate.matches:,.3g} want\n"
        f"  cores   {estimate.cores}, busy to {BUSY:.0%} at most"
    )
