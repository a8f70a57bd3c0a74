"""Structures side by side on one workload: the row scan first, the block scan, then the others.

Every benchmark of a structure is made of these, so that all print the same figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from stentor.encoding.columns import EventColumns, MatchPairs, SubscriptionColumns, event_count
from stentor.encoding.ragged import events_between, take
from stentor.index.catalog import structure_class
from stentor.index.structure import Structure
from stentor_lab.baselines.rows import matched_by_rows
from stentor_lab.measure import Case, measure, stopwatch
from stentor_lab.result import BenchOptions, Progress, Table, Unit

#: The row scan takes milliseconds for an event: it is timed on few, and compared on few.
ROW_SCAN_EVENTS: Final = 24
COMPARED_EVENTS: Final = 256

Match = Callable[[EventColumns], MatchPairs]


@dataclass(frozen=True, slots=True)
class Workload:
    """What is matched: subscriptions, events that nobody has seen, and perhaps a history."""

    title: str
    facts: Mapping[str, Any]
    columns: SubscriptionColumns
    events: EventColumns
    history: EventColumns | None = None

    @property
    def size(self) -> int:
        return len(self.columns.until)


@dataclass(frozen=True, slots=True)
class Contender:
    """A structure that was built, and what that took."""

    name: str
    index: Structure
    built_per_second: float


def build(
    name: str,
    workload: Workload,
    progress: Progress,
    *,
    shown: str | None = None,
    builds: int = 1,
) -> Contender:
    """The structure *name* (with its settings) on *workload*; the best of some *builds* counts."""
    structure, best = structure_class(name), float("inf")
    structure.build(*_warm_up(workload))
    for attempt in range(builds):
        progress(f"{workload.title}: building {name}, {attempt + 1} of {builds}")
        start = time.perf_counter()
        index = structure.build(workload.columns, workload.history)
        best = min(best, time.perf_counter() - start)
    return Contender(shown or name, index, workload.size / best)


def matching_table(
    workload: Workload,
    contenders: Sequence[Contender],
    options: BenchOptions,
    *,
    row_scan: bool = True,
) -> Table:
    """All of *contenders* matching the same events, with the scans first.

    The structures are built anew by nobody: hand over what `build` gave. The block scan is built
    here if it is not among them. Without *row_scan* the block scan is the first row.
    """
    if all(contender.index.name != "scan" for contender in contenders):
        contenders = [build("scan", workload, options.progress, shown="block scan"), *contenders]
    cases = []
    if row_scan:
        rows = partial(matched_by_rows, contenders[0].index.subscriptions)
        cases.append(matching_case("row scan", rows, workload.events, ROW_SCAN_EVENTS, {}))
    for contender in contenders:
        figures = figures_of(contender, workload)
        timed = event_count(workload.events)
        match = contender.index.match
        cases.append(matching_case(contender.name, match, workload.events, timed, figures))
    return measured_table(workload, cases, options)


def measured_table(workload: Workload, cases: Sequence[Case], options: BenchOptions) -> Table:
    """The table of *cases*, which match the events of *workload*."""
    facts = {
        **workload.facts,
        "seed": options.seed,
        "subscriptions": workload.size,
        "exact columns": f"{nbytes(workload.columns) / workload.size:.0f} bytes/subscription",
    }
    measured = measure(cases, options.repetitions, options.progress, workload.title)
    return Table(workload.title, facts, "event", Unit.MICROSECONDS, measured)


def figures_of(contender: Contender, workload: Workload) -> dict[str, float]:
    """What stands beside the times of *contender*: counted work, memory, build rate."""
    index = contender.index
    beside = index.stats()["bytes"] - index.subscriptions.nbytes
    return {
        **index.counted_work(events_between(workload.events, 0, COMPARED_EVENTS)),
        "bytes/subscription": beside / workload.size,
        "built/s": contender.built_per_second,
    }


def nbytes(columns: SubscriptionColumns | EventColumns) -> int:
    """The bytes of all arrays of *columns*."""
    return sum(array.nbytes for array in columns)


def matching_case(
    name: str, match: Match, events: EventColumns, timed: int, figures: Mapping[str, float]
) -> Case:
    """*match* timed on the first so many *events*, compared with others on more of them."""
    few = min(COMPARED_EVENTS, event_count(events))
    compared = match(events_between(events, 0, few))
    batch = events_between(events, 0, min(timed, event_count(events)))
    return Case(
        name,
        stopwatch(lambda: match(batch)),
        event_count(batch),
        lambda: compared,
        figures={"matches/event": len(compared.rows) / few, **figures},
    )


def _warm_up(workload: Workload) -> tuple[SubscriptionColumns, EventColumns | None]:
    """A few rows of *workload*: building them compiles what building all of it needs."""
    rows = np.arange(min(workload.size, 1000))
    return take(workload.columns, rows), workload.history
