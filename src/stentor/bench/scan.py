"""The scan: its block kernel, on one thread and on two, against the plain loop over rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np

from stentor.bench.measure import Case, measure, stopwatch
from stentor.bench.result import BenchOptions, Progress, Table, Unit
from stentor.bench.structures import COMPARED_EVENTS, matched_by_rows, nbytes
from stentor.encoding.columns import EventColumns, MatchPairs, SubscriptionColumns
from stentor.encoding.ragged import take
from stentor.index.scan import Scan
from stentor.workloads.intervals import Intervals
from stentor.workloads.spatial_keyword import SpatialKeyword

SIZE: Final = 1_000_000
#: The row loop takes milliseconds for an event; the block kernel shows its speed in a batch.
FEW_EVENTS: Final = 24
MANY_EVENTS: Final = 1024
BUILDS: Final = 3


Match = Callable[[EventColumns], MatchPairs]


class Drawn(NamedTuple):
    """A workload: what it is, its subscriptions and events."""

    title: str
    facts: Mapping[str, Any]
    columns: SubscriptionColumns
    events: EventColumns


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Spatial-keyword subscriptions, then intervals; *size* is the number of subscriptions."""
    return tuple(_table(draw, options) for draw in (_spatial_keyword, _intervals))


def _spatial_keyword(size: int, seed: int) -> Drawn:
    recipe = SpatialKeyword(seed)
    facts = {"workload": "spatial-keyword", "keywords": "1–5", "vocabulary": recipe.vocabulary}
    return Drawn(
        "Spatial-keyword subscriptions",
        facts,
        recipe.subscriptions(size).columns(),
        recipe.events(MANY_EVENTS).columns(),
    )


def _intervals(size: int, seed: int) -> Drawn:
    recipe = Intervals(seed)
    facts = {"workload": "intervals", "intervals": recipe.predicates, "alpha": recipe.alpha}
    return Drawn(
        "Subscriptions of ten intervals and a box",
        facts,
        recipe.subscriptions(size).columns(),
        recipe.events(MANY_EVENTS).columns(),
    )


def _table(draw: Callable[[int, int], Drawn], options: BenchOptions) -> Table:
    size = options.size or SIZE
    options.progress(f"drawing {size:,} subscriptions")
    title, facts, columns, events = draw(size, options.seed)
    scan, build_rate = _built(columns, size, options.progress)
    # What the structure holds beside the exact columns, which every row reads.
    beside = (scan.stats()["bytes"] - scan.subscriptions.nbytes) / size
    figures = {"bytes/subscription": beside, "built/s": build_rate}
    cases = [
        _case(
            "row loop (plain)", partial(matched_by_rows, scan.subscriptions), events, FEW_EVENTS, {}
        ),
        _case("block kernel, 1 thread", scan.match, events, MANY_EVENTS, figures),
        _case(
            "block kernel, 2 threads", partial(scan.match, threads=2), events, MANY_EVENTS, figures
        ),
    ]
    measured = measure(cases, options.repetitions, options.progress, title)
    exact = nbytes(columns) / size
    workload = {
        **facts,
        "seed": options.seed,
        "subscriptions": size,
        "exact columns": f"{exact:.0f} bytes/subscription",
    }
    return Table(title, workload, "event", Unit.MICROSECONDS, measured)


def _case(
    name: str, match: Match, events: EventColumns, timed: int, figures: Mapping[str, float]
) -> Case:
    """*match* timed on the first so many *events*, compared with others on more of them."""
    compared = match(_first(events, COMPARED_EVENTS))
    batch = _first(events, timed)
    return Case(
        name,
        stopwatch(lambda: match(batch)),
        timed,
        lambda: compared,
        figures={"matches/event": len(compared.rows) / COMPARED_EVENTS, **figures},
    )


def _built(columns: SubscriptionColumns, size: int, progress: Progress) -> tuple[Scan, float]:
    """A scan of *columns*, and how many subscriptions go into it per second."""
    seconds = []
    for build in range(BUILDS):
        progress(f"building the scan: {build + 1} of {BUILDS}")
        start = time.perf_counter()
        scan = Scan.build(columns)
        seconds.append(time.perf_counter() - start)
    return scan, size / median(seconds)


def _first(events: EventColumns, count: int) -> EventColumns:
    return take(events, np.arange(count))
