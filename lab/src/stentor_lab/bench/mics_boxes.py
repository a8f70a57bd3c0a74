"""The workloads of the paper: boxes and publications over 256 intervals a dimension (section 7).

The low ends of boxes are drawn uniformly or after Zipf's law, so are publications; boxes have the
same size in each dimension.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import UInt8, UInt64, read_only
from stentor.encoding.hilbert import HilbertCurve
from stentor.encoding.hilbert.ranges import Ranges
from stentor.index.mics.range_table.store import RangeStore
from stentor_lab.workloads.distributions import random_of

SIZE: Final = 100_000
#: Bits of a coordinate: 256 intervals.
BITS: Final = 8
LAST: Final = (1 << BITS) - 1
DIMENSIONS: Final = (2, 3, 4)
UNIFORM, ZIPF = "uniform", "Zipf"
LAWS: Final = (UNIFORM, ZIPF)
#: The exponent of Zipf's law; the paper does not say its own.
EXPONENT: Final = 1.0
PUBLICATIONS: Final = 10_000


def drawn(law: str, count: int, dimensions: int, seed: int, last: int = LAST) -> UInt64:
    """Coordinates from 0 to *last* (count × dimensions), after *law*."""
    random = random_of(seed, dimensions)
    if law == UNIFORM:
        return random.integers(0, last + 1, (count, dimensions), np.uint64)
    shares = 1.0 / np.arange(1, last + 2) ** EXPONENT
    return random.choice(last + 1, (count, dimensions), p=shares / shares.sum()).astype(np.uint64)


def boxes(law: str, count: int, dimensions: int, size: int, seed: int) -> tuple[UInt64, UInt64]:
    """The low and high corners of *count* boxes of *size* intervals in each dimension."""
    low = drawn(law, count, dimensions, seed, LAST - size + 1)
    return low, low + np.uint64(size - 1)


def mixed_boxes(
    law: str, count: int, dimensions: int, largest: int, seed: int
) -> tuple[UInt64, UInt64]:
    """Boxes with sides of 1 to *largest* intervals, all as often: what the paper's figures fit."""
    low = drawn(law, count, dimensions, seed)
    beyond = random_of(seed, dimensions, count).integers(0, largest, low.shape, np.uint64)
    return low, np.minimum(low + beyond, np.uint64(LAST))


def ranges_of(low: UInt64, high: UInt64) -> Ranges:
    """The ranges of boxes."""
    return HilbertCurve(low.shape[1], BITS).ranges(low, high)


def filled(ranges: Ranges) -> RangeStore:
    """A table to which all of *ranges* were added, subscription by subscription."""
    store = RangeStore()
    store.add(np.arange(len(ranges.starts) - 1), ranges)
    return store


def held(low: UInt64, high: UInt64, one: UInt64, other: UInt64) -> UInt8:
    """Whether some box from *low* to *high* holds each of those from *one* to *other*: linearly."""
    found = np.zeros(len(one), np.uint8)
    begins, ends, least, most = (
        read_only(np.ascontiguousarray(corner).reshape(-1)) for corner in (low, high, one, other)
    )
    _held_by(begins, ends, least, most, low.shape[1], found)
    return found


@kernel
def _held_by(
    low: UInt64, high: UInt64, one: UInt64, other: UInt64, dimensions: int, found: UInt8
) -> None:
    """1 in *found* where a box holds the asked one; all are looked at until one does."""
    for asked in range(len(found)):
        least = one[asked * dimensions : (asked + 1) * dimensions]
        most = other[asked * dimensions : (asked + 1) * dimensions]
        for box in range(len(low) // dimensions):
            begins = low[box * dimensions : (box + 1) * dimensions]
            ends = high[box * dimensions : (box + 1) * dimensions]
            holds = 0
            while (
                holds < dimensions and begins[holds] <= least[holds] and most[holds] <= ends[holds]
            ):
                holds += 1
            if holds == dimensions:
                found[asked] = 1
                break
