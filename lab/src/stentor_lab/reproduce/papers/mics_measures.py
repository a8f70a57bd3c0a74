"""What the experiments of MICS measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from stentor.encoding.columns import EventColumns, SubscriptionColumns, UInt64
from stentor.encoding.events import encode_attribute_columns
from stentor.encoding.hilbert import HilbertCurve
from stentor.encoding.kinds import INTERVAL
from stentor.encoding.ragged import events_between
from stentor.index.mics.postings import Postings
from stentor.index.mics.range_table.insert import ANNOUNCED, covered_ranges
from stentor.index.mics.range_table.store import RangeStore
from stentor.model import Schema
from stentor_lab.baselines.rivals import shown_name
from stentor_lab.bench.mics_boxes import (
    BITS,
    DIMENSIONS,
    LAWS,
    UNIFORM,
    ZIPF,
    boxes,
    drawn,
    filled,
    held,
    mixed_boxes,
    ranges_of,
)
from stentor_lab.bench.mics_projection import ALL, FRESH, KEPT, SIDE, fitted
from stentor_lab.bench.mics_projection import PAPER as PRINTED
from stentor_lab.bench.mics_ranges import AT_ONCE, SIZES, enumerated
from stentor_lab.bench.mics_ranges import PAPER as TIMES
from stentor_lab.measure import Case, cpu_stopwatch, measure
from stentor_lab.reproduce.curves import Curve, Panel, Point, paper_curve
from stentor_lab.reproduce.scale import RunSettings
from stentor_lab.reproduce.sweep import OURS, Axis, build, collecting, event_case
from stentor_lab.workloads.conjunctions import Pairs, Predicates, at_once, conjunctions, numbers

#: The paper has up to 100,000 subscriptions; its tables 150,000.
MOST: Final = 100_000
SHARES: Final = (0.2, 0.4, 0.6, 0.8, 1.0)
TABLE_SHARES: Final = (0.2, 0.6, 1.0, 1.5)
#: Sides in Figures 8 to 11, and the default.
SMALL, DEFAULT = 2, 4
#: New subscriptions and publications that are compared linearly, and by ranges.
LINEAR, ASKED = 200, 10_000


def _most(settings: RunSettings) -> int:
    return min(MOST, settings.scale.base)


def _counts(settings: RunSettings, shares: Sequence[float] = SHARES) -> list[int]:
    return [max(1, int(share * _most(settings))) for share in settings.scale.thinned(shares)]


def _facts(settings: RunSettings, **more: Any) -> dict[str, Any]:
    return {"intervals": 1 << BITS, "seed": settings.seed, "data": "drawn", **more}


def _timed(
    name: str,
    work: Callable[[], object],
    items: int,
    *,
    answer: Callable[[], Any] | None = None,
    group: str = "",
    **figures: float,
) -> Case:
    """A case; where it has an *answer*, zeros and ones, all of its *group* must give the same."""
    asked = None if answer is None else (lambda: (np.asarray(answer(), np.uint8),))
    return Case(name, cpu_stopwatch(work), items, answer=asked, group=group, figures=figures)


def _rows(cases: Sequence[Case], settings: RunSettings, title: str) -> Any:
    return measure(cases, settings.scale.repetitions, settings.progress, title)


def box_columns(low: UInt64, high: UInt64) -> SubscriptionColumns:
    """Boxes as subscriptions: an interval on each of x0, x1 and so on."""
    predicates = Predicates.unbounded(*low.shape)
    predicates.kind[:] = INTERVAL
    predicates.attribute[:] = np.arange(low.shape[1])
    predicates.low[:], predicates.high[:] = low, high
    nothing = np.zeros((len(low), 0))
    return conjunctions(predicates, Pairs(nothing, nothing))


def point_columns(points: UInt64) -> EventColumns:
    """Publications: a number for each of x0, x1 and so on."""
    names = [f"x{number}" for number in range(points.shape[1])]
    schema = Schema.declare(dict.fromkeys(names, "number"))
    values = points.astype(np.float64)
    of = [
        numbers(name, *(np.ascontiguousarray(values[:, position]),) * 2)
        for position, name in enumerate(names)
    ]
    return encode_attribute_columns(of, at_once(len(points)), schema)


# Table 1.


def to_ranges(settings: RunSettings) -> tuple[Panel, ...]:
    """Table 1: boxes to ranges."""
    panels = []
    for dimensions in DIMENSIONS:
        axis = Axis("side of the box", settings.scale.thinned(SIZES), log=True)
        made = collecting(
            f"d{dimensions}", f"{dimensions} dimensions", axis, "µs a box", _facts(settings)
        )
        curve = HilbertCurve(dimensions, BITS)
        for side in axis.values:
            count = max(4, min(settings.scale.base, AT_ONCE * 4) // int(side) ** dimensions)
            low, high = boxes(UNIFORM, count, dimensions, int(side), settings.seed)
            ranges = len(curve.ranges(low, high).low) / count
            cases = [
                _timed("in the order of the curve", partial(curve.ranges, low, high), count),
                _timed("cells enumerated", partial(enumerated, curve, low, high), count),
            ]
            rows = _rows(cases, settings, f"Table 1, d = {dimensions}, side {side}")
            made.add(
                side, [row.__class__(row.name, row.seconds, {"ranges": ranges}) for row in rows]
            )
        printed = zip(SIZES, TIMES[dimensions], strict=True)
        paper = paper_curve((side, 1000 * value) for side, value in printed if side in axis.values)
        panels.append(made.done(paper))
    return tuple(panels)


# Figures.


def forwarded(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 7: what a neighbour is told."""
    count = max(64, _most(settings) // 4)
    nothing, covering, merged = [], [], []
    for dimensions in DIMENSIONS:
        low, high = boxes(ZIPF, count, dimensions, DEFAULT, settings.seed)
        store = filled(ranges_of(low, high))
        told = np.flatnonzero(store.entries.state == ANNOUNCED)
        nothing.append(Point(dimensions, (float(count),)))
        covering.append(Point(dimensions, (float(len(np.unique(low, axis=0))),)))
        merged.append(Point(dimensions, (float(len(np.unique(store.owner_of(told)))),)))
    curves = (
        Curve("nothing", tuple(nothing)),
        Curve("covering", tuple(covering)),
        Curve("subsumption", tuple(merged)),
    )
    facts = _facts(settings, subscriptions=count, side=DEFAULT, law=ZIPF)
    title = "subscriptions told to a neighbour"
    return (Panel("forwarded", title, "dimensions", "subscriptions", curves, facts=facts),)


def inserted(settings: RunSettings) -> tuple[Panel, ...]:
    """Figures 8 and 11: insertion, and what is stored then."""
    panels = []
    for law in LAWS:
        axis = Axis("subscriptions", _counts(settings))
        facts = _facts(settings, law=law, side=SMALL)
        made = collecting(law, f"insertion, {law}", axis, "µs a subscription", facts)
        for count in map(int, axis.values):
            cases = []
            for dimensions in DIMENSIONS:
                low, high = boxes(law, int(count), dimensions, SMALL, settings.seed)
                ranges = ranges_of(low, high)
                cases.append(
                    _timed(
                        f"d = {dimensions}",
                        partial(filled, ranges),
                        int(count),
                        ranges=len(ranges.low) / count,
                    )
                )
            low, high = boxes(law, int(count), 3, SMALL, settings.seed)
            columns = box_columns(low, high)
            for name in OURS:
                work = partial(build, name, columns, None)
                cases.append(_timed(f"{shown_name(name)}, d = 3", work, int(count)))
            made.add(count, _rows(cases, settings, f"insertion, {law}, {count}"))
        panels.append(made.done())
    return tuple(panels)


def measure_stored(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 11: stored ranges."""
    panels = []
    for law in LAWS:
        curves = []
        for dimensions in DIMENSIONS:
            stored, mixed, actual = [], [], []
            for count in _counts(settings):
                ranges = ranges_of(*boxes(law, count, dimensions, SMALL, settings.seed))
                other = ranges_of(*mixed_boxes(law, count, dimensions, SMALL, settings.seed))
                stored.append(Point(count, (float(filled(ranges).range_count),)))
                mixed.append(Point(count, (float(filled(other).range_count),)))
                actual.append(Point(count, (float(dimensions * count),)))
            curves += [
                Curve(f"CSM, d = {dimensions}", tuple(stored)),
                Curve(f"CSM, sides 1–2, d = {dimensions}", tuple(mixed)),
                Curve(f"actual, d = {dimensions}", tuple(actual)),
            ]
        facts = _facts(settings, law=law, side=SMALL)
        title = f"stored ranges, {law}"
        panels.append(Panel(law, title, "subscriptions", "ranges", tuple(curves), facts=facts))
    return tuple(panels)


def by_side(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 12: stored ranges by side."""
    panels = []
    for law in LAWS:
        curves = []
        for side in (2, 4, 8):
            points = []
            for count in _counts(settings):
                some = max(1, count // 4)  # of side 8 a box has 69 ranges
                ranges = ranges_of(*boxes(law, some, 3, side, settings.seed))
                points.append(Point(some, (float(filled(ranges).range_count),)))
            curves.append(Curve(f"side {side}", tuple(points)))
        facts = _facts(settings, law=law, dimensions=3)
        title = f"stored ranges, {law}, 3 dimensions"
        panels.append(Panel(law, title, "subscriptions", "ranges", tuple(curves), facts=facts))
    return tuple(panels)


def measure_covering(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 9: covering."""
    return tuple(_asked(law, settings, covering=True) for law in LAWS)


def matching(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 10: matching."""
    return tuple(_asked(law, settings, covering=False) for law in LAWS)


def _asked(law: str, settings: RunSettings, *, covering: bool) -> Panel:
    axis = Axis("subscriptions", _counts(settings))
    what = "covering" if covering else "matching"
    facts = _facts(settings, law=law, side=SMALL, publications=UNIFORM)
    made = collecting(law, f"{what}, {law}", axis, "µs", facts)
    asked = min(ASKED, 4 * settings.scale.events)
    for count in map(int, axis.values):
        cases = []
        for dimensions in DIMENSIONS:
            low, high = boxes(law, count, dimensions, SMALL, settings.seed)
            store = filled(ranges_of(low, high))
            of = f"d = {dimensions}"
            if covering:
                fresh = boxes(law, asked, dimensions, SMALL, settings.seed + 1)
                few = [corner[:LINEAR] for corner in fresh]
                ranges, linear = ranges_of(*fresh), partial(held, low, high, *few)
                cases.append(_timed(f"MICS, {of}", partial(_covered, store, ranges), asked))
                cases.append(_timed(f"linear, {of}", linear, LINEAR))
            else:
                points = drawn(UNIFORM, asked, dimensions, settings.seed + 2)
                number = HilbertCurve(dimensions, BITS).numbers(points)
                some = points[:LINEAR]
                holds = partial(store.holds, number[:LINEAR])
                linear = partial(held, low, high, some, some)
                name, work = f"MICS, {of}", partial(store.holds, number)
                cases.append(_timed(name, work, asked, answer=holds, group=of))
                cases.append(_timed(f"linear, {of}", linear, LINEAR, answer=linear, group=of))
                if dimensions == 3:
                    cases += _indexes(box_columns(low, high), points, settings)
        made.add(count, _rows(cases, settings, f"{what}, {law}, {count}"))
        if not covering:
            made.compared.append(LINEAR)
    return made.done()


def _indexes(columns: SubscriptionColumns, points: UInt64, settings: RunSettings) -> list[Case]:
    """Ours, which say who wants a publication, where MICS says whether anybody does."""
    events, cases = point_columns(points), []
    for name in OURS:
        index = build(name, columns, None).index
        work = index.counted_work(events)
        found = np.diff(index.match(events_between(events, 0, LINEAR)).starts) > 0
        shown, answer = f"{shown_name(name)}, d = 3", (found.astype(np.uint8),)
        cases.append(
            event_case(shown, index.match, events, settings, work, answer=answer, group="d = 3")
        )
    return cases


def _covered(store: RangeStore, given: Any) -> object:
    found = np.zeros(len(given.low), np.uint8)
    covered_ranges(store.union, given.low, given.high, found)
    return found


# Tables 2 and 3.


def projection(settings: RunSettings) -> tuple[Panel, ...]:
    """Table 2: forwarded, and in vain."""
    panels = []
    publications = min(ASKED, 2 * settings.scale.events)  # each is looked for linearly
    for law in LAWS:
        asked = drawn(law, publications, ALL, settings.seed + 1)
        numbers_ = HilbertCurve(KEPT, BITS).numbers(asked[:, :KEPT])
        traffic: dict[str, list[Point]] = {}
        vain: dict[str, list[Point]] = {}
        for share in TABLE_SHARES:
            count = int(share * MOST) if settings.scale.base >= 20_000 else int(share * 2000)
            for name in ("as described", "fitted"):
                low, high = (
                    boxes(law, count, ALL, SIDE, settings.seed)
                    if name == "as described"
                    else fitted(law, count, settings.seed)
                )
                store = filled(ranges_of(low[:, :KEPT], high[:, :KEPT]))
                sent = np.flatnonzero(store.holds(numbers_))
                wanted = held(low, high, asked[sent], asked[sent])
                per_10k = len(sent) * 10_000 / publications
                traffic.setdefault(name, []).append(Point(share, (per_10k,)))
                in_vain = 100.0 * (1.0 - wanted.sum() / max(1, len(sent)))
                vain.setdefault(name, []).append(Point(share, (in_vain,)))
        facts = _facts(settings, law=law, publications=publications)
        for key, points, printed, y in (
            ("traffic", traffic, PRINTED[law].forwarded, "forwarded of 10,000"),
            ("vain", vain, PRINTED[law].in_vain, "% of them in vain"),
        ):
            curves = [Curve(name, tuple(some)) for name, some in points.items()]
            curves.append(paper_curve(zip(TABLE_SHARES, map(float, printed), strict=True)))
            x, title = "subscriptions, 100,000", f"{y}, {law}"
            log = key == "traffic"
            panel = Panel(f"{key} {law}", title, x, y, tuple(curves), log_y=log, facts=facts)
            panels.append(panel)
    return tuple(panels)


def evaluated(settings: RunSettings) -> tuple[Panel, ...]:
    """Table 3: subscriptions to evaluate."""
    panels = []
    for law in LAWS:
        fresh = ranges_of(*boxes(law, FRESH, KEPT, SIDE, settings.seed + 2))
        points = []
        for share in TABLE_SHARES:
            count = int(share * MOST) if settings.scale.base >= 20_000 else int(share * 2000)
            postings = Postings()
            ranges = ranges_of(*boxes(law, count, KEPT, SIDE, settings.seed))
            postings.add(np.arange(count), ranges)
            met = np.unique(np.stack(postings.owners_of(fresh)), axis=1)
            points.append(Point(share, (met.shape[1] / FRESH,)))
        printed = zip(TABLE_SHARES, map(float, PRINTED[law].evaluated), strict=True)
        curves = Curve("to evaluate", tuple(points)), paper_curve(printed)
        x, y = "subscriptions, 100,000", "subscriptions to evaluate"
        panels.append(Panel(law, f"{y}, {law}", x, y, curves, facts=_facts(settings, law=law)))
    return tuple(panels)
