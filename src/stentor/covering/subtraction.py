"""What is left of an alternative when others are taken away: whether they subsume it together.

    piece ┌────────────┐      without  ┌─────┐      leaves  ┌────┬─────┬─┐
          │            │      taken    │     │              │    └─────┘ │
          └────────────┘               └─────┘              └────┴───────┘

An alternative is a product of sets, one for each attribute, and an attribute that it does not ask
about may be anything, or missing. Exact for numbers, timestamps, booleans, strings, words that are
there or not, IS NULL, and boxes that do not cross 180°: what is taken is cut out, attribute by
attribute. Other places take something away only where they hold all of the piece's.

Paper: MICS, sections 2 and 3.7. Subsumption is co-NP complete, so there is a limit of work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from stentor.covering.meaning.asked import (
    Absence,
    Asked,
    Numbers,
    Places,
    Strings,
    asked_of,
    implies,
)
from stentor.covering.meaning.covers import Alternative, Interest
from stentor.covering.meaning.numbers import joined
from stentor.language.conditions import (
    OneOf,
    Pattern,
    Present,
    StringSpan,
    Terms,
    complement,
    intersection,
)
from stentor.model import Box, Kind, Schema


class Cut(NamedTuple):
    """The part of what is asked of an attribute that is taken away, and what is left."""

    taken: Asked
    left: list[Asked]


class Subsumption(NamedTuple):
    """Who subsumes it together, or None where nobody is known to; steps taken; the limit met."""

    by: frozenset[int] | None
    steps: int
    gave_up: bool


def subsumption(
    interest: Interest, standing: Sequence[tuple[int, Interest]], schema: Schema, most_steps: int
) -> Subsumption:
    """Whether the *standing* ones, by number, together match whatever *interest* matches.

    A yes is proven. A no is exact unless it gave up, or places other than boxes play a part.
    Range events change nothing: one matches an alternative where a point of it does.

    Cost: a step takes one alternative away from one piece; after *most_steps* it gives up. Those
    that have nothing in common with the whole are left out before, and do not count.
    """
    by: set[int] = set()
    steps = 0
    for whole in interest:
        takers = [
            (number, taken)
            for number, wide in standing
            for taken in wide
            if without(whole, taken, schema) is not None
        ]
        waiting: list[tuple[Alternative, int]] = [(whole, 0)]
        while waiting:
            piece, first = waiting.pop()
            for place in range(first, len(takers)):
                steps += 1
                if steps > most_steps:
                    return Subsumption(None, most_steps, gave_up=True)
                number, taken = takers[place]
                left = without(piece, taken, schema)
                if left is not None:
                    by.add(number)
                    # What is left of a piece is apart from all that the piece was apart from.
                    waiting += [(one, place + 1) for one in left]
                    break
            else:
                return Subsumption(None, steps, gave_up=False)
    return Subsumption(frozenset(by), steps, gave_up=False)


def without(piece: Alternative, taken: Alternative, schema: Schema) -> list[Alternative] | None:
    """*piece* without *taken*, in parts that are apart; None where nothing is known to be taken."""
    cuts: list[tuple[str, Cut]] = []
    for name, asked in taken.items():
        mine = piece.get(name)
        if mine is not None and implies(mine, asked):
            continue
        cut = _cut(mine, asked, schema.kind(name), schema.plane)
        if cut is None:
            return None
        cuts.append((name, cut))
    left: list[Alternative] = []
    inside = dict(piece)
    for name, cut in cuts:
        left += [{**inside, name: one} for one in cut.left]
        inside[name] = cut.taken
    return left


def _cut(mine: Asked | None, asked: Asked, kind: Kind | None, plane: bool) -> Cut | None:
    """What *asked* takes from *mine*, which does not imply it; None where that is nothing."""
    if mine is None:
        return _cut_anything(asked, kind, plane)
    match mine, asked:
        case Numbers(inner), Numbers(outer):
            both = intersection(inner, outer)
            rest = Numbers(joined(intersection(inner, complement(outer))))
            return Cut(Numbers(both), [rest]) if both else None
        case Strings(), Strings():
            return _cut_strings(mine, asked, plane)
        case Places(), Places():
            return _cut_places(mine, asked)
        case _:
            return None


def _cut_anything(asked: Asked, kind: Kind | None, plane: bool) -> Cut | None:
    """What *asked* takes from an attribute that may be anything, or missing."""
    anything = asked_of([Present()], kind, None, plane)
    if isinstance(asked, Absence):
        return Cut(asked, [anything])
    if implies(anything, asked):
        return Cut(anything, [Absence()])
    cut = _cut(anything, asked, kind, plane)
    return cut and Cut(cut.taken, [Absence(), *cut.left])


def _cut_strings(mine: Strings, asked: Strings, plane: bool) -> Cut | None:
    """Test by test: what fails the first, what passes it and fails the second."""
    tests, left = list(mine.tests), []
    for test in asked.tests:
        assert isinstance(test, (OneOf, StringSpan, Pattern, Terms))
        fails = replace(test, negated=not test.negated)
        rest = asked_of([*tests, fails], Kind.STRING, None, plane)
        if not rest.never:
            left.append(rest)
        tests.append(test)
    taken = asked_of(tests or [Present()], Kind.STRING, None, plane)
    return None if taken.never else Cut(taken, left)


def _cut_places(mine: Places, asked: Places) -> Cut | None:
    """Up to four boxes around the one that is taken."""
    box, other = plain_box(mine), plain_box(asked)
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
    return Cut(_inside(taken), [_inside(one) for one in left if _is_box(one)])


def plain_box(places: Places) -> Box | None:
    """The one box that *places* ask for; None where they ask for something else."""
    if places.unknown or places.outside:
        return None
    found: Box | None = None
    for area in places.inside:
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
    """Whether some place is in *box*, and it does not cross 180°."""
    return box.west <= box.east and box.south <= box.north


def _inside(box: Box) -> Places:
    return Places((box,), ())
