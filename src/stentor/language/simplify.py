"""One alternative's literals → as few conditions, or None where they contradict one another.

Merging keeps scores: an attribute's weights are summed on its first condition.
"""

from __future__ import annotations

import math

from stentor.language.conditions import (
    EVERYTHING,
    Condition,
    Interval,
    Missing,
    OneOf,
    Pattern,
    Place,
    Present,
    Spans,
    StringSpan,
    Terms,
    Test,
    complement,
    intersection,
    points,
)
from stentor.language.evaluate import Alternative, by_attribute, literal_truth
from stentor.language.mistakes import no_term
from stentor.language.negation import Literal
from stentor.language.terms import fold_terms
from stentor.model import (
    Between,
    Box,
    Comparison,
    Constant,
    Has,
    In,
    IsNull,
    Kind,
    Like,
    Within,
)

#: What the literals on one attribute come to, by their identities: alternatives share literals.
#: Invariant: the literals live as long as this does, or an identity could be given anew.
Known = dict[tuple[int, ...], tuple[Condition, ...] | None]


def simplify(alternative: Alternative, known: Known) -> tuple[Condition, ...] | None:
    """The conditions of *alternative* in the order of names; None where it can never hold.

    *known* remembers what was simplified before of the same expression.
    """
    conditions: list[Condition] = []
    for attribute, literals in sorted(by_attribute(alternative).items()):
        key = tuple(map(id, literals))
        if key not in known:
            known[key] = _conditions(attribute, literals)
        found = known[key]
        if found is None:
            return None
        conditions += found
    return tuple(conditions)


def _conditions(attribute: str, literals: list[Literal]) -> tuple[Condition, ...] | None:
    tests = _tests(literals)
    if tests is None:
        return None
    weight = math.fsum(literal.weight for literal in literals)
    weights = [weight] + [0.0] * (len(tests) - 1)
    return tuple(map(Condition, [attribute] * len(tests), tests, weights))


def _tests(literals: list[Literal]) -> list[Test] | None:
    """The tests that stand for all *literals* on one attribute."""
    asked = [literal for literal in literals if not isinstance(literal.predicate, IsNull)]
    absence = [literal.negated for literal in literals if isinstance(literal.predicate, IsNull)]
    if False in absence:  # IS NULL beside anything else can never hold
        return None if asked or True in absence else [Missing()]
    if not asked:
        return [Present()]
    if isinstance(asked[0].predicate, Within):
        return _place_tests(asked)
    if any(_is_numeric(literal) for literal in asked):
        return _number_tests(asked)
    return _string_tests(asked)


def _is_numeric(literal: Literal) -> bool:
    match literal.predicate:
        case Comparison(_, _, constant) | Between(_, constant, _):
            return constant.kind.numeric
        case In(_, values):
            return values[0].kind.numeric
        case _:
            return False


def _number_tests(literals: list[Literal]) -> list[Test] | None:
    spans = EVERYTHING
    for literal in literals:
        spans = intersection(spans, _intervals(literal))
    if _is_boolean(literals[0]) and not intersection(spans, points([0.0, 1.0])):
        return None
    return [Spans(spans)] if spans else None


def _is_boolean(literal: Literal) -> bool:
    match literal.predicate:
        case Comparison(_, _, Constant(Kind.BOOLEAN)) | In(_, (Constant(Kind.BOOLEAN), *_)):
            return True
        case _:
            return False


def _intervals(literal: Literal) -> tuple[Interval, ...]:
    match literal.predicate:
        case Comparison(_, operator, constant):
            spans = _comparison_intervals(operator, _double(constant))
        case Between(_, low, high):
            start, stop = _double(low), _double(high)
            spans = ((start, stop),) if start <= stop else ()
        case In(_, values):
            spans = points([_double(value) for value in values])
        case other:
            raise TypeError(f"not a numeric predicate: {other}")
    return complement(spans) if literal.negated else spans


def _comparison_intervals(operator: str, value: float) -> tuple[Interval, ...]:
    match operator:
        case "=":
            return ((value, value),)
        case "!=":
            return complement(((value, value),))
        case "<":
            return ((-math.inf, math.nextafter(value, -math.inf)),)
        case "<=":
            return ((-math.inf, value),)
        case ">":
            return ((math.nextafter(value, math.inf), math.inf),)
        case _:
            return ((value, math.inf),)


def _double(constant: Constant) -> float:
    return float(constant.value)


