"""The scan: its block kernel, on one thread and on two, against the plain loop over rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from stentor_lab.baselines.rows import matched_by_rows
from stentor_lab.result import BenchOptions, Table
from stentor_lab.structures import (
    Workload,
    build,
    figures_of,
    matching_case,
    measured_table,
)
from stentor_lab.workloads.intervals import Intervals
from stentor_lab.workloads.spatial_keyword import SpatialKeyword

SIZE: Final = 1_000_000
#: The row loop takes milliseconds for an event; the block kernel shows its speed in a batch.
FEW_EVENTS: Final = 24
MANY_EVENTS: Final = 1024
BUILDS: Final = 3


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Spatial-keyword subscriptions, then intervals; *size* is the number of subscriptions."""
    return tuple(_table(draw, options) for draw in (_spatial_keyword, _intervals))


def _spatial_keyword(size: int, seed: int) -> Workload:
    recipe = SpatialKeyword(seed)
    facts = {"workload": "spatial-keyword", "keywords": "1–5", "vocabulary": recipe.vocabulary}
    return Workload(
        "Spatial-keyword subscriptions",
        facts,
        recipe.subscriptions(size).columns(),
        recipe.events(MANY_EVENTS).columns(),
    )


def _intervals(size: int, seed: int) -> Workload:
    recipe = Intervals(seed)
    facts = {"workload": "intervals", "intervals": recipe.predicates, "alpha": recipe.alpha}
    return Workload(
        "Subscriptions of ten intervals and a box",
        facts,
        recipe.subscriptions(size).columns(),
        recipe.events(MANY_EVENTS).columns(),
    )


def _table(draw: Callable[[int, int], Workload], options: BenchOptions) -> Table:
    size = options.size or SIZE
    options.progress(f"drawing {size:,} subscriptions")
    workload = draw(size, options.seed)
    scan = build("scan", workload, options.progress, builds=BUILDS)
    index, events, figures = scan.index, workload.events, figures_of(scan, workload)
    rows, on_two = partial(matched_by_rows, index.subscriptions), partial(index.match, threads=2)
    cases = [
        matching_case("row loop (plain)", rows, events, FEW_EVENTS, {}),
        matching_case("block kernel, 1 thread", index.match, events, MANY_EVENTS, figures),
        matching_case("block kernel, 2 threads", on_two, events, MANY_EVENTS, figures),
    ]
    return measured_table(workload, cases, options)
