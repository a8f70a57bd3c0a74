"""What is left of an alternative when others are taken away: whether they subsume it together.

    piece ┌────────────┐      without  ┌─────┐      leaves  ┌────┬─────┬─┐
          │            │      taken    │     │              │    └─────┘ │
          └────────────┘               └─────┘              └────┴───────┘

An alternative is a product of sets, one for each attribute, and an attribute that it has no
predicate of may be anything, or missing. Exact for numbers, timestamps, booleans, strings, words
that are there or not, IS NULL, and boxes that do not cross 180°: what is taken is cut out,
attribute by attribute. Other regions take something away only where they hold all of the piece's.

Paper: MICS, sections 2 and 3.7. Subsumption is co-NP complete, so there is a limit of work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from stentor.covering.covers import Alternative, Alternatives
from stentor.covering.implies.comparison import joined
from stentor.covering.implies.null_test import NoValue
from stentor.covering.implies.predicates import LocationSet, NumberSet, ValueSet, implies, value_set
from stentor.covering.implies.strings import StringSet
from stentor.language.normal_predicates import (
    IsPresent,
    Keywords,
    Membership,
    Pattern,
    StringInterval,
)
from stentor.language.predicates.comparison import complement, intersection
from stentor.model import Box, Kind, Schema


class Difference(NamedTuple):
    """The part of an attribute's values that is taken away, and what is left."""

    taken: ValueSet
    left: list[ValueSet]


class Subsumption(NamedTuple):
    """What subsumes it together, or None where nothing is proved to; steps; the limit was met."""

    by: frozenset[int] | None
    steps: int
    gave_up: bool


def subsumption(
    interest: Alternatives,
    others: Sequence[tuple[int, Alternatives]],
    schema: Schema,
    most_steps: int,
) -> Subsumption:
    """Whether the *others*, by number, together match whatever *interest* matches.

    A yes is proved. A no is exact unless it gave up, or regions other than boxes play a part.
    Range events change nothing: one matches an alternative where a point of it does.

    Cost: a step takes one alternative away from one piece; after *most_steps* it gives up. Those
    that have nothing in common with the whole are left out before, and do not count.
    """
    by: set[int] = set()
    steps = 0
    for whole in interest:
        takers = [
            (number, taken)
            for number, wide in others
            for taken in wide
            if without(whole, taken, schema) is not None
        ]
        waiting: list[tuple[Alternative, int]] = [(whole, 0)]
        while waiting:
            piece, first = waiting.pop()
            for position in range(first, len(takers)):
                steps += 1
                if steps > most_steps:
                    return Subsumption(None, most_steps, gave_up=True)
                number, taken = takers[position]
                left = without(piece, taken, schema)
                if left is not None:
                    by.add(number)
                    # What is left of a piece is apart from all that the piece was apart from.
                    waiting += [(one, position + 1) for one in left]
                    break
            else:
                return Subsumption(None, steps, gave_up=False)
    return Subsumption(frozenset(by), steps, gave_up=False)


def without(piece: Alternative, taken: Alternative, schema: Schema) -> list[Alternative] | None:
    """*piece* without *taken*, in parts that are apart; None where nothing is known to be taken."""
    cuts: list[tuple[str, Difference]] = []
    for name, wanted in taken.items():
        mine = piece.get(name)
        if mine is not None and implies(mine, wanted):
            continue
        cut = _cut(mine, wanted, schema.kind(name), schema.plane)
        if cut is None:
            return None
        cuts.append((name, cut))
    left: list[Alternative] = []
    inside = dict(piece)
    for name, cut in cuts:
        left += [{**inside, name: one} for one in cut.left]
        inside[name] = cut.taken
    return left


def _cut(
    mine: ValueSet | None, wanted: ValueSet, kind: Kind | None, plane: bool
) -> Difference | None:
    """What *wanted* takes from *mine*, which does not imply it; None where that is nothing."""
    if mine is None:
        return _cut_anything(wanted, kind, plane)
    match mine, wanted:
        case NumberSet(inner), NumberSet(outer):
            both = intersection(inner, outer)
            rest = NumberSet(joined(intersection(inner, complement(outer))))
            return Difference(NumberSet(both), [rest]) if both else None
        case StringSet(), StringSet():
            return _cut_strings(mine, wanted, plane)
        case LocationSet(), LocationSet():
            return _cut_locations(mine, wanted)
        case _:
            return None


def _cut_anything(wanted: ValueSet, kind: Kind | None, plane: bool) -> Difference | None:
    """What *wanted* takes from an attribute that may be anything, or missing."""
    anything = value_set([IsPresent()], kind, None, plane)
    if isinstance(wanted, NoValue):
        return Difference(wanted, [anything])
    if implies(anything, wanted):
        return Difference(anything, [NoValue()])
    cut = _cut(anything, wanted, kind, plane)
    return cut and Difference(cut.taken, [NoValue(), *cut.left])


def _cut_strings(mine: StringSet, wanted: StringSet, plane: bool) -> Difference | None:
    """Test by test: what fails the first, what passes it and fails the second."""
    tests, left = list(mine.tests), []
    for test in wanted.tests:
        assert isinstance(test, (Membership, StringInterval, Pattern, Keywords))
        fails = replace(test, negated=not test.negated)
        rest = value_set([*tests, fails], Kind.STRING, None, plane)
        if not rest.never:
            left.append(rest)
        tests.append(test)
    taken = value_set(tests or [IsPresent()], Kind.STRING, None, plane)
    return None if taken.never else Difference(taken, left)


def _cut_locations(mine: LocationSet, wanted: LocationSet) -> Difference | None:
    """Up to four boxes around the one that is taken."""
    box, other = plain_box(mine), plain_box(wanted)
    if box is None or other is None:
        return None
    taken = _common(box, other)
    if taken is None:
        return None
    left = [
        Box(box.west, box.south, math.nextafter(taken.west, -math.inf), box.north),
        Box(math.nextafter(taken.east, math.inf), box.south, box.east, box.north),
        Box(taken.west, box.south, taken.east, math.nextafter(taken.south, -math.inf)),
        Box(taken.west, math.nextafter(taken.north, math.inf), taken.east, box.north),
    ]
    return Difference(_inside(taken), [_inside(one) for one in left if _is_box(one)])


def plain_box(locations: LocationSet) -> Box | None:
    """The one box that *locations* are; None where they are something else."""
    if locations.unknown or locations.outside:
        return None
    found: Box | None = None
    for area in locations.inside:
        if not isinstance(area, Box) or not _is_box(area):
            return None
        found = area if found is None else _common(found, area)
        if found is None:
            return None
    return found


def _common(one: Box, other: Box) -> Box | None:
    box = Box(
        max(one.west, other.west),
        max(one.south, other.south),
        min(one.east, other.east),
        min(one.north, other.north),
    )
    return box if _is_box(box) else None


def _is_box(box: Box) -> bool:
    """Whether some location is in *box*, and it does not cross 180°."""
    return box.west <= box.east and box.south <= box.north


def _inside(box: Box) -> LocationSet:
    return LocationSet((box,), ())
