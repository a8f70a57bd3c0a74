"""Covering among subscriptions of the whole language: the columns against the definition."""

import random
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.covering.covers import alternatives_cover, alternatives_of, covers
from stentor.covering.graph.g_k import CoveringGraph
from stentor.covering.graph.poset import PosetGraph
from stentor.covering.trie.table import TrieTable
from stentor.encoding.columns import read_only_columns
from stentor.encoding.kinds import NEGATED, PredicateKind
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.language.normal_predicates import Intervals, IsPresent, Membership, NormalPredicate
from stentor.language.normalise import NormalForm, normalise
from stentor.language.parser import parse
from stentor.model import Schema
from tests.support import grid
from tests.support.covering_strategies import normalised, related
from tests.support.workloads import MARKET, market

SEVERAL = related().map(lambda several: [normalised(one) for one in several])


def defined(several, schema):
    """Who covers whom, by the definition: (coverer, covered)."""
    interests = [alternatives_of(one, schema) for one in several]
    return {
        (i, j)
        for i, one in enumerate(interests)
        for j, other in enumerate(interests)
        if alternatives_cover(one, other)
    }


def above(row, rows, covering):
    """Those of *rows* that cover *row*; of equal ones the older."""
    return [
        one
        for one in rows
        if one != row and (one, row) in covering and (one < row or (row, one) not in covering)
    ]


@given(SEVERAL)
@settings(max_examples=settings.default.max_examples * 3)
def test_rows_cover_one_another_as_the_definition_says(several):
    schema = grid.schema()
    graph = CoveringGraph(schema)
    rows = graph.add(encode_subscriptions(several, schema)).tolist()
    found = {(one, other) for one in rows for other in rows if graph.covers(one, other)}
    assert found == defined(several, schema)


@given(SEVERAL, st.integers(1, 3))
@settings(max_examples=settings.default.max_examples * 2)
def test_the_index_finds_coverers_where_there_are_some(several, k):
    schema = grid.schema()
    covering = defined(several, schema)
    graph = CoveringGraph(schema, k)
    rows = graph.add(encode_subscriptions(several, schema)).tolist()
    for row in rows:
        sent = graph.subscribe(row)
        coverers = above(row, range(row), covering)
        assert sent.forward.tolist() == ([] if coverers else [row])
        assert len(graph.coverers(row)) == min(k, len(coverers))
    graph.check()
    for row in rows[::2]:
        orphans = [one for one in graph.covered(row) if graph.coverers(one) == [row]]
        graph.unsubscribe(row)
        left = np.flatnonzero(graph.state).tolist()
        for orphan in orphans:
            assert len(graph.coverers(orphan)) == min(k, len(above(orphan, left, covering)))
    graph.check()


@given(SEVERAL)
def test_a_set_that_is_reduced_at_once_keeps_what_no_other_covers(several):
    schema = grid.schema()
    covering = defined(several, schema)
    graph = CoveringGraph(schema)
    rows = graph.add(encode_subscriptions(several, schema))
    graph.reduce(rows)
    graph.check()
    kept = [row for row in rows.tolist() if not above(row, rows.tolist(), covering)]
    assert graph.forwarded().tolist() == kept


