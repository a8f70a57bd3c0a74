"""Whether one subscription covers another, and why.

`a` covers `b` where each alternative of `b` implies some alternative of `a`: then every event that
matches `b` matches `a`. Exact where both are conjunctions; with OR it may miss that several
alternatives of `a` cover one of `b` only together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, assert_never

from stentor.covering.implies.null_test import NoValue
from stentor.covering.implies.predicates import ValueSet, implies, value_set
from stentor.encoding.subscriptions import NormalisedSubscription
from stentor.language.literals import write_number
from stentor.language.normal_predicates import (
    Inside,
    Interval,
    Intervals,
    IsMissing,
    IsPresent,
    Keywords,
    Membership,
    NormalPredicate,
    Pattern,
    Phrase,
    RegularPattern,
    StringInterval,
    Test,
)
from stentor.language.predicates.elements import is_member, member_of
from stentor.language.printer import to_text
from stentor.language.tree import all_of, any_of
from stentor.model import (
    Between,
    Comparison,
    Constant,
    Expression,
    Has,
    HasPhrase,
    In,
    IsNull,
    Kind,
    Like,
    Not,
    Overlaps,
    Regular,
    Schema,
    Truth,
    Within,
)


def predicates_text(predicates: Sequence[NormalPredicate], kinds: dict[str, Kind]) -> str:
    """The text of an alternative; *kinds* distinguishes timestamps and booleans from numbers."""
    parts = [
        expression_of(attribute, test, kinds.get(attribute, Kind.NUMBER))
        for attribute, test, _ in predicates
    ]
    return to_text(all_of(parts) if parts else Truth(True))


def expression_of(attribute: str, test: Test, kind: Kind) -> Expression:
    """The expression of *test* on *attribute*."""
    match test:
        case IsMissing():
            return IsNull(attribute)
        case IsPresent():
            return Not(IsNull(attribute))
        case Intervals(intervals):
            return _spans(attribute, intervals, kind)
        case Membership(strings, negated):
            found: Expression = In(attribute, tuple(Constant(Kind.STRING, s) for s in strings))
            if len(strings) == 1:
                constant = Constant(Kind.STRING, strings[0])
                return Comparison(attribute, "!=" if negated else "=", constant)
        case StringInterval():
            found, negated = _string_span(attribute, test), test.negated
        case Pattern(pattern, negated):
            found = Like(attribute, pattern)
        case RegularPattern(syntax, text, negated):
            found = Regular(attribute, syntax, text)
        case Keywords(groups, negated):
            if groups and is_member(groups[0][0]):
                wanted = [tuple(map(member_of, group)) for group in groups]
                found = _overlaps(attribute, wanted)
            else:
                found = any_of([Has(attribute, group, True) for group in groups])
        case Phrase(terms, negated):
            found = HasPhrase(attribute, " ".join(terms))
        case Inside(region, negated):
            found = Within(attribute, region)
        case _:
            assert_never(test)
    return Not(found) if negated else found


def _overlaps(attribute: str, groups: Sequence[tuple[Constant, ...]]) -> Expression:
    """The set has all members of some group."""
    if all(len(group) == 1 for group in groups):
        return Overlaps(attribute, tuple(member for (member,) in groups))
    return any_of([all_of([Overlaps(attribute, (one,)) for one in group]) for group in groups])


def _string_span(attribute: str, span: StringInterval) -> Expression:
    ends: list[Expression] = []
    if span.low is not None:
        constant = Constant(Kind.STRING, span.low)
        ends.append(Comparison(attribute, ">" if span.low_open else ">=", constant))
    if span.high is not None:
        constant = Constant(Kind.STRING, span.high)
        ends.append(Comparison(attribute, "<" if span.high_open else "<=", constant))
    return all_of(ends)


def _spans(attribute: str, intervals: Sequence[Interval], kind: Kind) -> Expression:
    if len(intervals) > 1:
        if all(low == high for low, high in intervals):
            return In(attribute, tuple(Constant(kind, low) for low, _ in intervals))
        gaps = _single_gaps(intervals)
        if gaps and intervals[0][0] == -math.inf and intervals[-1][1] == math.inf:
            if len(gaps) == 1:
                return Comparison(attribute, "!=", Constant(kind, gaps[0]))
            return Not(In(attribute, tuple(Constant(kind, gap) for gap in gaps)))
    return any_of([_interval(attribute, low, high, kind) for low, high in intervals])


def _single_gaps(intervals: Sequence[Interval]) -> list[float]:
    """The doubles between *intervals*, where each gap is one double; else none."""
    gaps = [math.nextafter(high, math.inf) for _, high in intervals[:-1]]
    starts = [math.nextafter(low, -math.inf) for low, _ in intervals[1:]]
    return gaps if gaps == starts else []


def _interval(attribute: str, low: float, high: float, kind: Kind) -> Expression:
    if low == high:
        return Comparison(attribute, "=", Constant(kind, low))
    from_low, low_open = _end(low, -math.inf)
    to_high, high_open = _end(high, math.inf)
    if math.isfinite(low) and math.isfinite(high) and not low_open and not high_open:
        return Between(attribute, Constant(kind, low), Constant(kind, high))
    ends: list[Expression] = []
    if low != -math.inf:
        ends.append(Comparison(attribute, ">" if low_open else ">=", Constant(kind, from_low)))
    if high != math.inf:
        ends.append(Comparison(attribute, "<" if high_open else "<=", Constant(kind, to_high)))
    return all_of(ends) if ends else Not(IsNull(attribute))


def _end(value: float, outward: float) -> tuple[float, bool]:
    """*value* and False; or the shorter number next to it and True, where an open end was meant."""
    if not math.isfinite(value):
        return value, False
    beyond = math.nextafter(value, outward)
    shorter = math.isfinite(beyond) and len(write_number(beyond)) < len(write_number(value))
    return (beyond, True) if shorter else (value, False)


Alternative = dict[str, ValueSet]  # by attribute
Alternatives = tuple[Alternative, ...]
"""What a subscription matches: its alternatives, without those that can never hold."""


def covers(wide: NormalisedSubscription, narrow: NormalisedSubscription, schema: Schema) -> bool:
    """Whether every event that matches *narrow* is proved to match *wide*.

    Reflexive, transitive, sound. Weights, `until` and ids play no part.

    Cost: alternatives of one times those of the other, times their attributes.
    """
    return alternatives_cover(alternatives_of(wide, schema), alternatives_of(narrow, schema))


def alternatives_of(subscription: NormalisedSubscription, schema: Schema) -> Alternatives:
    """The alternatives of *subscription* that can hold, ready to be compared with many others."""
    found = (
        _alternative(predicates, subscription, schema)
        for predicates in subscription.form.alternatives
    )
    return tuple(one for one in found if possible(one))


def possible(alternative: Alternative) -> bool:
    """Whether some event may satisfy *alternative*."""
    return not any(wanted.never for wanted in alternative.values())


def alternatives_cover(wide: Alternatives, narrow: Alternatives) -> bool:
    """Whether each alternative of *narrow* implies one of *wide*."""
    return all(any(alternative_covers(outer, inner) for outer in wide) for inner in narrow)


def alternative_covers(wide: Alternative, narrow: Alternative) -> bool:
    """Whether *narrow* implies every predicate of *wide*.

    A missing attribute satisfies nothing but IS NULL, so *wide* must have no predicate of
    an attribute of which *narrow* has none.
    """
    return len(wide) <= len(narrow) and all(
        name in narrow and implies(narrow[name], wanted) for name, wanted in wide.items()
    )


def _alternative(
    predicates: Sequence[NormalPredicate], subscription: NormalisedSubscription, schema: Schema
) -> Alternative:
    return {
        name: value_set(tests, schema.kind(name), subscription.at, schema.plane)
        for name, tests in tests_by_attribute(predicates).items()
    }


def tests_by_attribute(predicates: Sequence[NormalPredicate]) -> dict[str, list[Test]]:
    """The tests on each attribute."""
    tests: dict[str, list[Test]] = {}
    for name, test, _ in predicates:
        tests.setdefault(name, []).append(test)
    return tests


class CoveringStep(NamedTuple):
    """An alternative of the narrow one; which of the wide one holds it, or why each does not."""

    text: str
    inside: str | None
    missed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CoveringExplanation:
    """Whether one subscription covers another, and why; true where it does."""

    covers: bool
    steps: tuple[CoveringStep, ...]

    def __bool__(self) -> bool:
        return self.covers

    def __str__(self) -> str:
        if not self.steps:
            return "A covers B: B asks for a contradiction, so no event matches it"
        lines = [
            "A covers B: every event that matches B matches A"
            if self.covers
            else "A does not cover B, as far as can be told"
        ]
        for step in self.steps:
            lines.append(f"  B: {step.text}")
            if step.inside is not None:
                lines.append(f"     is inside A: {step.inside}")
            lines += [f"     {missed}" for missed in step.missed]
        return "\n".join(lines)


def explain_covering(
    wide: NormalisedSubscription, narrow: NormalisedSubscription, schema: Schema
) -> CoveringExplanation:
    """`covers`, with the reasons; where there are several alternatives, for each of them."""
    outer = _possible_alternatives(wide, schema)
    kinds = {name: kind for name in schema if (kind := schema.kind(name))}
    steps = []
    for predicates, wanted in _possible_alternatives(narrow, schema):
        holding = next((one for one in outer if alternative_covers(one[1], wanted)), None)
        missed = [] if holding else [_why_not(one, wanted, kinds) for one in outer]
        if not (holding or outer):
            missed = ["A asks for a contradiction: no event matches it"]
        inside = None if holding is None else predicates_text(holding[0], kinds)
        steps.append(CoveringStep(predicates_text(predicates, kinds), inside, tuple(missed)))
    return CoveringExplanation(all(step.inside is not None for step in steps), tuple(steps))


def _possible_alternatives(
    subscription: NormalisedSubscription, schema: Schema
) -> list[tuple[Sequence[NormalPredicate], Alternative]]:
    pairs = (
        (one, _alternative(one, subscription, schema)) for one in subscription.form.alternatives
    )
    return [(predicates, wanted) for predicates, wanted in pairs if possible(wanted)]


def _why_not(
    wide: tuple[Sequence[NormalPredicate], Alternative], narrow: Alternative, kinds: dict[str, Kind]
) -> str:
    predicates, outer = wide
    name = next(
        n for n, wanted in outer.items() if n not in narrow or not implies(narrow[n], wanted)
    )
    tests = tests_by_attribute(predicates)[name]
    kind = kinds.get(name, Kind.NUMBER)
    wanted_text = " AND ".join(to_text(expression_of(name, test, kind)) for test in tests)
    if name not in narrow:
        if isinstance(outer[name], NoValue):
            return f"A asks for {wanted_text}; B also matches events that have it"
        return f"A asks for {wanted_text}; B also matches events without {name}"
    if isinstance(narrow[name], NoValue) != isinstance(outer[name], NoValue):
        return f"A asks for {wanted_text}, which B rules out"
    return f"A asks for {wanted_text}, which B does not ensure"
