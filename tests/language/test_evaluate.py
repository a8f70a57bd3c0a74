"""The definition of a match, against a plain recursion and by hand."""

import math
from dataclasses import replace

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from stentor.language.evaluate import Evaluation, evaluate
from stentor.language.parser import parse
from stentor.language.regular.syntax import folded
from stentor.language.terms import fold_terms
from stentor.language.tree import all_of, any_of
from stentor.model import (
    And,
    Between,
    Circle,
    Comparison,
    Has,
    HasPhrase,
    In,
    IsNull,
    Kind,
    Like,
    Not,
    OneOf,
    Or,
    Point,
    Range,
    Regular,
    Schema,
    Set,
    Truth,
    Weighted,
)
from stentor.wire.events import event_from_dict
from tests.support import grid, strategies


def event(**attributes):
    return event_from_dict({"id": "e", "attributes": attributes}, Schema())


def truth(text, here=None, **attributes):
    return evaluate(parse(text), event(**attributes), here=here).truth


def score(text, weights=None, **attributes):
    weighted = replace(event(**attributes), weights=weights or {})
    return evaluate(parse(text), weighted).score


# Three-valued logic, written as a recursion over the tree.


def kleene(expression, of, here):
    match expression:
        case Truth(value):
            return value
        case Weighted(predicate, _):
            return leaf(predicate, of, here)
        case Not(child):
            inner = kleene(child, of, here)
            return None if inner is None else not inner
        case And(children):
            return conjunction([kleene(child, of, here) for child in children])
        case Or(children):
            inner = [kleene(child, of, here) for child in children]
            return negation(conjunction([negation(one) for one in inner]))
        case predicate:
            return leaf(predicate, of, here)


def negation(one):
    return {True: False, False: True, None: None}[one]


def conjunction(known):
    return min(known, key=[False, None, True].index)


