"""Values to cells: how each dimension of a content space is cut, and what its curve numbers.

    null │ 1 │ 2 │ 3 │ … │ 2^bits − 1       coordinate 0 is for events that have no value there

Cells are equally wide, or, where publications are expected to gather, finer there (section 6.3). A
value outside the domain is in the first or the last cell. With the partition a client can turn its
subscriptions and publications into numbers (section 6.1).

Paper: MICS, sections 3.2, 3.3 and 6.3. The null coordinate is ours: the paper's publications have
all attributes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from stentor._jit import inner_kernel, kernel
from stentor.encoding.columns import Float64, UInt8, UInt64, read_only
from stentor.encoding.hilbert import HilbertCurve
from stentor.encoding.hilbert.ranges import Ranges
from stentor.errors import SettingsError

#: Finer cells than this cannot be distinguished in double precision, or take gigabytes of edges.
MOST_EQUAL_BITS: Final = 32
MOST_VARIABLE_BITS: Final = 16
#: The coordinate of what has no value.
NULL: Final = 0
# What a subscription says of a dimension: nothing, a value between bounds, no value.
ANYTHING, NEEDED, UNWANTED = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Partition:
    """The cells of some dimensions; make one with `equal` or `from_sample`.

    >>> cells = Partition.equal([0, 0], [70, 70], bits=3)
    >>> cells.coordinates(np.array([[0.0, 69.9], [np.nan, 1000.0]])).tolist()
    [[1, 7], [0, 7]]
    """

    bits: int
    low: Float64  # (dimensions,) of equal cells the domain
    high: Float64  # (dimensions,)
    edges: tuple[Float64, ...] = ()  # of variable cells: where each but the first begins
    curve: HilbertCurve = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "curve", HilbertCurve(len(self.low), self.bits))
        most = MOST_VARIABLE_BITS if self.edges else MOST_EQUAL_BITS
        if not 2 <= self.bits <= most:
            raise SettingsError(f"cells of {self.bits} bits; expected 2 to {most}")
        if not (np.isfinite([self.low, self.high]).all() and (self.low < self.high).all()):
            raise SettingsError(
                "a dimension's domain is empty or endless; expected low < high, both finite: what "
                "lies beyond is in the first or the last cell"
            )

    @classmethod
    def equal(cls, low: npt.ArrayLike, high: npt.ArrayLike, bits: int) -> Self:
        """Cells of equal width between *low* and *high* of each dimension."""
        return cls(bits, np.array(low, np.float64), np.array(high, np.float64))

    @classmethod
    def from_sample(cls, samples: Sequence[Float64], bits: int) -> Self:
        """Cells that hold equally many of the values of each dimension in *samples*."""
        shares = np.linspace(0.0, 1.0, 1 << bits)[1:-1]
        low, high, edges = [], [], []
        for sample in samples:
            finite = sample[np.isfinite(sample)]
            if not len(finite):
                raise SettingsError("a dimension has no value in the sample; take equal cells")
            edges.append(np.quantile(finite, shares, method="inverted_cdf"))
            least, most = float(finite.min()), float(finite.max())
            if least == most:  # a domain has a width, and two ends
                least = math.nextafter(least, 0.0) if least > 0.0 else least
                most = math.nextafter(most, math.inf) if least == most else most
            low.append(least)
            high.append(most)
        return cls(bits, np.array(low), np.array(high), tuple(edges))

    def coordinates(self, values: Float64) -> UInt64:
        """The cell (n × dimensions) of *values*; of NaN the null coordinate.

        Ascending in each value. Cost: O(1) for an equal cell, O(bits) for a variable one.
        """
        cells = np.zeros(values.shape, np.uint64)
        for dimension in range(values.shape[1]):
            column = values[:, dimension]
            is_there = ~np.isnan(column)
            cells[is_there, dimension] = 1 + self._steps(dimension, column[is_there])
        return cells

    def numbers(self, values: Float64) -> UInt64:
        """The number of each publication (n × dimensions; NaN where it has no value)."""
        return self.curve.numbers(self.coordinates(values))

    def boxes(self, low: Float64, high: Float64, need: UInt8) -> tuple[UInt64, UInt64]:
        """The cells from … to that subscriptions between *low* and *high* touch (n × dimensions).

        *need* says of each whether the bounds count, anything goes, or no value is wanted.
        """
        first = np.where(need == NEEDED, self.coordinates(low), np.uint64(NULL))
        last = np.where(need == NEEDED, self.coordinates(high), np.uint64(self.curve.last))
        last[need == UNWANTED] = NULL
        return first, last

    def ranges(self, low: Float64, high: Float64, need: UInt8 | None = None) -> Ranges:
        """The ranges of subscriptions between *low* and *high*, augmented to whole cells."""
        needed = np.full(low.shape, NEEDED, np.uint8) if need is None else need
        return self.curve.ranges(*self.boxes(low, high, needed))

    def _steps(self, dimension: int, values: Float64) -> npt.NDArray[np.int64]:
        if self.edges:
            return np.searchsorted(self.edges[dimension], values, side="right")
        position = positions(values, self.low[dimension], self.high[dimension])
        return np.minimum((position * self.curve.last).astype(np.int64), self.curve.last - 1)


def positions(values: Float64, low: float, high: float) -> Float64:
    """Where *values* are between *low* and *high*, from 0 to 1; those outside are at an end."""
    with np.errstate(over="ignore"):
        share = 1.0 if np.isfinite(np.float64(high) - low) else 0.5  # too wide to have a width
    low, high = low * share, high * share
    at: Float64 = (np.clip(values * share, low, high) - low) / (high - low)
    return at


def estimated_ranges(low: UInt64, high: UInt64, last: int) -> Float64:
    """About how many ranges each box of cells has (Equation 3); at least 1.

    Sides at an end of the space break no range, so they are not counted.
    """
    estimated = np.empty(len(low))
    _estimate(*_flat(low, high), low.shape[1], np.uint64(last), estimated)
    return estimated


def coarsened(low: UInt64, high: UInt64, curve: HilbertCurve, most: float) -> tuple[UInt64, UInt64]:
    """Boxes that hold *low* … *high* and are made of cells so large that *most* ranges suffice.

    As Equation 3 estimates it; each box by itself, the cells doubled until that holds.
    """
    low, high = low.copy(), high.copy()
    _coarsen(low.reshape(-1), high.reshape(-1), low.shape[1], curve.bits, float(most))
    return low, high


def _flat(low: UInt64, high: UInt64) -> tuple[UInt64, UInt64]:
    return read_only(low.reshape(-1)), read_only(high.reshape(-1))


@kernel
def _estimate(low: UInt64, high: UInt64, dimensions: int, last: np.uint64, found: Float64) -> None:
    """Fill *found* for each box."""
    for box in range(len(found)):
        corner = low[box * dimensions : (box + 1) * dimensions]
        found[box] = _estimated(corner, high[box * dimensions :], np.uint64(0), last)


@kernel
def _coarsen(low: UInt64, high: UInt64, dimensions: int, bits: int, most: float) -> None:
    """Let each box be made of cells twice as large until *most* ranges suffice."""
    for box in range(len(low) // dimensions):
        corner = low[box * dimensions : (box + 1) * dimensions]
        far = high[box * dimensions : (box + 1) * dimensions]
        for level in range(bits):
            side = np.uint64(level)
            last = np.uint64((1 << (bits - level)) - 1)
            if _estimated(corner, far, side, last) <= most:
                break
            below = np.uint64((2 << level) - 1)
            for dimension in range(dimensions):
                corner[dimension] &= ~below
                far[dimension] |= below


@inner_kernel
def _estimated(low: UInt64, high: UInt64, side: np.uint64, last: np.uint64) -> float:
    """About how many ranges a box has, where its coordinates are taken without *side* bits."""
    surface = 0.0
    for outer in range(len(low)):
        near, far = low[outer] >> side, high[outer] >> side
        face = 0.5 * (near > np.uint64(0)) + 0.5 * (far < last)
        for inner in range(len(low)):
            if inner != outer:
                extent = (high[inner] >> side) - (low[inner] >> side) + np.uint64(1)
                face *= float(extent)
        surface += face
    return max(1.0, surface / len(low))
