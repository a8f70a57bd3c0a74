"""One predicate of a template → its columns for many subscriptions at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from stentor.encoding.circles import write_circles
from stentor.encoding.columns import (
    BOX,
    CIRCLE,
    HERE,
    INNER,
    LAST,
    MISSING,
    NEGATED,
    ONE_OF,
    PRESENT,
    SPAN,
    SPANS,
    TERMS,
    Float64,
    Int64,
)
from stentor.encoding.hashing import attribute_seed
from stentor.encoding.slots import NumberSlot, TextSlot
from stentor.encoding.words import NOT_ONE_TERM, WordTable, single_terms, whole_strings
from stentor.model import Between, Box, Circle, Comparison, Constant, Has, In, Predicate, Within

Constants = Sequence[Any]  # a column of numbers or of strings for each slot


@dataclass(slots=True)
class Filled:
    """What one predicate of each of n subscriptions puts into the columns."""

    kind: int
    low: Float64  # (n,)
    high: Float64  # (n,)
    odd: npt.NDArray[np.bool_]  # (n,) rows that must take the ordinary way
    pair_low: Float64  # (n, pairs)
    pair_high: Float64  # (n, pairs)
    words: WordTable | None = None
    codes: Int64 = field(default_factory=lambda: np.zeros((0, 0), np.int64))  # (n, strings)
    marks: tuple[int, ...] = ()  # (strings,)


@dataclass(frozen=True, slots=True)
class Rows:
    """The subscriptions to be filled in: where they stand and their constants."""

    count: int
    position: Float64  # (n, 2)
    constants: Constants
    plane: bool

    def number(self, value: float) -> Float64:
        """The column that *value* stands for: its slot's, or itself repeated."""
        if isinstance(value, NumberSlot):
            column: Float64 = np.asarray(self.constants[value.slot], np.float64) * value.sign
            return column + 0.0  # -0.0 is 0.0
        return np.full(self.count, float(value))

    def words(self, value: str) -> Any:
        """The column of strings that *value* stands for."""
        if isinstance(value, TextSlot):
            return self.constants[value.slot]
        return [str(value)] * self.count


def fill_span(predicates: Sequence[Comparison | Between], rows: Rows) -> Filled:
    """All numeric comparisons on one attribute: one closed interval."""
    low, high = np.full(rows.count, -math.inf), np.full(rows.count, math.inf)
    odd = np.zeros(rows.count, np.bool_)
    for predicate in predicates:
        for operator, constant in _bounds(predicate):
            value = rows.number(float_of(constant))
            odd |= ~np.isfinite(value)
            if operator in ("=", ">=", ">"):
                bound = _next(value, math.inf) if operator == ">" else value
                np.maximum(low, bound, out=low)
            if operator in ("=", "<=", "<"):
                bound = _next(value, -math.inf) if operator == "<" else value
                np.minimum(high, bound, out=high)
    return _filled(SPAN, low, high, odd | (low > high))


def _bounds(predicate: Comparison | Between) -> list[tuple[str, Constant]]:
    if isinstance(predicate, Between):
        return [(">=", predicate.low), ("<=", predicate.high)]
    return [(predicate.operator, predicate.value)]


def float_of(constant: Constant) -> float:
    """The number of *constant*, still in its slot."""
    assert isinstance(constant.value, float)
    return constant.value


def fill_number_list(constants: Sequence[Constant], rows: Rows) -> Filled:
    """`IN` on numbers: one point interval each."""
    values, odd = _sorted_numbers(constants, rows)
    filled = _filled(SPAN, values[:, 0], values[:, -1], odd)
    if values.shape[1] > 1:
        filled.kind, filled.pair_low, filled.pair_high = SPANS, values, values
    return filled


def _next(values: Float64, towards: float) -> Float64:
    """The doubles beside *values*; beyond the largest come the infinities."""
    with np.errstate(over="ignore"):
        return np.nextafter(values, towards)


def fill_gaps(constants: Sequence[Constant], rows: Rows) -> Filled:
    """`!=` and `NOT IN` on numbers: the intervals between them."""
    values, odd = _sorted_numbers(constants, rows)
    ends = np.full((rows.count, 1), math.inf)
    low = np.hstack([-ends, _next(values, math.inf)])
    high = np.hstack([_next(values, -math.inf), ends])
    filled = _unbounded(SPANS, rows.count, odd | (low > high).any(axis=1))
    filled.pair_low, filled.pair_high = low, high
    return filled


def _sorted_numbers(
    constants: Sequence[Constant], rows: Rows
) -> tuple[Float64, npt.NDArray[np.bool_]]:
    """The numbers of each row in order, and where one is not finite or comes twice."""
    values = np.column_stack([rows.number(float_of(constant)) for constant in constants])
    values.sort(axis=1)
    odd = ~np.isfinite(values).all(axis=1) | (np.diff(values, axis=1) == 0).any(axis=1)
    return values, odd