def leaf(predicate, of, here):
    value = of.attributes.get(predicate.attribute)
    if isinstance(predicate, IsNull):
        return value is None
    if value is None:
        return None
    if isinstance(value, Point):
        region = predicate.region
        if isinstance(region, Circle):
            return region.contains(value, here, plane=False)
        return region.contains(value)
    if isinstance(value, Set):
        return any(one in value.members for one in predicate.values)
    given_value = value.value
    match predicate:
        case Comparison(_, "=", constant):
            return given_value == constant.value
        case Comparison(_, "!=", constant):
            return given_value != constant.value
        case Comparison(_, operator, constant):
            sign = (given_value > constant.value) - (given_value < constant.value)
            return {"<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0}[operator]
        case Between(_, low, high):
            return low.value <= given_value <= high.value
        case In(_, values):
            return given_value in [constant.value for constant in values]
        case Like(_, pattern):
            return is_like(given_value, pattern)
        case Regular(_, "RLIKE", pattern):
            return re2.search(pattern, given_value) is not None
        case Regular(_, "ILIKE", pattern):
            return is_like(folded(given_value), folded(pattern))
        case HasPhrase(_, phrase):
            terms, wanted = fold_terms(given_value), fold_terms(phrase)
            return f" {' '.join(wanted)} " in f" {' '.join(terms)} "
        case Has(_, words, every):
            terms = fold_terms(given_value)
            held = [all(term in terms for term in fold_terms(word)) for word in words]
            return False not in held if every else True in held


def is_like(text, pattern):
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(is_like(text[skipped:], pattern[1:]) for skipped in range(len(text) + 1))
    plain = pattern[1:2] if pattern[0] == "\\" else pattern[0]
    rest = pattern[2:] if pattern[0] == "\\" else pattern[1:]
    fits = text[:1] == plain or (pattern[0] == "_" and text)
    return bool(fits) and is_like(text[1:], rest)


def without_ranges(of):
    one_value = {name: v for name, v in of.attributes.items() if not isinstance(v, Range | OneOf)}
    return replace(of, attributes=one_value)


places = st.none() | strategies.points()
any_event = strategies.events()


@given(strategies.expressions(), any_event.map(without_ranges), places)
def test_truth_is_that_of_a_recursion_over_the_tree(expression, of, here):
    assert evaluate(expression, of, here=here).truth is kleene(expression, of, here)


@given(strategies.expressions(), any_event, places)
def test_what_is_not_true_scores_nothing_and_what_is_true_at_least_nothing(expression, of, here):
    found = evaluate(expression, of, here=here)
    assert found.score >= 0.0
    assert found.truth or found.score == 0.0


@given(strategies.expressions(), any_event, places)
def test_two_negations_change_nothing(expression, of, here):
    twice = Not(Not(expression))
    assert evaluate(twice, of, here=here) == evaluate(expression, of, here=here)


several = st.lists(strategies.expressions(4), min_size=2, max_size=3)


@given(several, any_event, places, st.sampled_from([all_of, any_of]))
def test_de_morgan_changes_nothing(children, of, here, joined):
    other = any_of if joined is all_of else all_of
    outside = Not(joined(children))
    inside = other([Not(child) for child in children])
    assert evaluate(outside, of, here=here) == evaluate(inside, of, here=here)


@given(several, any_event, places, st.sampled_from([all_of, any_of]), st.randoms())
def test_order_changes_nothing(children, of, here, joined, random):
    shuffled = random.sample(children, len(children))
    found = evaluate(joined(children), of, here=here)
    assert evaluate(joined(shuffled), of, here=here) == found


@given(several, strategies.predicates(), any_event, places)
def test_a_repeated_predicate_changes_nothing(children, predicate, of, here):
    once = all_of([predicate, *children])
    again = all_of([predicate, *children, predicate])
    assert evaluate(again, of, here=here) == evaluate(once, of, here=here)


@given(several, any_event, places)
def test_the_best_alternative_counts(children, of, here):
    parts = [evaluate(child, of, here=here) for child in children]
    best = max([part.score for part in parts if part.truth], default=0.0)
    assert evaluate(any_of(children), of, here=here).score == best


@given(strategies.expressions(), any_event, places)
def test_doubling_every_event_weight_doubles_the_score(expression, of, here):
    doubled = {name: 2.0 * of.weights.get(name, 1.0) for name in grid.KINDS}
    found = evaluate(expression, of, here=here)
    twice = evaluate(expression, replace(of, weights=doubled), here=here)
    assert twice == Evaluation(found.truth, 2.0 * found.score)


four_numbers = st.lists(st.sampled_from(grid.NUMBERS), min_size=4, max_size=4).map(sorted)


@given(strategies.expressions(), any_event, places, four_numbers)
def test_a_wider_range_wants_for_nothing_that_a_narrower_one_has(expression, of, here, ends):
    lowest, low, high, highest = ends
    narrow, wide = (
        replace(of, attributes={**of.attributes, "price": Range(Kind.NUMBER, *pair)})
        for pair in ((low, high), (lowest, highest))
    )
    if evaluate(expression, narrow, here=here).truth:
        assert evaluate(expression, wide, here=here).truth


@given(strategies.expressions(), any_event.map(without_ranges), places)
def test_a_range_of_one_value_is_that_value(expression, of, here):
    numeric = {
        name: Range(v.kind, v.value, v.value)
        for name, v in of.attributes.items()
        if name in ("price", "stock", "made")
    }
    ranged = replace(of, attributes={**of.attributes, **numeric})
    assert evaluate(expression, ranged, here=here) == evaluate(expression, of, here=here)


# Missing attributes.


@pytest.mark.parametrize(
    "text",
    [
        "a = 1",
        "a != 1",
        "NOT a = 1",
        "a NOT IN (1, 2)",
        "a NOT BETWEEN 1 AND 2",
        "t NOT LIKE '%'",
        "NOT has_any(t, 'red')",
        "NOT ST_Within(p, ST_MakeEnvelope(0, 0, 1, 1))",
        "a = 1 OR a != 1",
    ],
)
def test_nothing_is_known_of_a_missing_attribute(text):
    assert truth(text) is None
    assert truth(f"NOT ({text})") is None


def test_is_null_is_always_known():
    assert truth("a IS NULL") is True
    assert truth("a IS NOT NULL") is False
    assert truth("a IS NULL", a=1) is False
    assert truth("a IS NOT NULL", a={"low": 1, "high": 2}) is True


def test_unknown_gives_way_to_what_is_certain():
    assert truth("a = 1 OR b = 1", b=1) is True
    assert truth("a = 1 AND b = 1", b=2) is False
    assert truth("a = 1 OR b = 1", b=2) is None
    assert truth("a = 1 AND b = 1", b=1) is None


def test_nan_is_the_same_as_missing():
    assert truth("a IS NULL", a=math.nan) is True
    assert truth("a != 1", a=math.nan) is None


def test_a_circle_around_an_unknown_place_is_unknown():
    text = "ST_DWithin(p, here(), 1000)"
    assert truth(text, p=[0, 0]) is None
    assert truth(f"NOT {text}", p=[0, 0]) is None
    assert truth(text, here=Point(0, 0), p=[0, 0]) is True


# Borders belong to the inside.


@pytest.mark.parametrize("value", [1, 2])
def test_both_ends_belong_to_between(value):
    assert truth("a BETWEEN 1 AND 2", a=value)


def test_between_from_high_to_low_is_never_true():
    assert truth("a BETWEEN 2 AND 1", a=1.5) is False
    assert truth("a NOT BETWEEN 2 AND 1", a=1.5) is True


@pytest.mark.parametrize("place", [[0, 0], [2, 1], [1, 0], [0, 0.5]])
def test_the_border_of_a_box_is_inside(place):
    assert truth("ST_Within(p, ST_MakeEnvelope(0, 0, 2, 1))", p=place)


@pytest.mark.parametrize("place", [[0, 0], [4, 4], [2, 0], [1, 1], [3, 2], [2, 1]])
def test_the_borders_of_a_polygon_and_of_its_hole_are_inside(place):
    polygon = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 3 1, 3 3, 1 3, 1 1))"
    assert truth(f"ST_Contains(ST_GeomFromText('{polygon}'), p)", p=place)
    assert truth(f"ST_Contains(ST_GeomFromText('{polygon}'), p)", p=[2, 2]) is False


