"""Normal predicates as people read them: the text of an expression that matches the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import assert_never

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
    StringInterval,
    Test,
)
from stentor.language.printer import to_text
from stentor.language.tree import all_of, any_of
from stentor.model import (
    Between,
    Comparison,
    Constant,
    Expression,
    Has,
    In,
    IsNull,
    Kind,
    Like,
    Not,
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
        case Keywords(groups, negated):
            found = any_of([Has(attribute, group, True) for group in groups])
        case Inside(region, negated):
            found = Within(attribute, region)
        case _:
            assert_never(test)
    return Not(found) if negated else found


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
