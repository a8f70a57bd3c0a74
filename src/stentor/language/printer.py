"""Tree → text: canonical, with no more parentheses than needed; `parse` reads the same tree."""

from __future__ import annotations

from stentor.language.numbers import write_number
from stentor.language.strings import quote, quote_name
from stentor.language.wkt import write_polygon
from stentor.model.expression import (
    And,
    Between,
    Comparison,
    Expression,
    Has,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Truth,
    Weighted,
    Within,
)
from stentor.model.kind import Kind
from stentor.model.region import Box, Circle
from stentor.model.time import format_timestamp
from stentor.model.value import Constant


def to_text(expression: Expression) -> str:
    """The text of *expression*.

    Cost: one stack frame per level of the tree.

    >>> to_text(And((Not(IsNull("a")), Or((Truth(True), Not(Like("b", "x%")))))))
    "a IS NOT NULL AND (TRUE OR b NOT LIKE 'x%')"
    """
    if isinstance(expression, And):
        return " AND ".join(map(_inside_and, expression.children))
    if isinstance(expression, Or):
        return " OR ".join(map(to_text, expression.children))
    if isinstance(expression, Not):
        return _negated(expression.child)
    if isinstance(expression, Weighted):
        return _weighted(_predicate(expression.predicate), expression.weight)
    if isinstance(expression, Truth):
        return "TRUE" if expression.value else "FALSE"
    return _predicate(expression)


def _inside_and(child: Expression) -> str:
    text = to_text(child)
    return f"({text})" if isinstance(child, Or) else text


def _negated(child: Expression) -> str:
    if isinstance(child, (And, Or)):
        return f"NOT ({to_text(child)})"
    if isinstance(child, Weighted):
        return _weighted(_negated(child.predicate), child.weight)
    if isinstance(child, (Between, In, IsNull, Like)):
        return _predicate(child, negation="NOT ")
    return f"NOT {to_text(child)}"


def _weighted(predicate: str, weight: float) -> str:
    return f"weight({predicate}, {write_number(weight)})"


def _predicate(predicate: Predicate, negation: str = "") -> str:
    name = quote_name(predicate.attribute)
    match predicate:
        case Comparison():
            return f"{name} {predicate.operator} {constant_text(predicate.value)}"
        case Between():
            low, high = constant_text(predicate.low), constant_text(predicate.high)
            return f"{name} {negation}BETWEEN {low} AND {high}"
        case In():
            return f"{name} {negation}IN ({', '.join(map(constant_text, predicate.values))})"
        case Like():
            return f"{name} {negation}LIKE {quote(predicate.pattern)}"
        case IsNull():
            return f"{name} IS {negation}NULL"
        case Has():
            function = "has_all" if predicate.every else "has_any"
            return f"{function}({name}, {', '.join(map(quote, predicate.words))})"
        case Within():
            return _within(name, predicate)


def _within(name: str, predicate: Within) -> str:
    region = predicate.region
    if isinstance(region, Circle):
        centre = "here()" if region.centre is None else f"ST_Point({_numbers(*region.centre)})"
        return f"ST_DWithin({name}, {centre}, {write_number(region.radius)})"
    if isinstance(region, Box):
        sides = _numbers(region.west, region.south, region.east, region.north)
        return f"ST_Within({name}, ST_MakeEnvelope({sides}))"
    return f"ST_Within({name}, ST_GeomFromText({quote(write_polygon(region))}))"


def _numbers(*numbers: float) -> str:
    return ", ".join(map(write_number, numbers))


def constant_text(constant: Constant) -> str:
    """The literal that stands for *constant*.

    >>> constant_text(Constant(Kind.TIMESTAMP, 0.0))
    "TIMESTAMP '1970-01-01T00:00:00+00:00'"
    """
    if isinstance(constant.value, str):
        return quote(constant.value)
    if constant.kind is Kind.BOOLEAN:
        return "TRUE" if constant.value else "FALSE"
    if constant.kind is Kind.TIMESTAMP:
        return f"TIMESTAMP {quote(format_timestamp(constant.value))}"
    return write_number(constant.value)