def test_the_rim_of_a_circle_is_inside():
    assert truth("ST_DWithin(p, ST_Point(5, 5), 0)", p=[5, 5])
    assert truth("ST_DWithin(p, ST_Point(0, 0), 111195.1)", p=[0, 1])
    assert truth("ST_DWithin(p, ST_Point(0, 0), 111195)", p=[0, 1]) is False


@pytest.mark.parametrize(("longitude", "inside"), [(179.5, True), (-179.5, True), (0.0, False)])
def test_boxes_and_circles_go_across_180_degrees(longitude, inside):
    assert truth("ST_Within(p, ST_MakeEnvelope(179, -1, -179, 1))", p=[longitude, 0]) is inside
    assert truth("ST_DWithin(p, ST_Point(180, 0), 60000)", p=[longitude, 0]) is inside


def test_every_longitude_at_a_pole_is_the_same_place():
    assert truth("ST_DWithin(p, ST_Point(0, 90), 1)", p=[120, 90])


# Ranges: some one value satisfies everything that is asked of the attribute.


@pytest.mark.parametrize(
    ("text", "low", "high", "expected"),
    [
        ("a >= 20", 10, 20, True),
        ("a > 20", 10, 20, False),
        ("a != 10", 10, 20, True),
        ("a != 10", 10, 10, False),
        ("a NOT IN (10, 20)", 10, 20, True),
        ("a > 12 AND a < 15", 10, 20, True),
        ("a > 15 AND a < 12", 10, 20, False),
        ("a < 12 AND a > 18", 10, 20, False),
        ("a < 12 OR a > 18", 10, 20, True),
        ("NOT (a < 12 OR a > 18)", 10, 20, True),
        ("a = 12 AND a = 15", 10, 20, False),
        ("a IN (5, 20) AND a NOT IN (20)", 10, 20, False),
        ("a > 10 AND a != 15 AND a < 20", 10, 20, True),
        ("a NOT BETWEEN 5 AND 25", 10, 20, False),
        ("a IS NOT NULL AND a = 15", 10, 20, True),
        ("a < 5", -math.inf, math.inf, True),
    ],
)
def test_one_value_of_a_range_has_to_do_for_all_predicates(text, low, high, expected):
    assert truth(text, a={"low": low, "high": high}) is expected