def fill_strings(constants: Sequence[Constant], negated: bool, rows: Rows) -> Filled:
    """`=`, `IN` and their negations on strings, by ascending hash."""
    table, codes = whole_strings([rows.words(str_of(constant)) for constant in constants])
    order = np.argsort(table.hash[codes], axis=1, kind="stable")
    codes = np.take_along_axis(codes, order, axis=1)
    hashes, prefixes = table.hash[codes], table.prefix[codes]
    odd = (hashes[:, 1:] == hashes[:, :-1]).any(axis=1)
    filled = _filled(ONE_OF, prefixes.min(axis=1), prefixes.max(axis=1), odd)
    filled.words, filled.codes, filled.marks = table, codes, (0,) * codes.shape[1]
    return _negated(filled) if negated else filled


def str_of(constant: Constant) -> str:
    """The string of *constant*, still in its slot."""
    assert isinstance(constant.value, str)
    return constant.value


def fill_terms(predicate: Has, negated: bool, rows: Rows) -> Filled:
    """`has_all` and `has_any` of words that are single terms, in the order of the terms."""
    columns = [rows.words(word) for word in predicate.words]
    table, codes = single_terms(columns, attribute_seed(predicate.attribute))
    codes.sort(axis=1)  # codes follow the order of terms
    odd = (codes[:, :1] == NOT_ONE_TERM).any(axis=1) | (np.diff(codes, axis=1) == 0).any(axis=1)
    filled = _unbounded(TERMS, rows.count, odd)
    inner = INNER if predicate.every else LAST
    filled.words, filled.codes = table, codes
    filled.marks = (inner,) * (codes.shape[1] - 1) + (LAST,)
    return _negated(filled) if negated else filled


def fill_presence(missing: bool, rows: Rows) -> Filled:
    """`IS NULL` or `IS NOT NULL`."""
    return _unbounded(MISSING if missing else PRESENT, rows.count, np.zeros(rows.count, np.bool_))


def fill_box(box: Box, negated: bool, rows: Rows) -> Filled:
    """A box; one that crosses 180° too, on the globe."""
    west, south, east, north = (
        rows.number(side) for side in (box.west, box.south, box.east, box.north)
    )
    odd = ~(_is_place(west, south, rows.plane) & _is_place(east, north, rows.plane))
    odd |= south > north
    if rows.plane:
        odd |= west > east
    filled = _unbounded(BOX, rows.count, odd)
    filled.pair_low = np.column_stack([west, south])
    filled.pair_high = np.column_stack([east, north])
    return _negated(filled) if negated else filled


def fill_circle(circle: Circle, negated: bool, rows: Rows) -> Filled:
    """A circle around a point or around the subscriber."""
    radius = rows.number(circle.radius)
    if circle.centre is None:
        kind, x, y = HERE, rows.position[:, 0].copy(), rows.position[:, 1].copy()
    else:
        kind, x, y = CIRCLE, rows.number(circle.centre.x), rows.number(circle.centre.y)
    odd = ~(np.isfinite(radius) & (radius >= 0) & _is_place(x, y, rows.plane))
    pairs = 5 if kind == HERE else 4
    low, high = np.zeros((rows.count, pairs)), np.zeros((rows.count, pairs))
    write_circles(
        low, high, np.where(odd, 0.0, x), np.where(odd, 0.0, y), np.where(odd, 0.0, radius),
        rows.plane,
    )  # fmt: skip
    if kind == HERE:
        low[:, 4], high[:, 4] = radius, float(rows.plane)
    filled = _unbounded(kind, rows.count, odd)
    filled.pair_low, filled.pair_high = low, high
    return _negated(filled) if negated else filled


def _is_place(x: Float64, y: Float64, plane: bool) -> npt.NDArray[np.bool_]:
    if plane:
        return np.isfinite(x) & np.isfinite(y)
    return (np.abs(x) <= 180) & (np.abs(y) <= 90)  # False for NaN


def _negated(filled: Filled) -> Filled:
    """*filled* turned round: no interval is a hull any more."""
    filled.kind |= NEGATED
    filled.low = np.full_like(filled.low, -math.inf)
    filled.high = np.full_like(filled.high, math.inf)
    return filled


def _filled(kind: int, low: Float64, high: Float64, odd: npt.NDArray[np.bool_]) -> Filled:
    none = np.zeros((len(low), 0))
    return Filled(kind, low, high, odd, none, none)


def _unbounded(kind: int, count: int, odd: npt.NDArray[np.bool_]) -> Filled:
    return _filled(kind, np.full(count, -math.inf), np.full(count, math.inf), odd)


def slots_of(predicate: Predicate) -> list[int]:
    """The slots whose constants *predicate* takes."""
    match predicate:
        case Comparison(_, _, constant):
            values: list[Any] = [constant.value]
        case Between(_, low, high):
            values = [low.value, high.value]
        case In(_, constants):
            values = [constant.value for constant in constants]
        case Has(_, words, _):
            values = list(words)
        case Within(_, Box(west, south, east, north)):
            values = [west, south, east, north]
        case Within(_, Circle(centre, radius)):
            values = [radius, *(centre or ())]
        case _:
            values = []
    return [value.slot for value in values if isinstance(value, (NumberSlot, TextSlot))]
