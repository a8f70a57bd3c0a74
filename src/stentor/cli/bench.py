"""`stentor bench`: every structure on the user's own subscriptions and events."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from stentor.cli.inputs import (
    ColumnsOption,
    JsonOption,
    SchemaOption,
    read_schema,
    read_settings,
    shown_location,
)
from stentor.cli.screen import check_drawing, print_line, progress, pyplot, size_of, timed_line
from stentor.encoding.columns import EventColumns, SubscriptionColumns, event_count
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.ragged import events_between, take
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.errors import DisagreementError, RecordError, StentorError
from stentor.index.catalog import Choice, choice, names, structure_class
from stentor.index.structure import Structure
from stentor.language.check import check_and_learn
from stentor.model import Schema
from stentor.model.record import Op, Publish, Record, Subscribe
from stentor.wire.events import learn_event
from stentor.wire.files import open_records
from stentor.wire.rejected import Rejected

#: Sizes grow by this factor, from at least so many subscriptions, and there are at most so many.
GROWTH, SMALLEST, MOST_SIZES = 4, 1000, 4
#: Of the events, half are history, up to so many; others are timed, as many as a moment allows.
MOST_HISTORY, MOST_TIMED, LEAST_TIMED = 4096, 1024, 16
MOMENT: Final = 0.25  # seconds
COMPARED: Final = 64  # events on which all must agree before any is timed
MOST_REASONS: Final = 3


class Measurement(NamedTuple):
    """What was measured of one structure, in seconds on a core."""

    name: str
    seconds: tuple[float, ...]  # per event, of each repetition
    matches: float  # per event
    size: float  # bytes beside the columns, per subscription
    built: float  # subscriptions a second

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form."""
        low, middle, high = self.microseconds
        return {
            "index": self.name,
            "µs/event": middle,
            "low": low,
            "high": high,
            "matches/event": self.matches,
            "bytes/subscription": self.size,
            "built/s": self.built,
        }

    @property
    def microseconds(self) -> tuple[float, float, float]:
        """The lowest, the median and the highest per event."""
        return min(self.seconds) * 1e6, median(self.seconds) * 1e6, max(self.seconds) * 1e6


#: What was measured of so many subscriptions.
Tables = dict[int, list[Measurement]]


