"""Figures 7 to 12 of MICS: what a table of ranges forwards and stores, and how long it takes."""

from __future__ import annotations

import time
from functools import partial
from typing import Final

import numpy as np

from stentor.encoding.columns import UInt8
from stentor.encoding.hilbert import HilbertCurve
from stentor.encoding.hilbert.ranges import Ranges
from stentor.index.mics.range_table.insert import ANNOUNCED, covered_ranges
from stentor.index.mics.range_table.store import RangeStore
from stentor_lab.bench.mics_boxes import (
    BITS,
    DIMENSIONS,
    LAWS,
    PUBLICATIONS,
    UNIFORM,
    ZIPF,
    boxes,
    drawn,
    filled,
    held,
    mixed_boxes,
    ranges_of,
)
from stentor_lab.measure import Case, measure, stopwatch
from stentor_lab.result import BenchOptions, Table, Unit

#: Shares of all subscriptions at which a table is looked at.
SHARES: Final = (0.2, 0.6, 1.0)
#: New subscriptions that are compared with all others in turn, and publications.
LINEAR: Final = 500
#: Of subscriptions that make millions of ranges, as many as there would be of others.
FEWER: Final = 4
#: Subscriptions are of this size where nothing else is said, and in Figures 8 to 11.
DEFAULT_SIDE, SMALL_SIDE = 4, 2


