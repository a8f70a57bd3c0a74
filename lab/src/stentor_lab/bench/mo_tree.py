"""The MO-Tree: events against subscriptions, subscriptions against live events, and maintenance.

The flat bitset scan that any structure for intervals must be held against (every attribute cut
into cells, a bit for each subscription and cell, intersected over tiles) is the block scan: on
this workload it cuts each of its 22 filters into 16 cells.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, MatchPairs, SubscriptionColumns, read_only
from stentor.encoding.ragged import events_between, take
from stentor.index.catalog import structure_class
from stentor.index.structure import Structure
from stentor.index.table import SubscriptionTable
from stentor.index.verify.candidates import group_by_event
from stentor_lab.baselines.rows import matched_by_rows
from stentor_lab.measure import Case, measure, stopwatch
from stentor_lab.result import BenchOptions, Table, Unit
from stentor_lab.structures import Workload, build, matching_table
from stentor_lab.workloads.intervals import Intervals
from stentor_lab.workloads.pickups import FILE, Places, read_pickups
from stentor_lab.workloads.real_files import VARIABLE, is_there

SIZE: Final = 1_000_000
EVENTS: Final = 1024
#: What is published before: from it the tree measures where values lie.
HISTORY: Final = 8192
#: Subscriptions that are matched backwards together; fewer by the row scan, which takes long.
ASKING, ASKING_ROW_SCAN = 256, 4
#: Items that come, go or move together.
CHANGED: Final = 10_000
#: About one, in degrees: nearly nobody leaves a cell by it.
METRE: Final = 1e-5

TUNED, PAPER = "mo_tree", "mo_tree paper"


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Event matching, subscription matching, maintenance; *size* subscriptions and live events."""
    size = options.size or SIZE
    locations, city = _places()
    recipes = [
        ("ten intervals and a square", Intervals(options.seed, 10, places=locations)),
        ("four intervals and a square", Intervals(options.seed, 4, places=locations)),
        ("ten of equally popular attributes", Intervals(options.seed, 10, 0.0, places=locations)),
    ]
    matching = [_event_matching(title, recipe, city, size, options) for title, recipe in recipes]
    recipe = recipes[0][1]
    return (
        *matching,
        _subscription_matching(recipe, city, size, options),
        _maintenance(recipe, city, size, options),
    )


def _places() -> tuple[Places | None, str]:
    """The places of a real city where there is real data, and what they are."""
    if not is_there():
        return None, f"drawn ({VARIABLE} names no folder)"
    return read_pickups(), FILE


def _facts(recipe: Intervals, city: str) -> dict[str, Any]:
    return {
        "workload": "intervals",
        "intervals": recipe.predicates,
        "alpha": recipe.alpha,
        "places": city,
    }


def _event_matching(
    title: str, recipe: Intervals, city: str, size: int, options: BenchOptions
) -> Table:
    options.progress(f"drawing {size:,} subscriptions")
    events = recipe.events(EVENTS + HISTORY).columns()
    workload = Workload(
        f"Event matching: {title}",
        _facts(recipe, city),
        recipe.subscriptions(size).columns(),
        events_between(events, 0, EVENTS),
        events_between(events, EVENTS, None),
    )
    contenders = [build(name, workload, options.progress) for name in (TUNED, PAPER)]
    return matching_table(workload, contenders, options)


def _subscription_matching(recipe: Intervals, city: str, size: int, options: BenchOptions) -> Table:
    """Late subscribers against live events; the row scan verifies each event."""
    title = "Subscription matching"
    options.progress(f"{title}: drawing {size:,} live events")
    live = recipe.events(size).columns()
    asking = recipe.subscriptions(ASKING).columns()
    few = take(asking, np.arange(ASKING_ROW_SCAN))
    cases = [
        Case(
            "row scan",
            stopwatch(lambda: _back_by_rows(few, live)),
            ASKING_ROW_SCAN,
            lambda: _back_by_rows(few, live),
        )
    ]
    for name, shown in (("scan", "scan of signatures"), (TUNED, TUNED), (PAPER, PAPER)):
        options.progress(f"{title}: filing the live events in {name}")
        cases.append(_asking_case(shown, _index_of(name, recipe, live), few, asking))
    facts = {**_facts(recipe, city), "seed": options.seed, "live events": size}
    measured = measure(cases, options.repetitions, options.progress, title)
    return Table(title, facts, "subscription", Unit.MICROSECONDS, measured)


