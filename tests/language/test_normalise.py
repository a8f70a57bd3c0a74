"""The normal form: the same truth and the same score, in fewer words."""

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.errors import ExpressionError, LimitError
from stentor.language.evaluate import evaluate
from stentor.language.limits import ANY_SIZE, Limits
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
    RegularPattern,
    StringInterval,
)
from stentor.language.normalise import MOST_COMPARED, _recent, normalise
from stentor.language.parser import parse
from stentor.language.predicates.comparison import complement, intersection
from stentor.language.predicates.elements import member_term
from stentor.language.predicates.keywords import has_run
from stentor.language.predicates.pattern import like
from stentor.language.regular.syntax import folded, found_in
from stentor.language.terms import fold_terms
from stentor.model import And, Box, Circle, Comparison, Constant, Kind, Not, Or, Range, Set, Truth
from tests.support import strategies


def form(text):
    return normalise(parse(text)).alternatives


def asked_by(text):
    """The tests of a text's only alternative, by attribute."""
    (alternative,) = form(text)
    return [(predicate.attribute, predicate.test) for predicate in alternative]


# A slow evaluator of normal forms.


def evaluate_form(normal, event, here):
    scores = [
        sum(predicate.weight * event.weights.get(predicate.attribute, 1.0) for predicate in one)
        for one in normal.alternatives
        if all(holds(c.test, event.attributes.get(c.attribute), here) for c in one)
    ]
    return bool(scores), max(scores, default=0.0)


def holds(test, value, here):
    if value is None or isinstance(test, IsMissing):
        return value is None and isinstance(test, IsMissing)
    match test:
        case IsPresent():
            return True
        case Intervals(intervals):
            low, high = (
                (value.low, value.high) if isinstance(value, Range) else (value.value, value.value)
            )
            return any(low <= stop and start <= high for start, stop in intervals)
        case Membership(strings, negated):
            return (value.value in strings) != negated
        case StringInterval():
            return test.contains(value.value)
        case Pattern(pattern, negated):
            return like(value.value, pattern) != negated
        case RegularPattern("RLIKE", pattern, negated):
            return found_in(value.value, pattern) != negated
        case RegularPattern(_, pattern, negated):
            return like(folded(value.value), folded(pattern)) != negated
        case Phrase(terms, negated):
            return has_run(fold_terms(value.value), list(terms)) != negated
        case Keywords(groups, negated):
            is_set = isinstance(value, Set)
            terms = set(map(member_term, value.members) if is_set else fold_terms(value.value))
            return any(set(group) <= terms for group in groups) != negated
        case Inside(Circle() as circle, negated):
            inside = circle.contains(value, here, plane=False)
            return inside is not None and inside != negated
        case Inside(region, negated):
            return region.contains(value) != negated


some_events = st.lists(strategies.events(several=False), min_size=1, max_size=5)
places = st.none() | strategies.points()


@given(strategies.expressions(), some_events, places)
def test_neither_truth_nor_score_changes(expression, events, here):
    normal = normalise(expression)
    for event in events:
        truth, score = evaluate(expression, event, here=here)
        assert evaluate_form(normal, event, here) == (truth is True, score)


@given(strategies.expressions(), some_events, places)
def test_what_can_never_match_is_never_true(expression, events, here):
    one = And((expression, Not(expression)))
    if normalise(one).never:
        for event in events:
            assert not evaluate(one, event, here=here).truth


@given(strategies.expressions())
def test_conditions_stand_in_order_and_weigh_once_per_attribute(expression):
    for alternative in normalise(expression).alternatives:
        attributes = [predicate.attribute for predicate in alternative]
        assert attributes == sorted(attributes)
        repeated = [c for i, c in enumerate(alternative) if c.attribute in attributes[:i]]
        assert all(predicate.weight == 0.0 for predicate in repeated)


@given(strategies.expressions())
def test_intervals_are_disjoint_and_ascending(expression):
    for alternative in normalise(expression).alternatives:
        for predicate in alternative:
            if isinstance(predicate.test, Intervals):
                ends = [end for interval in predicate.test.intervals for end in interval]
                assert ends == sorted(ends)
                assert all(
                    one[1] < other[0]
                    for one, other in zip(
                        predicate.test.intervals, predicate.test.intervals[1:], strict=False
                    )
                )


# Intervals.

doubles = st.floats(allow_nan=False) | st.sampled_from([0.0, 1.0, 2.0])


@st.composite
def interval_lists(draw):
    ends = sorted(draw(st.sets(doubles, max_size=8)))
    return tuple(zip(ends[::2], ends[1::2], strict=False))


def contains(intervals, value):
    return any(low <= value <= high for low, high in intervals)


@given(interval_lists(), interval_lists(), doubles)
def test_intersection_holds_what_both_hold(left, right, value):
    expected = contains(left, value) and contains(right, value)
    assert contains(intersection(left, right), value) == expected


