"""Structures measured over one thing that varies: every curve of the report is made here.

At each point all contenders are built, agree on the answer (`measure`), and take turns. The block
scan, `packed` and `auto` stand in every figure that a structure for matching can stand in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    ScoredPairs,
    SubscriptionColumns,
    event_count,
)
from stentor.encoding.ragged import events_between, take
from stentor.index.structure import Structure
from stentor_lab.baselines.rivals import any_structure, shown_name
from stentor_lab.measure import Answer, Case, cpu_stopwatch, measure
from stentor_lab.reproduce.curves import Curve, Panel, Point, X
from stentor_lab.reproduce.scale import RunSettings
from stentor_lab.result import Row
from stentor_lab.structures import Workload

#: What stands in every figure beside the paper's contenders.
OURS: Final = ("scan", "packed", "auto")
#: Rivals that take milliseconds to insert one subscription or to match one event.
SLOW: Final = ("r_star_tree",)
#: Behind a structure's name: inserted one by one, where it is built at once otherwise.
GROWN: Final = " dynamic"
#: Events or subscriptions on which all must agree.
COMPARED: Final = 64


@dataclass(frozen=True)
class Contender:
    """A structure that was built, and what that took."""

    name: str
    index: Structure
    seconds: float


def build(name: str, columns: SubscriptionColumns, history: EventColumns | None) -> Contender:
    """The structure *name* of *columns*; a few of them first, so that compiling does not count."""
    is_grown = name.endswith(GROWN)
    kind = any_structure(name.removesuffix(GROWN), columns)
    few = take(columns, np.arange(min(200, len(columns.until))))
    kind.build(few, history)
    if is_grown:
        kind().insert(few)
    start = time.process_time()
    if is_grown:
        index = kind()
        index.insert(columns)
    else:
        index = kind.build(columns, history)
    return Contender(name, index, time.process_time() - start)


@dataclass(frozen=True)
class Axis:
    """What varies."""

    name: str
    values: Sequence[X]
    log: bool = False


@dataclass
class Collected:
    """Points of curves while they are measured."""

    panel: Callable[[tuple[Curve, ...]], Panel]
    points: dict[str, list[Point]]
    compared: list[int] = field(
        default_factory=list
    )  # pairs that all answered with, point by point

    def add(self, x: X, rows: Iterable[Row], factor: float = 1e6) -> None:
        """A point at *x* for each of *rows*; seconds times *factor*."""
        for row in rows:
            samples = tuple(factor * seconds for seconds in row.seconds)
            self.points.setdefault(row.name, []).append(Point(x, samples, dict(row.figures)))

    def done(self, *more: Curve) -> Panel:
        """The panel of all points, and of *more* curves."""
        curves = tuple(Curve(name, tuple(points)) for name, points in self.points.items())
        panel = self.panel((*curves, *more))
        if not self.compared:
            return panel
        pairs = sorted({min(self.compared), max(self.compared)})
        told = f"equal before timing; so many pairs at a point: {'–'.join(map(str, pairs))}"
        return replace(panel, facts={**panel.facts, "answers": told})


def collecting(key: str, title: str, axis: Axis, y: str, facts: Mapping[str, Any]) -> Collected:
    """A panel whose points are still to come."""
    return Collected(
        lambda curves: Panel(key, title, axis.name, y, curves, axis.log, True, facts), {}
    )


def figures_of(contender: Contender, workload: Workload) -> dict[str, float]:
    """Counted work, memory and building of *contender*."""
    index = contender.index
    beside = max(0, index.stats()["bytes"] - index.subscriptions.nbytes)
    return {
        **index.counted_work(events_between(workload.events, 0, COMPARED)),
        "bytes/subscription": beside / workload.size,
        "µs to build one": 1e6 * contender.seconds / workload.size,
    }


Work = Callable[[EventColumns], Any]


def compared_events(workload: Workload) -> EventColumns:
    """COMPARED events on which all must agree: some that match, in the history if nowhere else."""
    events, scan = workload.events, build("scan", workload.columns, None).index
    matches = np.diff(scan.match(events).starts)
    if not matches.any() and workload.history is not None:
        events = workload.history
        matches = np.diff(scan.match(events).starts)
    order = np.argsort(matches == 0, kind="stable")[:COMPARED]
    return take(events, np.sort(order))


def _fitting(work: Work, events: EventColumns, seconds: float) -> EventColumns:
    """So many of *events* as *work* does in about so many *seconds*."""
    few = events_between(events, 0, min(COMPARED, event_count(events)))
    work(few)
    start = time.process_time()
    work(few)
    each = (time.process_time() - start) / max(1, event_count(few))
    count = int(min(event_count(events), max(8, seconds / max(each, 1e-9))))
    return events_between(events, 0, count)


def event_case(
    name: str,
    work: Work,
    events: EventColumns,
    settings: RunSettings,
    figures: Mapping[str, float],
    *,
    answer: Answer | None = None,
    group: str = "",
) -> Case:
    """*work* on *events* as a case, of as many as fit into a sample; *answer* must be agreed on."""
    batch = _fitting(work, events, settings.scale.seconds)
    return Case(
        name,
        cpu_stopwatch(partial(work, batch)),
        event_count(batch),
        answer=None if answer is None else (lambda: answer),
        group=group,
        figures=figures,
    )


def affordable(names: Iterable[str], size: int, settings: RunSettings) -> list[str]:
    """*names* without those that are too slow for *size*, each once."""
    return [
        name for name in dict.fromkeys(names) if name not in SLOW or size <= settings.scale.slow
    ]


def matching(
    settings: RunSettings,
    key: str,
    title: str,
    axis: Axis,
    workload_of: Callable[[Any], Workload],
    names: Sequence[str],
) -> Panel:
    """µs for an event, by each of *names* and by ours, over *axis*."""
    made: Collected | None = None
    for x in axis.values:
        workload = workload_of(x)
        made = made or collecting(key, title, axis, "µs an event", workload.facts)
        cases, few = [], compared_events(workload)
        for name in affordable((*names, *OURS), workload.size, settings):
            settings.progress(f"{title}, {axis.name} {x}: building {name}")
            contender = build(name, workload.columns, workload.history)
            work = contender.index.match
            answer = tuple(work(few))
            figures = figures_of(contender, workload)
            shown, events = shown_name(name), workload.events
            cases.append(event_case(shown, work, events, settings, figures, answer=answer))
        made.compared.append(len(answer[1]))
        rows = measure(cases, settings.scale.repetitions, settings.progress, f"{title}, {x}")
        made.add(x, rows)
    assert made is not None, "an axis has values"
    return made.done()


def best_scores(found: ScoredPairs) -> Answer:
    """The scores of each event's best, in order: which of equal ones are told, differs."""
    event = np.repeat(np.arange(len(found.starts) - 1), np.diff(found.starts))
    order = np.lexsort((found.scores, event))
    return found.starts, np.round(found.scores[order], 9)


