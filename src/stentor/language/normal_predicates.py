"""The tests of an alternative on an attribute, after simplification: the form that is encoded.

Numbers, booleans and timestamps come down to closed intervals of doubles (an open end is the next
double), so that every comparison, IN, BETWEEN and their negations are one thing: `Intervals`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from stentor.model import Region

Interval = tuple[float, float]
EVERYTHING: tuple[Interval, ...] = ((-math.inf, math.inf),)


@dataclass(frozen=True, slots=True)
class Intervals:
    """The number lies in one of these disjoint closed intervals, in ascending order."""

    intervals: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class IsMissing:
    """The event does not have the attribute."""


@dataclass(frozen=True, slots=True)
class IsPresent:
    """The event has the attribute."""


@dataclass(frozen=True, slots=True)
class Membership:
    """The string is (or, negated, is not) one of these; sorted, distinct."""

    strings: tuple[str, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class StringInterval:
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
class RegularPattern:
    """The string is (or is not) of this ILIKE form, or RE2 finds this pattern in it."""

    syntax: Literal["ILIKE", "RLIKE"]
    pattern: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Keywords:
    """The text has all terms of at least one group (or, negated, of none)."""

    groups: tuple[tuple[str, ...], ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Phrase:
    """The text has (or, negated, has not) these terms, one right after another."""

    terms: tuple[str, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Inside:
    """The point is (or is not) in the region."""

    region: Region
    negated: bool


#: The tests of one attribute: a closed union, over which each layer has one `match`.
Test = (
    Intervals
    | StringInterval
    | Membership
    | Pattern
    | RegularPattern
    | Keywords
    | Phrase
    | Inside
    | IsMissing
    | IsPresent
)


class NormalPredicate(NamedTuple):
    """One test of one attribute.

    The weights of an attribute's predicates are on the first of them, the others have 0: the
    score is the sum over all of weight × the event's weight.
    """

    attribute: str
    test: Test
    weight: float
