"""What an alternative asks of one attribute, in the form in which implications are decided.

Each kind has its own: intervals, strings and words, areas. `never` is true where nothing can
satisfy it. `implies` is reflexive and transitive: it compares sets, and where it must be satisfied
with less than the sets (patterns, polygons) it compares by rules that compose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stentor.covering.meaning import patterns
from stentor.covering.meaning.numbers import Intervals, is_subset, numbers_asked
from stentor.covering.meaning.places import Area, area_inside, area_of, areas_apart, everywhere
from stentor.covering.meaning.strings import (
    ALL,
    Ranges,
    beginning,
    common,
    listed,
    one,
    ranges_of,
    shared_prefix,
    without,
)
from stentor.covering.meaning.words import Words, words_asked
from stentor.language.conditions import (
    EVERYTHING,
    Missing,
    OneOf,
    Pattern,
    Place,
    Present,
    Spans,
    StringSpan,
    Terms,
    Test,
)
from stentor.language.like import like
from stentor.language.terms import fold_terms
from stentor.model import Kind, Point


@dataclass(frozen=True, slots=True)
class Absence:
    """The attribute must be missing."""

    never: bool = False


@dataclass(frozen=True, slots=True)
class Presence:
    """The attribute must be there; nothing more is known of it, not even its kind."""

    never: bool = False


@dataclass(frozen=True, slots=True)
class Numbers:
    """Which numbers will do."""

    intervals: Intervals

    @property
    def never(self) -> bool:
        return not self.intervals


@dataclass(frozen=True, slots=True)
class Strings:
    """Which strings will do.

    All of them are in `ranges`; where `texts` are listed they are these. Patterns and words ask for
    more, unless the texts are listed.
    """

    tests: tuple[Test, ...]
    ranges: Ranges
    texts: tuple[str, ...] | None
    liked: tuple[tuple[str, ...], ...]  # patterns that say more than a range does
    disliked: tuple[tuple[str, ...], ...]
    words: Words

    @property
    def never(self) -> bool:
        return not (self.ranges if self.texts is None else self.texts) or self.words.never

    def satisfied_by(self, text: str) -> bool:
        """Whether *text* will do."""
        return all(_holds(test, text) for test in self.tests)


@dataclass(frozen=True, slots=True)
class Places:
    """In all of these areas, and in none of those."""

    inside: tuple[Area, ...]
    outside: tuple[Area, ...]
    unknown: bool = False  # around a subscriber whose place nobody knows: never

    @property
    def never(self) -> bool:
        return self.unknown


Asked = Absence | Presence | Numbers | Strings | Places


def asked_of(tests: Sequence[Test], kind: Kind | None, at: Point | None, plane: bool) -> Asked:
    """What *tests*, all those of an alternative on one attribute of *kind*, ask together."""
    match tests[0]:
        case Missing():
            return Absence()
        case Present():
            return _anything(kind, plane)
        case Spans(intervals):
            return Numbers(numbers_asked(intervals, boolean=kind is Kind.BOOLEAN))
        case Place():
            return _places(tests, at, plane)
        case _:
            return _strings(tuple(tests))


def implies(narrow: Asked, wide: Asked) -> bool:
    """Whether whatever satisfies *narrow* surely satisfies *wide*."""
    if narrow.never:
        return True
    match narrow, wide:
        case Absence(), Absence():
            return True
        case Absence(), _:
            return False
        case _, Presence():
            return True
        case Numbers(inner), Numbers(outer):
            return is_subset(inner, outer)
        case Strings(), Strings():
            return _strings_imply(narrow, wide)
        case Places(), Places():
            return _places_imply(narrow, wide)
        case _:
            return False


def _anything(kind: Kind | None, plane: bool) -> Asked:
    if kind is None:
        return Presence()
    if kind is Kind.STRING:
        return _strings(())
    if kind is Kind.POINT:
        return Places((everywhere(plane),), ())
    return Numbers(numbers_asked(EVERYTHING, boolean=kind is Kind.BOOLEAN))


def _strings(tests: tuple[Test, ...]) -> Strings:
    ranges = ALL
    liked: list[tuple[str, ...]] = []
    disliked: list[tuple[str, ...]] = []
    for test in tests:
        if isinstance(test, (OneOf, StringSpan)):
            ranges = common(ranges, ranges_of(test))
        elif isinstance(test, Pattern):
            symbols = patterns.symbols(test.pattern)
            exact = patterns.prefix_only(symbols)
            if exact and test.negated:
                ranges = without(ranges, _matching(symbols))
            elif not test.negated:
                ranges = common(ranges, _matching(symbols))
            if not exact:
                (disliked if test.negated else liked).append(symbols)
    found = listed(ranges)
    texts = None if found is None else tuple(t for t in found if all(_holds(x, t) for x in tests))
    words = words_asked(test for test in tests if isinstance(test, Terms))
    return Strings(tests, ranges, texts, tuple(liked), tuple(disliked), words)


def _matching(pattern: tuple[str, ...]) -> Ranges:
    """Ranges that hold everything of the form *pattern*."""
    start = patterns.plain_ends(pattern)[0]
    return (one(start),) if len(start) == len(pattern) else beginning(start)


def _holds(test: Test, text: str) -> bool:
    match test:
        case OneOf(strings, negated):
            return (text in strings) != negated
        case StringSpan():
            return test.contains(text)
        case Pattern(pattern, negated):
            return like(text, pattern) != negated
        case Terms(groups, negated):
            terms = set(fold_terms(text))
            return any(terms.issuperset(group) for group in groups) != negated
        case _:
            raise TypeError(f"not a test of a string: {test}")


def _strings_imply(narrow: Strings, wide: Strings) -> bool:
    if narrow.texts is not None:
        return all(map(wide.satisfied_by, narrow.texts))
    if wide.texts is not None or common(narrow.ranges, wide.ranges) != narrow.ranges:
        return False
    liked = [*narrow.liked, (*shared_prefix(narrow.ranges), patterns.TEXT)]
    return (
        all(any(patterns.inside(mine, asked) for mine in liked) for asked in wide.liked)
        and all(_is_disliked(asked, narrow, liked) for asked in wide.disliked)
        and all(narrow.words.implies(test) for test in wide.tests if isinstance(test, Terms))
    )


def _is_disliked(asked: tuple[str, ...], narrow: Strings, liked: Sequence[tuple[str, ...]]) -> bool:
    """Whether *narrow* has nothing of the form *asked*."""
    return (
        any(patterns.inside(asked, mine) for mine in narrow.disliked)
        or any(patterns.ends_differ(asked, mine) for mine in liked)
        or not common(narrow.ranges, beginning(patterns.plain_ends(asked)[0]))
    )


def _places(tests: Sequence[Test], at: Point | None, plane: bool) -> Places:
    inside: list[Area] = []
    outside: list[Area] = []
    for test in tests:
        assert isinstance(test, Place)
        area = area_of(test.region, at, plane)
        if area is None:
            return Places((), (), unknown=True)
        (outside if test.negated else inside).append(area)
    return Places(tuple(inside) or (everywhere(plane),), tuple(outside))


def _places_imply(narrow: Places, wide: Places) -> bool:
    return (
        not wide.unknown
        and all(any(area_inside(mine, asked) for mine in narrow.inside) for asked in wide.inside)
        and all(
            any(area_inside(asked, mine) for mine in narrow.outside)
            or any(areas_apart(mine, asked) for mine in narrow.inside)
            for asked in wide.outside
        )
    )