Tops = Mapping[str, tuple[str, int | None]]


def best(
    settings: RunSettings,
    key: str,
    title: str,
    axis: Axis,
    workload_of: Callable[[Any], Workload],
    tops: Tops,
) -> Panel:
    """µs for an event: for each of *tops* (shown: structure, k) its k best, or all matches."""
    made: Collected | None = None
    for x in axis.values:
        workload = workload_of(x)
        made = made or collecting(key, title, axis, "µs an event", workload.facts)
        built: dict[str, Contender] = {}
        cases, few = [], compared_events(workload)
        for shown, (name, k) in tops.items():
            settings.progress(f"{title}, {axis.name} {x}: {shown}")
            if name not in built:
                built[name] = build(name, workload.columns, workload.history)
            contender = built[name]
            work: Work = contender.index.match
            if k is not None:
                work = partial(contender.index.top, k=k)
            figures = figures_of(contender, workload)
            effort = getattr(contender.index, "top_effort", None)
            if k is not None and effort is not None:
                figures |= effort(events_between(workload.events, 0, COMPARED), k)
            answer = tuple(work(few)) if k is None else best_scores(work(few))
            if k is None:
                made.compared.append(len(answer[1]))
            group = "all" if k is None else f"{k} best"
            cases.append(
                event_case(
                    shown, work, workload.events, settings, figures, answer=answer, group=group
                )
            )
        made.add(x, measure(cases, settings.scale.repetitions, settings.progress, f"{title}, {x}"))
    assert made is not None, "an axis has values"
    return made.done()
