"""What happened in an afternoon, whoever delivered it: counted, shown, and drawn as a map."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from stentor.cli.screen import NO_MATPLOTLIB, pyplot

Location = list[float]


class Offer(NamedTuple):
    """A coupon or a job: whose, where, and how many wanted it when it was published."""

    shop: str
    location: Location
    delivered: int


class Example(NamedTuple):
    """A delivery: an event, and the subscription that wanted it, as it was then."""

    event: dict[str, Any]
    subscription: str
    expression: str
    location: Location | None


@dataclass(kw_only=True)
class Story:
    """An afternoon in numbers and locations."""

    records: int = 0
    seconds: float = 0.0
    subscriptions: int = 0
    delivered: int = 0
    added: int = 0
    removed: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    offers: list[Offer] = field(default_factory=list)
    people: list[Location] = field(default_factory=list)
    example: Example | None = None


def show(screen: Console, story: Story) -> None:
    """Tell *story*: in numbers, by shop, what was refused and why, and one delivery explained."""
    screen.print()
    screen.print(_summary(story))
    screen.print(_busiest(story))
    screen.print(_rejections(story))
    if story.example is not None:
        _explain(screen, story.example)


def _summary(story: Story) -> Table:
    rows = {
        "records": f"{story.records:,} in {story.seconds:.1f} s",
        "subscriptions at the end": f"{story.subscriptions:,}",
        "delivered when published": f"{story.delivered:,}",
        "found by walking up to it": f"{story.added:,}",
        "lost by walking away": f"{story.removed:,}",
        "rejected": f"{story.reasons.total():,}",
    }
    return _table("The afternoon", rows.items())


def _busiest(story: Story) -> Table:
    delivered: Counter[str] = Counter()
    for offer in story.offers:
        delivered[offer.shop] += offer.delivered
    rows = [(shop, f"{count:,}") for shop, count in delivered.most_common(5)]
    return _table("Whose offers were told most", rows)


def _rejections(story: Story) -> Table:
    rows = [(reason, f"{count:,}") for reason, count in story.reasons.most_common(8)]
    return _table("Rejected, and why", rows)


def _table(title: str, rows: Iterable[tuple[str, str]]) -> Table:
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(overflow="fold")
    table.add_column(justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def _explain(screen: Console, example: Example) -> None:
    from stentor.engine import Engine

    engine = Engine(clock=None)
    engine.subscribe(example.subscription, example.expression, at=example.location)
    screen.print("\nOne delivery, explained")
    screen.print(f"  {example.expression}")
    screen.print(str(engine.explain(example.subscription, example.event)))


def draw(screen: Console, story: Story, path: Path) -> None:
    """Draw people, and offers as large as many people were told of them."""
    try:
        plt = pyplot()
    except ModuleNotFoundError:
        screen.print(f"\nNo picture: {NO_MATPLOTLIB}")
        return
    from matplotlib.collections import PathCollection

    figure, axes = plt.subplots(figsize=(9, 8), layout="constrained")
    _dots(axes, story.people, s=3, c="0.75", label="people", zorder=1)
    wanted = [offer for offer in story.offers if offer.delivered]
    unwanted = [offer.location for offer in story.offers if not offer.delivered]
    if unwanted:
        style = {"s": 14, "c": "tab:red", "marker": "x", "linewidths": 0.8}
        _dots(axes, unwanted, label="offers that nobody wanted", zorder=3, **style)
    if wanted:
        wanted.sort(key=lambda offer: -offer.delivered)  # small ones on top
        most = wanted[0].delivered
        sizes = [300 * offer.delivered / most for offer in wanted]
        style = {"s": sizes, "facecolors": "none", "edgecolors": "tab:blue", "linewidths": 0.6}
        label = f"offers, by how many were told (largest: {most:,})"
        _dots(axes, [offer.location for offer in wanted], label=label, zorder=2, **style)
    axes.set(title="Saltmere, an afternoon: who was told", xlabel="longitude", ylabel="latitude")
    axes.set_aspect(1 / math.cos(math.radians(story.people[0][1])))
    legend = axes.legend(loc="upper left", framealpha=0.9)
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set_sizes([30])
    figure.savefig(path, dpi=130)
    plt.close(figure)
    screen.print(f"\nThe map of the deliveries: {path}")


def _dots(axes: Any, locations: list[Location], **style: Any) -> Any:
    return axes.scatter([x for x, _ in locations], [y for _, y in locations], **style)
