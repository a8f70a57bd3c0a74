"""Table 1 of MICS: a box to ranges, in the order of the curve, and by enumerating its cells."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from stentor.encoding.columns import UInt64
from stentor.encoding.hilbert import HilbertCurve
from stentor.encoding.hilbert.ranges import Ranges
from stentor.errors import DisagreementError
from stentor_lab.bench.mics_boxes import BITS, DIMENSIONS, UNIFORM, boxes
from stentor_lab.measure import Case, measure, stopwatch
from stentor_lab.result import BenchOptions, Row, Table, Unit

SIZES: Final = (2, 4, 8, 16)
#: Table 1 in milliseconds: by dimensions, for those sizes.
PAPER: Final = {
    2: (0.1, 0.1, 0.3, 1.0),
    3: (0.1, 0.3, 1.9, 12.8),
    4: (0.1, 1.1, 10.2, 124.1),
}
#: Cells that all boxes of a row have together, at least; and boxes.
CELLS: Final = 1 << 17
FEWEST: Final = 16
#: Cells that are enumerated at once: as many as a cache holds.
AT_ONCE: Final = 1 << 15


def table(options: BenchOptions) -> Table:
    """Each size in each dimension; the paper's times are its own machine's."""
    title = "Table 1: a box to ranges"
    cases = [case for kind in _kinds() for case in _cases(*kind, options)]
    rows = measure(cases, options.repetitions, options.progress, title)
    facts = {
        "intervals": 1 << BITS,
        "boxes": "placed uniformly, converted many at a time",
        "enumerating": "the numbers of all cells, sorted; many boxes at a time",
        "seed": options.seed,
    }
    both = zip(rows[::2], rows[1::2], strict=True)
    shown = tuple(_beside(slow, quick) for slow, quick in both)
    return Table(title, facts, "box", Unit.MICROSECONDS, shown, compared=False)


def _kinds() -> list[tuple[int, int, float]]:
    return [
        (dimensions, size, paper)
        for dimensions in DIMENSIONS
        for size, paper in zip(SIZES, PAPER[dimensions], strict=True)
    ]


def _cases(dimensions: int, size: int, paper: float, options: BenchOptions) -> tuple[Case, Case]:
    curve = HilbertCurve(dimensions, BITS)
    count = max(FEWEST, CELLS // size**dimensions)
    low, high = boxes(UNIFORM, count, dimensions, size, options.seed)
    ranges = curve.ranges(low, high)
    name = f"d = {dimensions}, size {size}"
    if not np.array_equal(enumerated(curve, low, high), ranges.low):
        raise DisagreementError(f"{name}: a box has other ranges than its cells say")
    figures = {"ranges": len(ranges.low) / count, "paper, µs": 1000 * paper}
    return (
        Case(f"{name}: enumerated", stopwatch(partial(enumerated, curve, low, high)), count),
        Case(name, stopwatch(partial(_in_order, curve, low, high)), count, figures=figures),
    )


def _beside(slow: Row, quick: Row) -> Row:
    """The row of *quick* with what *slow* takes, and how many times as much that is."""
    figures = {"enumerated, µs": 1e6 * slow.median, "times": slow.median / quick.median}
    return replace(quick, figures={**figures, **quick.figures})


def _in_order(curve: HilbertCurve, low: UInt64, high: UInt64) -> Ranges:
    return curve.ranges(low, high)


def enumerated(curve: HilbertCurve, low: UInt64, high: UInt64) -> UInt64:
    """Where the ranges of equally large boxes begin, from the numbers of all their cells."""
    size = int(high[0, 0] - low[0, 0]) + 1
    steps = np.indices((size,) * curve.dimensions).reshape(curve.dimensions, -1).T
    boxes_at_once = max(1, AT_ONCE // len(steps))
    found = []
    for start in range(0, len(low), boxes_at_once):
        corners = low[start : start + boxes_at_once, None, :]
        cells = (corners + steps.astype(np.uint64)).reshape(-1, curve.dimensions)
        numbers = np.sort(curve.numbers(cells).reshape(-1, len(steps)), axis=1)
        begins = np.ones(numbers.shape, np.bool_)
        begins[:, 1:] = np.diff(numbers, axis=1) != 1
        found.append(numbers[begins])
    return np.concatenate(found)
