"""What an alternative wants of one attribute as a set of values, and when one set implies another.

`ValueSet` is a closed union. The compiled form over columns is beside it; what it cannot decide
is UNDECIDED, and then the definition decides. What is not known to either is not covered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stentor._jit import inner_kernel
from stentor.covering.implies.comparison import (
    DisjointIntervals,
    is_subset,
    number_set,
    numbers_imply,
)
from stentor.covering.implies.null_test import AnyValue, NoValue
from stentor.covering.implies.operands import COVERED, NOT_COVERED, UNDECIDED, same_operands
from stentor.covering.implies.regions import (
    Area,
    area_inside,
    area_of,
    areas_apart,
    everywhere,
    region_implies,
)
from stentor.covering.implies.strings import (
    StringSet,
    StringTest,
    _strings,
    _strings_imply,
    string_implies,
)
from stentor.encoding.columns import SubscriptionColumns, UInt8
from stentor.encoding.kinds import (
    KIND_MASK,
    MISSING,
    PATTERN,
    PRESENT,
    STRING_INTERVAL,
    is_known,
    is_number_test,
    is_region,
    is_string_test,
)
from stentor.language.normal_predicates import (
    EVERYTHING,
    Inside,
    Intervals,
    IsMissing,
    IsPresent,
    Phrase,
    RegularPattern,
    Test,
)
from stentor.language.predicates.keywords import has_run
from stentor.language.predicates.pattern import like
from stentor.language.regular.syntax import folded, found_in
from stentor.model import Kind, Point


@dataclass(frozen=True, slots=True)
class NumberSet:
    """Which numbers will do."""

    intervals: DisjointIntervals

    @property
    def never(self) -> bool:
        return not self.intervals


@dataclass(frozen=True, slots=True)
class LocationSet:
    """In all of these areas, and in none of those."""

    inside: tuple[Area, ...]
    outside: tuple[Area, ...]
    unknown: bool = False  # around a subscriber at an unknown location: never

    @property
    def never(self) -> bool:
        return self.unknown


@dataclass(frozen=True, slots=True)
class PartlyKnownStrings:
    """Strings that pass other tests too, of which nothing is known but that they are the same."""

    known: StringSet
    others: frozenset[RegularPattern | Phrase]

    @property
    def never(self) -> bool:
        return self.known.never


@dataclass(frozen=True, slots=True)
class Unknown:
    """Tests of which nothing is known here: they imply themselves, and nothing else does."""

    tests: tuple[Test, ...]
    never: bool = False


ValueSet = NoValue | AnyValue | NumberSet | StringSet | PartlyKnownStrings | LocationSet | Unknown


def value_set(tests: Sequence[Test], kind: Kind | None, at: Point | None, plane: bool) -> ValueSet:
    """The values that satisfy all *tests* of an alternative on one attribute of *kind*."""
    locations = [test for test in tests if isinstance(test, Inside)]
    strings = [test for test in tests if isinstance(test, StringTest)]
    others = frozenset(test for test in tests if isinstance(test, RegularPattern | Phrase))
    match tests:
        case [IsMissing()]:
            return NoValue()
        case [IsPresent()]:
            return _anything(kind, plane)
        case [Intervals(intervals)]:
            return NumberSet(number_set(intervals, boolean=kind is Kind.BOOLEAN))
        case _ if len(locations) == len(tests):
            return _location_set(locations, at, plane)
        case _ if len(strings) == len(tests):
            return _strings(tuple(strings))
        case _ if others and all(isinstance(one, StringTest) or one in others for one in tests):
            return PartlyKnownStrings(_strings(tuple(strings)), others)
        case _:
            return Unknown(tuple(tests))


def implies(narrow: ValueSet, wide: ValueSet) -> bool:
    """Whether whatever satisfies *narrow* is proved to satisfy *wide*."""
    if narrow.never:
        return True
    match narrow, wide:
        case NoValue(), NoValue():
            return True
        case NoValue(), _:
            return False
        case Unknown(mine), _:
            return isinstance(wide, Unknown) and mine == wide.tests
        case _, AnyValue():
            return True
        case NumberSet(inner), NumberSet(outer):
            return is_subset(inner, outer)
        case StringSet(), StringSet():
            return _strings_imply(narrow, wide)
        case PartlyKnownStrings(known), StringSet():
            return _strings_imply(known, wide)
        case StringSet(), PartlyKnownStrings(wanted, more):
            return _strings_imply(narrow, wanted) and _have_forms(narrow, frozenset(), more)
        case PartlyKnownStrings(known, others), PartlyKnownStrings(wanted, more):
            return _strings_imply(known, wanted) and _have_forms(known, others, more)
        case LocationSet(), LocationSet():
            return _locations_imply(narrow, wide)
        case _:
            return False


def _have_forms(
    known: StringSet, others: frozenset[RegularPattern | Phrase], wanted: frozenset[Test]
) -> bool:
    """Whether strings that are *known*, and pass *others* too, are proved to pass all *wanted*."""
    return all(
        any(_form_implies(mine, one) for mine in others)
        or (
            isinstance(one, RegularPattern)
            and known.texts is not None
            and all(_has_form(text, one) for text in known.texts)
        )
        for one in wanted
    )


def _form_implies(narrow: RegularPattern | Phrase, wide: Test) -> bool:
    """Patterns imply themselves; a phrase also what is a part of it."""
    match narrow, wide:
        case Phrase(mine, False), Phrase(wanted, False):
            return has_run(list(mine), list(wanted))
        case Phrase(mine, True), Phrase(wanted, True):
            return has_run(list(wanted), list(mine))
        case _:
            return narrow == wide


def _has_form(text: str, test: RegularPattern) -> bool:
    if test.syntax == "RLIKE":
        return found_in(text, test.pattern) != test.negated
    return like(folded(text), folded(test.pattern)) != test.negated


def _anything(kind: Kind | None, plane: bool) -> ValueSet:
    if kind is None:
        return AnyValue()
    if kind in (Kind.STRING, Kind.SET):
        return _strings(())
    if kind is Kind.POINT:
        return LocationSet((everywhere(plane),), ())
    return NumberSet(number_set(EVERYTHING, boolean=kind is Kind.BOOLEAN))


def _location_set(tests: Sequence[Inside], at: Point | None, plane: bool) -> LocationSet:
    inside: list[Area] = []
    outside: list[Area] = []
    for test in tests:
        area = area_of(test.region, at, plane)
        if area is None:
            return LocationSet((), (), unknown=True)
        (outside if test.negated else inside).append(area)
    return LocationSet(tuple(inside) or (everywhere(plane),), tuple(outside))


def _locations_imply(narrow: LocationSet, wide: LocationSet) -> bool:
    return (
        not wide.unknown
        and all(any(area_inside(mine, wanted) for mine in narrow.inside) for wanted in wide.inside)
        and all(
            any(area_inside(wanted, mine) for mine in narrow.outside)
            or any(areas_apart(mine, wanted) for mine in narrow.inside)
            for wanted in wide.outside
        )
    )


@inner_kernel
def predicate_implies(
    columns: SubscriptionColumns, kinds: UInt8, plane: bool, narrow: int, wide: int
) -> int:
    """Whether the predicate *narrow* implies *wide*, both on one attribute."""
    kind, wanted = columns.kind[narrow], columns.kind[wide]
    if not (is_known(kind) and is_known(wanted)):
        return NOT_COVERED  # a test that is not known here
    if kind == MISSING or wanted == MISSING:
        return COVERED if kind == wanted else NOT_COVERED
    if wanted == PRESENT:
        return COVERED
    if is_number_test(wanted):
        is_number = kind == PRESENT or is_number_test(kind)
        return numbers_imply(columns, kinds, narrow, wide) if is_number else NOT_COVERED
    if is_region(wanted):
        if kind != PRESENT and not is_region(kind):
            return NOT_COVERED
        return (
            COVERED
            if kind != PRESENT and same_operands(columns, narrow, wide)
            else (region_implies(columns, plane, narrow, wide))
        )
    if kind == PRESENT:
        return UNDECIDED if (wanted & KIND_MASK) in (STRING_INTERVAL, PATTERN) else NOT_COVERED
    if not (is_string_test(kind) and is_string_test(wanted)):
        return NOT_COVERED
    return string_implies(columns, narrow, wide)
