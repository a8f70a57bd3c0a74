"""Joining expressions as the tree demands: flat AND and OR, weights on single predicates."""

from __future__ import annotations

import math
from collections.abc import Iterable

from stentor.errors import ExpressionError
from stentor.model.expression import And, Expression, Not, Or, Predicate, Truth, Weighted


def all_of(children: Iterable[Expression]) -> Expression:
    """The AND of *children*; one among them that is itself an AND gives its own children."""
    flat = list[Expression]()
    for child in children:
        if type(child) is And:
            flat += child.children
        else:
            flat.append(child)
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def any_of(children: Iterable[Expression]) -> Expression:
    """The OR of *children*; one among them that is itself an OR gives its own children."""
    flat = list[Expression]()
    for child in children:
        if type(child) is Or:
            flat += child.children
        else:
            flat.append(child)
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def weighted(expression: Expression, weight: float) -> Expression:
    """*expression*, one predicate or its negation, with *weight*, which a negation keeps.

    >>> weighted(Not(Truth(True)), 2.0)
    Traceback (most recent call last):
    stentor.errors.ExpressionError: weight takes one predicate, got TRUE or FALSE
    """
    if not (math.isfinite(weight) and weight >= 0.0):
        raise ExpressionError(f"a weight is finite and at least 0, got {weight}")
    negations = 0
    while isinstance(expression, Not):
        expression = expression.child
        negations += 1
    if not isinstance(expression, Predicate):
        raise _not_one_predicate(expression)
    result: Expression = Weighted(expression, weight)
    for _ in range(negations):
        result = Not(result)
    return result


def _not_one_predicate(expression: And | Or | Truth | Weighted | Not) -> ExpressionError:
    if isinstance(expression, Weighted):
        return ExpressionError("a weight inside a weight", hint="keep one of them")
    if isinstance(expression, Truth):
        return ExpressionError("weight takes one predicate, got TRUE or FALSE")
    joint = "an AND" if isinstance(expression, And) else "an OR"
    return ExpressionError(
        f"weight takes one predicate, got {joint}",
        hint="give each predicate its own weight; the weights of all that match add up",
    )
