"""One predicate of a template, filled in for many subscriptions at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import Float64, Int64
from stentor.encoding.kinds import NEGATED
from stentor.encoding.slots import NumberSlot, TextSlot
from stentor.encoding.strings import StringTable

Constants = Sequence[Any]  # a column of numbers or of strings for each slot


@dataclass(slots=True)
class FilledPredicate:
    """What one predicate of each of n subscriptions puts into the columns."""

    kind: int
    low: Float64  # (n,)
    high: Float64  # (n,)
    odd: npt.NDArray[np.bool_]  # (n,) rows that must take the ordinary way
    pair_low: Float64  # (n, pairs)
    pair_high: Float64  # (n, pairs)
    words: StringTable | None = None
    codes: Int64 = field(default_factory=lambda: np.zeros((0, 0), np.int64))  # (n, strings)
    marks: tuple[int, ...] = ()  # (strings,)


@dataclass(frozen=True, slots=True)
class TemplateRows:
    """The subscriptions to be filled in: their locations and their constants."""

    count: int
    position: Float64  # (n, 2)
    constants: Constants
    plane: bool

    def number(self, value: float) -> Float64:
        """The column of *value*: its slot's, or itself repeated."""
        if isinstance(value, NumberSlot):
            column: Float64 = np.asarray(self.constants[value.slot], np.float64) * value.sign
            return column + 0.0  # -0.0 is 0.0
        return np.full(self.count, float(value))

    def words(self, value: str) -> Any:
        """The column of strings of *value*."""
        if isinstance(value, TextSlot):
            return self.constants[value.slot]
        return [str(value)] * self.count


#: Fills one predicate in; it is made once for a template.
Filler = Callable[[TemplateRows], FilledPredicate]


def negate(filled: FilledPredicate) -> FilledPredicate:
    """*filled* negated: no interval is a hull any more."""
    filled.kind |= NEGATED
    filled.low = np.full_like(filled.low, -math.inf)
    filled.high = np.full_like(filled.high, math.inf)
    return filled


def bounded(kind: int, low: Float64, high: Float64, odd: npt.NDArray[np.bool_]) -> FilledPredicate:
    """A predicate whose hull is *low* … *high*, without operands yet."""
    none = np.zeros((len(low), 0))
    return FilledPredicate(kind, low, high, odd, none, none)


def unbounded(kind: int, count: int, odd: npt.NDArray[np.bool_]) -> FilledPredicate:
    """A predicate whose hull is everything, without operands yet."""
    return bounded(kind, np.full(count, -math.inf), np.full(count, math.inf), odd)


def are_on_globe(x: Float64, y: Float64, plane: bool) -> npt.NDArray[np.bool_]:
    """Whether (x, y) are points, on the globe or in the plane."""
    if plane:
        return np.isfinite(x) & np.isfinite(y)
    return (np.abs(x) <= 180) & (np.abs(y) <= 90)  # False for NaN
