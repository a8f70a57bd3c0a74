"""`stentor demo`: a generated afternoon in a city, delivered."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from stentor.cli.screen import progress
from stentor.errors import StentorError

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

    screen = Console(highlight=False)
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
    screen.print("\nYour own files: stentor match --help · in Python: import stentor · docs/")


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
        screen.print(f"  {engine.get(id)['expression']}", markup=False)
        screen.print(str(engine.explain(id, event)), markup=False)


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

    figure, axes = plt.subplots(figsize=(9, 7), layout="constrained")
    people = list(seen.places.values())
    _dots(axes, people, s=2, c="0.7", label="people")
    wanted = [(place, count) for place, count in seen.offers if count]
    unwanted = [place for place, count in seen.offers if not count]
    if unwanted:
        _dots(axes, unwanted, s=8, c="tab:red", marker="x", label="wanted by nobody")
    if wanted:
        counts = [count for _, count in wanted]
        sizes = [4 + 2 * count for count in counts]
        places = [place for place, _ in wanted]
        dots = _dots(axes, places, s=sizes, c=counts, alpha=0.6, cmap="viridis", label="offers")
        figure.colorbar(dots, label="people who were told")
    axes.set(title="Saltmere, an afternoon: who was told", xlabel="longitude", ylabel="latitude")
    axes.set_aspect(1.6)
    axes.legend(loc="lower left")
    figure.savefig(path, dpi=130)
    plt.close(figure)
    screen.print(f"\nThe map of the deliveries: {path}")
