"""The builder gives the very trees that the parser gives."""

import pickle
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count

import pytest
from hypothesis import given

from stentor.errors import ExpressionError, TypeConflictError
from stentor.language.builder import (
    Built,
    as_expression,
    box,
    col,
    here,
    multipolygon,
    polygon,
    weight,
)
from stentor.language.parser import parse
from stentor.language.printer import to_text
from stentor.model import (
    And,
    Between,
    Box,
    Circle,
    Comparison,
    Constant,
    Has,
    HasPhrase,
    In,
    IsNull,
    Kind,
    Like,
    Not,
    Or,
    Overlaps,
    Regular,
    Truth,
    Weighted,
    Within,
)
from tests.support.strategies import expressions

NAN = float("nan")
LAST = datetime(1970, 1, 1, tzinfo=UTC)
RING = [(0, 0), (4, 0), (4, 4), (0, 0)]
WKT = "POLYGON((0 0, 4 0, 4 4, 0 0), (0 0, 4 0, 4 4, 0 0))"


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (col("price") < 3300, "price < 3300"),
        (col("price") > 1.5, "price > 1.5"),
        (col("price") <= Decimal("0.5"), "price <= 0.5"),
        (3300 >= col("price"), "price <= 3300"),  # noqa: SIM300  # Python turns it around
        (col("brand") == "Huawei", "brand = 'Huawei'"),
        (col("brand") != "x", "brand != 'x'"),
        (col("a b") == True, "`a b` = TRUE"),  # noqa: E712
        (col("t") > LAST, "t > TIMESTAMP '1970-01-01'"),
        (col("a").between(1, 2), "a BETWEEN 1 AND 2"),
        (col("a").is_in(1, 2), "a IN (1, 2)"),
        (col("a").is_in(["x", "y"]), "a IN ('x', 'y')"),
        (~col("a").is_in(1), "a NOT IN (1)"),
        (col("a").like(r"5\%"), r"a LIKE '5\%'"),
        (col("a").like("5!%", escape="!"), "a LIKE '5!%' ESCAPE '!'"),
        (col("a").is_null(), "a IS NULL"),
        (col("a").is_not_null(), "a IS NOT NULL"),
        (col("a").has_all("x", "y"), "has_all(a, 'x', 'y')"),
        (col("a").has_any("x"), "has_any(a, 'x')"),
        (col("a").within(box(170, -2, -170, 2)), "ST_Within(a, ST_MakeEnvelope(170,-2,-170,2))"),
        (col("a").within(polygon(RING, RING)), f"ST_Within(a, ST_GeomFromText('{WKT}'))"),
        (col("a").within_distance((1, 2), 3), "ST_DWithin(a, ST_Point(1, 2), 3)"),
        (col("a").within_distance(here(), 3), "ST_DWithin(a, here(), 3)"),
        (weight(col("a") < 1, 2), "weight(a < 1, 2)"),
        (weight(~(col("a") < 1), 2), "weight(NOT a < 1, 2)"),
        (weight(col("flag"), 2), "weight(flag, 2)"),
        (col("a") & ~col("b") | col("c"), "a AND NOT b OR c"),
        (col("a") & (col("b") | col("c")), "a AND (b OR c)"),
        (col("a") & (col("b") & col("c")), "a AND b AND c"),
        ((col("a") | col("b")) | col("c"), "a OR b OR c"),
        (~~col("a"), "NOT NOT a"),
        (col("a") & Truth(True), "a AND TRUE"),
        (Truth(False) | col("a"), "FALSE OR a"),
        (Truth(False) & col("a"), "FALSE AND a"),
    ],
    ids=count(),
)  # fmt: skip
def test_what_is_built_is_what_is_parsed(built, text):
    assert built.expression == parse(text)
    assert as_expression(built) == as_expression(built.expression)


def rebuilt(tree):
    """*tree*, made again by the builder only."""
    match tree:
        case And(children):
            built = rebuilt(children[0])
            for child in children[1:]:
                built = built & rebuilt(child)
            return built
        case Or(children):
            built = rebuilt(children[0])
            for child in children[1:]:
                built = built | rebuilt(child)
            return built
        case Not(child):
            return ~rebuilt(child)
        case Weighted(predicate, number):
            return weight(rebuilt(predicate), number)
        case Truth():
            return Built(tree)
    return rebuilt_predicate(tree, col(tree.attribute))


