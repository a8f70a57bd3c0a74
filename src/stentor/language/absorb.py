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

#: Comparing all pairs is quadratic; larger forms keep their absorbed alternatives.
MOST_COMPARED = 100_000  # pairs of alternatives times their conditions


def without_absorbed(
    alternatives: tuple[tuple[Condition, ...], ...],
) -> tuple[tuple[Condition, ...], ...]:
    """*alternatives* less those that can neither match nor score more than another of them."""
    if len(alternatives) * sum(map(len, alternatives)) > MOST_COMPARED:
        return alternatives
    kept = {place: _by_attribute(one) for place, one in enumerate(alternatives)}
    for place, narrow in list(kept.items()):
        if any(absorbs(wide, narrow) for other, wide in kept.items() if other != place):
            del kept[place]
    return tuple(alternatives[place] for place in kept)


Grouped = dict[str, list[Condition]]


def _by_attribute(conditions: tuple[Condition, ...]) -> Grouped:
    groups: Grouped = {}
    for condition in conditions:
        groups.setdefault(condition.attribute, []).append(condition)
    return groups


def absorbs(wide: Grouped, narrow: Grouped) -> bool:
    """Whether *wide* holds wherever *narrow* does and never scores less."""
    for attribute, (first, *_) in narrow.items():
        if first.weight > (wide[attribute][0].weight if attribute in wide else 0.0):
            return False
    return all(
        any(implies(condition.test, asked.test) for condition in narrow.get(attribute, ()))
        for attribute, group in wide.items()
        for asked in group
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
