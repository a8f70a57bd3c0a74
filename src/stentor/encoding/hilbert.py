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

Paper: MICS, section 3.2. The turns are those of Hamilton, Compact Hilbert Indices (2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Int64, UInt64
from stentor.encoding.readonly import read_only
from stentor.errors import SettingsError

#: A number has this many bits at most.
MOST_BITS: Final = 64
# Typed, because Numba turns a uint64 combined with a plain integer into a double.
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_ALL: Final = np.uint64(2**64 - 1)
#: What the decomposition keeps of a cell while it is in one of its sub-cells.
_FRAME: Final = 10
#: Ranges that there is room for at first, for each box.
_ROOM: Final = 16


class Ranges(NamedTuple):
    """Ranges of numbers, both ends included, of each of n boxes.

    Those of the i-th stand at `starts[i]:starts[i + 1]`: ascending, apart from each other.
    """

    starts: Int64  # (n + 1,)
    low: UInt64  # (ranges,)
    high: UInt64  # (ranges,)

    def of(self, box: int) -> list[tuple[int, int]]:
        """The ranges of one box, as pairs."""
        part = slice(*self.starts[box : box + 2].tolist())
        return list(zip(self.low[part].tolist(), self.high[part].tolist(), strict=True))


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
        _number_cells(flat, self.dimensions, self.bits, numbers)
        return numbers

    def cells(self, numbers: npt.ArrayLike) -> UInt64:
        """The cell (n × dimensions) of each of *numbers*."""
        given = _unsigned(numbers, self.last_number, "numbers").reshape(-1)
        cells = np.zeros(len(given) * self.dimensions, np.uint64)
        _cell_numbers(read_only(given), self.dimensions, self.bits, cells)
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
        boxes = len(lows) // self.dimensions
        starts = np.zeros(boxes + 1, np.int64)
        frames = np.empty(self.bits * _FRAME, np.uint64)
        corners = np.zeros(self.bits * self.dimensions, np.uint64)
        room, found = 0, _ROOM * boxes
        while found > room:
            room = found
            out = np.empty(room, np.uint64), np.empty(room, np.uint64)
            found = _decompose(
                lows, highs, self.dimensions, self.bits, frames, corners, starts, *out
            )
        return Ranges(starts, out[0][:found], out[1][:found]) if room else _no_ranges(boxes)

    def _coordinates(self, cells: npt.ArrayLike) -> UInt64:
        given = _unsigned(cells, self.last, "coordinates")
        if given.ndim != 2 or given.shape[1] != self.dimensions:
            raise SettingsError(
                f"cells of shape {given.shape}; expected (n, {self.dimensions}): a row for each"
            )
        return read_only(given.reshape(-1))


def surface(extents: Sequence[float]) -> float:
    """The surface of a box with sides of so many cells (Equation 2).

    >>> surface([3, 4])
    14.0
    """
    sides = np.asarray(extents, np.float64)
    return 2.0 * sum(float(np.prod(np.delete(sides, side))) for side in range(len(sides)))


def expected_ranges(extents: Sequence[float]) -> float:
    """About how many ranges a box with sides of so many cells has (Equations 1 and 3).

    The limit of the average over all places for ever finer cells; at least 1.

    >>> expected_ranges([3, 4]), expected_ranges([16, 16, 16, 16])
    (3.5, 4096.0)
    """
    return max(1.0, surface(extents) / (2.0 * len(extents)))


def affordable_dimensions(extents: Sequence[float], most_ranges: float) -> int:
    """How many of the first dimensions can be kept so that a box has at most *most_ranges*.

    Where that is fewer than there are, projection onto those pays (section 5). At least 1.

    >>> affordable_dimensions([4, 4, 4, 4, 4, 4, 4], most_ranges=16)
    3
    """
    kept = len(extents)
    while kept > 1 and expected_ranges(extents[:kept]) > most_ranges:
        kept -= 1
    return kept


def _unsigned(given: npt.ArrayLike, most: int, what: str) -> UInt64:
    plain = np.asarray(given)
    if plain.size == 0:
        return np.zeros(plain.shape, np.uint64)
    if plain.dtype.kind not in "iu" and not isinstance(given, np.ndarray):
        plain = np.asarray(given, object)  # plain integers beyond 2^63 among smaller ones
    is_whole = plain.dtype.kind in "iu" or all(isinstance(one, int) for one in plain.flat)
    if not is_whole or int(plain.min()) < 0 or int(plain.max()) > most:
        raise SettingsError(f"{what} must be whole numbers from 0 to {most}")
    return np.ascontiguousarray(plain, np.uint64)


def _no_ranges(boxes: int) -> Ranges:
    return Ranges(np.zeros(boxes + 1, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.uint64))


@kernel_inline
def _rotated(digit: np.uint64, places: np.uint64, width: np.uint64) -> np.uint64:
    """The *width* bits of *digit* moved up by *places*, 0 to *width*, in a circle."""
    if places in (_ZERO, width):
        return digit
    mask = (_ONE << width) - _ONE if width < np.uint64(64) else _ALL
    return ((digit << places) | (digit >> (width - places))) & mask


@kernel_inline
def _entry_of(digit: np.uint64) -> np.uint64:
    """The corner at which the curve enters the sub-cell *digit*."""
    if digit == _ZERO:
        return _ZERO
    even = (digit - _ONE) & ~_ONE
    return even ^ (even >> _ONE)


@kernel_inline
def _turn_of(digit: np.uint64, width: np.uint64) -> np.uint64:
    """By how much the curve is turned in the sub-cell *digit*."""
    if digit == _ZERO:
        return _ZERO
    odd = digit if digit & _ONE else digit - _ONE
    ones = _ZERO
    while odd & _ONE:
        odd >>= _ONE
        ones += _ONE
    return _wrapped(ones, width)


@kernel
def _number_cells(cells: UInt64, dimensions: int, bits: int, numbers: UInt64) -> None:
    """Fill *numbers* with those of *cells*."""
    width = np.uint64(dimensions)
    for row in range(len(numbers)):
        entry, turn, number = _ZERO, _ZERO, _ZERO
        for level in range(bits - 1, -1, -1):
            corner = _ZERO
            for dimension in range(dimensions):
                bit = (cells[row * dimensions + dimension] >> np.uint64(level)) & _ONE
                corner |= bit << np.uint64(dimension)
            gray = _rotated(corner ^ entry, width - turn - _ONE, width)
            shift = _ONE
            while shift < width:
                gray ^= gray >> shift
                shift <<= _ONE
            if level < bits - 1:
                number <<= width
            number |= gray
            entry ^= _rotated(_entry_of(gray), turn + _ONE, width)
            turn = _wrapped(turn + _turn_of(gray, width) + _ONE, width)
        numbers[row] = number


@kernel
def _cell_numbers(numbers: UInt64, dimensions: int, bits: int, cells: UInt64) -> None:
    """Fill *cells*, which come as zeros, with those of *numbers*."""
    width = np.uint64(dimensions)
    mask = (_ONE << width) - _ONE if dimensions < MOST_BITS else _ALL
    for row in range(len(numbers)):
        entry, turn = _ZERO, _ZERO
        for level in range(bits - 1, -1, -1):
            digit = (numbers[row] >> (np.uint64(level) * width)) & mask
            corner = _rotated(digit ^ (digit >> _ONE), turn + _ONE, width) ^ entry
            for dimension in range(dimensions):
                bit = (corner >> np.uint64(dimension)) & _ONE
                cells[row * dimensions + dimension] |= bit << np.uint64(level)
            entry ^= _rotated(_entry_of(digit), turn + _ONE, width)
            turn = _wrapped(turn + _turn_of(digit, width) + _ONE, width)


@kernel
def _decompose(
    lows: UInt64,
    highs: UInt64,
    dimensions: int,
    bits: int,
    frames: UInt64,
    corners: UInt64,
    starts: Int64,
    out_low: UInt64,
    out_high: UInt64,
) -> int:
    """Fill *starts* and what there is room for of the ranges; returns how many there are.

    A cell of any level is walked sub-cell by sub-cell along the curve. Of the halves of its sides
    four masks say which the box misses and which it does not fill, so that a digit tells at once
    whether its sub-cell is outside (then all digits with the same wrong bit are passed over),
    inside (then it, and those that differ from it only along sides that are filled, are a range)
    or must be entered.
    """
    width = np.uint64(dimensions)
    last_digit = (_ONE << width) - _ONE if dimensions < MOST_BITS else _ALL
    found = 0
    for box in range(len(starts) - 1):
        starts[box] = first = found
        low = lows[box * dimensions : (box + 1) * dimensions]
        high = highs[box * dimensions : (box + 1) * dimensions]
        is_empty = False
        for dimension in range(dimensions):
            is_empty |= low[dimension] > high[dimension]
            corners[dimension] = _ZERO
        if is_empty:
            continue
        last_high = digit = base = entry = turn = _ZERO
        depth, below = 0, np.uint64(bits - 1)
        mirror, upper, lower, not_low, not_high, block = _halves(
            corners[:dimensions], low, high, entry, turn, below, width
        )
        while True:
            turned = (digit ^ (digit >> _ONE)) ^ mirror
            wrong = (upper & ~turned) | (lower & turned)
            step = _ONE
            enters = False
            if wrong != _ZERO:
                while wrong > _ONE:
                    wrong >>= _ONE
                    step <<= _ONE
                step -= digit & (step - _ONE)
            elif (not_low & ~turned) | (not_high & turned):
                enters = True
            else:
                step = block
                start = base + (digit << (below * width))
                # The block of the whole space may be 2^64, which is 0; 0 − 1 is its last number.
                stop = start + (step << (below * width)) - _ONE
                if found > first and start - last_high == _ONE:
                    if found <= len(out_high):
                        out_high[found - 1] = stop
                else:
                    if found < len(out_low):
                        out_low[found], out_high[found] = start, stop
                    found += 1
                last_high = stop
            is_done = step == _ZERO or step > last_digit - digit
            if enters:
                frame = frames[depth * _FRAME : (depth + 1) * _FRAME]
                frame[0], frame[1], frame[2], frame[3] = digit, base, entry, turn
                frame[4], frame[5], frame[6], frame[7] = mirror, upper, lower, not_low
                frame[8], frame[9] = not_high, block
                corner = _rotated(turned, turn + _ONE, width)
                here = corners[depth * dimensions : (depth + 1) * dimensions]
                depth += 1
                there = corners[depth * dimensions : (depth + 1) * dimensions]
                for dimension in range(dimensions):
                    bit = (corner >> np.uint64(dimension)) & _ONE
                    there[dimension] = here[dimension] | (bit << below)
                base += digit << (below * width)
                entry ^= _rotated(_entry_of(digit), turn + _ONE, width)
                turn = _wrapped(turn + _turn_of(digit, width) + _ONE, width)
                below -= _ONE
                digit = _ZERO
                mirror, upper, lower, not_low, not_high, block = _halves(
                    there, low, high, entry, turn, below, width
                )
            elif is_done:
                while depth > 0:
                    depth -= 1
                    below += _ONE
                    frame = frames[depth * _FRAME : (depth + 1) * _FRAME]
                    if frame[0] < last_digit:
                        break
                else:
                    break
                digit = frame[0] + _ONE
                base, entry, turn, mirror = frame[1], frame[2], frame[3], frame[4]
                upper, lower, not_low = frame[5], frame[6], frame[7]
                not_high, block = frame[8], frame[9]
            else:
                digit += step
    starts[len(starts) - 1] = found
    return found


@kernel_inline
def _halves(
    corner: UInt64,
    low: UInt64,
    high: UInt64,
    entry: np.uint64,
    turn: np.uint64,
    below: np.uint64,
    width: np.uint64,
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]:
    """Which halves of a cell the box meets and fills; sub-cells have sides of 2^below.

    Masks, turned as the digits' Gray codes are: the entry, sides of which only the upper half is
    met, only the lower half, of which the lower half is not filled, the upper half is not filled;
    and how many digits in a row differ only along sides that are filled.
    """
    upper, lower, not_low, not_high = _ZERO, _ZERO, _ZERO, _ZERO
    half = _ONE << below
    for dimension in range(len(corner)):
        bit = np.uint64(dimension)
        begin = corner[dimension]
        middle = begin + half
        end = middle + (half - _ONE)
        least, most = low[dimension], high[dimension]
        upper |= np.uint64(least >= middle) << bit
        lower |= np.uint64(most < middle) << bit
        not_low |= np.uint64((least > begin) | (most < middle - _ONE)) << bit
        not_high |= np.uint64((least > middle) | (most < end)) << bit
    back = width - turn - _ONE
    not_low = _rotated(not_low, back, width)
    not_high = _rotated(not_high, back, width)
    unfilled = not_low | not_high
    block = unfilled & (~unfilled + _ONE)
    if unfilled == _ZERO and width < np.uint64(MOST_BITS):
        block = _ONE << width
    return (
        _rotated(entry, back, width),
        _rotated(upper, back, width),
        _rotated(lower, back, width),
        not_low,
        not_high,
        block,
    )


@kernel_inline
def _wrapped(turn: np.uint64, width: np.uint64) -> np.uint64:
    """*turn*, which is below twice *width*, modulo *width*: division takes long."""
    return turn - width if turn >= width else turn