def rebuilt_predicate(predicate, column):
    match predicate:
        case Comparison(_, operator, constant):
            compared = {
                "=": column.__eq__, "!=": column.__ne__, "<": column.__lt__,
                "<=": column.__le__, ">": column.__gt__, ">=": column.__ge__,
            }  # fmt: skip
            return compared[operator](plain(constant))
        case Between(_, low, high):
            return column.between(plain(low), plain(high))
        case In(_, values):
            return column.is_in(*map(plain, values))
        case Like(_, pattern):
            return column.like(pattern)
        case IsNull():
            return column.is_null()
        case Has(_, words, every):
            return column.has_all(*words) if every else column.has_any(*words)
        case Within(_, Circle(centre, radius)):
            return column.within_distance(here() if centre is None else tuple(centre), radius)
        case Within(_, Box(west, south, east, north)):
            return column.within(box(west, south, east, north))
        case Within(_, region):
            parts = [polygon(*(map(tuple, ring) for ring in rings)) for rings in region.parts]
            return column.within(multipolygon(*parts))
        case Regular(_, "ILIKE", pattern):
            return column.ilike(pattern)
        case Regular(_, _, pattern):
            return column.rlike(pattern)
        case HasPhrase(_, phrase):
            return column.has_phrase(phrase)
        case Overlaps(_, values):
            return column.arrays_overlap(*map(plain, values))


def plain(constant):
    """The Python value that *constant* stands for."""
    if constant.kind is Kind.BOOLEAN:
        return bool(constant.value)
    if constant.kind is Kind.TIMESTAMP:
        return datetime.fromtimestamp(constant.value / 1e6, UTC)
    return constant.value


@given(expressions())
def test_every_tree_can_be_built(tree):
    assert rebuilt(tree).expression == tree == parse(to_text(tree))


@pytest.mark.parametrize(
    "use",
    [
        lambda: (col("a") < 1) and (col("b") < 2),
        lambda: (col("a") < 1) or (col("b") < 2),
        lambda: not col("a"),
        lambda: 1 <= col("a") <= 2,
        lambda: bool(col("a") == 1),
    ],
    ids=count(),
)
def test_pythons_own_and_or_not_are_refused_with_advice(use):
    with pytest.raises(TypeError, match=r"& \| ~"):
        use()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: col("a") == None, "is_null"),  # noqa: E711
        (lambda: col("a") == col("b"), "two attributes"),
        (lambda: col("a") < (col("b") < 1), "two expressions"),
        (lambda: col("a") < NAN, "got nan"),
        (lambda: col("a") < float("inf"), "got inf"),
        (lambda: col("a") == 2**53 + 1, "cannot hold"),
        (lambda: col("a") == "\ud800", "surrogate"),
        (lambda: col("a") < True, "no order"),
        (lambda: col("a").between(False, True), "no order"),
        (lambda: col("a") == [1, 2], "expected a finite number"),
        (lambda: col(""), "empty"),
        (lambda: col(5), "name is a string"),
        (lambda: col("\ud800"), "surrogate"),
        (lambda: col("a").is_in(), "at least one"),
        (lambda: col("a").like("x\\"), "escape"),
        (lambda: col("a").like(5), "LIKE pattern is a string"),
        (lambda: col("a").like("x", escape="ab"), "one character"),
        (lambda: col("a").has_all(), "at least one word"),
        (lambda: col("a").has_any(5), "a word is a string"),
        (lambda: col("a").within((1, 2)), "box"),
        (lambda: col("a").within_distance(None, 5), "pair"),
        (lambda: col("a").within_distance((1, 2), -5), "at least 0"),
        (lambda: col("a").within_distance((1, 200), 5), "not on the globe"),
        (lambda: col("a").within_distance(("x", 2), 5), "a coordinate is a number"),
        (lambda: box(1, 5, 2, 4), "above its north"),
        (lambda: box(5, 0, 1, 1, plane=True), "right of its east"),
        (lambda: polygon([(0, 0), (1, 0), (1, 1)]), "at least 4"),
        (lambda: polygon(), "outer ring"),
        (lambda: weight(col("a") & col("b"), 1), "one predicate"),
        (lambda: weight(weight(col("a"), 1), 1), "inside a weight"),
        (lambda: weight(col("a"), -1), "at least 0"),
        (lambda: weight(col("a"), "x"), "a weight is a number"),
        (lambda: as_expression("a < 1"), "expected an expression"),
    ],
    ids=count(),
)
def test_what_cannot_be_meant_is_refused(use, message):
    with pytest.raises(ExpressionError, match=message):
        use()


def test_values_side_by_side_are_of_one_type():
    with pytest.raises(TypeConflictError, match="a string beside a number"):
        col("a").is_in(1, "x")


def test_only_expressions_are_joined():
    for other in (5, True, "b", None):
        with pytest.raises(TypeError, match="unsupported operand"):
            col("a") & other
        with pytest.raises(TypeError, match="unsupported operand"):
            other | col("a")


def test_far_places_are_places_on_a_plane():
    built = col("a").within_distance((1000, 2000), 3, plane=True)
    assert built.expression == Within("a", Circle((1000.0, 2000.0), 3.0))


def test_what_is_built_shows_its_text_and_can_be_sent():
    built = (col("a") < 1) & col("b")
    assert repr(built) == "<expression a < 1 AND b = TRUE>"
    assert pickle.loads(pickle.dumps(built)).expression == built.expression
    assert built.expression.children[0].value == Constant(Kind.NUMBER, 1.0)