@given(interval_lists(), doubles)
def test_complement_holds_what_is_left(intervals, value):
    near = [value, *(end for pair in intervals for end in pair)]
    near += [math.nextafter(one, side) for one in near for side in (-math.inf, math.inf)]
    for one in near:
        assert contains(complement(intervals), one) != contains(intervals, one)


# Simplification, by hand.


@pytest.mark.parametrize(
    ("text", "intervals"),
    [
        ("a >= 1 AND a <= 5 AND a >= 2", ((2.0, 5.0),)),
        ("a > 1 AND a < 2", ((math.nextafter(1.0, 2.0), math.nextafter(2.0, 1.0)),)),
        ("a IN (3, 1, 2) AND a != 2", ((1.0, 1.0), (3.0, 3.0))),
        ("a BETWEEN 1 AND 5 AND a BETWEEN 5 AND 9", ((5.0, 5.0),)),
        ("NOT (a < 1 OR a > 5)", ((1.0, 5.0),)),
        ("a IS NOT NULL AND a = 1", ((1.0, 1.0),)),
    ],
)
def test_intervals_on_one_attribute_are_intersected(text, intervals):
    assert asked_by(text) == [("a", Intervals(intervals))]


@pytest.mark.parametrize(
    ("text", "tests"),
    [
        ("s IN ('a', 'b', 'c') AND s > 'a'", [Membership(("b", "c"), False)]),
        ("s IN ('ab', 'cd') AND s LIKE 'a%'", [Membership(("ab",), False)]),
        ("s IN ('red ipad', 'red') AND has_all(s, 'IPAD')", [Membership(("red ipad",), False)]),
        ("s != 'b' AND s != 'a' AND s NOT IN ('b')", [Membership(("a", "b"), True)]),
        ("s > 'a' AND s >= 'b' AND s < 'z'", [StringInterval("b", False, "z", True, False)]),
        ("has_all(s, 'red', 'RED ipad')", [Keywords((("ipad", "red"),), False)]),
        ("has_any(s, 'red', 'RED', 'iPad 2')", [Keywords((("2", "ipad"), ("red",)), False)]),
    ],
)
def test_strings_are_narrowed_to_what_is_left_of_them(text, tests):
    assert asked_by(text) == [("s", test) for test in tests]


def test_boxes_become_one_box():
    boxes = ["ST_MakeEnvelope(0, 0, 10, 10)", "ST_MakeEnvelope(5, -5, 20, 5)"]
    text = " AND ".join(f"ST_Within(p, {box})" for box in boxes)
    assert asked_by(text) == [("p", Inside(Box(5.0, 0.0, 10.0, 5.0), False))]


def test_weights_that_are_merged_are_summed_on_the_first_condition():
    (alternative,) = form("weight(a > 1, 0.5) AND weight(a < 9, 0.25) AND s LIKE 'x%' AND s > 'a'")
    assert [(c.attribute, c.weight) for c in alternative] == [("a", 0.75), ("s", 2.0), ("s", 0.0)]


@pytest.mark.parametrize(
    "text",
    [
        "FALSE",
        "a = 1 AND a = 2",
        "a < 1 AND a > 1",
        "a < 1 AND a >= 1",
        "a BETWEEN 2 AND 1",
        "a IN (1, 2) AND a NOT IN (2, 1)",
        "a > 1 AND a < 1.0000000000000002",
        "a IS NULL AND a = 1",
        "a IS NULL AND a IS NOT NULL",
        "f AND NOT f",
        "s = 'a' AND s = 'b'",
        "s = 'a' AND s LIKE 'b%'",
        "s > 'b' AND s < 'b'",
        "s > 'b' AND s <= 'b'",
        "s < ''",
        "s BETWEEN 'b' AND 'a'",
        "s LIKE 'a%' AND s NOT LIKE 'a%'",
        "has_any(s, 'red') AND NOT has_any(s, 'RED')",
        "s = 'red' AND has_all(s, 'blue')",
        "ST_Within(p, ST_MakeEnvelope(0, 0, 1, 1)) AND ST_Within(p, ST_MakeEnvelope(2, 0, 3, 1))",
        "ST_DWithin(p, here(), 5) AND NOT ST_DWithin(p, here(), 5)",
        "(a = 1 OR a = 2) AND a = 3",
        "NOT (a = 1 OR a != 1)",
        "made < TIMESTAMP '2026-01-01' AND made > TIMESTAMP '2026-01-01 00:00:00+00:00'",
    ],
)
def test_a_contradiction_is_found(text):
    assert normalise(parse(text)).never


@pytest.mark.parametrize(
    "text",
    ["TRUE", "a <= 1 AND a >= 1", "s <= ''", "s >= 'b' AND s <= 'b'", "a = 1 OR (b = 1 AND b = 2)"],
)
def test_what_only_touches_is_no_contradiction(text):
    assert len(form(text)) == 1


