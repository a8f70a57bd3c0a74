"""Text → tree: every form of the language, every refusal with its place, every limit."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from stentor.errors import (
    ExpressionError,
    ExpressionSyntaxError,
    LimitError,
    StentorError,
    TypeConflictError,
    UnknownAttributeError,
    UnknownFunctionError,
)
from stentor.language.limits import Limits
from stentor.language.parser import parse
from stentor.language.tree import tree_depth, uses
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
    Point,
    Polygon,
    Schema,
    Truth,
    Weighted,
    Within,
)
from stentor.model.schema import AttributeUse

MICROS = 1_000_000


def number(value):
    return Constant(Kind.NUMBER, float(value))


def string(value):
    return Constant(Kind.STRING, value)


def boolean(value):
    return Constant(Kind.BOOLEAN, float(value))


def instant(seconds):
    return Constant(Kind.TIMESTAMP, float(seconds * MICROS))


def has(name):
    return Comparison(name, "=", boolean(True))


SQUARE = (Point(0.0, 0.0), Point(4.0, 0.0), Point(4.0, 4.0), Point(0.0, 4.0), Point(0.0, 0.0))
HOLE = (Point(1.0, 1.0), Point(2.0, 1.0), Point(2.0, 2.0), Point(1.0, 1.0))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("price = 1", Comparison("price", "=", number(1))),
        ("price <> 1.5", Comparison("price", "!=", number(1.5))),
        ("price != .5", Comparison("price", "!=", number(0.5))),
        ("price<-1e3", Comparison("price", "<", number(-1000))),
        ("price >= - 7", Comparison("price", ">=", number(-7))),
        ("3300 > price", Comparison("price", "<", number(3300))),
        ("-1 <= price", Comparison("price", ">=", number(-1))),
        ("'Oslo' = city", Comparison("city", "=", string("Oslo"))),
        ("TRUE != flag", Comparison("flag", "!=", boolean(True))),
        ('city = "Oslo"', Comparison("city", "=", string("Oslo"))),
        (r"path = r'C:\new'", Comparison("path", "=", string(r"C:\new"))),
        ("r'x' = r", Comparison("r", "=", string("x"))),
        ("`my price` < 5", Comparison("my price", "<", number(5))),
        ("`a``b` IS NULL", IsNull("a`b")),
        ("a BETWEEN 1 AND 2", Between("a", number(1), number(2))),
        ("a NOT BETWEEN 'a' AND 'b'", Not(Between("a", string("a"), string("b")))),
        ("a IN (2, 1, 2)", In("a", (number(2), number(1), number(2)))),
        ("a not in (TRUE)", Not(In("a", (boolean(True),)))),
        ("a LIKE 'x\\%y_'", Like("a", r"x\%y_")),
        ("a NOT LIKE 'x!_' ESCAPE '!'", Not(Like("a", r"x\_"))),
        ("a IS NULL", IsNull("a")),
        ("a is not null", Not(IsNull("a"))),
        ("flag", has("flag")),
        ("NOT flag", Not(has("flag"))),
        ("(flag)", has("flag")),
        ("TRUE", Truth(True)),
        ("NOT false", Not(Truth(False))),
        ("timestamp < TIMESTAMP '1970-01-01 01:00:00+01:00'",
         Comparison("timestamp", "<", instant(0))),
        ("timestamp '1970-01-02' = t", Comparison("t", "=", instant(86_400))),
        ("has_all(text, 'ipad', \"discount\")", Has("text", ("ipad", "discount"), every=True)),
        ("HAS_ANY(text, 'ipad')", Has("text", ("ipad",), every=False)),
        ("ST_Within(loc, ST_MakeEnvelope(1, 2, 3, 4))", Within("loc", Box(1.0, 2.0, 3.0, 4.0))),
        ("st_coveredby(loc, st_makeenvelope(170, -2, -170, 2))",
         Within("loc", Box(170.0, -2.0, -170.0, 2.0))),
        ("ST_Contains(ST_MakeEnvelope(1, 2, 1, 2), loc)", Within("loc", Box(1.0, 2.0, 1.0, 2.0))),
        ("ST_Covers(ST_GeomFromText('POLYGON((0 0, 4 0, 4 4, 0 4, 0 0),(1 1,2 1,2 2,1 1))'), loc)",
         Within("loc", Polygon((SQUARE, HOLE)))),
        ("ST_DWithin(loc, ST_Point(-0.5, 1), 10)", Within("loc", Circle(Point(-0.5, 1.0), 10.0))),
        ("ST_DWithin(ST_Point(1, 2), loc, 0)", Within("loc", Circle(Point(1.0, 2.0), 0.0))),
        ("ST_DWithin(loc, here(), 10)", Within("loc", Circle(HERE, 10.0))),
        ("ST_DWithin(Here(), loc, 10)", Within("loc", Circle(HERE, 10.0))),
        ("weight(a = 1, 0.4)", Weighted(Comparison("a", "=", number(1)), 0.4)),
        ("weight(flag, 0)", Weighted(has("flag"), 0.0)),
        ("weight(a NOT IN (1), 2)", Not(Weighted(In("a", (number(1),)), 2.0))),
        ("weight(NOT (a IS NOT NULL), 2)", Not(Not(Weighted(IsNull("a"), 2.0)))),
        ("weight = 1 AND here", And((Comparison("weight", "=", number(1)), has("here")))),
    ],
)  # fmt: skip
def test_each_form_gives_its_tree(text, tree):
    assert parse(text) == tree


A, B, C, D = (has(name) for name in "abcd")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a AND b AND c", And((A, B, C))),
        ("a OR b AND c", Or((A, And((B, C))))),
        ("a AND b OR c AND d", Or((And((A, B)), And((C, D))))),
        ("(a OR b) AND c", And((Or((A, B)), C))),
        ("NOT a AND b", And((Not(A), B))),
        ("NOT (a AND b)", Not(And((A, B)))),
        ("NOT NOT a", Not(Not(A))),
        ("a AND (b AND (c AND d))", And((A, B, C, D))),
        ("(a OR b) OR (c OR d)", Or((A, B, C, D))),
        ("((a)) AND ((b AND c))", And((A, B, C))),
        ("a AND NOT (b AND c)", And((A, Not(And((B, C)))))),
        ("a BETWEEN 1 AND 2 AND b", And((Between("a", number(1), number(2)), B))),
    ],
)
def test_and_binds_tighter_than_or_and_both_are_flat(text, tree):
    assert parse(text) == tree


def underlined(error):
    """The part of the text that *error* underlines; None where it is the end of the text."""
    return error.text[error.start : error.stop] or None


@pytest.mark.parametrize(
    ("text", "message", "place", "hint"),
    [
        ("price <", "expected a value, got the end", None, None),
        ("", "expected a predicate", None, None),
        ("a = 1 AND", "expected a predicate", None, None),
        ("(a = 1", "or a closing )", None, None),
        ("a = 1)", "or the end, got )", ")", None),
        ("a == 1", "got ==", "==", "write ="),
        ("a <=> 1", "got <=>", "<=>", "IS NULL"),
        ("a => 1", "got =>", "=>", "write >="),
        ("a = 1 && b", "got &&", "&&", "write AND"),
        ("a = b", "two attributes cannot be compared", "b", "'b'"),
        ("a = `b`", "two attributes cannot be compared", "`b`", "quotes"),
        ("a = NULL", "nothing compares with NULL", "NULL", "IS NULL"),
        ("a IN (1, null)", "nothing compares with NULL", "null", "IS NULL"),
        ("NULL", "NULL is not a condition", "NULL", "IS NULL"),
        ("a IN ()", "expected a value, got )", ")", None),
        ("a IN (1, 2", "expected ',' or ')'", None, None),
        ("a IN 1", "expected a list in parentheses", "1", None),
        ("a BETWEEN 1", "expected AND and the upper end", None, None),
        ("a BETWEN 1 AND 2", "expected an operator", "BETWEN", "BETWEEN"),
        ("a = 1 adn b", "expected AND, OR or the end", "adn", "AND"),
        ("a RLIKE '('", "this is no pattern for RLIKE", "'('", "RE2"),
        ("a. b = 1", "expected an operator", ".", "`a.b`"),
        ("größe = 1", "letters beyond A to Z", "größe", "`größe`"),
        ("in = 1", "expected a predicate, got in", "in", "`in`"),
        ("WHERE a = 1", "expected an operator", "a", "without WHERE"),
        ("a + 1 < 2", "got +", "+", "no arithmetic"),
        ("a < 1 + 2", "got +", "+", "no arithmetic"),
        ("1 < a < 2", "got <", "<", "chained"),
        ("(a) = 1", "got =", "=", "without parentheses"),
        ("1 = 1", "two values are compared", "1 = 1", "TRUE"),
        ("3 IN (1)", "a value alone", "3", "before IN"),
        ("'abc'", "a value alone", "'abc'", "compare an attribute"),
        ("a IS TRUE", "expected NULL or NOT NULL", "TRUE", "= TRUE"),
        ("a NOT = 1", "after NOT", "=", None),
        ("a = 1 -- why", "comments", "--", None),
        ("/* why */ a", "comments", "/*", None),
        ("a = 'x", "has no end", "'x", "close it"),
        ("a = 'x' 'y'", "got 'y'", "'y'", "not joined"),
        ("a = \u2018x\u2019", "got \u2018", "\u2018", "straight quotes"),
        ("a = ?", "got ?", "?", ":name"),
        ("a = - 'x'", "after the minus", "'x'", None),
        ("a < 12abc", "is not a number", "12abc", "backquotes"),
        ("a < 5L", "type suffix", "5L", "write 5"),
        ("a < 9007199254740993", "cannot hold", "9007199254740993", None),
        ("a < DATE '2020-01-01'", "got DATE", "DATE", "TIMESTAMP"),
        ("t < TIMESTAMP 'noon'", "not a timestamp", "TIMESTAMP 'noon'", None),
        ("t < TIMESTAMP '0001-01-01 00:00:00+05:00'", "outside the years",
         "TIMESTAMP '0001-01-01 00:00:00+05:00'", None),
        ("a LIKE 5", "a LIKE pattern is a string", "5", "quotes"),
        ("a LIKE 'x!y' ESCAPE '!'", "before 'y'", "'x!y' ESCAPE '!'", "twice"),
        (r"a LIKE 'x\\'", "at its end", r"'x\\'", r"\\\\"),
        ("flag < TRUE", "booleans have no order", "flag < TRUE", "IN"),
        ("a BETWEEN FALSE AND TRUE", "booleans have no order", "a BETWEEN FALSE AND TRUE", "IN"),
        ("has_all(text)", "too few arguments", ")", None),
        ("has_all(text, 5)", "a word is a string", "5", "quotes"),
        ("has_all('x', text)", "expected an attribute's name", "'x'", None),
        ("ST_DWithin(loc, ST_Point(1), 2)", "expected ST_Point(lon, lat)", ")", None),
        ("ST_DWithin(loc, here(1), 2)", "expected ')'", "1", None),
        ("ST_DWithin(loc, ST_Point(1, 2))", "expected ST_DWithin(", ")", None),
        ("ST_DWithin(loc, ST_Point(1, 2), -5)", "at least 0, got -5", "-5", None),
        ("ST_DWithin(loc, ST_Point(1, 95), 5)", "not on the globe", "ST_Point(1, 95)", None),
        ("ST_DWithin(loc, 5, 5)", "expected ST_Point(lon, lat) or here()", "5", None),
        ("ST_Within(loc, ST_MakeEnvelope(1, 2, 3, 4, 4326, 5))", "too many arguments", ",", None),
        ("ST_Within(loc, ST_MakeEnvelope(1, 5, 3, 4))", "above its north",
         "ST_MakeEnvelope(1, 5, 3, 4)", "south"),
        ("ST_Within(loc, other)", "expected a region", "other", "ST_MakeEnvelope"),
        ("ST_Within(loc, ST_GeomFromText('POINT(1 2)'))", "expected a polygon", "'POINT(1 2)'",
         "POLYGON"),
        ("ST_Point(1, 2)", "not a condition", "ST_Point", "ST_DWithin"),
        ("a = here()", "got the function here", "here", None),
        ("weight(a = 1 AND b, 2)", "one predicate, got an AND", "weight(a = 1 AND b, 2)", "each"),
        ("weight(TRUE, 2)", "got TRUE or FALSE", "weight(TRUE, 2)", None),
        ("weight(a = 1, -2)", "at least 0, got -2", "weight(a = 1, -2)", None),
        ("weight(a = 1)", "expected weight(predicate, number)", ")", None),
        ("weight(NOT (weight(a, 1)), 1)", "a weight inside a weight", "weight", None),
    ],
)  # fmt: skip
def test_a_refusal_says_what_was_expected_and_underlines_it(text, message, place, hint):
    with pytest.raises(ExpressionError, match=re.escape(message)) as caught:
        parse(text)
    error = caught.value
    assert underlined(error) == place
    assert hint is None or hint in error.hint
    assert message in str(error)


def test_an_error_shows_the_line_and_the_place():
    with pytest.raises(ExpressionSyntaxError) as caught:
        parse("a = 1 AND\n  b == 2")
    assert str(caught.value).splitlines()[1:] == ["      b == 2", "        ^^", "    write ="]


@pytest.mark.parametrize(
    ("text", "name", "hint"),
    [
        ("has_al(text, 'x')", "has_al", "has_all"),
        ("ST_Distance(loc, here()) < 5", "ST_Distance", "ST_DWithin"),
        ("lower(city) = 'oslo'", "lower", "the functions are"),
    ],
)
def test_an_unknown_function_is_answered_with_the_nearest(text, name, hint):
    with pytest.raises(UnknownFunctionError, match=name) as caught:
        parse(text)
    assert underlined(caught.value) == name
    assert hint in caught.value.hint


SCHEMA = Schema.declare({
    "temperature": "number", "city": "string", "seen": "timestamp", "loc": "point", "on": "boolean"
})  # fmt: skip


def test_an_unknown_attribute_is_answered_with_the_nearest():
    with pytest.raises(UnknownAttributeError, match="temprature") as caught:
        parse("city = 'Oslo' AND temprature > 30", schema=SCHEMA)
    assert underlined(caught.value) == "temprature"
    assert caught.value.hint == "did you mean 'temperature'?"


@pytest.mark.parametrize(
    "text", ["zzz IS NULL", "has_any(zzz, 'a')", "ST_DWithin(zzz, here(), 1)", "5 < zzz", "zzz"]
)
def test_every_form_minds_a_declared_schema(text):
    with pytest.raises(UnknownAttributeError) as caught:
        parse(text, schema=SCHEMA)
    assert underlined(caught.value) == "zzz"


def test_a_learned_schema_takes_new_names():
    assert parse("zzz = 1", schema=Schema()) == Comparison("zzz", "=", number(1))


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("a < 3 OR a = 'x'", "a number in a < 3", "a = 'x'"),
        ("has_all(a, 'x') AND a > 1", "a string in has_all(a, 'x')", "a > 1"),
        ("a AND a IN (1, 2)", "a boolean in a", "a IN (1, 2)"),
        ("a > TIMESTAMP '2026-01-01' AND a < '2027-01-01'", "a timestamp in", "a < '2027-01-01'"),
        ("ST_DWithin(a, here(), 1) AND weight(a LIKE 'x', 2)", "a point in", "a LIKE 'x'"),
    ],
)
def test_one_name_has_one_type_in_an_expression(text, first, second):
    with pytest.raises(TypeConflictError, match="attribute 'a' is a") as caught:
        parse(text)
    assert f"but {first}" in caught.value.message
    assert underlined(caught.value) == second


@pytest.mark.parametrize(
    "text", ["city > 3", "temperature = 'x'", "seen = 5", "loc = 1", "seen LIKE 'x'", "city"]
)
def test_a_declared_type_wins(text):
    with pytest.raises(TypeConflictError, match="in the schema") as caught:
        parse(text, schema=SCHEMA)
    assert underlined(caught.value) == text


@pytest.mark.parametrize("text", ["a IN (1, 'x')", "a BETWEEN 1 AND 'x'", "a IN (1, TRUE)"])
def test_values_side_by_side_are_of_one_type(text):
    with pytest.raises(TypeConflictError, match="beside a number"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("seen > '1970-01-02'", Comparison("seen", ">", instant(86_400))),
        ("'1970-01-02' < seen", Comparison("seen", ">", instant(86_400))),
        ("seen IN ('1970-01-01Z')", In("seen", (instant(0),))),
        ("seen BETWEEN '1970-01-01' AND TIMESTAMP '1970-01-02'",
         Between("seen", instant(0), instant(86_400))),
        ("city > '1970-01-02'", Comparison("city", ">", string("1970-01-02"))),
    ],
)  # fmt: skip
def test_a_string_beside_a_timestamp_attribute_is_one(text, tree):
    assert parse(text, schema=SCHEMA) == tree


def test_a_string_that_should_be_a_timestamp_is_underlined():
    for text in ("seen > 'noon'", "'noon' < seen", "seen IN ('2026-01-01', 'noon')"):
        with pytest.raises(ExpressionError, match="not a timestamp") as caught:
            parse(text, schema=SCHEMA)
        assert underlined(caught.value) == "'noon'"


def test_a_plane_has_no_far_side():
    plane = Schema(plane=True)
    tree = parse("ST_Within(p, ST_MakeEnvelope(-1e6, 0, 1e6, 500))", schema=plane)
    assert tree == Within("p", Box(-1e6, 0.0, 1e6, 500.0))
    with pytest.raises(ExpressionError, match="right of its east"):
        parse("ST_Within(p, ST_MakeEnvelope(5, 0, 1, 5))", schema=plane)
    far = parse("ST_DWithin(p, ST_Point(1000, 2000), 3)", schema=plane)
    assert far == Within("p", Circle(Point(1000.0, 2000.0), 3.0))


@pytest.mark.parametrize(
    ("wkt", "message"),
    [
        ("POLYGON((0 0, 1 1, 2 2, 3 3))", "the outer ring is not closed"),
        ("POLYGON((0 0, 1 1, 0 0))", "at least 4"),
        ("POLYGON((0 0, 1 0, 1 1, 0 0), (0 0, 1 0, 5 5, 1 1))", "hole 1 is not closed"),
        ("POLYGON((0 0, 1 0, 1 99, 0 0))", "the outer ring: .* not on the globe"),
        ("POLYGON((0 0, 1 0, 1 1e999, 0 0))", "finite"),
        ("POLYGON((0 0 0, 1 0 0, 1 1 0, 0 0 0))", "expected two numbers"),
        ("POLYGON((0 0, 1 0, nan 1, 0 0))", "expected two numbers"),
        ("POLYGON(0 0, 1 0, 1 1, 0 0)", "not well formed"),
        ("POLYGON((0 0, 1 0, 1 1, 0 0),)", "not well formed"),
        ("POLYGON((0 0, 1 0, 1 1, 0 0)) x", "expected a polygon"),
        ("POLYGON EMPTY", "expected a polygon"),
        ("MULTIPOLYGON((0 0, 1 0, 1 1, 0 0))", "rings are not well formed"),
        ("MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), (0 0))", "rings are not well formed"),
        ("MULTILINE((0 0))", "expected a polygon"),
        ("", "expected a polygon"),
    ],
)
def test_a_broken_polygon_is_refused(wkt, message):
    with pytest.raises(ExpressionError, match=message) as caught:
        parse(f"ST_Within(loc, ST_GeomFromText('{wkt}'))")
    assert underlined(caught.value) == f"'{wkt}'"


def test_well_known_text_may_be_spaced_and_spelled_freely():
    text = "ST_Within(p, ST_GeomFromText(' polygon ( ( 0 -0.0,4\n0,+4 4e0 , 0 4.,.0 0 ) ) '))"
    assert parse(text) == Within("p", Polygon((SQUARE,)))


def test_parameters_take_their_values_from_outside():
    moment = datetime(1970, 1, 2, tzinfo=UTC)
    day = date(1970, 1, 1)
    values = {"n": 5, "d": Decimal("0.5"), "s": "it's", "b": True, "t": moment, "day": day}
    text = (
        "n < :n AND m = -:d AND s IN (:s) AND b != :b AND t BETWEEN :day AND :t AND :n >= k "
        "AND has_all(w, :s) AND q LIKE :s AND ST_DWithin(loc, ST_Point(:n, -:n), :d) AND :b"
    )
    assert parse(text, parameters=values) == And((
        Comparison("n", "<", number(5)),
        Comparison("m", "=", number(-0.5)),
        In("s", (string("it's"),)),
        Comparison("b", "!=", boolean(True)),
        Between("t", instant(0), instant(86_400)),
        Comparison("k", "<=", number(5)),
        Has("w", ("it's",), every=True),
        Like("q", "it's"),
        Within("loc", Circle(Point(5.0, -5.0), 0.5)),
        Truth(True),
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "got None"),
        (float("nan"), "got nan"),
        (float("inf"), "got inf"),
        (2**53 + 1, "cannot hold"),
        ("\ud800", "surrogate"),
        ([1, 2], "expected a finite number"),
        (object(), "not supported"),
    ],
)
def test_a_parameter_without_a_usable_value_is_underlined(value, message):
    with pytest.raises(ExpressionError, match=message) as caught:
        parse("a = 1 AND b < :limit", parameters={"limit": value})
    assert underlined(caught.value) == ":limit"


def test_a_missing_parameter_is_named():
    with pytest.raises(ExpressionError, match="the parameter :most has no value") as caught:
        parse("a < :most", parameters={"least": 1})
    assert ":least" in caught.value.hint
    with pytest.raises(ExpressionError, match="the parameter :most has no value"):
        parse("a < :most")
    with pytest.raises(ExpressionError, match="a string has no negative"):
        parse("a < -:most", parameters={"most": "x"})


class MarkedNumber(float):
    def __neg__(self):
        return MarkedNumber(-float(self))


class MarkedString(str):
    __slots__ = ()


def marked(value):
    return MarkedString(value) if isinstance(value, str) else MarkedNumber(value)


LITERALS = (
    "a < 1 AND b IN ('x', 'y') AND c BETWEEN -2 AND 0 AND d LIKE 'p%' AND has_all(e, 'w') "
    "AND ST_DWithin(f, ST_Point(3, -4), 5) AND ST_Within(g, ST_MakeEnvelope(6, 7, 8, 9)) "
    "AND weight(h = 10, 11) AND 12 > i AND j > TIMESTAMP '1970-01-01'"
)


def leaves(value):
    """Every float and string in *value*, a tree or a part of one."""
    if isinstance(value, (float, str)):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    elif hasattr(value, "__dataclass_fields__"):
        for field in value.__dataclass_fields__:
            yield from leaves(getattr(value, field))


def test_the_hook_sees_each_literal_in_order_and_its_answer_is_in_the_tree():
    seen = []

    def literal(index, value):
        assert index == len(seen)
        seen.append(marked(value))
        return seen[-1]

    tree = parse(LITERALS, literal=literal)
    texts = ["x", "y", "p%", "w", "1970-01-01"]
    assert [value for value in seen if isinstance(value, str)] == texts
    assert [value for value in seen if isinstance(value, float)] == [
        1, 2, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
    ]  # fmt: skip
    found = [leaf for leaf in leaves(tree) if isinstance(leaf, (MarkedNumber, MarkedString))]
    kept = [value for value in seen if value not in (2, 4, "1970-01-01")]
    assert all(any(leaf is value for leaf in found) for value in kept)
    assert {-2.0, -4.0} <= {leaf for leaf in found if isinstance(leaf, MarkedNumber)}
    assert len(found) == len(seen) - 1  # a timestamp's text is not in the tree
    assert tree == parse(LITERALS)


def test_parameters_of_a_class_of_their_own_are_in_the_tree():
    one, text = MarkedNumber(0.0), MarkedString("x")
    tree = parse("a < :n AND b = :s AND c > -:n", parameters={"n": one, "s": text})
    values = [child.value.value for child in tree.children]
    assert values[0] is one
    assert values[1] is text
    assert type(values[2]) is MarkedNumber


def test_minus_zero_is_zero():
    tree = parse("a = -0 AND b = -0.0 AND c = -:z", parameters={"z": 0.0})
    assert [str(child.value.value) for child in tree.children] == ["0.0"] * 3


def nested(depth, opening="(", closing=")"):
    return opening * depth + "a" + closing * depth


@pytest.mark.parametrize(
    ("limits", "fits", "over", "place"),
    [
        ({"bytes": 7}, "a = 'e'", "a = 'é'", None),
        ({"depth": 3}, nested(3), nested(4), "("),
        ({"depth": 3}, "NOT NOT a", "NOT NOT NOT a", "NOT"),
        ({"depth": 3}, "a OR b AND c", "a OR b AND NOT c", "NOT"),
        ({"predicates": 2}, "a AND b", "a AND b AND c", "c"),
        ({"predicates": 2}, "weight(a, 1) AND b", "TRUE OR TRUE OR TRUE", "TRUE"),
        ({"list_length": 2}, "a IN (1, 2)", "a IN (1, 2, 3)", "3"),
        ({"words": 2}, "has_all(a, 'x', 'y')", "has_any(a, 'x', 'y', 'z')", "'z'"),
        ({"pattern_length": 3}, "a LIKE 'xyz'", "a LIKE 'wxyz'", "'wxyz'"),
        ({"polygon_points": 4}, "ST_Within(a, ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))'))",
         "ST_Within(a, ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 1,0 0))'))",
         "'POLYGON((0 0,1 0,1 1,0 1,0 0))'"),
    ],
)  # fmt: skip
def test_each_limit_is_the_largest_that_is_taken(limits, fits, over, place):
    parse(fits, limits=Limits(**limits))
    with pytest.raises(LimitError) as caught:
        parse(over, limits=Limits(**limits))
    if place is not None:
        assert underlined(caught.value) == place


@pytest.mark.parametrize(
    "opening", ["(", "NOT ", "NOT (", "a AND (", "a OR b AND NOT (", "weight("]
)
def test_a_nest_far_beyond_the_limit_is_refused_without_recursion(opening):
    text = (opening * 60_000)[:65_000]
    with pytest.raises(StentorError, match=r"nested deeper than 100 levels|weight inside"):
        parse(text)


def test_a_tree_is_never_deeper_than_the_limit():
    parts = [("a OR b AND (", ")"), ("NOT (a OR ", ")"), ("a AND (b OR NOT (c AND ", "))")]
    for opening, closing in parts:
        deepest = 0
        for depth in range(1, 101):
            try:
                tree = parse(opening * depth + "z" + closing * depth)
            except LimitError:
                break
            deepest = tree_depth(tree)
        assert 95 <= deepest <= 100


def test_half_of_a_surrogate_pair_in_the_text_is_refused():
    with pytest.raises(ExpressionError, match="surrogate") as caught:
        parse("a = '\ud800'")
    assert underlined(caught.value) == "\ud800"


def test_only_texts_are_parsed():
    with pytest.raises(ExpressionError, match="an expression is a text, got int"):
        parse(5)


def test_uses_name_each_attribute_with_its_kind_in_order():
    text = (
        "a < 1 AND (b IS NULL OR NOT weight(c LIKE 'x', 2)) AND ST_DWithin(d, here(), 1) "
        "AND e IN (TRUE) AND f BETWEEN 'x' AND 'y' AND has_any(g, 'w') AND TRUE AND h"
    )
    kinds = [Kind.NUMBER, None, Kind.STRING, Kind.POINT, Kind.BOOLEAN, Kind.STRING, Kind.STRING,
             Kind.BOOLEAN]  # fmt: skip
    expected = [
        AttributeUse(name, kind, "here") for name, kind in zip("abcdefgh", kinds, strict=True)
    ]
    assert uses(parse(text), "here") == expected