def _string_tests(literals: list[Literal]) -> list[Test] | None:
    """Strings: where one of a few is asked for, try each of them against everything else."""
    if len(literals) == 1:
        test = _string_test(literals[0])
        return None if isinstance(test, StringSpan) and _is_empty(test) else [test]
    tests = list(dict.fromkeys(_string_test(literal) for literal in literals))
    lists = [test for test in tests if isinstance(test, OneOf)]
    wanted = [set(test.strings) for test in lists if not test.negated]
    if wanted:
        unwanted = [test.strings for test in lists if test.negated]
        left = sorted(set.intersection(*wanted).difference(*unwanted))
        others = [one for one in literals if not isinstance(_string_test(one), OneOf)]
        fitting = [string for string in left if _all_hold(others, string)]
        return [OneOf(tuple(fitting), False)] if fitting else None
    spans = [test for test in tests if isinstance(test, StringSpan) and not test.negated]
    if len(spans) > 1:
        span = spans[0]
        for other in spans[1:]:
            span = _narrowed(span, other)
        tests = [span, *(test for test in tests if test not in spans)]
        spans = [span]
    if spans and _is_empty(spans[0]):
        return None
    excluded = [test for test in tests if isinstance(test, OneOf)]
    if len(excluded) > 1:
        strings = sorted({string for test in excluded for string in test.strings})
        tests = [test for test in tests if not isinstance(test, OneOf)]
        tests.append(OneOf(tuple(strings), True))
    contradictory = any(
        isinstance(test, (Pattern, Terms)) and _negation(test) in tests for test in tests
    )
    return None if contradictory else tests


def _all_hold(literals: list[Literal], string: str) -> bool:
    value = Constant(Kind.STRING, string)
    return all(literal_truth(literal, value, None, False) for literal in literals)


def _negation(test: Pattern | Terms) -> Test:
    if isinstance(test, Pattern):
        return Pattern(test.pattern, not test.negated)
    return Terms(test.groups, not test.negated)


def _string_test(literal: Literal) -> Test:
    negated = literal.negated
    match literal.predicate:
        case Comparison(_, operator, constant):
            text = str(constant.value)
            match operator:
                case "=" | "!=":
                    return OneOf((text,), negated != (operator == "!="))
                case "<" | "<=":
                    return StringSpan(None, False, text, operator == "<", negated)
                case _:
                    return StringSpan(text, operator == ">", None, False, negated)
        case Between(_, low, high):
            return StringSpan(str(low.value), False, str(high.value), False, negated)
        case In(_, values):
            return OneOf(tuple(sorted({str(value.value) for value in values})), negated)
        case Like(_, pattern):
            return Pattern(pattern, negated)
        case Has(_, words, every):
            return Terms(_groups(words, every), negated)
        case other:
            raise TypeError(f"not a string predicate: {other}")


def _groups(words: tuple[str, ...], every: bool) -> tuple[tuple[str, ...], ...]:
    folded = [tuple(dict.fromkeys(fold_terms(word))) for word in words]
    for word, terms in zip(words, folded, strict=True):
        if not terms:
            raise no_term(word)
    if every:
        return (tuple(sorted({term for terms in folded for term in terms})),)
    return tuple(sorted({tuple(sorted(terms)) for terms in folded}))


def _narrowed(left: StringSpan, right: StringSpan) -> StringSpan:
    low, low_open = left.low, left.low_open
    if right.low is not None and (low is None or (right.low, right.low_open) > (low, low_open)):
        low, low_open = right.low, right.low_open
    high, high_open = left.high, left.high_open
    if right.high is not None and (
        high is None or (right.high, not right.high_open) < (high, not high_open)
    ):
        high, high_open = right.high, right.high_open
    return StringSpan(low, low_open, high, high_open, False)


def _is_empty(span: StringSpan) -> bool:
    if span.negated:
        return False
    if span.low is None or span.high is None:
        # Nothing is below the empty string.
        return span.high == "" and span.high_open
    if span.low == span.high:
        return span.low_open or span.high_open
    return span.low > span.high


def _place_tests(literals: list[Literal]) -> list[Test] | None:
    """Plain boxes become one box; other regions stay as they are."""
    if len(literals) == 1:
        return [_place(literals[0])]
    places = list(dict.fromkeys(_place(literal) for literal in literals))
    if any(Place(place.region, not place.negated) in places for place in places):
        return None
    boxes = [
        place.region
        for place in places
        if not place.negated
        and isinstance(place.region, Box)
        and place.region.west <= place.region.east
    ]
    if len(boxes) < 2:
        return list(places)
    box = Box(
        max(box.west for box in boxes),
        max(box.south for box in boxes),
        min(box.east for box in boxes),
        min(box.north for box in boxes),
    )
    if box.west > box.east or box.south > box.north:
        return None
    rest = [place for place in places if place.negated or place.region not in boxes]
    return [Place(box, False), *rest]


def _place(literal: Literal) -> Place:
    assert isinstance(literal.predicate, Within)
    return Place(literal.predicate.region, literal.negated)
