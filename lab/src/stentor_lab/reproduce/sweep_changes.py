"""Changes and live events measured over one thing that varies: what comes, goes and asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from stentor.encoding.columns import EventColumns, SubscriptionColumns, event_count
from stentor.encoding.ragged import events_between, take
from stentor.index.structure import Structure
from stentor_lab.baselines.rivals import any_structure, shown_name
from stentor_lab.measure import Case, cpu_stopwatch, measure
from stentor_lab.reproduce.curves import Panel
from stentor_lab.reproduce.scale import RunSettings
from stentor_lab.reproduce.sweep import (
    COMPARED,
    OURS,
    Axis,
    Collected,
    Contender,
    affordable,
    build,
    collecting,
    compared_events,
    event_case,
    figures_of,
)
from stentor_lab.result import Row
from stentor_lab.structures import Workload

#: Subscriptions or events that come and go together, at most.
BATCH: Final = 10_000
#: Subscriptions that ask for live events.
ASKING: Final = 1_000


def batch_size(size: int) -> int:
    """How many come and go beside *size*."""
    return max(8, min(BATCH, size // 20))


def inserting(
    settings: RunSettings,
    title: str,
    axis: Axis,
    workload_of: Callable[[Any], Workload],
    names: Sequence[str],
) -> tuple[Panel, Panel]:
    """µs to insert, and to delete, a subscription; those of *workload_of* and a batch more."""
    panels: tuple[Collected, Collected] | None = None
    for x in axis.values:
        workload = workload_of(x)
        batch = batch_size(workload.size)
        base = take(workload.columns, np.arange(workload.size - batch))
        late = take(workload.columns, np.arange(workload.size - batch, workload.size))
        panels = panels or (
            collecting("insert", f"{title}: insert", axis, "µs a subscription", workload.facts),
            collecting("delete", f"{title}: delete", axis, "µs a subscription", workload.facts),
        )
        coming, going = [], []
        for name in affordable((*names, *OURS), len(base.until), settings):
            settings.progress(f"{title}, {axis.name} {x}: {name}")
            index = build(name, base, workload.history).index
            ours, theirs = _come_and_go(
                partial(index.insert, late), index, settings.scale.repetitions, batch
            )
            coming.append(Row(shown_name(name), ours))
            going.append(Row(shown_name(name), theirs))
        panels[0].add(x, coming)
        panels[1].add(x, going)
    assert panels is not None, "an axis has values"
    return panels[0].done(), panels[1].done()


def _come_and_go(
    insert: Callable[[], int], index: Structure, repetitions: int, batch: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Seconds for each that came, and went, repetition by repetition; the first warms up."""
    coming, going = [], []
    for _ in range(repetitions + 1):
        start = time.process_time()
        first = insert()
        middle = time.process_time()
        index.remove(np.arange(first, first + batch))
        coming.append((middle - start) / batch)
        going.append((time.process_time() - middle) / batch)
    return tuple(coming[1:]), tuple(going[1:])


@dataclass(frozen=True)
class LiveWorkload:
    """Live events, subscriptions that ask for them, and those that a structure measures by."""

    facts: dict[str, Any]
    live: EventColumns
    asking: SubscriptionColumns
    standing: SubscriptionColumns


def live_index(name: str, workload: LiveWorkload, some: EventColumns | None = None) -> Structure:
    """The structure *name* with live events."""
    history = events_between(workload.live, 0, min(2000, event_count(workload.live)))
    index = any_structure(name, workload.standing).build(workload.standing, history)
    index.hold(workload.live if some is None else some)
    return index


def live_matching(
    settings: RunSettings,
    key: str,
    title: str,
    axis: Axis,
    workload_of: Callable[[Any], LiveWorkload],
    names: Sequence[str],
) -> Panel:
    """µs for a subscription to find its live events."""
    made: Collected | None = None
    for x in axis.values:
        workload = workload_of(x)
        made = made or collecting(key, title, axis, "µs a subscription", workload.facts)
        cases, few = [], _compared_askers(workload)
        for name in affordable((*names, *OURS), event_count(workload.live), settings):
            settings.progress(f"{title}, {axis.name} {x}: {name}")
            case, pairs = _asking_case(name, workload, few, settings)
            cases.append(case)
        made.compared.append(pairs)
        rows = measure(cases, settings.scale.repetitions, settings.progress, f"{title}, {x}")
        made.add(x, rows)
    assert made is not None, "an axis has values"
    return made.done()


