"""MICS: decomposition, the table of ranges, false positives of projection, the index.

Paper: section 7. Domains of 256 intervals; subscriptions of a size in each dimension whose low ends
are drawn uniformly or after Zipf.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from stentor._jit import kernel
from stentor.bench.measure import Case, measure, stopwatch
from stentor.bench.result import BenchOptions, Table, Unit
from stentor.bench.structures import Workload, build, matching_table
from stentor.encoding.columns import UInt8, UInt64
from stentor.encoding.hilbert import HilbertCurve, Ranges
from stentor.index.mics.postings import Postings
from stentor.index.mics.store import RangeStore
from stentor.workloads.distributions import random_of
from stentor.workloads.intervals import Intervals

SIZE: Final = 100_000
#: Bits of a coordinate: 256 intervals.
BITS: Final = 8
DIMENSIONS: Final = (2, 3, 4)
SIZES: Final = (2, 4, 8, 16)
#: Table 1 in milliseconds: by dimensions, for sizes 2, 4, 8, 16.
TABLE_1: Final = {
    2: (0.1, 0.1, 0.3, 1.0),
    3: (0.1, 0.3, 1.9, 12.8),
    4: (0.1, 1.1, 10.2, 124.1),
}
#: Of linear covering and matching: subscriptions that are compared in turn.
LINEAR: Final = 500
PUBLICATIONS: Final = 10_000
UNIFORM, ZIPF = "uniform", "Zipf"
#: The exponent of Zipf's law; the paper does not say its own.
EXPONENT: Final = 1.0
#: Events that the index is asked about.
EVENTS: Final = 1024


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Table 1; Figures 7 to 12; Tables 2 and 3; the index beside the scans."""
    size = options.size or SIZE
    return (
        *(_decomposition(dimensions, options) for dimensions in DIMENSIONS),
        *(_table(law, size, options) for law in (UNIFORM, ZIPF)),
        _sizes(size, options),
        _projection(size, options),
        _index(size, options),
    )


def drawn(law: str, count: int, dimensions: int, seed: int, last: int) -> UInt64:
    """Coordinates from 0 to *last*, after *law*."""
    random = random_of(seed, dimensions)
    if law == UNIFORM:
        return random.integers(0, last + 1, (count, dimensions), np.uint64)
    shares = 1.0 / np.arange(1, last + 2) ** EXPONENT
    return random.choice(last + 1, (count, dimensions), p=shares / shares.sum()).astype(np.uint64)


