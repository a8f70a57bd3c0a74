"""Slices sorted in place by kernels, which cannot allocate; values of events found in order."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from stentor._jit import inner_kernel, kernel_inline
from stentor.encoding.columns import EventColumns, Int32, Int64

_FEW = 256
_BITS = 8
DIGITS = 1 << _BITS
Array = TypeVar("Array", bound=npt.NDArray[Any])


def distinct(values: Array) -> Array:
    """*values* in ascending order, each once; none of them is NaN.

    `np.unique` says the same by a table of hashes, which takes twenty times as long for a million.
    """
    if (values[1:] > values[:-1]).all():
        return values
    ordered: Any = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]  # type: ignore[no-any-return]


@kernel_inline
def sort_slice(values: npt.NDArray[Any], start: int, stop: int) -> None:
    """Sort values[start:stop] in ascending order by Shell's method, so that no slice is slow.

    Most slices are short, or sorted already.
    """
    gap = 1
    while 3 * gap + 1 < stop - start:
        gap = 3 * gap + 1
    while gap > 0:
        for position in range(start + gap, stop):
            moving = values[position]
            hole = position
            while hole >= start + gap and values[hole - gap] > moving:
                values[hole] = values[hole - gap]
                hole -= gap
            values[hole] = moving
        gap //= 3


@inner_kernel
def sort_many(ranks: Int32, count: int, other: Int32, tally: Int64) -> None:
    """Sort the first *count* of *ranks*, which are not negative, digit by digit from the lowest.

    *other* (as long) and *tally* (DIGITS) are scratch; few are sorted by comparing.
    """
    if count <= _FEW:
        sort_slice(ranks, 0, count)
        return
    highest = 0
    for position in range(count):
        highest = max(highest, ranks[position])
    source, target = ranks, other
    shift = passes = 0
    while highest >> shift > 0:
        for digit in range(DIGITS):
            tally[digit] = 0
        for position in range(count):
            tally[source[position] >> shift & (DIGITS - 1)] += 1
        start = 0
        for digit in range(DIGITS):
            size = tally[digit]
            tally[digit] = start
            start += size
        for position in range(count):
            digit = source[position] >> shift & (DIGITS - 1)
            target[tally[digit]] = source[position]
            tally[digit] += 1
        source, target = target, source
        shift += _BITS
        passes += 1
    if passes % 2 == 1:
        for position in range(count):
            ranks[position] = other[position]


#: The position of an attribute that the event lacks.
NO_VALUE = -1


@kernel_inline
def find_value(events: EventColumns, event: int, attribute: int) -> int:
    """The position of the event's value of *attribute*, or NO_VALUE. Cost: O(log values)."""
    start, last = events.value_start[event], events.value_start[event + 1]
    stop = last
    while start < stop:
        middle = (start + stop) >> 1
        if events.attribute[middle] < attribute:
            start = middle + 1
        else:
            stop = middle
    if start < last and events.attribute[start] == attribute:
        return int(start)
    return NO_VALUE