def command(
    subscriptions: Annotated[
        Path, typer.Option("--subscriptions", "-s", help="As for `stentor match`.")
    ],
    events: Annotated[Path, typer.Option("--events", "-e", help="As for `stentor match`.")],
    repetitions: Annotated[int, typer.Option(min=1, help="How many rounds.")] = 5,
    picture: Annotated[
        Path | None, typer.Option(help="Where to draw the curves: `.png`, `.svg` or `.pdf`.")
    ] = None,
    mapping: ColumnsOption = None,
    schema: SchemaOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare all matching structures on your own subscriptions and events.

    Each is built of growing parts of the subscriptions; the first half of the events is what it
    learns from, the others are timed. All answers are compared first. Rounds are interleaved, and
    the median of the CPU time is shown with the lowest and the highest.

        stentor bench -s subscriptions.jsonl -e events.jsonl --picture curves.png
    """
    if picture is not None:
        check_drawing(picture)
    known = read_schema(schema)
    columns, arrived = read(subscriptions, events, known, mapping)
    tables = {
        len(rows): compare(take(columns, rows), arrived, repetitions) for rows in _growing(columns)
    }
    chosen = choice(columns)
    if as_json:
        print(json.dumps(_to_dict(tables, arrived, chosen)))
    else:
        # Where nobody looks, the width is not known, and 80 columns would cut the figures off.
        show(tables, chosen, Console(highlight=False, width=None if sys.stdout.isatty() else 120))
    if picture is not None:
        draw(tables, picture)
        print_line(f"the picture: {picture}")


def read(
    subscriptions: Path, events: Path, schema: Schema, mapping: list[str] | None = None
) -> tuple[SubscriptionColumns, EventColumns]:
    """The columns of both files; bad records are counted, and the first of them shown."""
    subscribed: dict[str, NormalisedSubscription] = {}
    arrivals: list[TimedEvent] = []

    def subscribe(record: Record) -> None:
        if not isinstance(record, Subscribe):
            raise RecordError("this is no subscription")
        one = record.subscription
        _, form = check_and_learn(one.expression, schema, where=f"subscription {one.id!r}")
        subscribed[one.id] = NormalisedSubscription(form, one.at, one.until).checked()

    def publish(record: Record) -> None:
        if not isinstance(record, Publish):
            raise RecordError("this is no event")
        learn_event(record.event, schema)
        arrivals.append(TimedEvent(record.event, seq=len(arrivals)))

    _read(subscriptions, "subscribe", schema, subscribe)
    _read(events, "publish", schema, publish, mapping)
    if not subscribed or not arrivals:
        raise RecordError(f"{events if subscribed else subscriptions} has nothing to compare with")
    return encode_subscriptions(subscribed.values(), schema), encode_events(arrivals, schema)


def _read(
    path: Path,
    op: Op,
    schema: Schema,
    enter: Callable[[Record], None],
    columns: list[str] | None = None,
) -> None:
    bad: list[Rejected] = []
    with progress(f"Reading {path.name}", size_of(path)) as advance:
        for chunk in open_records(path, schema, read_settings(op, columns)):
            for one, location in zip(chunk.records, chunk.locations, strict=True):
                try:
                    if isinstance(one, Rejected):
                        bad.append(one)
                    else:
                        enter(one)
                except StentorError as error:
                    bad.append(Rejected(str(error), "", *location))
            advance(chunk.bytes_read)
    for one in bad[:MOST_REASONS]:
        print_line(f"{shown_location(path, one)}: {one.reason}")
    if bad:
        print_line(f"{path}: {len(bad):,} records are left out")


def _growing(columns: SubscriptionColumns) -> list[Any]:
    """Rows of growing random parts of *columns*, each of which has the one before; all at last."""
    size = len(columns.until)
    order = np.random.default_rng(1).permutation(size)
    sizes = [size]
    while len(sizes) < MOST_SIZES and sizes[0] // GROWTH >= SMALLEST:
        sizes.insert(0, sizes[0] // GROWTH)
    return [np.sort(order[:part]) for part in sizes]


def compare(
    columns: SubscriptionColumns, events: EventColumns, repetitions: int
) -> list[Measurement]:
    """Every structure on *columns*, the scan first; a DisagreementError where answers differ."""
    half = min(event_count(events) // 2, MOST_HISTORY)
    history = events_between(events, 0, half) if half else None
    unseen = events_between(events, half, None)
    few = events_between(unseen, 0, COMPARED)
    size = len(columns.until)
    built: dict[str, tuple[Structure, float]] = {}
    moments = []
    for name in names():
        if name.endswith(" layered"):  # the same structure, with a second one for changes
            continue
        with timed_line(f"{size:,} subscriptions: building {name}"):
            structure = structure_class(name)
            structure.build(take(columns, np.arange(min(size, SMALLEST))), history).match(few)
            start = process_time()
            index = structure.build(columns, history)
            built[name] = index, size / (process_time() - start)
            answer = index.match(few)
            start = process_time()
            index.match(few)
            moments.append((process_time() - start) / event_count(few))
        if name == "scan":
            expected = answer
        elif any(map(_differ, answer, expected)):
            raise DisagreementError(f"{name} answers otherwise than scan, so times mean nothing")
    timed = int(np.clip(MOMENT / max(moments), LEAST_TIMED, MOST_TIMED))
    batch = events_between(unseen, 0, timed)
    seconds: dict[str, list[float]] = {name: [] for name in built}
    with timed_line(
        f"{size:,} subscriptions: {repetitions} rounds of {event_count(batch):,} events"
    ):
        for _ in range(repetitions):
            for name, (index, _) in built.items():
                start = process_time()
                index.match(batch)
                seconds[name].append((process_time() - start) / event_count(batch))
    matches = len(expected.rows) / event_count(few)
    return [
        Measurement(name, tuple(seconds[name]), matches, _beside(index) / size, rate)
        for name, (index, rate) in built.items()
    ]


def _differ(one: Any, other: Any) -> bool:
    return not np.array_equal(one, other)


def _beside(index: Structure) -> int:
    """The bytes that *index* takes beside the columns, which all structures share."""
    return int(index.stats()["bytes"]) - index.subscriptions.nbytes


def _fastest(rows: Iterable[Measurement]) -> Measurement:
    return min(rows, key=lambda row: median(row.seconds))


def _to_dict(tables: Tables, events: EventColumns, chosen: Choice) -> dict[str, Any]:
    largest = tables[max(tables)]
    return {
        "subscriptions": max(tables),
        "events": event_count(events),
        "tables": [
            {"subscriptions": size, "rows": [row.to_dict() for row in rows]}
            for size, rows in tables.items()
        ],
        "fastest": _fastest(largest).name,
        "auto": chosen._asdict(),
    }


def show(tables: Tables, chosen: Choice, screen: Console) -> None:
    """Print the table of all subscriptions, the medians by size, and what `auto` would choose."""
    largest = tables[max(tables)]
    scan = median(largest[0].seconds)
    heads = ("µs/event", "low–high", "ratio", "matches/event", "bytes/subscription", "built/s")
    screen.print(f"{max(tables):,} subscriptions")
    screen.print(_grid(heads, ((row.name, _cells(row, scan)) for row in largest)))
    if len(tables) > 1:
        screen.print("µs/event by the number of subscriptions")
        by_name = zip(*tables.values(), strict=True)
        lines = ((rows[0].name, [_number(row.microseconds[1]) for row in rows]) for rows in by_name)
        screen.print(_grid([f"{size:,}" for size in tables], lines))
    best = _fastest(largest)
    ratio = scan / median(best.seconds)
    screen.print(f"fastest here: {best.name}, {_number(ratio)} times as fast as scan")
    screen.print(f"auto would choose: {chosen.name} ({chosen.reason})", soft_wrap=True)


def _cells(row: Measurement, scan: float) -> Iterator[str]:
    low, middle, high = row.microseconds
    yield _number(middle)
    yield f"{_number(low)}–{_number(high)}"
    yield f"{_number(scan / median(row.seconds))}×"
    yield from map(_number, (row.matches, row.size, row.built))


def _grid(heads: Sequence[str], lines: Iterable[tuple[str, Iterable[str]]]) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("")
    for head in heads:
        grid.add_column(head, justify="right")
    for name, cells in lines:
        grid.add_row(name, *cells)
    return grid


def _number(value: float) -> str:
    """*value* with three digits that count, or all of them before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def draw(tables: Tables, path: Path) -> None:
    """Draw a curve for each structure: microseconds per event over subscriptions."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for rows in zip(*tables.values(), strict=True):
        low, middle, high = np.array([row.microseconds for row in rows]).T
        spread = [middle - low, high - middle]
        axes.errorbar(list(tables), middle, spread, marker="o", capsize=3, label=rows[0].name)
    axes.set(
        xscale="log", yscale="log", xlabel="subscriptions", ylabel="µs of CPU per event, and spread"
    )
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path)
    plt.close(figure)
