"""Packed, its blocks: intervals with and without locations, and subscriptions against live events.

The block scan stands first: figures are to be read as ratios to it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from stentor.encoding.columns import EventColumns, SubscriptionColumns, read_only_columns
from stentor.encoding.kinds import BOX
from stentor.encoding.ragged import take
from stentor.index.catalog import structure_class
from stentor_lab.measure import Case, measure, stopwatch
from stentor_lab.result import BenchOptions, Table, Unit
from stentor_lab.structures import Workload, build, matching_table
from stentor_lab.workloads.intervals import Intervals
from stentor_lab.workloads.pickups import FILE, hot_city, read_pickups
from stentor_lab.workloads.real_files import is_there

SIZE: Final = 1_000_000
EVENTS: Final = 2000
#: Subscriptions that look for live events together; fewer by the scan of signatures.
ASKING, ASKING_SCAN = 2000, 8
#: Metres from the middle of a square to its sides, in the hot city.
NARROW: Final = (20.0, 100.0)
PACKED: Final = "packed"


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Events → subscriptions, then subscriptions → live events; *size* of each."""
    size = options.size or SIZE
    recipes = _recipes(options.seed, size)
    matching = [_matching(title, recipe, size, options) for title, recipe in recipes.items()]
    drawn = recipes["drawn city, ten intervals"]
    nowhere = _matching("intervals without locations", drawn, size, options, located=False)
    live = [_live(title, recipe, size, options) for title, recipe in recipes.items()]
    return (*matching, nowhere, *live)


def _recipes(seed: int, size: int) -> dict[str, Intervals]:
    hot = hot_city(size, np.random.default_rng(seed))
    recipes = {
        "hot city, ten intervals": Intervals(seed, 10, places=hot, reach=NARROW),
        "hot city, four intervals": Intervals(seed, 4, places=hot, reach=NARROW),
        "drawn city, ten intervals": Intervals(seed, 10),
        "drawn city, four intervals": Intervals(seed, 4),
    }
    if is_there():
        pickups = read_pickups()
        recipes[f"{FILE}, ten intervals"] = Intervals(seed, 10, places=pickups)
        recipes[f"{FILE}, four intervals"] = Intervals(seed, 4, places=pickups)
    return recipes


def _matching(
    title: str, recipe: Intervals, size: int, options: BenchOptions, *, located: bool = True
) -> Table:
    options.progress(f"drawing {size:,} subscriptions")
    columns = recipe.subscriptions(size).columns()
    workload = Workload(
        f"Event matching: {title}",
        _facts(recipe),
        columns if located else without_boxes(columns),
        recipe.events(EVENTS).columns(),
    )
    packed = build(PACKED, workload, options.progress)
    return matching_table(workload, [packed], options, row_scan=False)


def _live(title: str, recipe: Intervals, size: int, options: BenchOptions) -> Table:
    title = f"Subscription matching: {title}"
    options.progress(f"{title}: drawing {size:,} live events")
    live = recipe.events(size).columns()
    asking = recipe.subscriptions(ASKING).columns()
    few = take(asking, np.arange(ASKING_SCAN))
    cases = [
        _asking_case("scan of signatures", "scan", live, few, few),
        _asking_case(PACKED, PACKED, live, few, asking),
    ]
    facts = {**_facts(recipe), "seed": options.seed, "live events": size}
    measured = measure(cases, options.repetitions, options.progress, title)
    return Table(title, facts, "subscription", Unit.MICROSECONDS, measured)


def _asking_case(
    shown: str,
    name: str,
    live: EventColumns,
    few: SubscriptionColumns,
    asking: SubscriptionColumns,
) -> Case:
    index = structure_class(name)()
    index.hold(live)
    found, all_found = index.match_live(few), index.match_live(asking)
    beside = index.stats()["bytes"] - index.live.nbytes
    return Case(
        shown,
        stopwatch(lambda: index.match_live(asking)),
        len(asking.until),
        lambda: found,
        figures={
            "matches/subscription": len(all_found.rows) / len(asking.until),
            "bytes/event": beside / index.live.count,
        },
    )


def _facts(recipe: Intervals) -> dict[str, Any]:
    return {"workload": "intervals", "intervals": recipe.predicates, "alpha": recipe.alpha}


def without_boxes(columns: SubscriptionColumns) -> SubscriptionColumns:
    """*columns* without their boxes."""
    kept = columns.kind != BOX
    before = np.concatenate(([0], np.cumsum(kept)))
    by_predicate = ("kind", "attribute", "low", "high", "weight", "operand_start", "operand_stop")
    rest = {name: getattr(columns, name)[kept] for name in by_predicate}
    rest["operand_start"] = rest["operand_stop"] = np.zeros(len(rest["kind"]), np.int32)
    nothing = np.zeros(0)
    return read_only_columns(
        columns._replace(
            **rest,
            predicate_start=before[columns.predicate_start],
            pair_low=nothing,
            pair_high=nothing,
        )
    )