def _compared_askers(workload: LiveWorkload) -> SubscriptionColumns:
    """COMPARED subscriptions on which all must agree: those that something matches first."""
    matches = np.diff(live_index("scan", workload).match_live(workload.asking).starts)
    return take(workload.asking, np.sort(np.argsort(matches == 0, kind="stable")[:COMPARED]))


def _asking_case(
    name: str, workload: LiveWorkload, few: SubscriptionColumns, settings: RunSettings
) -> tuple[Case, int]:
    """A case, and how many live events the *few* that are compared find."""
    index = live_index(name, workload)
    count = min(ASKING, len(workload.asking.until))
    answer = tuple(index.match_live(few))
    start = time.process_time()
    index.match_live(few)
    each = (time.process_time() - start) / len(few.until)
    some = int(min(count, max(4, settings.scale.seconds / max(each, 1e-9))))
    asking = take(workload.asking, np.arange(some))
    beside = index.stats()["bytes"] - index.subscriptions.nbytes - index.live.nbytes
    figures = {
        "bytes/event": max(0, beside) / max(1, index.live.count),
    }
    work = cpu_stopwatch(lambda: index.match_live(asking))
    case = Case(shown_name(name), work, some, answer=lambda: answer, figures=figures)
    return case, len(answer[1])


def holding(
    settings: RunSettings,
    title: str,
    axis: Axis,
    workload_of: Callable[[Any], LiveWorkload],
    names: Sequence[str],
) -> tuple[Panel, Panel]:
    """µs to insert, and to delete, a live event; those of *workload_of*, and a batch more."""
    panels: tuple[Collected, Collected] | None = None
    for x in axis.values:
        workload = workload_of(x)
        count = event_count(workload.live)
        batch = batch_size(count)
        base = take(workload.live, np.arange(count - batch))
        late = take(workload.live, np.arange(count - batch, count))
        panels = panels or (
            collecting("insert", f"{title}: insert", axis, "µs an event", workload.facts),
            collecting("delete", f"{title}: delete", axis, "µs an event", workload.facts),
        )
        coming, going = [], []
        for name in affordable((*names, *OURS), count, settings):
            settings.progress(f"{title}, {axis.name} {x}: {name}")
            index = live_index(name, workload, base)
            seconds: tuple[list[float], list[float]] = ([], [])
            for _ in range(settings.scale.repetitions + 1):
                start = time.process_time()
                first = index.hold(late)
                middle = time.process_time()
                index.drop(np.arange(first, first + batch))
                seconds[0].append((middle - start) / batch)
                seconds[1].append((time.process_time() - middle) / batch)
            coming.append(Row(shown_name(name), tuple(seconds[0][1:])))
            going.append(Row(shown_name(name), tuple(seconds[1][1:])))
        panels[0].add(x, coming)
        panels[1].add(x, going)
    assert panels is not None, "an axis has values"
    return panels[0].done(), panels[1].done()


def growing(
    settings: RunSettings,
    title: str,
    axis: Axis,
    workload: Workload,
    grown: Callable[[Any], dict[str, tuple[str, float]]],
) -> tuple[Panel, Panel]:
    """Matching after growth, and µs to insert one; for each x: shown → (structure, first share)."""
    matching = collecting("matching", f"{title}: matching", axis, "µs an event", workload.facts)
    few = compared_events(workload)
    insertion = collecting("insertion", f"{title}: insertion", axis, "µs each", workload.facts)
    for x in axis.values:
        cases, rows = [], []
        for shown, (name, share) in grown(x).items():
            settings.progress(f"{title}, {axis.name} {x}: {shown}")
            contender, seconds = _grown(name, workload, share)
            rows.append(Row(shown, (seconds,)))
            figures = figures_of(contender, workload)
            match = contender.index.match
            answer = tuple(match(few))
            cases.append(
                event_case(shown, match, workload.events, settings, figures, answer=answer)
            )
        matching.compared.append(len(answer[1]))
        insertion.add(x, rows)
        matching.add(
            x, measure(cases, settings.scale.repetitions, settings.progress, f"{title} {x}")
        )
    return matching.done(), insertion.done()


def _grown(name: str, workload: Workload, share: float) -> tuple[Contender, float]:
    """*name*, built of the first *share*; all others come in batches. Seconds for each of those."""
    size = workload.size
    first, step = max(1, int(share * size)), max(1, size // 100)
    kind = any_structure(name, workload.columns)
    index = kind.build(take(workload.columns, np.arange(first)), workload.history)
    parts = [
        take(workload.columns, np.arange(start, min(start + step, size)))
        for start in range(first, size, step)
    ]
    start = time.process_time()
    for part in parts:
        index.insert(part)
    seconds = time.process_time() - start
    return Contender(name, index, seconds), seconds / max(1, size - first)
