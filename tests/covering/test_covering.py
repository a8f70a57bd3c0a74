"""Covering itself: exact on conjunctions, sound everywhere, reflexive and transitive."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.covering.covers import covers, explain_covering
from stentor.encoding.subscriptions import NormalisedSubscription
from stentor.language.evaluate import evaluate
from stentor.language.normalise import normalise
from stentor.language.parser import parse
from stentor.model import Point, Schema
from tests.support import grid
from tests.support.covering_strategies import conjunctions, normalised, related, telling_events
from tests.support.strategies import events

KINDS = {
    "price": "number",
    "stock": "number",
    "brand": "string",
    "text": "string",
    "sold": "boolean",
    "made": "timestamp",
    "loc": "point",
}
GLOBE = Schema.declare(KINDS)
PLANE = Schema.declare(KINDS, plane=True)


def parsed(text, at=None, schema=GLOBE):
    return NormalisedSubscription(normalise(parse(text, schema=schema)), at)


def wins(a, b, schema=GLOBE, at=None, other=None):
    return covers(parsed(a, at, schema), parsed(b, other, schema), schema)


COVERED = [
    # wide, narrow
    ("TRUE", "price < 5"),
    ("price < 5", "FALSE"),
    ("price < 5", "price < 5"),
    ("price < 5", "price < 3 AND brand = 'a'"),
    ("price <= 5", "price < 5"),
    ("price > 1", "price BETWEEN 2 AND 3"),
    ("price != 4", "price IN (3, 5)"),
    ("price NOT IN (4, 7)", "price > 7"),
    ("price BETWEEN 1 AND 1.0000000000000002", "price IN (1, 1.0000000000000002)"),
    ("price IS NOT NULL", "price = 3"),
    ("price NOT BETWEEN 3 AND 2", "price IS NOT NULL"),
    ("price IS NULL", "price IS NULL AND stock > 3"),
    ("sold = FALSE", "sold != TRUE"),
    ("sold != TRUE", "sold = FALSE"),
    ("sold IN (TRUE, FALSE)", "sold IS NOT NULL"),
    ("brand IN ('a', 'b')", "brand = 'a'"),
    ("brand != 'c'", "brand IN ('a', 'b')"),
    ("brand > 'a'", "brand BETWEEN 'b' AND 'c'"),
    ("brand NOT BETWEEN 'd' AND 'e'", "brand < 'd'"),
    ("brand = 'b'", "brand BETWEEN 'b' AND 'b'"),
    ("brand > 'c'", "brand >= 'a' AND brand NOT BETWEEN 'a' AND 'c'"),
    ("brand LIKE 'a%'", "brand LIKE 'ab%c'"),
    ("brand LIKE 'a%'", "brand BETWEEN 'ab' AND 'ac'"),
    ("brand LIKE '%b%'", "brand BETWEEN 'abc' AND 'abd'"),
    ("brand LIKE '%_'", "brand LIKE '_%'"),
    ("brand LIKE '%o%'", "brand IN ('foo', 'boot')"),
    ("brand NOT LIKE 'x%'", "brand LIKE 'y%'"),
    ("brand NOT LIKE '%z'", "brand LIKE 'a%y'"),
    ("brand NOT LIKE '%yz'", "brand NOT LIKE '%z'"),
    ("brand >= ''", "brand IS NOT NULL"),
    ("has_all(text, 'a')", "has_all(text, 'a', 'b')"),
    ("has_all(text, 'a', 'b')", "has_all(text, 'a') AND has_all(text, 'b')"),
    ("has_any(text, 'a', 'b')", "has_all(text, 'b', 'c')"),
    ("has_any(text, 'a', 'b', 'c')", "has_any(text, 'a', 'b')"),
    ("has_all(text, 'a')", "has_any(text, 'a', 'b') AND NOT has_any(text, 'b')"),
    ("NOT has_all(text, 'a', 'b')", "NOT has_all(text, 'a')"),
    ("NOT has_any(text, 'b')", "has_all(text, 'a') AND NOT has_all(text, 'a', 'b')"),
    ("has_all(text, 'red')", "text = 'Red iPad'"),
    ("price < 5 OR brand = 'a'", "price < 3"),
    ("price < 5 OR brand = 'a'", "brand = 'a' OR price IN (1, 2)"),
    (
        "ST_Within(loc, ST_MakeEnvelope(0, 0, 10, 10))",
        "ST_Within(loc, ST_MakeEnvelope(0, 0, 10, 5))",
    ),
    (
        "ST_Within(loc, ST_MakeEnvelope(170, 0, -170, 10))",
        "ST_Within(loc, ST_MakeEnvelope(175, 0, 180, 5))",
    ),
    (
        "ST_DWithin(loc, ST_Point(0, 0), 1000)",
        "ST_DWithin(loc, ST_Point(0, 0), 1000)",
    ),
    (
        "ST_DWithin(loc, ST_Point(0, 0), 2000)",
        "ST_DWithin(loc, ST_Point(0.001, 0), 1000)",
    ),
    (
        "ST_DWithin(loc, ST_Point(180, 0), 2000)",
        "ST_DWithin(loc, ST_Point(-179.999, 0), 1000)",
    ),
    (
        "ST_DWithin(loc, ST_Point(0, 0), 2000)",
        "ST_Within(loc, ST_MakeEnvelope(-0.01, -0.01, 0.01, 0.01))",
    ),
    (
        "ST_Within(loc, ST_MakeEnvelope(-0.1, -0.1, 0.1, 0.1))",
        "ST_DWithin(loc, ST_Point(0, 0), 1000)",
    ),
    (
        "NOT ST_DWithin(loc, ST_Point(0, 0), 1000)",
        "NOT ST_DWithin(loc, ST_Point(0, 0), 2000)",
    ),
    (
        "NOT ST_DWithin(loc, ST_Point(0, 0), 1000)",
        "ST_Within(loc, ST_MakeEnvelope(1, 1, 2, 2))",
    ),
    (
        "ST_Within(loc, ST_GeomFromText('POLYGON((0 0, 10 0, 10 10, 0 10, 0 0))'))",
        "ST_DWithin(loc, ST_Point(5, 5), 1000)",
    ),
    (
        "ST_Within(loc, ST_MakeEnvelope(0, 0, 10, 10))",
        "ST_Within(loc, ST_GeomFromText('POLYGON((0 0, 10 0, 10 10, 0 0))'))",
    ),
    ("ST_Within(loc, ST_MakeEnvelope(-180, -90, 180, 90))", "loc IS NOT NULL"),
    ("loc IS NOT NULL", "NOT ST_DWithin(loc, ST_Point(0, 0), 1000)"),
]

HOLED = (
    "ST_Within(loc, ST_GeomFromText('POLYGON((0 0, 10 0, 10 10, 0 10, 0 0), "
    "(4 4, 6 4, 6 6, 4 6, 4 4))'))"
)

NOT_COVERED = [
    ("FALSE", "price < 5"),
    ("price < 5", "TRUE"),
    ("price < 5", "stock < 5"),
    ("price < 5", "price <= 5"),
    ("price < 5", "price IS NOT NULL"),
    ("price < 5", "price IS NULL"),
    ("price IS NULL", "stock < 5"),
    ("price != 4", "price > 3"),
    ("price != 4", "price IS NULL"),
    ("brand = 'a'", "brand IN ('a', 'b')"),
    ("brand LIKE 'a_%'", "brand LIKE 'a%'"),
    ("brand LIKE '%b%'", "brand BETWEEN 'ab' AND 'ac'"),
    ("brand NOT LIKE 'ab%'", "brand LIKE 'a%'"),
    ("has_all(text, 'a', 'b')", "has_all(text, 'a')"),
    ("has_all(text, 'a')", "has_any(text, 'a', 'b')"),
    ("NOT has_all(text, 'a')", "NOT has_all(text, 'a', 'b')"),
    ("NOT has_any(text, 'b')", "has_all(text, 'a')"),
    ("has_all(text, 'red')", "text LIKE '%red%'"),
    (
        "ST_DWithin(loc, ST_Point(0, 0), 2000)",
        "ST_DWithin(loc, ST_Point(0.01, 0), 1000)",
    ),
    (
        "ST_DWithin(loc, ST_Point(0, 0), 1200)",
        "ST_Within(loc, ST_MakeEnvelope(-0.01, -0.01, 0.01, 0.01))",
    ),
    (
        "NOT ST_DWithin(loc, ST_Point(0, 0), 1000)",
        "ST_Within(loc, ST_MakeEnvelope(0, 0, 2, 2))",
    ),
    (
        HOLED,
        "ST_DWithin(loc, ST_Point(5, 5), 1000)",
    ),
]


@pytest.mark.parametrize(("wide", "narrow"), COVERED)
def test_a_conjunction_that_asks_for_more_is_covered(wide, narrow):
    assert wins(wide, narrow)


@pytest.mark.parametrize(("wide", "narrow"), NOT_COVERED)
def test_what_an_event_can_tell_apart_is_not_covered(wide, narrow):
    assert not wins(wide, narrow)


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ("ST_DWithin(loc, ST_Point(0, 0), 5)", "ST_DWithin(loc, ST_Point(1, 0), 3.9)", True),
        ("ST_DWithin(loc, ST_Point(0, 0), 5)", "ST_DWithin(loc, ST_Point(1, 0), 4.1)", False),
        ("ST_DWithin(loc, ST_Point(0, 0), 5)", "ST_Within(loc, ST_MakeEnvelope(0, 0, 3, 3.9))", 1),
        ("ST_DWithin(loc, ST_Point(0, 0), 5)", "ST_Within(loc, ST_MakeEnvelope(0, 0, 3, 4.1))", 0),
        ("ST_Within(loc, ST_MakeEnvelope(0, 0, 9, 9))", "ST_DWithin(loc, ST_Point(2, 2), 2.1)", 0),
        ("NOT ST_DWithin(loc, ST_Point(0, 0), 5)", "ST_DWithin(loc, ST_Point(9, 0), 3.9)", True),
        ("NOT ST_DWithin(loc, ST_Point(0, 0), 5)", "ST_DWithin(loc, ST_Point(9, 0), 4.1)", False),
    ],
)
def test_on_a_plane_circles_are_measured_in_its_units(wide, narrow, expected):
    assert wins(wide, narrow, PLANE) == bool(expected)


def test_here_is_the_place_of_each_subscriber():
    near = "ST_DWithin(loc, here(), 1000)"
    far = "ST_DWithin(loc, here(), 3000)"
    assert wins(far, near, at=Point(0, 0), other=Point(0.01, 0))
    assert not wins(far, near, at=Point(0, 0), other=Point(1, 0))
    assert not wins(near, far, at=Point(0, 0), other=Point(0, 0))


@given(related(max_size=3))
def test_covering_is_reflexive(several):
    for one in map(normalised, several):
        assert covers(one, one, grid.schema())


@given(related(min_size=2, max_size=8), st.lists(events(), min_size=1, max_size=20))
@settings(max_examples=settings.default.max_examples * 3)
def test_whatever_matches_the_covered_matches_the_coverer(several, published):
    schema = grid.schema()
    forms = [normalised(one) for one in several]
    matched = [
        {
            number
            for number, event in enumerate(published)
            if evaluate(one.expression, event, here=one.at).truth
        }
        for one in several
    ]
    for i, one in enumerate(forms):
        for j, other in enumerate(forms):
            assert matched[j] <= matched[i] or not covers(one, other, schema)


@given(related(min_size=3, max_size=8))
@settings(max_examples=settings.default.max_examples * 3)
def test_covering_is_transitive(several):
    schema = grid.schema()
    forms = [normalised(one) for one in several]
    above = {
        (i, j)
        for i, one in enumerate(forms)
        for j, other in enumerate(forms)
        if covers(one, other, schema)
    }
    assert {(i, k) for i, j in above for m, k in above if j == m} <= above


@given(st.sampled_from(["price", "sold", "text"]).flatmap(lambda name: conjunctions((name,), 2)))
@settings(max_examples=settings.default.max_examples * 3)
def test_among_conjunctions_on_numbers_booleans_and_words_nothing_is_missed(two):
    schema = grid.schema()
    one, other = two
    if covers(normalised(one), normalised(other), schema):
        return
    # An event that tells them apart must exist: of these, which are all that matter, one does.
    assert any(
        evaluate(other.expression, event).truth and not evaluate(one.expression, event).truth
        for event in telling_events(one, other)
    )


def test_the_explanation_names_the_alternative_that_covers():
    explained = explain_covering(
        parsed("price < 5 OR brand = 'a'"), parsed("price BETWEEN 1 AND 2"), GLOBE
    )
    assert explained
    assert str(explained).splitlines() == [
        "A covers B: every event that matches B matches A",
        "  B: price BETWEEN 1 AND 2",
        "     is inside A: price < 5",
    ]


@pytest.mark.parametrize(
    ("wide", "narrow", "reason"),
    [
        ("price < 5", "price < 6", "A asks for price < 5, which B does not ensure"),
        ("price < 5", "stock = 1", "A asks for price < 5; B also matches events without price"),
        ("price IS NULL", "stock = 1", "A asks for price IS NULL; B also matches events that have"),
        ("price > 5", "price IS NULL", "A asks for price > 5, which B rules out"),
        ("FALSE", "price < 6", "A asks for a contradiction"),
    ],
)
def test_the_explanation_says_what_is_missing(wide, narrow, reason):
    explained = explain_covering(parsed(wide), parsed(narrow), GLOBE)
    assert not explained
    assert reason in str(explained)


def test_a_circle_of_the_whole_globe_covers_every_place():
    whole = f"ST_DWithin(loc, ST_Point(3, 4), {math.pi * 6_371_009})"
    assert wins(whole, "loc IS NOT NULL")
