"""Which attributes an expression uses, and as what."""

from __future__ import annotations

from collections.abc import Iterator

from stentor.errors import RecordError
from stentor.model.expression import (
    HERE,
    And,
    Between,
    Comparison,
    Expression,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    Truth,
    Weighted,
    Within,
)
from stentor.model.kind import Kind
from stentor.model.region import Circle
from stentor.model.schema import Use


def uses(expression: Expression, where: str) -> list[Use]:
    """Each predicate's attribute and the kind that it implies, in the order of the text.

    >>> uses(Not(IsNull("price")), "subscription 's1'")
    [Use(name='price', kind=None, where="subscription 's1'")]
    """
    return [
        Use(predicate.attribute, implied_kind(predicate), where)
        for predicate in predicates_of(expression)
    ]


def needs_position(expression: Expression) -> bool:
    """Whether *expression* asks for something around its subscriber."""
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
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (And, Or)):
            waiting.extend(reversed(node.children))
        elif isinstance(node, Not):
            waiting.append(node.child)
        elif isinstance(node, Weighted):
            yield node.predicate
        elif not isinstance(node, Truth):
            yield node


def implied_kind(predicate: Predicate) -> Kind | None:
    """The kind of attribute that *predicate* can be true of; None where it is any."""
    match predicate:
        case Comparison():
            return predicate.value.kind
        case Between():
            return predicate.low.kind
        case In():
            return predicate.values[0].kind
        case IsNull():
            return None
        case Within():
            return Kind.POINT
        case _:
            return Kind.STRING
