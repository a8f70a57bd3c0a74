"""`stentor overlay`: what each link of an overlay carries for a workload."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from stentor.broker import Overlay
from stentor.broker.messages import KINDS
from stentor.cli.demo_map import check_picture
from stentor.cli.inputs import JsonOption
from stentor.cli.overlay_file import Described, load
from stentor.cli.overlay_picture import draw
from stentor.cli.screen import console
from stentor.errors import StentorError
from stentor.model.record import Move, Publish, Record, Subscribe, Unsubscribe


def command(
    file: Annotated[Path, typer.Argument(help="Brokers, links, policies and a workload, in TOML.")],
    picture: Annotated[
        Path | None, typer.Option(help="Where to draw the overlay: `.png`, `.svg` or `.pdf`.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a workload on an overlay of brokers, and show what each link carried.

    Each subscriber and each event comes to a random broker. docs/brokers.md has an example.

        stentor overlay overlay.toml --picture overlay.png
    """
    if picture is not None:
        check_picture(picture)
    described = load(file)
    start = perf_counter()
    overlay, counts = run(described)
    counts["seconds"] = round(perf_counter() - start, 3)
    links = carried(overlay)
    if as_json:
        print(json.dumps({"links": links, "brokers": _brokers(overlay, described), **counts}))
    else:
        screen = Console(highlight=False)
        screen.print(_table(links))
        screen.print(_table(_brokers(overlay, described)))
        for name, count in counts.items():
            screen.print(f"{name:<15}{count:>12,}")
    if picture is not None:
        draw(console(), overlay, picture)


def run(described: Described) -> tuple[Overlay, dict[str, Any]]:
    """The overlay after its workload, and what came of it."""
    overlay = described.overlay()
    overlay.run()
    overlay.carried.clear()
    choose = random.Random(described.seed)
    names = list(overlay.brokers)
    homes: dict[str, str] = {}
    counts: dict[str, Any] = dict.fromkeys(("subscriptions", "events", "deliveries", "refused"), 0)
    for record in described.workload():
        broker = _place(record, homes, choose.choice(names))
        answer = overlay.send(broker, [record])[0]
        counts["deliveries"] += sum(one.added for one in overlay.run())
        if isinstance(answer, StentorError):
            counts["refused"] += 1
        counts["subscriptions"] += isinstance(record, Subscribe)
        counts["events"] += isinstance(record, Publish)
    counts["for nothing"] = overlay.unwanted
    return overlay, counts


def _place(record: Record, homes: dict[str, str], drawn: str) -> str:
    """The broker that *record* comes to: a subscriber stays where it came first."""
    match record:
        case Subscribe(subscription):
            return homes.setdefault(subscription.id, drawn)
        case Move(id) | Unsubscribe(id):
            return homes.get(id, drawn)
    return drawn


def carried(overlay: Overlay) -> list[dict[str, Any]]:
    """What each link carried, in both directions: one row each."""
    rows = []
    for pair in overlay.links:
        for sender, receiver in (pair, pair[::-1]):
            counts = Counter(
                {
                    one.kind: count
                    for one, count in overlay.carried.items()
                    if (one.sender, one.receiver) == (sender, receiver)
                }
            )
            kinds = {kind: counts[kind] for kind in KINDS.values() if kind != "greeting"}
            rows.append({"from": sender, "to": receiver, **kinds})
    return rows


def _brokers(overlay: Overlay, described: Described) -> list[dict[str, Any]]:
    return [
        {"broker": name, "policy": described.policies[name], **broker.stats()}
        for name, broker in overlay.brokers.items()
    ]


def _table(rows: list[dict[str, Any]]) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, value in (rows[0] if rows else {}).items():
        grid.add_column(name, justify="right" if isinstance(value, int) else "left")
    for row in rows:
        cells = (f"{one:,}" if isinstance(one, int) else str(one) for one in row.values())
        grid.add_row(*cells)
    return grid