@given(related(max_size=7).map(lambda several: [normalised(one) for one in several]))
@settings(max_examples=settings.default.max_examples // 3)
def test_the_strict_poset_holds_for_the_whole_language(several):
    schema = grid.schema()
    relation = CoveringGraph(schema)
    rows = relation.add(encode_subscriptions(several, schema))
    graph = PosetGraph(relation)
    graph.run(rows)
    graph.check()
    graph.run(~rows[::2])
    graph.check()


MANY = ", ".join(f"'{number}'" for number in range(20))  # more than an alternative is split by


def found(wide, narrow):
    """Whether the index finds that *wide*, which came first, covers *narrow*."""
    schema = Schema.declare({"brand": "string", "text": "string", "price": "number"})
    forms = [
        NormalisedSubscription(normalise(parse(text, schema=schema))) for text in (wide, narrow)
    ]
    assert covers(*forms, schema)
    graph = CoveringGraph(schema)
    graph.run(graph.add(encode_subscriptions(forms, schema)))
    return graph.coverers(1) == [0]


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("brand <= 'abc'", "brand LIKE 'abc'"),
        ("brand = 'a%b'", r"brand LIKE 'a\\%b'"),
        ("brand LIKE 'abc%'", "brand >= 'abc' AND brand < 'abd'"),
        ("brand LIKE 'abc%'", "brand BETWEEN 'abcd' AND 'abce'"),
        ("brand > 'm'", "brand NOT BETWEEN '' AND 'm'"),
        ("brand >= ''", "brand NOT IN ('a', 'b')"),
        ("brand LIKE '%'", "brand > 'a'"),
        ("brand = 'b'", "brand BETWEEN 'b' AND 'b'"),
        ("brand IN ('a', 'b', 'c')", "brand IN ('c', 'a')"),
        ("has_all(text, 'a')", "has_any(text, 'a b', 'a c')"),
        ("has_any(text, 'a', 'b')", "has_any(text, 'b c', 'a d')"),
        ("has_all(text, 'red')", "text IN ('red one', 'two red')"),
        ("has_any(text, 'one', 'two')", "text IN ('red one', 'two red')"),
        ("price < 9", "price < 3 OR price BETWEEN 4 AND 5 OR price = 8"),
        ("price < 4 OR brand = 'a'", "price < 3 OR brand = 'a'"),
        ("brand IN ('a', 'b')", "brand = 'b' AND price < 5 OR brand = 'a'"),
        (
            "brand IN ('a', 'b') AND price < 9",
            "brand = 'b' AND price < 5 OR brand = 'a' AND price = 6",
        ),
        ("has_any(text, 'a', 'b')", "has_all(text, 'b', 'c') OR has_all(text, 'a')"),
        ("has_any(text, 'a', 'b')", "text IN ('b c', 'a') OR has_all(text, 'a')"),
        ("brand IN ('a', 'b', 'c')", "brand LIKE 'c' OR brand BETWEEN 'b' AND 'b' OR brand = 'a'"),
        ("brand IS NOT NULL", "brand LIKE '%x'"),
        ("TRUE", "price IS NULL"),
        (f"brand IN ({MANY})", "brand IN ('7', '17')"),
        (f"has_any(text, {MANY})", "has_any(text, '7', '17 x')"),
        (f"has_any(text, {MANY}) AND price < 9", f"has_any(text, {MANY}) AND price < 8"),
    ],
)
def test_the_index_finds_coverers_of_other_kinds_than_the_covered(wide, narrow):
    assert found(wide, narrow)


STRINGS = ("a", "ab", "abc", "b", "bc", "ca", "", "abcab", "cabc", "a b", "b c")


def drawn_test(draw):
    """A random predicate, on few attributes, often with a list."""
    name, number = draw.choice("st"), draw.randrange(5)
    few = ", ".join(f"'{one}'" for one in draw.sample(STRINGS, draw.choice((1, 2, 2, 3, 4))))
    low, high = sorted(draw.sample(STRINGS, 2))
    pattern = "".join(draw.choices(("a", "b", "c", "ab", "%", "%", "_"), k=draw.randrange(1, 6)))
    words = ", ".join(f"'{one}'" for one in draw.sample(("a", "b", "c", "a b", "b c", "ab"), 2))
    return draw.choice((
        f"{name} IN ({few})", f"{name} IN ({few})", f"{name} NOT IN ({few})", f"{name} = '{low}'",
        f"{name} {draw.choice(('<', '<=', '>', '>='))} '{low}'", f"{name} LIKE '{pattern}'",
        f"{name} BETWEEN '{low}' AND '{high}'", f"{name} NOT LIKE '{pattern}'",
        f"{name} LIKE '%{pattern}%'", f"has_any({name}, {words})", f"has_all({name}, {words})",
        f"n < {number}", f"n IN ({number}, 2)", f"n != {number}", f"{name} IS NULL",
        f"{name} IS NOT NULL", "flag", "ST_Within(loc, ST_MakeEnvelope(0, 0, 2, 2))",
        "ST_Within(loc, ST_MakeEnvelope(0, 0, 1, 1))", "ST_DWithin(loc, ST_Point(1, 1), 9000)",
    ))  # fmt: skip


