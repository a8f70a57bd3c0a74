"""Safe regions: how many steps of travellers need not be told, and what it takes to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from stentor.encoding.columns import EventColumns, Float64, Int64
from stentor.encoding.ragged import take
from stentor.engine.safe_region import Regions
from stentor.index.safe_distance import SafeDistances, distance_bounds, shrunk_distances
from stentor.index.table import EventTable
from stentor_lab.measure import Case, measure, stopwatch
from stentor_lab.result import BenchOptions, Table, Unit
from stentor_lab.workloads.moving_keyword import MovingKeyword, moment

#: Whose regions are asked for, one after the other.
TRAVELLERS: Final = 200
#: Regions that were told at most, the live messages that they are among, and new messages.
REGIONS, LIVE, MESSAGES = 100_000, 2_000, 64
#: After how many timestamps it is asked who is still inside.
STEPS: Final = (1, 3, 10)


def safe_regions(recipe: MovingKeyword, facts: Mapping[str, Any], options: BenchOptions) -> Table:
    """Regions among the live messages of *facts*, and how many are still inside theirs later."""
    title = "Safe regions"
    travellers = recipe.travellers(TRAVELLERS)
    start = travellers.places()
    columns = recipe.subscriptions(start).columns()
    each = [take(columns, np.array([row])) for row in range(TRAVELLERS)]
    distances = SafeDistances(EventTable.over(recipe.live_messages(facts["live messages"])))
    known = distances.of(columns, moment(0))
    ends = known[np.isfinite(known)]
    figures = {
        "endless": 1.0 - len(ends) / len(known),
        "metres otherwise": float(np.median(ends)) if len(ends) else 0.0,
    }
    for step in range(1, STEPS[-1] + 1):
        travellers.step()
        if step in STEPS:
            inside = _metres(start, travellers.places()) <= known
            figures[f"inside after {step}"] = float(inside.mean())

    def ask() -> None:
        for one in each:
            distances.of(one, moment(0))

    case = Case("one after the other", stopwatch(ask), TRAVELLERS, figures=figures)
    rows = measure([case], options.repetitions, options.progress, title)
    return Table(title, facts, "region", Unit.MICROSECONDS, rows, compared=False)


def shrunk_regions(recipe: MovingKeyword, facts: Mapping[str, Any], options: BenchOptions) -> Table:
    """Whose regions a new message shrinks: all looked at, or those that it is near to."""
    title = "Safe regions that a message shrinks"
    count = min(facts["subscriptions"], REGIONS)
    columns = recipe.subscriptions(recipe.travellers(count).places()).columns()
    live = min(count, LIVE)
    known = SafeDistances(EventTable.over(recipe.live_messages(live))).of(columns, moment(0))
    regions, every = Regions(), np.arange(count)
    regions.put(every, columns, known, plane=False)
    batch = recipe.messages(MESSAGES, 1)
    messages = [take(batch, np.array([row])) for row in range(MESSAGES)]

    def all_of_them() -> tuple[Int64, ...]:
        return tuple(
            np.flatnonzero(shrunk_distances(columns, message, known) < known)
            for message in messages
        )

    def near(message: EventColumns) -> Int64:
        found = regions.shrunk(message, lambda rows: (columns, rows), {})
        return np.zeros(0, np.int64) if found is None else found.row

    def near_ones() -> tuple[Int64, ...]:
        return tuple(map(near, messages))

    figures = {"told/message": sum(map(len, near_ones())) / MESSAGES}
    cases = [
        Case("all regions", stopwatch(all_of_them), MESSAGES, answer=all_of_them, figures=figures),
        Case("circles", stopwatch(near_ones), MESSAGES, answer=near_ones, figures=figures),
        Case("circles, in a batch", stopwatch(lambda: near(batch)), MESSAGES),
    ]
    rows = measure(cases, options.repetitions, options.progress, title)
    about = {**facts, "subscriptions": count, "live messages": live}
    return Table(title, about, "message", Unit.MICROSECONDS, rows)


def _metres(start: Float64, stop: Float64) -> Float64:
    """How far each has gone, at most."""
    both = zip(start.tolist(), stop.tolist(), strict=True)
    return np.array([distance_bounds(x1, y1, x2, y2, False)[1] for (x1, y1), (x2, y2) in both])
