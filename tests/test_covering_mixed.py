"""Covering among subscriptions of the whole language: the columns against the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.covering.graph.whole import PosetGraph, StarGraph
from stentor.covering.meaning.covers import covers, interest_covers, interest_of
from stentor.covering.mixed.graph import MixedGraph
from stentor.encoding.subscriptions import Standing, encode_subscriptions
from stentor.language.normalise import normalise
from stentor.language.parser import parse
from stentor.model import Schema
from stentor.testing import grid
from stentor.workloads.interests import Interests
from tests.covering_strategies import related, standing

SEVERAL = related().map(lambda several: [standing(one) for one in several])


def defined(several, schema):
    """Who covers whom, by the definition: (coverer, covered)."""
    interests = [interest_of(one, schema) for one in several]
    return {
        (i, j)
        for i, one in enumerate(interests)
        for j, other in enumerate(interests)
        if interest_covers(one, other)
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
    graph = MixedGraph(schema)
    rows = graph.add(encode_subscriptions(several, schema)).tolist()
    found = {(one, other) for one in rows for other in rows if graph.covers(one, other)}
    assert found == defined(several, schema)


@given(SEVERAL, st.integers(1, 3))
@settings(max_examples=settings.default.max_examples * 2)
def test_the_index_finds_coverers_where_there_are_some(several, k):
    schema = grid.schema()
    covering = defined(several, schema)
    graph = MixedGraph(schema, k)
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
        left = np.flatnonzero(graph.standing).tolist()
        for orphan in orphans:
            assert len(graph.coverers(orphan)) == min(k, len(above(orphan, left, covering)))
    graph.check()


@given(SEVERAL)
def test_a_set_that_is_reduced_at_once_keeps_what_no_other_covers(several):
    schema = grid.schema()
    covering = defined(several, schema)
    graph = MixedGraph(schema)
    rows = graph.add(encode_subscriptions(several, schema))
    graph.reduce(rows)
    graph.check()
    kept = [row for row in rows.tolist() if not above(row, rows.tolist(), covering)]
    assert graph.forwarded().tolist() == kept


@given(related(max_size=7).map(lambda several: [standing(one) for one in several]))
@settings(max_examples=settings.default.max_examples // 3)
def test_graphs_of_all_coverings_hold_for_the_whole_language(several):
    schema = grid.schema()
    relation = MixedGraph(schema)
    rows = relation.add(encode_subscriptions(several, schema))
    for kind in (StarGraph, PosetGraph):
        graph = kind(relation)
        graph.run(rows)
        graph.check()
        graph.run(~rows[::2])
        graph.check()


MANY = ", ".join(f"'{number}'" for number in range(20))  # more than an alternative is split by


def found(wide, narrow):
    """Whether the index finds that *wide*, which came first, covers *narrow*."""
    schema = Schema.declare({"brand": "string", "text": "string", "price": "number"})
    forms = [Standing(normalise(parse(text, schema=schema))) for text in (wide, narrow)]
    assert covers(*forms, schema)
    graph = MixedGraph(schema)
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
        ("brand IS NOT NULL", "brand LIKE '%x'"),
        ("TRUE", "price IS NULL"),
        (f"brand IN ({MANY})", "brand IN ('7', '17')"),
        (f"has_any(text, {MANY})", "has_any(text, '7', '17 x')"),
        (f"has_any(text, {MANY}) AND price < 9", f"has_any(text, {MANY}) AND price < 8"),
    ],
)
def test_the_index_finds_coverers_of_other_kinds_than_the_covered(wide, narrow):
    assert found(wide, narrow)


def test_words_are_found_in_strings_that_came_before_anybody_searched_for_words():
    schema = Schema.declare({"text": "string"})
    texts = ["text = 'red ipad'", "has_all(text, 'red')"]
    forms = [Standing(normalise(parse(text, schema=schema))) for text in texts]
    graph = MixedGraph(schema)
    rows = [int(graph.add(encode_subscriptions([form], schema))[0]) for form in forms]
    graph.reduce(np.array(rows))
    assert graph.coverers(0) == [1]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_market_place_is_reduced_to_what_no_other_covers(seed):
    recipe = Interests(seed)
    schema = recipe.schema
    forms = [Standing(normalise(parse(text, schema=schema))) for text in recipe.texts(400)]
    covering = defined(forms, schema)
    graph = MixedGraph(schema)
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
        return Standing(normalise(parse(text, schema=schema)))

    forms = [asking(0, 9, 5), asking(1, 8, 4), asking(1, 8, 6), asking(0, 9, 7)]
    graph = MixedGraph(schema)
    graph.reduce(graph.add(encode_subscriptions(forms, schema)))
    graph.check()
    assert graph.forwarded().tolist() == [3]
