"""Trees: joined (flat AND and OR, weights on single predicates), walked and measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from stentor.errors import ExpressionError, RecordError
from stentor.language.predicates import attribute_kind
from stentor.model.expression import (
    HERE,
    And,
    Expression,
    Not,
    Or,
    Predicate,
    Truth,
    Weighted,
    Within,
)
from stentor.model.region import Circle
from stentor.model.schema import AttributeUse
from stentor.model.scoring import MOST_WEIGHT


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


def weighted(expression: Expression, weight: float, most: float = MOST_WEIGHT) -> Expression:
    """*expression*, one predicate or its negation, with *weight*, which a negation keeps.

    >>> weighted(Not(Truth(True)), 2.0)
    Traceback (most recent call last):
    stentor.errors.ExpressionError: weight takes one predicate, got TRUE or FALSE
    """
    check_weight(weight, most)
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


def check_weight(weight: float, most: float = MOST_WEIGHT) -> None:
    """Refuse a weight of which sums and products might not be numbers any more."""
    if not 0.0 <= weight < math.inf:
        raise ExpressionError(f"a weight is finite and at least 0, got {weight}")
    if weight > most:
        raise ExpressionError(f"a weight is at most {most:g}, got {weight}")


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


def uses(expression: Expression, where: str) -> list[AttributeUse]:
    """Each predicate's attribute and the kind that it implies, in the order of the text.

    >>> from stentor.model.expression import IsNull
    >>> uses(Not(IsNull("price")), "subscription 's1'")
    [AttributeUse(name='price', kind=None, where="subscription 's1'")]
    """
    return [
        AttributeUse(predicate.attribute, attribute_kind(predicate), where)
        for predicate in predicates_of(expression)
    ]


def needs_position(expression: Expression) -> bool:
    """Whether *expression* has a region around its subscriber: `here()`."""
    return any(
        isinstance(predicate, Within)
        and isinstance(predicate.region, Circle)
        and predicate.region.centre is HERE
        for predicate in predicates_of(expression)
    )


def missing_position() -> RecordError:
    """For a subscription that needs a position and has none."""
    return RecordError(
        "the expression uses here(), so the subscription needs a position", field="at"
    )


def predicates_of(expression: Expression) -> Iterator[Predicate]:
    """The predicates of *expression*, in the order of the text; a tree of any depth will do."""
    for leaf in leaves_of(expression):
        yield leaf.predicate if isinstance(leaf, Weighted) else leaf


def leaves_of(expression: Expression) -> Iterator[Predicate | Weighted]:
    """The same, those with a weight still inside it."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (And, Or)):
            waiting.extend(reversed(node.children))
        elif isinstance(node, Not):
            waiting.append(node.child)
        elif not isinstance(node, Truth):
            yield node


def tree_depth(expression: Expression) -> int:
    """The levels of AND, OR, NOT and predicates inside one another; any depth will do.

    >>> from stentor.model.expression import IsNull
    >>> tree_depth(Not(IsNull("price")))
    2
    """
    deepest = 1
    waiting = [(expression, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(node, Not):
            waiting.append((node.child, depth + 1))
        elif isinstance(node, (And, Or)):
            waiting += [(child, depth + 1) for child in node.children]
    return deepest