def _decomposition(dimensions: int, options: BenchOptions) -> Table:
    """Table 1: a box of 16 cells a side as ranges; smaller ones beside it as figures."""
    curve = HilbertCurve(dimensions, BITS)
    cases = []
    for place, side in enumerate(SIZES):
        boxes = max(32, 20_000 // side**dimensions)
        low = drawn(UNIFORM, boxes, dimensions, options.seed, curve.last - side)
        high = low + np.uint64(side - 1)
        figures = {
            "ranges": len(curve.ranges(low, high).low) / boxes,
            "paper, µs": 1000 * TABLE_1[dimensions][place],
        }
        for name, work in (("enumerate and sort", _enumerated), ("in curve order", _in_order)):
            cases.append(
                Case(
                    f"size {side}, {name}",
                    stopwatch(partial(work, curve, low, high)),
                    boxes,
                    figures=figures,
                )
            )
    title = f"Table 1: a box to ranges, {dimensions} dimensions"
    rows = measure(cases, options.repetitions, options.progress, title)
    facts = {"intervals": 1 << BITS, "seed": options.seed, "boxes": "placed uniformly"}
    return Table(title, facts, "box", Unit.MICROSECONDS, rows, compared=False)


def _in_order(curve: HilbertCurve, low: UInt64, high: UInt64) -> Ranges:
    return curve.ranges(low, high)


def _enumerated(curve: HilbertCurve, low: UInt64, high: UInt64) -> list[UInt64]:
    """The numbers of all cells of each box, sorted, and where ranges begin."""
    side = int(high[0, 0] - low[0, 0]) + 1
    steps = np.indices((side,) * curve.dimensions).reshape(curve.dimensions, -1).T.astype(np.uint64)
    found = []
    for corner in low:
        numbers = np.sort(curve.numbers(corner + steps))
        found.append(numbers[1:][np.diff(numbers) != 1])
    return found


def _table(law: str, size: int, options: BenchOptions) -> Table:
    """Figures 8, 9, 10 and 11: insertion, covering and matching beside the linear way."""
    cases = []
    for dimensions in DIMENSIONS:
        curve = HilbertCurve(dimensions, BITS)
        low = drawn(law, size, dimensions, options.seed, curve.last - 1)
        high = low + np.uint64(1)
        ranges = curve.ranges(low, high)
        asked = drawn(UNIFORM, PUBLICATIONS, dimensions, options.seed + 1, curve.last)
        numbers = curve.numbers(asked)
        store = _filled(ranges)
        figures = {
            "ranges given": len(ranges.low) / size,
            "stored ranges": store.range_count,
            "d ranges each": dimensions * size,
        }
        of, few = f"d = {dimensions}", low[:LINEAR]
        linear = partial(_linear, low.ravel(), high.ravel(), dimensions)
        cases += [
            Case(f"{of}: insertion", stopwatch(partial(_filled, ranges)), size, figures=figures),
            Case(f"{of}: matching", stopwatch(partial(store.holds, numbers)), len(numbers)),
            Case(
                f"{of}: linear covering",
                stopwatch(partial(linear, few.ravel(), (few + np.uint64(1)).ravel())),
                len(few),
            ),
            Case(
                f"{of}: linear matching",
                stopwatch(partial(linear, asked[:LINEAR].ravel(), asked[:LINEAR].ravel())),
                LINEAR,
            ),
        ]
    title = f"Figures 8 to 11: a table of ranges, {law} subscriptions of size 2"
    rows = measure(cases, options.repetitions, options.progress, title)
    facts = {
        "subscriptions": size,
        "intervals": 1 << BITS,
        "seed": options.seed,
        "insertion": "covering, subsumption and merging together",
    }
    return Table(title, facts, "item", Unit.MICROSECONDS, rows, compared=False)


def _sizes(size: int, options: BenchOptions) -> Table:
    """Figures 7 and 12: what is forwarded and what is stored, by the subscriptions' size."""
    cases = []
    curve = HilbertCurve(3, BITS)
    for law in (UNIFORM, ZIPF):
        for side in SIZES[:3]:
            low = drawn(law, size, 3, options.seed, curve.last - side + 1)
            ranges = curve.ranges(low, low + np.uint64(side - 1))
            store = RangeStore()
            told = store.add(np.arange(size), ranges)
            figures = {
                "forwarded": len(np.unique(store.owner_of(told))),
                "forwarded ranges": len(told),
                "stored ranges": store.range_count,
            }
            sample = stopwatch(partial(_filled, ranges))
            cases.append(Case(f"{law}, size {side}", sample, size, most=2, figures=figures))
    title = "Figures 7 and 12: subsumption in three dimensions, by size"
    rows = measure(cases, options.repetitions, options.progress, title)
    facts = {"subscriptions": size, "intervals": 1 << BITS, "seed": options.seed}
    return Table(title, facts, "subscription", Unit.MICROSECONDS, rows, compared=False)


def _filled(ranges: Ranges) -> RangeStore:
    store = RangeStore()
    store.add(np.arange(len(ranges.starts) - 1), ranges)
    return store


def _linear(low: UInt64, high: UInt64, dimensions: int, one: UInt64, other: UInt64) -> UInt8:
    """Whether some box holds each of those from *one* to *other*, box by box."""
    found = np.zeros(len(one) // dimensions, np.uint8)
    held_by(low, high, dimensions, one, other, found)
    return found


@kernel
def held_by(
    low: UInt64, high: UInt64, dimensions: int, one: UInt64, other: UInt64, found: UInt8
) -> None:
    """1 in *found* where a box holds the asked one; all are looked at until one does."""
    for asked in range(len(found)):
        found[asked] = 0
        for box in range(len(low) // dimensions):
            holds = True
            for dimension in range(dimensions):
                place, of = box * dimensions + dimension, asked * dimensions + dimension
                holds &= (low[place] <= one[of]) & (other[of] <= high[place])
            if holds:
                found[asked] = 1
                break


def _projection(size: int, options: BenchOptions) -> Table:
    """Tables 2 and 3: three of seven dimensions; what is forwarded, and how much in vain.

    And how many subscriptions a new one must be compared with, where these are indexed.
    """
    cases = []
    for law in (ZIPF, UNIFORM):
        curve = HilbertCurve(3, BITS)
        low = drawn(law, size, 7, options.seed, curve.last - 3)
        asked = drawn(law, PUBLICATIONS, 7, options.seed + 1, curve.last)
        store = _filled(curve.ranges(low[:, :3], low[:, :3] + np.uint64(3)))
        numbers = curve.numbers(asked[:, :3])
        fresh = drawn(law, LINEAR, 7, options.seed + 2, curve.last - 3)[:, :3]
        postings = Postings()
        postings.add(np.arange(size), curve.ranges(low[:, :3], low[:, :3] + np.uint64(3)))
        met = postings.owners_of(curve.ranges(fresh, fresh + np.uint64(3)))
        forwarded = store.holds(numbers)
        exact = _linear(low.ravel(), (low + np.uint64(3)).ravel(), 7, asked.ravel(), asked.ravel())
        traffic = int(forwarded.sum())
        figures = {
            "forwarded": traffic,
            "false positives %": 100.0 * (1.0 - int(exact.sum()) / max(1, traffic)),
            "to evaluate": len(np.unique(np.stack(met), axis=1).T) / LINEAR,
        }
        sample = stopwatch(partial(store.holds, numbers))
        cases.append(Case(law, sample, PUBLICATIONS, figures=figures))
    title = "Tables 2 and 3: projection of seven dimensions onto three"
    rows = measure(cases, options.repetitions, options.progress, title)
    facts = {
        "subscriptions": size,
        "publications": PUBLICATIONS,
        "seed": options.seed,
        "paper at 100K": "Zipf 7,040 forwarded, 3.15 % in vain, 414 to evaluate; "
        "uniform 858, 36.95 %, 1",
    }
    return Table(title, facts, "publication", Unit.MICROSECONDS, rows, compared=False)


def _index(size: int, options: BenchOptions) -> Table:
    """The matching index beside the scans, on intervals and squares."""
    recipe = Intervals(options.seed, 4)
    columns, events = recipe.subscriptions(size).columns(), recipe.events(EVENTS).columns()
    facts = {"workload": "intervals", "intervals": 4}
    workload = Workload("MICS as an index: four intervals and a square", facts, columns, events)
    contenders = [build(name, workload, options.progress) for name in ("mics", "mics paper")]
    return matching_table(workload, contenders, options)
