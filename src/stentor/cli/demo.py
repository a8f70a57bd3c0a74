"""`stentor demo`: a generated afternoon in a city, delivered."""

from __future__ import annotations

import math
from collections import Counter
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from stentor.cli.screen import progress
from stentor.errors import SettingsError, StentorError

#: What the map may be.
PICTURES = (".png", ".svg", ".pdf")
#: Records that are handed to the engine at a time.
STEP = 500


def command(
    people: Annotated[int, typer.Option(min=1, help="How many people walk about.")] = 5_000,
    events: Annotated[int, typer.Option(min=1, help="How many coupons and jobs come.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Of the generated afternoon.")] = 1,
    picture: Annotated[Path, typer.Option(help="Where the map of the deliveries goes.")] = Path(
        "stentor-demo.png"
    ),
) -> None:
    """Watch the engine on a city's afternoon: people who walk about, coupons, jobs, bad records."""
    from stentor.engine import Engine
    from stentor.workloads.city import Afternoon

    if picture.suffix not in PICTURES:
        raise SettingsError(f"--picture is {picture}; its name ends with {' or '.join(PICTURES)}")
    screen = Console(highlight=False, markup=False)
    afternoon = Afternoon(people=people, events=events, moves=5 * events, seed=seed)
    screen.print(f"An afternoon in Saltmere: {len(afternoon):,} records, seed {seed}")
    engine, seen = Engine(), _Seen()
    start = perf_counter()
    with progress("Delivering", len(afternoon)) as advance:
        remaining = afternoon.records()
        while records := list(islice(remaining, STEP)):
            for record, answer in zip(records, engine.step(records), strict=True):
                seen.add(record, answer)
            advance(seen.records, f"{seen.delivered:,} delivered")
    seconds = perf_counter() - start
    screen.print(seen.summary(len(engine), seconds))
    screen.print(seen.busiest())
    screen.print(seen.rejections())
    _show_one(screen, engine, seen)
    _draw(screen, seen, picture)
    screen.print(
        "\nYour own files: .venv/bin/stentor match --help · in Python: import stentor · docs/"
    )


class _Seen:
    """What happened, counted while it happens."""

    def __init__(self) -> None:
        self.records = self.delivered = self.added = self.removed = 0
        self.by_shop: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.places: dict[str, list[float]] = {}  # of people
        self.offers: list[tuple[list[float], int]] = []  # where, and how many wanted it
        self.example: tuple[str, dict[str, Any]] | None = None

    def add(self, record: dict[str, Any], answer: Any) -> None:
        """Take in a record and its answer."""
        self.records += 1
        if isinstance(answer, StentorError):
            self.reasons[str(answer).split("\n", 1)[0]] += 1
        elif record["op"] == "publish":
            self.delivered += len(answer)
            self.by_shop[record["shop"]] += len(answer)
            self.offers.append((record["loc"], len(answer)))
            if answer:
                self.example = answer[0], record
        else:
            self.added += len(answer.added)
            self.removed += len(answer.removed)
            if "at" in record:
                self.places[record["id"]] = record["at"]

    def summary(self, subscriptions: int, seconds: float) -> Table:
        """The afternoon in numbers."""
        rows = {
            "records": f"{self.records:,} in {seconds:.1f} s",
            "subscriptions at the end": f"{subscriptions:,}",
            "delivered when published": f"{self.delivered:,}",
            "found by walking up to it": f"{self.added:,}",
            "lost by walking away": f"{self.removed:,}",
            "rejected": f"{self.reasons.total():,}",
        }
        return _table("The afternoon", rows.items())

    def busiest(self) -> Table:
        """Whose offers reached most people."""
        best = self.by_shop.most_common(5)
        return _table("Whose offers were wanted most", [(shop, f"{n:,}") for shop, n in best])

    def rejections(self) -> Table:
        """Why records were refused."""
        worst = self.reasons.most_common(8)
        return _table("Rejected, and why", [(reason, f"{n:,}") for reason, n in worst])


def _table(title: str, rows: Any) -> Table:
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(overflow="fold")
    table.add_column(justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def _show_one(screen: Console, engine: Any, seen: _Seen) -> None:
    if seen.example is None:
        return
    id, event = seen.example
    if id in engine:
        screen.print("\nOne delivery, explained")
        screen.print(f"  {engine.get(id)['expression']}")
        screen.print(str(engine.explain(id, event)))


def _dots(axes: Any, places: list[list[float]], **style: Any) -> Any:
    return axes.scatter([x for x, _ in places], [y for _, y in places], **style)


def _draw(screen: Console, seen: _Seen, path: Path) -> None:
    """A map: people, and offers as large as many people wanted them."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        screen.print("\nNo picture: matplotlib is not installed (pip install 'stentor[pictures]')")
        return
    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.collections import PathCollection

    figure, axes = plt.subplots(figsize=(9, 8), layout="constrained")
    _dots(axes, list(seen.places.values()), s=3, c="0.75", label="people", zorder=1)
    wanted = [(place, count) for place, count in seen.offers if count]
    unwanted = [place for place, count in seen.offers if not count]
    if unwanted:
        style = {"s": 14, "c": "tab:red", "marker": "x", "linewidths": 0.8}
        _dots(axes, unwanted, label="offers that nobody wanted", zorder=3, **style)
    if wanted:
        wanted.sort(key=lambda one: -one[1])  # small ones on top
        most = wanted[0][1]
        sizes = [300 * count / most for _, count in wanted]
        style = {"s": sizes, "facecolors": "none", "edgecolors": "tab:blue", "linewidths": 0.6}
        label = f"offers, by how many were told (largest: {most:,})"
        _dots(axes, [place for place, _ in wanted], label=label, zorder=2, **style)
    axes.set(title="Saltmere, an afternoon: who was told", xlabel="longitude", ylabel="latitude")
    axes.set_aspect(1 / math.cos(math.radians(seen.offers[0][0][1])))
    legend = axes.legend(loc="upper left", framealpha=0.9)
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set_sizes([30])
    figure.savefig(path, dpi=130)
    plt.close(figure)
    screen.print(f"\nThe map of the deliveries: {path}")