def drawn_text(draw):
    """A random expression: up to three alternatives."""
    return " OR ".join(
        " AND ".join(drawn_test(draw) for _ in range(draw.choice((1, 1, 1, 2, 2, 3))))
        for _ in range(draw.choice((1, 1, 1, 2, 2, 3)))
    )


@pytest.mark.parametrize("seed", range(40))
def test_a_reduced_set_misses_nothing_that_the_definition_proves(seed):
    draw = random.Random(seed)
    schema = Schema.declare(
        {"s": "string", "t": "string", "n": "number", "flag": "boolean", "loc": "point"}
    )
    texts = [drawn_text(draw) for _ in range(16)]
    several = [NormalisedSubscription(normalise(parse(text, schema=schema))) for text in texts]
    covering = defined(several, schema)
    graph = CoveringGraph(schema)
    rows = graph.add(encode_subscriptions(several, schema))
    pairs = {(one, other) for one in rows.tolist() for other in rows if graph.covers(one, other)}
    assert pairs == covering
    graph.reduce(rows)
    kept = [row for row in rows.tolist() if not above(row, rows.tolist(), covering)]
    assert graph.forwarded().tolist() == kept


@dataclass(frozen=True)
class Sounds:
    """A test that the language does not have (yet)."""

    like: str
    negated: bool = False


def test_a_test_that_is_not_known_is_covered_by_nothing_but_itself():
    schema = Schema.declare({"brand": "string", "price": "number", "loc": "point"})
    known = ["TRUE", "brand = 'a'", "brand LIKE '%'", "brand IS NOT NULL", "price < 9",
             "loc IS NOT NULL", "brand IS NULL", "has_all(brand, 'a')", "brand >= ''"]  # fmt: skip
    forms = [NormalisedSubscription(normalise(parse(text, schema=schema))) for text in known]
    for beside in ((), (Membership(("a",), False),), (Intervals(((0.0, 9.0),)),), (IsPresent(),)):
        conditions = [NormalPredicate("brand", test, 1.0) for test in (*beside, Sounds("ape"))]
        strange = NormalisedSubscription(NormalForm((tuple(conditions),)))
        assert covers(strange, strange, schema)
        other = [NormalPredicate("brand", test, 1.0) for test in (*beside, Sounds("tape"))]
        assert not covers(strange, NormalisedSubscription(NormalForm((tuple(other),))), schema)
        assert [covers(strange, form, schema) for form in forms] == [False] * len(forms)
        assert [covers(form, strange, schema) for form in forms] == [True] + [False] * 8


def test_columns_of_a_kind_that_is_not_known_are_covered_by_nothing():
    schema = Schema.declare({"brand": "string", "text": "string", "loc": "point"})
    texts = ["brand = 'a'", "brand IN ('a', 'b')", "brand LIKE 'a%'", "brand >= 'a'",
             "has_any(brand, 'a')", "brand IS NOT NULL", "brand NOT LIKE 'b%'"]  # fmt: skip
    several = [NormalisedSubscription(normalise(parse(text, schema=schema))) for text in texts]
    columns = encode_subscriptions([*several, several[2], several[4]], schema)
    unknown = max(PredicateKind) + 1
    for strange in (unknown, 40, unknown | NEGATED):
        kind = columns.kind.copy()
        kind[-2:] = strange
        graph = CoveringGraph(schema)
        rows = graph.add(read_only_columns(columns._replace(kind=kind)))
        for row in rows[:-2].tolist():
            for odd in rows[-2:].tolist():
                assert not graph.covers(odd, row)
                assert not graph.covers(row, odd)


