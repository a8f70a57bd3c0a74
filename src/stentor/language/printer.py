"""Tree → text: canonical, with no more parentheses than needed; `parse` reads the same tree."""

from __future__ import annotations

from stentor.language.literals import write_number
from stentor.language.predicates import to_text as predicate_text
from stentor.model.expression import (
    And,
    Between,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Truth,
    Weighted,
)


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
        return _weighted(predicate_text(expression.predicate), expression.weight)
    if isinstance(expression, Truth):
        return "TRUE" if expression.value else "FALSE"
    return predicate_text(expression)


def _inside_and(child: Expression) -> str:
    text = to_text(child)
    return f"({text})" if isinstance(child, Or) else text


def _negated(child: Expression) -> str:
    if isinstance(child, (And, Or)):
        return f"NOT ({to_text(child)})"
    if isinstance(child, Weighted):
        return _weighted(_negated(child.predicate), child.weight)
    if isinstance(child, (Between, In, IsNull, Like)):
        return predicate_text(child, negation="NOT ")
    return f"NOT {to_text(child)}"


def _weighted(predicate: str, weight: float) -> str:
    return f"weight({predicate}, {write_number(weight)})"
