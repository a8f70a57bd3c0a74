"""The definition of a match: an expression and an event give true, false or unknown, and a score.

Slow and obvious on purpose. Everything else in Stentor is tested against this file.

1. NOT is pushed inward, and the expression is multiplied out into alternatives: each a set of
   literals (predicates, perhaps negated, with their weights). Nothing is simplified.
2. An alternative holds where, for each attribute, its literals hold together. A missing attribute
   is NULL: `IS NULL` is true, everything else is unknown. An attribute that is a range, or
   one of several values, holds where some one of its values satisfies all of the alternative's
   literals on it.
3. The expression is true where an alternative is true; else unknown where one is unknown.
4. A true alternative scores, for each attribute, the sum of the weights of its distinct literals
   times the event's weight of that attribute, added up in the order of the attributes' names (or
   put together in another way: `model/scoring.py`). The best alternative counts.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple, assert_never

from stentor.errors import SettingsError
from stentor.language.negation import All, Literal, Positive, to_negation_normal_form
from stentor.language.predicates.keywords import has_run
from stentor.language.predicates.pattern import like
from stentor.language.regular.syntax import folded, found_in
from stentor.language.terms import fold_terms
from stentor.model import (
    Between,
    Circle,
    Comparison,
    Constant,
    Event,
    Expression,
    Has,
    HasPhrase,
    In,
    IsNull,
    Like,
    OneOf,
    Overlaps,
    Point,
    Predicate,
    Range,
    Regular,
    Scoring,
    Set,
    Value,
    Within,
)
from stentor.model.scoring import combined

Alternative = tuple[Literal, ...]


class Evaluation(NamedTuple):
    """True, false or unknown (None); and the score, which is 0 where it is not true."""

    truth: bool | None
    score: float


def evaluate(
    expression: Expression,
    event: Event,
    *,
    here: Point | None = None,
    plane: bool = False,
    scoring: Scoring = Scoring.SUM,
) -> Evaluation:
    """What *expression* says of *event*, for a subscriber at *here*."""
    _check_arguments(expression, event, here)
    truths: list[bool | None] = []
    best = -math.inf
    for alternative in alternatives(to_negation_normal_form(expression)):
        truth = alternative_truth(alternative, event, here, plane)
        truths.append(truth)
        if truth:
            best = max(best, alternative_score(alternative, event, scoring))
    truth = _some(truths)
    return Evaluation(truth, best if truth else 0.0)


def _check_arguments(expression: object, event: object, here: object) -> None:
    if not isinstance(expression, Expression):
        raise SettingsError(f"expected an expression, got {type(expression).__name__}")
    if not isinstance(event, Event) or not isinstance(event.attributes, Mapping):
        raise SettingsError(f"expected an Event with attributes, got {type(event).__name__}")
    if not (here is None or isinstance(here, Point)):
        raise SettingsError(f"here is a Point, got {type(here).__name__}")


def alternatives(positive: Positive) -> Iterator[Alternative]:
    """Every way to make *positive* true: distinct literals, in the order of the text."""
    if isinstance(positive, Literal):
        yield (positive,)
    elif isinstance(positive, All):
        for choice in product(*(list(alternatives(child)) for child in positive.children)):
            yield tuple(dict.fromkeys(literal for part in choice for literal in part))
    else:
        for child in positive.children:
            yield from alternatives(child)


def alternative_truth(
    alternative: Alternative, event: Event, here: Point | None, plane: bool
) -> bool | None:
    """Whether the literals of *alternative* hold together, attribute by attribute."""
    truths = []
    for attribute, literals in by_attribute(alternative).items():
        value = event.attributes.get(attribute)
        if isinstance(value, OneOf):
            truths.append(_some(_value_truth(literals, one, here, plane) for one in value.members))
        else:
            truths.append(_value_truth(literals, value, here, plane))
    return _all(truths)


def _value_truth(
    literals: list[Literal], value: Value | None, here: Point | None, plane: bool
) -> bool | None:
    """Whether all *literals*, which are of one attribute, hold of its *value*."""
    if isinstance(value, Range):
        return _range_truth(literals, value)
    return _all(literal_truth(literal, value, here, plane) for literal in literals)


def alternative_score(
    alternative: Alternative, event: Event, scoring: Scoring = Scoring.SUM
) -> float:
    """The alternative's weights times the event's, attribute by attribute in order of name."""
    score = 0.0
    for attribute, literals in sorted(by_attribute(alternative).items()):
        weight = math.fsum(literal.weight for literal in literals)
        score = combined(scoring, score, weight * event.weights.get(attribute, 1.0))
    return score


def by_attribute(alternative: Alternative) -> dict[str, list[Literal]]:
    """The literals on each attribute."""
    groups: dict[str, list[Literal]] = {}
    for literal in alternative:
        groups.setdefault(literal.predicate.attribute, []).append(literal)
    return groups


def literal_truth(
    literal: Literal, value: Value | None, here: Point | None, plane: bool
) -> bool | None:
    """Whether one literal holds of one value; unknown where the value is missing."""
    predicate = literal.predicate
    if isinstance(predicate, IsNull):
        return (value is None) != literal.negated
    truth = None if value is None else _predicate_truth(predicate, value, here, plane)
    return None if truth is None else truth != literal.negated


def _predicate_truth(
    predicate: Predicate, value: Value, here: Point | None, plane: bool
) -> bool | None:
    """Of a value that is there."""
    if isinstance(predicate, IsNull):
        return False
    if isinstance(predicate, Within):
        if not isinstance(value, Point):
            return None
        region = predicate.region
        if isinstance(region, Circle):
            return region.contains(value, here, plane)
        return region.contains(value)
    if isinstance(predicate, Overlaps):
        if not isinstance(value, Set):
            return None
        return any(one in value.members for one in predicate.values)
    if not isinstance(value, Constant):
        return None
    match predicate:
        case Comparison(_, symbol, constant):
            if value.kind is not constant.kind:
                return None
            return _OPERATORS[symbol](value.value, constant.value)
        case Between(_, low, high):
            if value.kind is not low.kind:
                return None
            above = _OPERATORS[">="](value.value, low.value)
            return above and _OPERATORS["<="](value.value, high.value)
        case In(_, values):
            if value.kind is not values[0].kind:
                return None
            return any(value.value == constant.value for constant in values)
        case Like(_, pattern):
            return like(value.value, pattern) if isinstance(value.value, str) else None
        case Regular(_, syntax, pattern):
            if not isinstance(value.value, str):
                return None
            if syntax == "RLIKE":
                return found_in(value.value, pattern)
            return like(folded(value.value), folded(pattern))
        case Has(_, words, every):
            if not isinstance(value.value, str):
                return None
            terms = set(fold_terms(value.value))
            matched = [set(fold_terms(word)) <= terms for word in words]
            return all(matched) if every else any(matched)
        case HasPhrase(_, phrase):
            if not isinstance(value.value, str):
                return None
            return has_run(fold_terms(value.value), fold_terms(phrase))
    assert_never(predicate)


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _range_truth(literals: list[Literal], value: Range) -> bool | None:
    """Whether some one value of the range satisfies all *literals*.

    Each literal's values are a union of intervals whose ends are its constants or their
    neighbours, so it is enough to try these and the range's own ends.
    """
    tried = {value.low, value.high}
    for literal in literals:
        for constant in _constants(literal):
            tried |= {
                constant,
                math.nextafter(constant, -math.inf),
                math.nextafter(constant, math.inf),
            }
    truths = [
        _all(literal_truth(literal, Constant(value.kind, one), None, False) for literal in literals)
        for one in tried
        if value.low <= one <= value.high
    ]
    return _some(truths)


def _constants(literal: Literal) -> list[float]:
    match literal.predicate:
        case Comparison(_, _, constant):
            constants = [constant]
        case Between(_, low, high):
            constants = [low, high]
        case In(_, values):
            constants = list(values)
        case Like() | Regular() | Has() | HasPhrase() | Overlaps() | Within() | IsNull():
            constants = []
        case other:
            assert_never(other)
    return [constant.value for constant in constants if isinstance(constant.value, float)]


def _all(truths: Iterable[bool | None]) -> bool | None:
    """AND in three-valued logic."""
    known = list(truths)
    return False if False in known else None if None in known else True


def _some(truths: Iterable[bool | None]) -> bool | None:
    """OR in three-valued logic."""
    known = list(truths)
    return True if True in known else None if None in known else False