def tables(options: BenchOptions, size: int) -> tuple[Table, ...]:
    """The figures, for *size* subscriptions."""
    return (
        _forwarded(options, size // FEWER),
        _inserted(options, size),
        *(_asked(law, options, size) for law in LAWS),
        _stored(options, size),
    )


def _facts(options: BenchOptions, size: int, **more: object) -> dict[str, object]:
    return {"subscriptions": size, "intervals": 1 << BITS, "seed": options.seed, **more}


def _timed(ranges: Ranges) -> tuple[float, RangeStore]:
    """The seconds that filling a table took, once, and the table."""
    filled(Ranges(np.array([0, 1]), ranges.low[:1], ranges.high[:1]))  # compiles
    start = time.perf_counter()
    store = filled(ranges)
    return time.perf_counter() - start, store


def _forwarded(options: BenchOptions, size: int) -> Table:
    """Figure 7: subscriptions that a neighbour is told of, without and with both ways to save."""
    title = "Figure 7: subscriptions forwarded to a neighbour, Zipf, size 4"
    cases = []
    for dimensions in DIMENSIONS:
        options.progress(f"{title}: {dimensions} dimensions")
        low, high = boxes(ZIPF, size, dimensions, DEFAULT_SIDE, options.seed)
        seconds, store = _timed(ranges_of(low, high))
        told = np.flatnonzero(store.entries.state == ANNOUNCED)
        figures = {
            "nothing": size,
            "covering only": len(np.unique(low, axis=0)),
            "subsumption": len(np.unique(store.owner_of(told))),
            "ranges given": len(store.entries.low),
            "ranges forwarded": len(told),
        }
        name, sample = f"d = {dimensions}", partial(float, seconds)
        cases.append(Case(name, sample, size, cold=True, figures=figures))
    rows = measure(cases, 1, options.progress, title)
    facts = _facts(
        options,
        size,
        why=f"a {FEWER}th of the others, for four dimensions give 66 ranges each",
        covering="of boxes of one size only equal ones cover each other",
    )
    return Table(title, facts, "subscription", Unit.MICROSECONDS, rows, compared=False)


def _inserted(options: BenchOptions, size: int) -> Table:
    """Figures 8 and 11: insertion with everything, and the ranges that are stored then."""
    title = "Figures 8 and 11: insertion with covering, subsumption and merging, size 2"
    cases = []
    for law in LAWS:
        for dimensions in DIMENSIONS:
            for share in SHARES:
                count = max(1, int(share * size))
                low, high = boxes(law, count, dimensions, SMALL_SIDE, options.seed)
                ranges = ranges_of(low, high)
                store = filled(ranges)
                mixed = mixed_boxes(law, count, dimensions, SMALL_SIDE, options.seed)
                cases.append(
                    Case(
                        f"{law}, d = {dimensions}, {count:,}",
                        stopwatch(partial(filled, ranges)),
                        count,
                        figures={
                            "ranges each": len(ranges.low) / count,
                            "stored ranges": store.range_count,
                            "of sizes 1 and 2": filled(ranges_of(*mixed)).range_count,
                            "actual (d × n)": dimensions * count,
                        },
                    )
                )
    rows = measure(cases, options.repetitions, options.progress, title)
    facts = _facts(
        options, size, paper="about 100 µs, uniform more than Zipf; fewer ranges stored than actual"
    )
    return Table(title, facts, "subscription", Unit.MICROSECONDS, rows, compared=False)


def _asked(law: str, options: BenchOptions, size: int) -> Table:
    """Figures 9 and 10: covering and matching by the table, and linearly."""
    title = f"Figures 9 and 10: covering and matching, {law} subscriptions of size 2"
    cases = []
    for dimensions in DIMENSIONS:
        low, high = boxes(law, size, dimensions, SMALL_SIDE, options.seed)
        fresh = boxes(law, PUBLICATIONS, dimensions, SMALL_SIDE, options.seed + 1)
        asked = drawn(UNIFORM, PUBLICATIONS, dimensions, options.seed + 2)
        curve = HilbertCurve(dimensions, BITS)
        numbers, store = curve.numbers(asked), filled(ranges_of(low, high))
        given = ranges_of(*fresh)
        few = [corner[:LINEAR] for corner in fresh]
        linear = partial(held, low, high)
        of = f"d = {dimensions}"
        cases += [
            Case(
                f"{of}: covering by ranges",
                stopwatch(partial(_covered, store, given)),
                PUBLICATIONS,
            ),
            Case(f"{of}: covering, linear", stopwatch(partial(linear, *few)), LINEAR),
            Case(
                f"{of}: matching by number", stopwatch(partial(store.holds, numbers)), PUBLICATIONS
            ),
            Case(
                f"{of}: matching, linear",
                stopwatch(partial(linear, asked[:LINEAR], asked[:LINEAR])),
                LINEAR,
            ),
            Case(
                f"{of}: a publication's number",
                stopwatch(partial(curve.numbers, asked)),
                PUBLICATIONS,
            ),
        ]
    rows = measure(cases, options.repetitions, options.progress, title)
    facts = _facts(
        options, size, covering="step 1 of Algorithm 1 for all ranges", publications="uniform"
    )
    return Table(title, facts, "item", Unit.MICROSECONDS, rows, compared=False)


def _covered(store: RangeStore, given: Ranges) -> UInt8:
    found = np.zeros(len(given.low), np.uint8)
    covered_ranges(store.union, given.low, given.high, found)
    return found


def _stored(options: BenchOptions, size: int) -> Table:
    """Figure 12: ranges that are stored, by the subscriptions' size."""
    title = "Figure 12: stored ranges in three dimensions"
    cases = []
    for law in LAWS:
        for side, count in ((2, size), (4, size), (8, size // FEWER)):
            options.progress(f"{title}: {law}, size {side}")
            low, high = boxes(law, count, 3, side, options.seed)
            seconds, store = _timed(ranges_of(low, high))
            figures = {
                "ranges each": len(store.entries.low) / count,
                "stored ranges": store.range_count,
                "actual (d × n)": 3 * count,
            }
            name, sample = f"{law}, size {side}, {count:,}", partial(float, seconds)
            cases.append(Case(name, sample, count, cold=True, figures=figures))
    rows = measure(cases, 1, options.progress, title)
    facts = _facts(options, size, why=f"of size 8 a {FEWER}th: 69 ranges each")
    return Table(title, facts, "subscription", Unit.MICROSECONDS, rows, compared=False)
