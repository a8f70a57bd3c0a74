"""How often the definition is asked grows with the subscriptions, not with their pairs.

What is counted are questions that the compiled comparison leaves to `covers.py`, which are what
takes long; pairs that it decides itself take some ten nanoseconds each.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor import Engine, parse
from stentor.covering.covers import covers
from stentor.covering.graph.g_k import CoveringGraph
from stentor.covering.trie.table import TrieTable
from stentor.encoding.subscriptions import encode_subscriptions
from stentor.language.evaluate import evaluate
from stentor.language.literals import quote
from stentor.model import Constant, Event, Kind
from tests.covering.test_covering import GLOBE, parsed, wins
from tests.support import grid


def nested(side):
    """A square whose left lower corner all of them share."""
    return f"POLYGON((0 0, {side} 0, {side} {side}, 0 {side}, 0 0))"


KINDS = {
    "RLIKE": lambda n: f"s RLIKE '(a|b){{3}}c{n}.*d'",
    "NOT RLIKE": lambda n: f"s NOT RLIKE 'c{n}'",
    "ILIKE": lambda n: f"s ILIKE '%c{n}%'",
    "LIKE": lambda n: f"s LIKE '%{'a' * 100}%{'a_' * 20}{n}%'",
    "NOT LIKE": lambda n: f"NOT s LIKE '%{n}%a%{n * 7}%' AND q > {n}",
    "phrase": lambda n: f"has_phrase(s, 'w{n} x{n % 7} y')",
    "IN": lambda n: f"s IN ('a{n}', 'b{n // 2}', 'c')",
    "words": lambda n: f"has_any(s, 'a{n}', 'b{n % 9}')",
    "strings among RLIKEs": lambda n: f"s = 'c{n}'" if n % 2 else f"s RLIKE '^c{n}$'",
    "LIKEs among RLIKEs": lambda n: f"s LIKE '%c{n}%'" if n % 2 else f"s RLIKE 'c{n}'",
    "polygons with a corner": lambda n: f"ST_Within(loc, ST_GeomFromText('{nested(1 + n / 1e4)}'))",
    "not in polygons": lambda n: f"NOT ST_Within(loc, ST_GeomFromText('{nested(1 + n / 1e4)}'))",
    "circles in polygons": lambda n: (
        f"ST_DWithin(loc, ST_Point(0.5, 0.5), {n})"
        if n % 2
        else f"ST_Within(loc, ST_GeomFromText('{nested(1 + n / 1e4)}'))"
    ),
    "intervals": lambda n: f"q BETWEEN {n} AND {2 * n}",
}


def questions(monkeypatch, kind, count):
    asked = 0
    ask = TrieTable._covers_by_definition

    def counted(table, one, other):
        nonlocal asked
        asked += 1
        return ask(table, one, other)

    engine = Engine(clock=None)
    for number in range(count):
        engine.subscribe(f"s{number}", KINDS[kind](number))
    with monkeypatch.context() as patch:
        patch.setattr(TrieTable, "_covers_by_definition", counted)
        engine.redundant()
    return asked


@pytest.mark.parametrize("kind", KINDS)
def test_the_definition_is_asked_a_few_times_for_each_subscription(monkeypatch, kind):
    assert questions(monkeypatch, kind, 120) <= 4 * 120


PHRASES = ("a", "a b", "new york", "new york city", "york city", "york")


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("brand RLIKE '^a'", "brand = 'abc'"),
        ("brand RLIKE '^a'", "brand LIKE 'abc'"),
        ("brand RLIKE '^a' AND brand >= 'a'", "brand IN ('abc', 'a') AND price > 1"),
        ("brand NOT RLIKE 'b'", "brand IN ('a', 'c')"),
        ("brand ILIKE 'ab%'", "brand = 'ABC'"),
        ("brand NOT ILIKE 'ab%'", "brand = 'é'"),
        ("brand RLIKE 'é.$'", "brand = 'éü'"),
        ("has_phrase(brand, 'new york')", "has_phrase(brand, 'new york city')"),
        ("NOT has_phrase(brand, 'new york city')", "NOT has_phrase(brand, 'york city')"),
    ],
)
def test_what_is_cheap_to_prove_is_covered(wide, narrow):
    assert wins(wide, narrow)
    assert not wins(narrow, wide)
    engine = Engine(clock=None)
    engine.subscribe("wide", wide)
    engine.subscribe("narrow", narrow)
    assert [one.id for one in engine.redundant()] == ["narrow"]


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("brand RLIKE '^a'", "brand IN ('abc', 'b')"),
        ("brand RLIKE '^a'", "brand LIKE 'a%'"),
        ("brand RLIKE 'a'", "brand NOT IN ('b')"),
        ("brand ILIKE 'ab%'", "brand = 'aé'"),
        ("has_phrase(brand, 'new york')", "has_phrase(brand, 'york new york2')"),
        ("NOT has_phrase(brand, 'new york')", "NOT has_phrase(brand, 'new york city')"),
        ("has_phrase(brand, 'a b')", "NOT has_phrase(brand, 'a b c')"),
    ],
)
def test_what_an_event_can_tell_apart_is_not_covered(wide, narrow):
    assert not wins(wide, narrow)


FORMS = st.one_of(
    st.builds(lambda form: f"brand RLIKE {quote(form)}", st.sampled_from(grid.REGULAR)),
    st.builds(lambda form: f"brand ILIKE {quote(form)}", st.sampled_from(grid.PATTERNS)),
    st.builds(lambda form: f"brand LIKE {quote(form)}", st.sampled_from(grid.PATTERNS)),
    st.builds(lambda text: f"brand = {quote(text)}", st.sampled_from(grid.STRINGS)),
    st.builds(lambda text: f"has_phrase(brand, {quote(text)})", st.sampled_from(PHRASES)),
)
TESTS = st.one_of(FORMS, FORMS.map(lambda text: f"NOT {text}"))


@given(st.lists(TESTS, min_size=1, max_size=2), TESTS, st.sampled_from([*grid.STRINGS, *PHRASES]))
def test_a_string_that_tells_two_tests_apart_is_not_covered(narrow, wide, text):
    inner = " AND ".join(narrow)
    event = Event("e", {"brand": Constant(Kind.STRING, text)})
    if wins(wide, inner) and evaluate(parse(inner), event).truth:
        assert evaluate(parse(wide), event).truth


@given(st.lists(TESTS, min_size=2, max_size=6, unique=True))
def test_compiled_tests_of_strings_say_what_the_definition_says(texts):
    table = CoveringGraph(GLOBE)
    subscriptions = [parsed(text) for text in texts]
    rows = table.add(encode_subscriptions(subscriptions, GLOBE)).tolist()
    for one, mine in zip(rows, subscriptions, strict=True):
        for other, theirs in zip(rows, subscriptions, strict=True):
            assert table.covers(one, other) == covers(mine, theirs, GLOBE)
