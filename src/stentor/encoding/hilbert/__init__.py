"""The Hilbert curve through cells: a cell is one number, a box of cells a few ranges of numbers.

    21 22 25 26 37 38 41 42      2 dimensions × 3 bits (Figure 2 of MICS): cells next to each
    20 23 24 27 36 39 40 43      other on the curve share a side, so that boxes give few ranges.
    19 18 29 28 35 34 45 44
    16 17 30 31 32 33 46 47      At each level a cell's bits of all coordinates form one digit of
    15 12 11 10 53 52 51 48      its number: a Gray code, turned by the direction and mirrored at
    14 13  8  9 54 55 50 49      the entry of the curve into the parent cell.
     1  2  7  6 57 56 61 62
     0  3  4  5 58 59 60 63

Whoever knows the dimensions and bits can convert: a client as well as a broker (section 6.1).

Paper: MICS, section 3.2. How the curve turns is in `turns.py`, how a box becomes ranges in
`blocks.py` and, in more than six dimensions, `steps.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import UInt64, read_only
from stentor.encoding.hilbert.blocks import by_blocks
from stentor.encoding.hilbert.ranges import Ranges, collect_ranges, whole_numbers
from stentor.encoding.hilbert.steps import by_steps
from stentor.encoding.hilbert.turns import (
    MOST_BITS,
    MOST_BLOCK_DIMENSIONS,
    cells_numbered,
    number_cells,
)
from stentor.errors import SettingsError

__all__ = [
    "MOST_BITS",
    "HilbertCurve",
    "Ranges",
]


@dataclass(frozen=True)
class HilbertCurve:
    """The curve through 2^bits cells in each of some *dimensions*.

    >>> curve = HilbertCurve(dimensions=2, bits=3)
    >>> curve.numbers([(3, 4), (5, 2)]).tolist()
    [31, 55]
    >>> curve.cells([31, 55]).tolist()
    [[3, 4], [5, 2]]
    >>> curve.ranges([(4, 2)], [(6, 5)]).of(0)
    [(32, 35), (45, 46), (50, 55)]
    """

    dimensions: int
    bits: int

    def __post_init__(self) -> None:
        if self.dimensions < 1 or self.bits < 1 or self.dimensions * self.bits > MOST_BITS:
            raise SettingsError(
                f"a curve of {self.dimensions} dimensions × {self.bits} bits; expected at least 1 "
                f"of each and at most {MOST_BITS} bits in all: take fewer dimensions (projection) "
                "or coarser cells"
            )

    @property
    def last(self) -> int:
        """The greatest coordinate of a cell."""
        return (1 << self.bits) - 1

    @property
    def last_number(self) -> int:
        """The number of the last cell on the curve."""
        return (1 << self.dimensions * self.bits) - 1

    def numbers(self, cells: npt.ArrayLike) -> UInt64:
        """The number of each of *cells* (n × dimensions). Cost: O(dimensions × bits) each."""
        flat = self._coordinates(cells)
        numbers = np.empty(len(flat) // self.dimensions, np.uint64)
        number_cells(flat, self.dimensions, self.bits, numbers)
        return numbers

    def cells(self, numbers: npt.ArrayLike) -> UInt64:
        """The cell (n × dimensions) of each of *numbers*."""
        given = whole_numbers(numbers, self.last_number, "numbers").reshape(-1)
        cells = np.zeros(len(given) * self.dimensions, np.uint64)
        cells_numbered(read_only(given), self.dimensions, self.bits, cells)
        return cells.reshape(-1, self.dimensions)

    def ranges(self, low: npt.ArrayLike, high: npt.ArrayLike) -> Ranges:
        """The ranges of the cells from *low* to *high* (n × dimensions each, both included).

        A box whose low exceeds its high somewhere has none. Cost: O(ranges × bits), whatever the
        number of its cells.
        """
        lows, highs = self._coordinates(low), self._coordinates(high)
        if len(lows) != len(highs):
            raise SettingsError(
                f"{len(lows) // self.dimensions} low corners and {len(highs) // self.dimensions} "
                "high corners; expected one of each for every box"
            )
        walk = by_blocks if self.dimensions <= MOST_BLOCK_DIMENSIONS else by_steps
        boxes = len(lows) // self.dimensions
        return collect_ranges(walk(lows, highs, self.dimensions, self.bits), boxes)

    def _coordinates(self, cells: npt.ArrayLike) -> UInt64:
        given = whole_numbers(cells, self.last, "coordinates")
        if given.ndim != 2 or given.shape[1] != self.dimensions:
            raise SettingsError(
                f"cells of shape {given.shape}; expected (n, {self.dimensions}): a row for each"
            )
        return read_only(given.reshape(-1))
