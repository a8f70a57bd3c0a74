"""What happened in an afternoon, whoever delivered it: counted, and shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

Place = list[float]


class Offer(NamedTuple):
    """A coupon or a job: whose, where, and how many were told when it was published."""

    shop: str
    place: Place
    told: int


class Example(NamedTuple):
    """A delivery: an event, and the subscription that wanted it, as it stood then."""

    event: dict[str, Any]
    subscription: str
    expression: str
    place: Place | None


@dataclass(kw_only=True)
class Story:
    """An afternoon in numbers and places."""

    records: int = 0
    seconds: float = 0.0
    subscriptions: int = 0
    delivered: int = 0
    added: int = 0
    removed: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    offers: list[Offer] = field(default_factory=list)
    people: list[Place] = field(default_factory=list)
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
    told: Counter[str] = Counter()
    for offer in story.offers:
        told[offer.shop] += offer.told
    rows = [(shop, f"{count:,}") for shop, count in told.most_common(5)]
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
    engine.subscribe(example.subscription, example.expression, at=example.place)
    screen.print("\nOne delivery, explained")
    screen.print(f"  {example.expression}")
    screen.print(str(engine.explain(example.subscription, example.event)))
