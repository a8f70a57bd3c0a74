"""Safe regions: how many steps of travellers need not be told, and what it takes to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from stentor.bench.measure import Case, measure, stopwatch
from stentor.bench.result import BenchOptions, Table, Unit
from stentor.encoding.columns import Float64
from stentor.encoding.ragged import take
from stentor.index.distance_bounds import distance_bounds
from stentor.index.safe_distance import SafeDistances
from stentor.index.table import EventTable
from stentor.workloads.moving_keyword import MovingKeyword, moment

#: Whose regions are asked for, one after the other.
TRAVELLERS: Final = 200
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


def _metres(start: Float64, stop: Float64) -> Float64:
    """How far each has gone, at most."""
    both = zip(start.tolist(), stop.tolist(), strict=True)
    return np.array([distance_bounds(x1, y1, x2, y2, False)[1] for (x1, y1), (x2, y2) in both])
