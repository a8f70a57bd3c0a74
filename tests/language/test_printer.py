"""Tree → text → the same tree, for every tree and for the oddest of names and constants."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.language.lexer import tokenize
from stentor.language.limits import ANY_SIZE, Limits
from stentor.language.literals import constant_text
from stentor.language.parser import parse
from stentor.language.printer import to_text
from stentor.language.tree import all_of, any_of
from stentor.model import (
    HERE,
    And,
    Between,
    Box,
    Circle,
    Comparison,
    Constant,
    Has,
    In,
    IsNull,
    Kind,
    Like,
    Not,
    Or,
    Overlaps,
    Point,
    Polygon,
    Schema,
    Truth,
    Weighted,
    Within,
)
from tests.support.strategies import expressions

ODD_NAMES = ["in", "Null", "timestamp", "weight", "r", "a b", "a.b", "`", "größe", "1st", "'", ":x"]
ODD_TEXTS = ["", "'", '"', "\\", "''", r"\%", r"\'", "\0", "\n\t\r\b\x1a", "\x7f\u2028\ufeff", "😀"]
BOUNDARY_DOUBLES = [0.0, 5e-324, 1.7976931348623157e308, 2.0**53, 1e15, 1e16, 1e22, 0.1, -1.5]
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799

names = st.sampled_from(ODD_NAMES) | st.text(min_size=1, max_size=5)
finite = st.floats(allow_nan=False, allow_infinity=False)
doubles = (st.sampled_from(BOUNDARY_DOUBLES) | finite).map(lambda double: double + 0.0)
texts = st.sampled_from(ODD_TEXTS) | st.text(max_size=8)
seconds = st.integers(FIRST_SECOND, LAST_SECOND).map(lambda second: second * 1e6)
micros = st.integers(-(2**53), 2**53).map(float)
constants = {
    Kind.NUMBER: doubles.map(lambda value: Constant(Kind.NUMBER, value)),
    Kind.STRING: texts.map(lambda value: Constant(Kind.STRING, value)),
    Kind.BOOLEAN: st.sampled_from([0.0, 1.0]).map(lambda value: Constant(Kind.BOOLEAN, value)),
    Kind.TIMESTAMP: (seconds | micros).map(lambda value: Constant(Kind.TIMESTAMP, value)),
}
patterns = st.lists(
    st.sampled_from(["%", "_", r"\%", r"\_", r"\\"]) | st.characters(exclude_characters="\\"),
    max_size=6,
).map("".join)
points = st.builds(Point, doubles, doubles)  # on a plane, where any two doubles are a place


@st.composite
def regions(draw):
    if draw(st.booleans()):
        return Circle(draw(points | st.just(HERE)), abs(draw(doubles)))
    if draw(st.booleans()):
        (west, south), (east, north) = draw(points), draw(points)
        return Box(min(west, east), min(south, north), max(west, east), max(south, north))
    rings = draw(st.lists(st.lists(points, min_size=3, max_size=5), min_size=1, max_size=3))
    return Polygon(tuple((*ring, ring[0]) for ring in rings))


def predicates(name, kind):
    null = st.just(IsNull(name))
    if kind is Kind.POINT:
        return regions().map(lambda region: Within(name, region)) | null
    if kind is Kind.SET:
        members = st.lists(constants[Kind.NUMBER] | constants[Kind.STRING], min_size=1, max_size=3)
        return members.map(lambda values: Overlaps(name, tuple(values))) | null
    equality, order = ["=", "!="], ["=", "!=", "<", "<=", ">", ">="]
    operators = st.sampled_from(equality if kind is Kind.BOOLEAN else order)
    constant = constants[kind]
    lists = st.lists(constant, min_size=1, max_size=3).map(tuple)
    found = [st.builds(Comparison, st.just(name), operators, constant), null]
    found.append(lists.map(lambda values: In(name, values)))
    if kind is not Kind.BOOLEAN:
        found.append(st.builds(Between, st.just(name), constant, constant))
    if kind is Kind.STRING:
        words = st.lists(texts.map("{}a".format), min_size=1, max_size=3).map(tuple)
        found.append(st.builds(Has, st.just(name), words, st.booleans()))
        found.append(patterns.map(lambda pattern: Like(name, pattern)))
    return st.one_of(found)


@st.composite
def odd_trees(draw):
    """Trees over one odd name of each kind."""
    found = draw(st.lists(names, min_size=6, max_size=6, unique=True))
    predicate = st.one_of([predicates(name, kind) for name, kind in zip(found, Kind, strict=True)])
    weights = doubles.map(abs)
    leaf = predicate | st.builds(Weighted, predicate, weights) | st.builds(Truth, st.booleans())
    return draw(st.recursive(leaf, joined, max_leaves=8))


def joined(inner):
    several = st.lists(inner, min_size=2, max_size=3)
    return several.map(all_of) | several.map(any_of) | inner.map(Not)


@given(odd_trees())
def test_the_text_of_an_odd_tree_reads_back_as_the_tree(tree):
    text = to_text(tree)
    assert parse(text, schema=Schema(plane=True), limits=ANY_SIZE) == tree  # a text of our own
    assert text.isprintable() or any(not name.isprintable() for name in attributes(tree))


@given(expressions())
def test_the_text_of_a_tree_reads_back_as_the_tree(tree):
    assert parse(to_text(tree)) == tree


@given(expressions())
def test_no_parentheses_can_be_left_out(tree):
    tokens = tokenize(to_text(tree))
    for start, stop in groups(tokens):
        fewer = [token for at, token in enumerate(tokens) if at not in (start, stop)]
        assert parse(" ".join(fewer)) != tree


def groups(tokens):
    """The pairs of parentheses that are neither a call's nor a list's."""
    opened = []
    for at, token in enumerate(tokens):
        if token == "(":
            opened.append(at)
        elif token == ")":
            start = opened.pop()
            if start == 0 or tokens[start - 1] in ("AND", "OR", "NOT", "("):
                yield start, at


def attributes(tree):
    if isinstance(tree, (And, Or)):
        return [name for child in tree.children for name in attributes(child)]
    if isinstance(tree, Truth):
        return []
    inner = getattr(tree, "child", None) or getattr(tree, "predicate", None)
    return [tree.attribute] if inner is None else attributes(inner)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  price<3300 ", "price < 3300"),
        ("3300 > price", "price < 3300"),
        ("a <> 1.50", "a != 1.5"),
        ("flag", "flag = TRUE"),
        ("not flag", "NOT flag = TRUE"),
        ("NOT a IN (1,2)", "a NOT IN (1, 2)"),
        ("NOT a is null", "a IS NOT NULL"),
        ("NOT (a NOT BETWEEN 1 AND 2)", "NOT a NOT BETWEEN 1 AND 2"),
        ("((a)) and ((b or c))", "a = TRUE AND (b = TRUE OR c = TRUE)"),
        ("(a and b) or c", "a = TRUE AND b = TRUE OR c = TRUE"),
        ("not (a and b)", "NOT (a = TRUE AND b = TRUE)"),
        ('a = "it\'s"', r"a = 'it\'s'"),
        ("a LIKE '5!%' ESCAPE '!'", r"a LIKE '5\\%'"),
        ("`price` > 1 AND `in` > 1", "price > 1 AND `in` > 1"),
        ("NOT weight(a IN (1), .5)", "weight(a NOT IN (1), 0.5)"),
        ("weight(NOT a = 1, 2)", "weight(NOT a = 1, 2)"),
        ("t = TIMESTAMP '2026-11-15 12:00+01:00'", "t = TIMESTAMP '2026-11-15T11:00:00+00:00'"),
        ("st_covers(st_makeenvelope(1,2,3,4), l)", "ST_Within(l, ST_MakeEnvelope(1, 2, 3, 4))"),
        ("st_dwithin(HERE(), l, 1e3)", "ST_DWithin(l, here(), 1000)"),
        (
            "st_contains(st_geomfromtext('polygon((0 0,1 0,1 1,0 0))'), l)",
            "ST_Within(l, ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 0))'))",
        ),
    ],
)
def test_many_ways_to_write_it_have_one_text(text, canonical):
    assert to_text(parse(text)) == canonical
    assert to_text(parse(canonical)) == canonical


def test_the_deepest_tree_that_is_read_can_be_written_and_read_again():
    texts = [
        "NOT " * 98 + "weight(a NOT IN (1), 2)",
        "a OR b AND (" * 49 + "c" + ")" * 49,
        "NOT (a OR " * 49 + "c" + ")" * 49,
        "(" * 100 + "a" + ")" * 100,
    ]
    for text in texts:
        tree = parse(text)
        assert parse(to_text(tree)) == tree


def test_extreme_constants_are_written_exactly():
    assert constant_text(Constant(Kind.NUMBER, 5e-324)) == "5e-324"
    assert constant_text(Constant(Kind.NUMBER, -(2.0**60))) == "-1.152921504606847e+18"
    assert constant_text(Constant(Kind.TIMESTAMP, LAST_SECOND * 1e6)).endswith("59+00:00'")
    assert constant_text(Constant(Kind.STRING, "\0" + "12")) == r"'\u000012'"


def test_a_list_of_the_greatest_length_goes_both_ways():
    limits = Limits(bytes=1_000_000)
    tree = In("a", tuple(Constant(Kind.NUMBER, float(value)) for value in range(10_000)))
    assert parse(to_text(tree), limits=limits) == tree
    assert parse(to_text(replace(tree, attribute="in")), limits=limits).attribute == "in"
