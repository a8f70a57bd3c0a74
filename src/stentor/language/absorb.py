"""Alternatives that another one makes superfluous: wherever they hold it holds, scoring no less."""

from __future__ import annotations

from stentor.language.conditions import (
    Condition,
    Missing,
    OneOf,
    Present,
    Spans,
    Test,
    intersection,
)

#: Comparing all pairs is quadratic; longer lists keep their absorbed alternatives.
MAX_COMPARED = 128


def without_absorbed(
    alternatives: tuple[tuple[Condition, ...], ...],
) -> tuple[tuple[Condition, ...], ...]:
    """*alternatives* less those that can neither match nor score more than another of them."""
    if len(alternatives) > MAX_COMPARED:
        return alternatives
    kept = list(alternatives)
    for alternative in alternatives:
        if any(absorbs(other, alternative) for other in kept if other is not alternative):
            kept.remove(alternative)
    return tuple(kept)


def absorbs(wide: tuple[Condition, ...], narrow: tuple[Condition, ...]) -> bool:
    """Whether *wide* holds wherever *narrow* does and never scores less."""
    wide_weights = {c.attribute: c.weight for c in reversed(wide)}
    if any(c.weight > wide_weights.get(c.attribute, 0.0) for c in narrow):
        return False
    return all(
        any(c.attribute == asked.attribute and implies(c.test, asked.test) for c in narrow)
        for asked in wide
    )


def implies(left: Test, right: Test) -> bool:
    """Whether *left* surely means *right*; sound, and silent where it is not obvious."""
    if left == right:
        return True
    match left, right:
        case Missing(), _:
            return False
        case _, Present():
            return True
        case Spans(inner), Spans(outer):
            return intersection(inner, outer) == inner
        case OneOf(few, False), OneOf(many, False):
            return set(few) <= set(many)
        case OneOf(few, False), OneOf(excluded, True):
            return not set(few) & set(excluded)
        case _:
            return False
