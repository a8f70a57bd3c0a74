"""INTERVAL and INTERVALS (numbers), STRING_INTERVAL: what lies between two values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import CLOSED, OPEN, UNBOUNDED, Float64
from stentor.encoding.hashing import prefix
from stentor.encoding.kinds import INTERVAL, INTERVALS, STRING_INTERVAL
from stentor.encoding.predicates.filled import (
    FilledPredicate,
    Filler,
    TemplateRows,
    bounded,
    unbounded,
)
from stentor.encoding.predicates.growing import UNBOUNDED_HULL, Appended, AppendedColumns
from stentor.language.normal_predicates import Intervals, StringInterval
from stentor.model import Between, Comparison, Constant, Kind


def append(columns: AppendedColumns, test: Intervals) -> Appended:
    """Numbers: one interval is its own hull, several are pairs."""
    intervals = test.intervals
    hull = (intervals[0][0], intervals[-1][1])
    if len(intervals) == 1:
        return Appended(INTERVAL, hull)
    start = len(columns.pair_low)
    columns.add_pairs(intervals)
    return columns.with_pairs(INTERVALS, start, hull)


def append_strings(columns: AppendedColumns, test: StringInterval) -> Appended:
    """Strings: both ends, with marks."""
    start = len(columns.string_hash)
    low, high = UNBOUNDED_HULL
    for end, is_open in ((test.low, test.low_open), (test.high, test.high_open)):
        mark = UNBOUNDED if end is None else OPEN if is_open else CLOSED
        columns.add_string((end or "").encode(), mark)
    if test.low is not None:
        low = prefix(test.low.encode())
    if test.high is not None:
        high = prefix(test.high.encode())
    return columns.with_strings(STRING_INTERVAL, start, (low, high))


def filler(predicates: Sequence[Comparison | Between], negated: bool) -> Filler | None:
    """How to fill in all that is compared on one attribute; None where it has no template.

    Several are numbers with different operators; equal ones might be one predicate repeated.
    """
    if negated or any(constant.kind is Kind.STRING for constant in constants_of(predicates)):
        return None
    operators = [one.operator if isinstance(one, Comparison) else "between" for one in predicates]
    if operators == ["!="]:
        # Of booleans there are but two, which the ordinary way knows.
        constants = constants_of(predicates)
        is_boolean = constants[0].kind is Kind.BOOLEAN
        return None if is_boolean else partial(fill_gaps, constants)
    if "!=" in operators or len(set(operators)) < len(operators):
        return None
    return partial(fill, predicates)


def constants_of(predicates: Sequence[Comparison | Between]) -> list[Constant]:
    """The constants of *predicates*, still in their slots."""
    return [
        constant
        for one in predicates
        for constant in ((one.value,) if isinstance(one, Comparison) else (one.low, one.high))
    ]


def fill(predicates: Sequence[Comparison | Between], rows: TemplateRows) -> FilledPredicate:
    """All numeric comparisons on one attribute: one closed interval."""
    low, high = np.full(rows.count, -math.inf), np.full(rows.count, math.inf)
    odd = np.zeros(rows.count, np.bool_)
    for predicate in predicates:
        for operator, constant in _bounds(predicate):
            value = rows.number(_float_of(constant))
            odd |= ~np.isfinite(value)
            if operator in ("=", ">=", ">"):
                bound = _next(value, math.inf) if operator == ">" else value
                np.maximum(low, bound, out=low)
            if operator in ("=", "<=", "<"):
                bound = _next(value, -math.inf) if operator == "<" else value
                np.minimum(high, bound, out=high)
    return bounded(INTERVAL, low, high, odd | (low > high))


def _bounds(predicate: Comparison | Between) -> list[tuple[str, Constant]]:
    if isinstance(predicate, Between):
        return [(">=", predicate.low), ("<=", predicate.high)]
    return [(predicate.operator, predicate.value)]


def _float_of(constant: Constant) -> float:
    """The number of *constant*, still in its slot."""
    assert isinstance(constant.value, float)
    return constant.value


def fill_points(constants: Sequence[Constant], rows: TemplateRows) -> FilledPredicate:
    """`IN` on numbers: one point interval each."""
    values, odd = _sorted_numbers(constants, rows)
    filled = bounded(INTERVAL, values[:, 0], values[:, -1], odd)
    if values.shape[1] > 1:
        filled.kind, filled.pair_low, filled.pair_high = INTERVALS, values, values
    return filled


def fill_gaps(constants: Sequence[Constant], rows: TemplateRows) -> FilledPredicate:
    """`!=` and `NOT IN` on numbers: the intervals between them."""
    values, odd = _sorted_numbers(constants, rows)
    ends = np.full((rows.count, 1), math.inf)
    low = np.hstack([-ends, _next(values, math.inf)])
    high = np.hstack([_next(values, -math.inf), ends])
    filled = unbounded(INTERVALS, rows.count, odd | (low > high).any(axis=1))
    filled.pair_low, filled.pair_high = low, high
    return filled


def _next(values: Float64, towards: float) -> Float64:
    """The doubles beside *values*; beyond the largest come the infinities."""
    with np.errstate(over="ignore"):
        return np.nextafter(values, towards)


def _sorted_numbers(
    constants: Sequence[Constant], rows: TemplateRows
) -> tuple[Float64, npt.NDArray[np.bool_]]:
    """The numbers of each row in order, and where one is not finite or comes twice."""
    values = np.column_stack([rows.number(_float_of(constant)) for constant in constants])
    values.sort(axis=1)
    odd = ~np.isfinite(values).all(axis=1) | (np.diff(values, axis=1) == 0).any(axis=1)
    return values, odd