def test_words_are_found_in_strings_that_came_before_anybody_searched_for_words():
    schema = Schema.declare({"text": "string"})
    texts = ["text = 'red ipad'", "has_all(text, 'red')"]
    forms = [NormalisedSubscription(normalise(parse(text, schema=schema))) for text in texts]
    graph = CoveringGraph(schema)
    rows = [int(graph.add(encode_subscriptions([form], schema))[0]) for form in forms]
    graph.reduce(np.array(rows))
    assert graph.coverers(0) == [1]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_market_place_is_reduced_to_what_no_other_covers(seed):
    schema = Schema.declare(MARKET)
    forms = [
        NormalisedSubscription(normalise(parse(text, schema=schema))) for text in market(seed, 400)
    ]
    covering = defined(forms, schema)
    graph = CoveringGraph(schema)
    rows = graph.add(encode_subscriptions(forms, schema))
    graph.reduce(rows)
    graph.check()
    kept = [row for row in rows.tolist() if not above(row, rows.tolist(), covering)]
    assert graph.forwarded().tolist() == kept
    assert len(kept) < len(rows)


def test_more_attributes_than_a_tree_has_dimensions_are_still_compared():
    names = [f"a{number:02}" for number in range(40)]
    schema = Schema.declare(dict.fromkeys(names, "number"))

    def asking(low, high, last):
        sides = [f"{name} BETWEEN {low} AND {high}" for name in names[:-1]]
        text = " AND ".join([*sides, f"{names[-1]} < {last}"])
        return NormalisedSubscription(normalise(parse(text, schema=schema)))

    forms = [asking(0, 9, 5), asking(1, 8, 4), asking(1, 8, 6), asking(0, 9, 7)]
    graph = CoveringGraph(schema)
    graph.reduce(graph.add(encode_subscriptions(forms, schema)))
    graph.check()
    assert graph.forwarded().tolist() == [3]


def drawn_pattern(draw):
    symbols = draw.choice((("a", "b"), ("a", "b", "é"), ("a", r"\%", "b", r"\\")))
    return "".join(draw.choices((*symbols, "%", "%", "_"), k=draw.randrange(7)))


def test_patterns_are_compared_over_columns_as_the_definition_compares_them():
    draw, schema = random.Random(1), Schema.declare({"s": "string"})
    texts = [f"s {draw.choice(('', 'NOT '))}LIKE r'{drawn_pattern(draw)}'" for _ in range(120)]
    several = [NormalisedSubscription(normalise(parse(text, schema=schema))) for text in texts]
    graph = CoveringGraph(schema)
    rows = graph.add(encode_subscriptions(several, schema)).tolist()
    found = {(one, other) for one in rows for other in rows if graph.covers(one, other)}
    assert found == defined(several, schema)


def test_the_definition_is_not_asked_about_each_pair_of_patterns(monkeypatch):
    asked = []
    by_definition = "_covers_by_definition"
    monkeypatch.setattr(TrieTable, by_definition, lambda self, *pair: asked.append(pair) or False)
    draw, schema = random.Random(2), Schema.declare({"s": "string"})
    words = ["".join(draw.choices("abcd", k=5)) for _ in range(200)]
    forms = ("%{}%", "%{}", "{}%", "%{}_{}%", "%{}%{}%", "_{}%")
    texts = [
        f"s {draw.choice(('', 'NOT '))}LIKE '{draw.choice(forms).format(*draw.sample(words, 2))}'"
        for _ in range(200)
    ]
    graph = CoveringGraph(schema)
    several = [NormalisedSubscription(normalise(parse(text, schema=schema))) for text in texts]
    graph.reduce(graph.add(encode_subscriptions(several, schema)))
    assert not asked