# Absorption.


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("weight(a = 1, 1) OR (weight(a = 1, 1) AND weight(b = 2, 0))", "weight(a = 1, 1)"),
        ("a < 5 OR a < 3", "a < 5"),
        ("a IN (1, 2, 3) OR a = 2", "a IN (1, 2, 3)"),
        ("s IN ('a', 'b') OR s = 'a'", "s IN ('a', 'b')"),
        ("s != 'z' OR s = 'a'", "s != 'z'"),
        ("a IS NOT NULL OR a = 2", "a IS NOT NULL"),
        ("a = 2 OR TRUE AND weight(a = 2, 0.5)", "a = 2"),
        ("weight(a = 1, 0) OR TRUE", "TRUE"),
    ],
)
def test_an_alternative_that_can_add_nothing_is_dropped(text, kept):
    assert form(text) == form(kept)


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 OR (a = 1 AND b = 2)",
        "weight(a < 5, 1) OR weight(a < 3, 2)",
        "a = 1 OR TRUE",
        "a < 3 OR b < 3",
        "a IS NULL OR a = 1",
    ],
)
def test_an_alternative_that_can_match_or_score_more_is_kept(text):
    assert len(form(text)) == 2


def test_equal_alternatives_are_kept_once():
    assert form("a = 1 OR a BETWEEN 1 AND 1 OR NOT (a < 1 OR a > 1)") == form("weight(a = 1, 2)")


def test_long_lists_of_alternatives_are_not_compared_pair_by_pair():
    count = math.isqrt(MOST_COMPARED)
    text = " OR ".join(f"a = {number}" for number in range(count)) + " OR a < 5"
    assert len(form(text)) == count + 1


# The brake.


def either(number):
    return Or(tuple(Comparison(f"{side}{number}", "=", ONE) for side in "ab"))


ONE = Constant(Kind.NUMBER, 1.0)


def test_what_would_multiply_out_too_far_is_refused_before_it_does():
    with pytest.raises(LimitError, match="more than a billion alternatives"):
        normalise(And(tuple(either(number) for number in range(400))))


def test_a_negation_that_would_multiply_out_is_refused_too():
    both = [And(either(number).children) for number in range(400)]
    with pytest.raises(LimitError, match="multiplies out"):
        normalise(Not(Or(tuple(both))))


def test_alternatives_up_to_the_limit_are_allowed():
    expression = And(tuple(either(number) for number in range(3)))
    assert len(normalise(expression, Limits(alternatives=8)).alternatives) == 8
    with pytest.raises(LimitError, match="8 alternatives; the limit is 7"):
        normalise(expression, Limits(alternatives=7))


def test_predicates_of_all_alternatives_together_are_limited():
    expression = And(tuple(either(number) for number in range(3)))
    assert normalise(expression, Limits(expanded_predicates=24))
    with pytest.raises(LimitError, match="24 predicates and values; the limit is 23"):
        normalise(expression, Limits(expanded_predicates=23))


def test_a_tree_that_is_too_deep_or_too_large_is_refused_without_recursion():
    deep = Truth(True)
    for _ in range(2 * sys.getrecursionlimit()):
        deep = Not(deep)
    with pytest.raises(LimitError, match="2,001 levels of nesting; the limit is 100"):
        normalise(deep)
    with pytest.raises(LimitError, match="1,001 predicates"):
        normalise(Or(tuple(Comparison("a", "=", ONE) for _ in range(1001))))


def test_a_word_without_letters_or_digits_is_refused():
    with pytest.raises(ExpressionError, match="no letter or digit"):
        normalise(strategies.Has("text", ("!?",), True))


def test_the_normal_form_of_true_has_one_alternative_without_conditions():
    assert normalise(Truth(True)).alternatives == ((),)
    assert form("a = 1") == ((NormalPredicate("a", Intervals(((1.0, 1.0),)), 1.0),),)


def test_a_tree_is_normalised_once_while_it_is_remembered(monkeypatch):
    monkeypatch.setattr("stentor.language.normalise.MOST_RECENT", 3)
    first, equal = (Or((either(0), either(1))) for _ in range(2))
    found = normalise(first)
    assert normalise(first) is normalise(first, ANY_SIZE) is found
    assert normalise(equal) == found
    assert normalise(equal) is not found
    for number in range(5):
        normalise(either(number))
    assert len(_recent) <= 3
    assert normalise(first) == found
    large = Or(tuple(either(number) for number in range(9)))
    assert normalise(large) is not normalise(large)


def test_a_tree_that_was_refused_is_refused_again():
    wide = And(tuple(either(number) for number in range(3)))
    for _ in range(2):
        with pytest.raises(LimitError):
            normalise(wide, Limits(alternatives=7))
    assert len(normalise(wide).alternatives) == 8
    with pytest.raises(LimitError):
        normalise(wide, Limits(alternatives=7))