def _index_of(name: str, recipe: Intervals, live: EventColumns) -> Structure:
    """An index of as many subscriptions as its layers are chosen by, and all of *live*."""
    index = structure_class(name).build(recipe.subscriptions(HISTORY).columns(), live)
    index.hold(live)
    return index


def _asking_case(
    shown: str, index: Structure, few: SubscriptionColumns, asking: SubscriptionColumns
) -> Case:
    found = index.match_live(few)
    beside = index.stats()["bytes"] - index.subscriptions.nbytes - index.live.nbytes
    return Case(
        shown,
        stopwatch(lambda: index.match_live(asking)),
        ASKING,
        lambda: found,
        figures={
            "matches/subscription": len(index.match_live(asking).rows) / ASKING,
            "bytes/event": beside / index.live.count,
        },
    )


def _back_by_rows(columns: SubscriptionColumns, live: EventColumns) -> MatchPairs:
    """For each of *columns* the *live* events that it wants, by the verifier asked about each."""
    table = SubscriptionTable.over(columns)
    pairs = matched_by_rows(table, live)
    starts, order = np.zeros(table.count + 1, np.int64), np.empty(len(pairs.rows), np.int64)
    group_by_event(read_only(pairs.rows), starts, order)
    return MatchPairs(starts, np.repeat(np.arange(len(live.until)), np.diff(pairs.starts))[order])


def _maintenance(recipe: Intervals, city: str, size: int, options: BenchOptions) -> Table:
    """What it takes to let subscriptions and live events come, go and move, in batches."""
    title = "Maintenance"
    options.progress(f"{title}: building {TUNED} of {size:,} subscriptions and live events")
    some = min(CHANGED, size)
    subscriptions = recipe.subscriptions(size + some).moving_columns()
    events = recipe.events(size + some).columns()
    index = structure_class(TUNED).build(take(subscriptions, np.arange(size)))
    empty_bytes = index.stats()["empty bytes"]
    built = index.stats()["bytes"] - index.subscriptions.nbytes - empty_bytes
    index.hold(events_between(events, 0, size))
    held = index.stats()["bytes"] - index.subscriptions.nbytes - index.live.nbytes - empty_bytes
    changes = Changes(index, subscriptions, events, size, options.seed)
    cases = [
        Case(name, stopwatch(work), some)
        for name, work in (
            ("insert subscriptions", changes.insert),
            ("delete subscriptions", changes.delete),
            ("move subscribers by a metre", changes.move_near),
            ("move subscribers anywhere", changes.move_far),
            ("insert events", changes.hold),
            ("delete events", changes.drop),
        )
    ]
    facts = {
        **_facts(recipe, city),
        "seed": options.seed,
        "subscriptions": size,
        "live events": size,
        "batch": some,
        "bytes/subscription": round(built / size),
        "bytes/event": round((held - built) / size),
        "empty structure": f"{empty_bytes / 1e6:.1f} MB",
    }
    measured = measure(cases, options.repetitions, options.progress, title)
    return Table(title, facts, "item", Unit.MICROSECONDS, measured, compared=False)


class Changes:
    """Changes to an index in batches; what came goes again, so that its size stays the same."""

    def __init__(
        self,
        index: Structure,
        subscriptions: SubscriptionColumns,
        events: EventColumns,
        size: int,
        seed: int,
    ) -> None:
        self._index = index
        count = len(subscriptions.until)
        self._late = take(subscriptions, np.arange(size, count))
        self._late_events = take(events, np.arange(size, len(events.until)))
        random = np.random.default_rng(seed)
        self._moving = random.choice(size, count - size, replace=False)
        self._position = subscriptions.position.reshape(-1, 2)[self._moving]
        self._random = random
        self._came: list[Int64] = []
        self._held: list[Int64] = []

    def insert(self) -> None:
        first = self._index.insert(self._late)
        self._came.append(np.arange(first, self._index.count))

    def delete(self) -> None:
        self._index.remove(self._came.pop())

    def move_near(self) -> None:
        self._position = self._position + METRE
        self._index.move(self._moving, self._position)

    def move_far(self) -> None:
        self._position = self._random.permutation(self._position)
        self._index.move(self._moving, self._position)

    def hold(self) -> None:
        first = self._index.hold(self._late_events)
        self._held.append(np.arange(first, self._index.live.count))

    def drop(self) -> None:
        self._index.drop(self._held.pop())
