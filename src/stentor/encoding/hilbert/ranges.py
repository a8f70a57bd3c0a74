"""Ranges of numbers, how they are checked, and how a walk along the curve adds to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel_inline
from stentor.encoding.columns import Int64, UInt64
from stentor.errors import SettingsError

#: Goes over the boxes from one on, and fills starts, low and high; the box that did not fit.
Walk = Callable[[int, Int64, UInt64, UInt64], int]
#: The first capacity, in ranges for each box; by how much at most it grows each time.
CAPACITY: Final = 16
LEAP: Final = 8
#: What `add_range` returns where the range does not fit.
NO_CAPACITY: Final = -1
_ONE: Final = np.uint64(1)


class Ranges(NamedTuple):
    """Ranges of numbers, both ends included, of each of n boxes.

    Those of the i-th are at `starts[i]:starts[i + 1]`: ascending, apart from each other.
    """

    starts: Int64  # (n + 1,)
    low: UInt64  # (ranges,)
    high: UInt64  # (ranges,)

    def of(self, box: int) -> list[tuple[int, int]]:
        """The ranges of one box, as pairs."""
        part = slice(*self.starts[box : box + 2].tolist())
        return list(zip(self.low[part].tolist(), self.high[part].tolist(), strict=True))


def collect_ranges(walk: Walk, boxes: int) -> Ranges:
    """What *walk* finds in so many *boxes*, with as much capacity as they turn out to need."""
    starts, done = np.zeros(boxes + 1, np.int64), 0
    capacity = np.empty((2, CAPACITY * boxes), np.uint64)
    while (done := walk(done, starts, *capacity)) < boxes:
        # As the boxes so far need it, but no leap for the sake of a single large one.
        times = min(boxes // max(1, done) + 1, LEAP)
        capacity = np.concatenate([capacity, *[np.empty_like(capacity)] * (times - 1)], axis=1)
    low, high = capacity[:, : starts[-1]]
    return Ranges(starts, low, high)


def whole_numbers(given: npt.ArrayLike, most: int, what: str) -> UInt64:
    """*given* as an array; a SettingsError where they are no whole numbers from 0 to *most*."""
    plain = np.asarray(given)
    if plain.size == 0:
        return np.zeros(plain.shape, np.uint64)
    if plain.dtype.kind not in "iu" and not isinstance(given, np.ndarray):
        plain = np.asarray(given, object)  # plain integers beyond 2^63 among smaller ones
    is_whole = plain.dtype.kind in "iu" or all(isinstance(one, int) for one in plain.flat)
    if not is_whole or int(plain.min()) < 0 or int(plain.max()) > most:
        raise SettingsError(f"{what} must be whole numbers from 0 to {most}")
    return np.ascontiguousarray(plain, np.uint64)


@kernel_inline
def add_range(
    start: np.uint64, stop: np.uint64, begin: int, found: int, low: UInt64, high: UInt64
) -> int:
    """Add a range after the *found* ones, of which this box has those from *begin* on.

    To the last of them where it follows on that. How many there are then, or NO_ROOM.
    """
    if found > begin and start - high[found - 1] == _ONE:
        high[found - 1] = stop
        return found
    if found == len(low):
        return NO_CAPACITY
    low[found], high[found] = start, stop
    return found + 1
