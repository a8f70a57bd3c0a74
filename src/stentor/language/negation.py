"""NOT pushed inward, until it applies to single predicates.

De Morgan's laws hold in three-valued logic, and a comparison's complement is again a comparison
(both are unknown where the attribute is missing), so nothing changes in meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from stentor.language.predicates.comparison import opposite
from stentor.model import And, Comparison, Expression, Not, Or, Predicate, Truth, Weighted


class Literal(NamedTuple):
    """A predicate as it counts: perhaps negated, with its weight."""

    predicate: Predicate
    negated: bool
    weight: float


@dataclass(frozen=True, slots=True)
class All:
    """Every one of the children."""

    children: tuple[Positive, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one of the children."""

    children: tuple[Positive, ...]


Positive = Literal | All | Some


def to_negation_normal_form(expression: Expression, *, negated: bool = False) -> Positive:
    """*expression* (or its negation) with NOT on single predicates only.

    TRUE becomes an `All` of nothing and FALSE a `Some` of nothing.
    """
    match expression:
        case Truth(value):
            return Some(()) if value == negated else All(())
        case Not(child):
            return to_negation_normal_form(child, negated=not negated)
        case And(children) | Or(children):
            inner = tuple(to_negation_normal_form(child, negated=negated) for child in children)
            return All(inner) if isinstance(expression, And) != negated else Some(inner)
        case Weighted(predicate, weight):
            return _literal(predicate, negated, weight)
        case _:
            return _literal(expression, negated, 1.0)


def _literal(predicate: Predicate, negated: bool, weight: float) -> Literal:
    if negated and isinstance(predicate, Comparison):
        return Literal(opposite(predicate), False, weight)
    return Literal(predicate, negated, weight)
