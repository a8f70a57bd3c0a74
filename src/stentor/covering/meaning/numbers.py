"""Sets of numbers: disjoint closed intervals of doubles."""

from __future__ import annotations

import math

from stentor.language.conditions import Interval, intersection, points

Intervals = tuple[Interval, ...]
BOOLEANS = points([0.0, 1.0])


def joined(intervals: Intervals) -> Intervals:
    """The same doubles in as few intervals as can be: neighbours become one.

    >>> joined(((1.0, 1.0), (1.0000000000000002, 2.0)))
    ((1.0, 2.0),)
    """
    found: list[Interval] = []
    for low, high in intervals:
        if found and math.nextafter(found[-1][1], math.inf) >= low:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return tuple(found)


def numbers_asked(intervals: Intervals, *, boolean: bool) -> Intervals:
    """*intervals* in their one shortest form; of a boolean only 0 and 1 count."""
    return joined(intersection(intervals, BOOLEANS) if boolean else intervals)


def is_subset(inner: Intervals, outer: Intervals) -> bool:
    """Whether every double of *inner* is in *outer*, both in their shortest form."""
    return intersection(inner, outer) == inner
