"""What an alternative asks of an attribute, after simplification: the form that is encoded.

Numbers, booleans and timestamps come down to closed intervals of doubles (an open end is the next
double), so that every comparison, IN, BETWEEN and their negations are one thing: `Spans`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from stentor.model import Region

Interval = tuple[float, float]
EVERYTHING: tuple[Interval, ...] = ((-math.inf, math.inf),)


@dataclass(frozen=True, slots=True)
class Spans:
    """The number lies in one of these disjoint closed intervals, in ascending order."""

    intervals: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """The event does not have the attribute."""


@dataclass(frozen=True, slots=True)
class Present:
    """The event has the attribute."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """The string is (or, negated, is not) one of these; sorted, distinct."""

    strings: tuple[str, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class StringSpan:
    """The string lies (or not) between two strings; None is unbounded."""

    low: str | None
    low_open: bool
    high: str | None
    high_open: bool
    negated: bool

    def contains(self, text: str) -> bool:
        """Whether *text* satisfies this."""
        above = self.low is None or (text > self.low if self.low_open else text >= self.low)
        below = self.high is None or (text < self.high if self.high_open else text <= self.high)
        return (above and below) != self.negated


@dataclass(frozen=True, slots=True)
class Pattern:
    """The string is (or is not) of this LIKE form."""

    pattern: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Terms:
    """The text has all terms of at least one group (or, negated, of none)."""

    groups: tuple[tuple[str, ...], ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Place:
    """The point is (or is not) in the region."""

    region: Region
    negated: bool


Test = Spans | Missing | Present | OneOf | StringSpan | Pattern | Terms | Place


class Condition(NamedTuple):
    """One test of one attribute.

    The weights of an attribute's predicates stand on its first condition, the others have 0: the
    score is the sum over conditions of weight × the event's weight.
    """

    attribute: str
    test: Test
    weight: float


def intersection(left: tuple[Interval, ...], right: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """What lies in both; cost: O(|left| + |right|).

    >>> intersection(((0.0, 5.0), (8.0, 9.0)), ((4.0, 8.0),))
    ((4.0, 5.0), (8.0, 8.0))
    """
    both: list[Interval] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            both.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(both)


def complement(intervals: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """Every double that is in none of *intervals*.

    >>> complement(((-math.inf, 1.0),))
    ((1.0000000000000002, inf),)
    """
    rest: list[Interval] = []
    low = -math.inf
    covered = False  # whether the largest double is covered
    for start, stop in intervals:
        if start > low:
            rest.append((low, math.nextafter(start, -math.inf)))
        covered = stop == math.inf
        low = math.nextafter(stop, math.inf)
    if not covered:
        rest.append((low, math.inf))
    return tuple(rest)


def points(values: list[float]) -> tuple[Interval, ...]:
    """Each of *values* by itself."""
    return tuple((value, value) for value in sorted(set(values)))
