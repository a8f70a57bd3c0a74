"""One alternative's literals → as few predicates, or None where they contradict one another.

Merging keeps scores: an attribute's weights are summed on its first predicate.
"""

from __future__ import annotations

import math

from stentor.language.evaluate import Alternative, by_attribute, literal_truth
from stentor.language.negation import Literal
from stentor.language.normal_predicates import (
    Inside,
    Intervals,
    IsMissing,
    IsPresent,
    Keywords,
    Membership,
    NormalPredicate,
    Pattern,
    Phrase,
    StringInterval,
    Test,
)
from stentor.language.predicates import attribute_kind, box, membership, normal_form, size_of
from stentor.language.predicates.comparison import intersection, is_empty, narrowed, points
from stentor.model import Box, Constant, IsNull, Kind

#: Strings times what each is tried against; more stay as they are, side by side.
MOST_TRIED = 100_000

#: What the literals on one attribute come to, by their identities: alternatives share literals.
#: Invariant: the literals live as long as this does, or an identity could be given anew.
Known = dict[tuple[int, ...], tuple[NormalPredicate, ...] | None]


def simplify(alternative: Alternative, known: Known) -> tuple[NormalPredicate, ...] | None:
    """The predicates of *alternative* in the order of names; None where it can never hold.

    *known* remembers what was simplified before of the same expression.
    """
    predicates: list[NormalPredicate] = []
    for attribute, literals in sorted(by_attribute(alternative).items()):
        key = tuple(map(id, literals))
        if key not in known:
            known[key] = _predicates(attribute, literals)
        found = known[key]
        if found is None:
            return None
        predicates += found
    return tuple(predicates)


def _predicates(attribute: str, literals: list[Literal]) -> tuple[NormalPredicate, ...] | None:
    tests = _tests(literals)
    if tests is None:
        return None
    tests = _with_keywords(tests)
    weight = math.fsum(literal.weight for literal in literals)
    weights = [weight] + [0.0] * (len(tests) - 1)
    return tuple(map(NormalPredicate, [attribute] * len(tests), tests, weights))


def _with_keywords(tests: list[Test]) -> list[Test]:
    """*tests*, and the words that a phrase is made of: by these it is found."""
    words = [
        Keywords((tuple(sorted({*test.terms})),), False)
        for test in tests
        if isinstance(test, Phrase) and not test.negated
    ]
    return [*dict.fromkeys(words), *(one for one in tests if one not in words)] if words else tests


def _tests(literals: list[Literal]) -> list[Test] | None:
    """The tests of all *literals* on one attribute."""
    if len(literals) == 1 and not isinstance(literals[0].predicate, IsNull):
        return _lone_tests(literals)
    tested = [literal for literal in literals if not isinstance(literal.predicate, IsNull)]
    absence = [literal.negated for literal in literals if isinstance(literal.predicate, IsNull)]
    if False in absence:  # IS NULL beside anything else can never hold
        return None if tested or True in absence else [IsMissing()]
    if not tested:
        return [IsPresent()]
    tests = [normal_form(literal.predicate, literal.negated) for literal in tested]
    regions = [test for test in tests if isinstance(test, Inside)]
    numbers = [test for test in tests if isinstance(test, Intervals)]
    if regions or numbers:
        if len(regions) < len(tests) and len(numbers) < len(tests):
            raise TypeError(f"predicates of several kinds on one attribute: {tests}")
        if regions:
            return _region_tests(regions)
        return _number_tests(numbers, attribute_kind(tested[0].predicate) is Kind.BOOLEAN)
    return _string_tests(tested, tests)


def _lone_tests(literals: list[Literal]) -> list[Test] | None:
    """The test of the one literal on an attribute."""
    predicate, negated, _ = literals[0]
    test = normal_form(predicate, negated)
    if isinstance(test, Intervals):
        return _number_tests([test], attribute_kind(predicate) is Kind.BOOLEAN)
    return [test] if isinstance(test, Inside) else _string_tests(literals, [test])


def _number_tests(tests: list[Intervals], are_booleans: bool) -> list[Test] | None:
    intervals = tests[0].intervals
    for test in tests[1:]:
        intervals = intersection(intervals, test.intervals)
    if are_booleans and not intersection(intervals, points([0.0, 1.0])):
        return None
    return [Intervals(intervals)] if intervals else None


def _string_tests(literals: list[Literal], every: list[Test]) -> list[Test] | None:
    """Strings: where only a few can match, try each of them against all other tests."""
    if len(every) == 1:
        return None if isinstance(every[0], StringInterval) and is_empty(every[0]) else every
    tests = list(dict.fromkeys(every))
    lists = [test for test in tests if isinstance(test, Membership)]
    if any(not test.negated for test in lists):
        left = membership.intersection(lists).strings
        others = [
            literal
            for literal, test in zip(literals, every, strict=True)
            if not isinstance(test, Membership)
        ]
        if left and len(left) * sum(map(_tries, others)) > MOST_TRIED:
            rest = [test for test in tests if not isinstance(test, Membership)]
            return [Membership(left, False), *rest]
        fitting = tuple(string for string in left if _all_hold(others, string))
        return [Membership(fitting, False)] if fitting else None
    spans = [test for test in tests if isinstance(test, StringInterval) and not test.negated]
    if len(spans) > 1:
        span = spans[0]
        for other in spans[1:]:
            span = narrowed(span, other)
        tests = [span, *(test for test in tests if test not in spans)]
        spans = [span]
    if spans and is_empty(spans[0]):
        return None
    if len(lists) > 1:
        tests = [test for test in tests if not isinstance(test, Membership)]
        tests.append(membership.intersection(lists))
    contradictory = any(
        isinstance(test, (Pattern, Keywords)) and _negation(test) in tests for test in tests
    )
    return None if contradictory else tests


def _tries(literal: Literal) -> int:
    return 1 + size_of(literal.predicate)


def _all_hold(literals: list[Literal], string: str) -> bool:
    value = Constant(Kind.STRING, string)
    return all(literal_truth(literal, value, None, False) for literal in literals)


def _negation(test: Pattern | Keywords) -> Test:
    if isinstance(test, Pattern):
        return Pattern(test.pattern, not test.negated)
    return Keywords(test.groups, not test.negated)


def _region_tests(every: list[Inside]) -> list[Test] | None:
    """Plain boxes become one box; other regions stay as they are."""
    tests = list(dict.fromkeys(every))
    if any(Inside(test.region, not test.negated) in tests for test in tests):
        return None
    boxes = [
        test.region
        for test in tests
        if not test.negated
        and isinstance(test.region, Box)
        and test.region.west <= test.region.east
    ]
    if len(boxes) < 2:
        return list(tests)
    both = box.intersection(boxes)
    if both is None:
        return None
    rest = [test for test in tests if test.negated or test.region not in boxes]
    return [Inside(both, False), *rest]