def test_a_range_between_two_neighbouring_doubles_has_no_value_inside():
    above = math.nextafter(1.0, 2.0)
    assert truth("a > 1", a={"low": 1.0, "high": above}) is True
    assert truth(f"a > 1 AND a < {above!r}", a={"low": 1.0, "high": above}) is False


def test_each_attribute_of_an_alternative_has_its_own_value():
    both = {"a": {"low": 0, "high": 9}, "b": {"low": 0, "high": 9}}
    assert truth("a = 1 AND b = 8", **both)
    assert truth("a = 1 AND b > 9", **both) is False


# Scores.


def test_the_scores_of_the_examples_of_the_be_star_tree():
    advertisement = (
        "weight(credit_score > 650, 0.4) AND weight(num_visits > 10, 0.2) "
        "AND weight(age BETWEEN 22 AND 36, 0.4)"
    )
    user = {"credit_score": 0.2, "num_visits": 0.2, "age": 0.6}
    found = score(advertisement, user, credit_score=732, num_visits=17, age=27)
    assert found == pytest.approx(0.36)
    job = (
        "weight(category = 'green jobs', 0.2) AND weight(hours > 15, 0.5) "
        "AND weight(rate < 45, 0.3)"
    )
    seeker = {"category": 0.4, "hours": 0.1, "rate": 0.5}
    found = score(job, seeker, category="green jobs", hours=20, rate=30)
    assert found == pytest.approx(0.28)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", 1.0),
        ("a = 1 AND b = 2", 2.0),
        ("a = 1 AND a < 5", 2.0),
        ("a = 1 AND a = 1", 1.0),
        ("a BETWEEN 0 AND 5", 1.0),
        ("a IN (1, 2, 3)", 1.0),
        ("has_all(t, 'red', 'ipad')", 1.0),
        ("has_any(t, 'red', 'ipad', 'blue')", 1.0),
        ("weight(a = 1, 0)", 0.0),
        ("NOT weight(a = 2, 3)", 3.0),
        ("NOT weight(a IN (2), 3)", 3.0),
        ("weight(a = 1, 2) AND weight(a = 1, 3)", 5.0),
        ("weight(a = 1, 2) OR weight(b = 2, 3)", 3.0),
        ("weight(a = 1, 2) OR weight(b = 3, 3)", 2.0),
        ("a = 1 OR (a = 1 AND b = 2)", 2.0),
        ("NOT (weight(a = 2, 2) OR weight(b = 3, 4))", 6.0),
        ("TRUE", 0.0),
        ("TRUE AND weight(a = 1, 2)", 2.0),
        ("weight(c IS NULL, 4)", 4.0),
        ("(a = 1 OR b = 3) AND (a = 1 OR b = 4)", 1.0),
    ],
)
def test_every_predicate_as_written_counts_its_weight_once(text, expected):
    assert score(text, a=1, b=2, t="red ipad") == expected


def test_the_weight_of_an_event_counts_for_is_null_too():
    assert score("weight(c IS NULL, 4)", {"c": 0.5}) == 2.0


def test_weights_on_one_attribute_are_added_exactly_before_they_are_multiplied():
    text = " AND ".join(f"weight(a < {limit}, 0.1)" for limit in range(2, 12))
    assert score(text, a=1) == 1.0


def test_the_parts_of_a_score_are_added_in_the_order_of_the_names():
    text = "weight(c = 1, 0.1) AND weight(b = 1, 0.2) AND weight(a = 1, 0.3)"
    assert (0.3 + 0.2) + 0.1 != (0.1 + 0.2) + 0.3
    assert score(text, a=1, b=1, c=1) == (0.3 + 0.2) + 0.1


def test_weights_of_zero_still_match():
    assert evaluate(parse("weight(a = 1, 0)"), event(a=1)) == Evaluation(True, 0.0)
