"""Whether one subscription covers another, and why.

`a` covers `b` where each alternative of `b` implies some alternative of `a`: then every event that
matches `b` matches `a`. Exact where both are conjunctions; with OR it may miss that several
alternatives of `a` cover one of `b` only together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stentor.covering.meaning.asked import Absence, Asked, asked_of, implies
from stentor.covering.meaning.text import conditions_text, expression_of
from stentor.encoding.subscriptions import Standing
from stentor.language.conditions import Condition, Test
from stentor.language.printer import to_text
from stentor.model import Kind, Schema

Alternative = dict[str, Asked]  # by attribute
Interest = tuple[Alternative, ...]
"""What a subscription asks for: its alternatives, without those that can never hold."""


def covers(wide: Standing, narrow: Standing, schema: Schema) -> bool:
    """Whether every event that matches *narrow* surely matches *wide*.

    Reflexive, transitive, sound. Weights, `until` and ids play no part.

    Cost: alternatives of one times those of the other, times their attributes.
    """
    return interest_covers(interest_of(wide, schema), interest_of(narrow, schema))


def interest_of(standing: Standing, schema: Schema) -> Interest:
    """What *standing* asks for, ready to be compared with many others."""
    found = (
        _alternative(conditions, standing, schema) for conditions in standing.form.alternatives
    )
    return tuple(one for one in found if possible(one))


def possible(alternative: Alternative) -> bool:
    """Whether some event may satisfy *alternative*."""
    return not any(asked.never for asked in alternative.values())


def interest_covers(wide: Interest, narrow: Interest) -> bool:
    """Whether each alternative of *narrow* implies one of *wide*."""
    return all(any(alternative_covers(outer, inner) for outer in wide) for inner in narrow)


def alternative_covers(wide: Alternative, narrow: Alternative) -> bool:
    """Whether *narrow* asks for everything that *wide* asks for.

    A missing attribute satisfies nothing but IS NULL, so what *narrow* leaves open *wide* must not
    ask for.
    """
    return len(wide) <= len(narrow) and all(
        name in narrow and implies(narrow[name], asked) for name, asked in wide.items()
    )


def _alternative(
    conditions: Sequence[Condition], standing: Standing, schema: Schema
) -> Alternative:
    return {
        name: asked_of(tests, schema.kind(name), standing.at, schema.plane)
        for name, tests in tests_by_attribute(conditions).items()
    }


def tests_by_attribute(conditions: Sequence[Condition]) -> dict[str, list[Test]]:
    """The tests on each attribute."""
    tests: dict[str, list[Test]] = {}
    for name, test, _ in conditions:
        tests.setdefault(name, []).append(test)
    return tests


class Step(NamedTuple):
    """An alternative of the narrow one; which of the wide one holds it, or why each does not."""

    text: str
    inside: str | None
    missed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Covering:
    """Whether one subscription covers another, and why; true where it does."""

    covers: bool
    steps: tuple[Step, ...]

    def __bool__(self) -> bool:
        return self.covers

    def __str__(self) -> str:
        if not self.steps:
            return "A covers B: B asks for a contradiction, so no event matches it"
        lines = [
            "A covers B: every event that matches B matches A"
            if self.covers
            else "A does not cover B, as far as can be told"
        ]
        for step in self.steps:
            lines.append(f"  B: {step.text}")
            if step.inside is not None:
                lines.append(f"     is inside A: {step.inside}")
            lines += [f"     {missed}" for missed in step.missed]
        return "\n".join(lines)


def explain_covering(wide: Standing, narrow: Standing, schema: Schema) -> Covering:
    """`covers`, with the reasons; where there are several alternatives, for each of them."""
    outer = _possible_alternatives(wide, schema)
    kinds = {name: kind for name in schema if (kind := schema.kind(name))}
    steps = []
    for conditions, asked in _possible_alternatives(narrow, schema):
        holding = next((one for one in outer if alternative_covers(one[1], asked)), None)
        missed = [] if holding else [_why_not(one, asked, kinds) for one in outer]
        if not (holding or outer):
            missed = ["A asks for a contradiction: no event matches it"]
        inside = None if holding is None else conditions_text(holding[0], kinds)
        steps.append(Step(conditions_text(conditions, kinds), inside, tuple(missed)))
    return Covering(all(step.inside is not None for step in steps), tuple(steps))


def _possible_alternatives(
    standing: Standing, schema: Schema
) -> list[tuple[Sequence[Condition], Alternative]]:
    pairs = ((one, _alternative(one, standing, schema)) for one in standing.form.alternatives)
    return [(conditions, asked) for conditions, asked in pairs if possible(asked)]


def _why_not(
    wide: tuple[Sequence[Condition], Alternative], narrow: Alternative, kinds: dict[str, Kind]
) -> str:
    conditions, outer = wide
    name = next(n for n, asked in outer.items() if n not in narrow or not implies(narrow[n], asked))
    tests = tests_by_attribute(conditions)[name]
    kind = kinds.get(name, Kind.NUMBER)
    asked_for = " AND ".join(to_text(expression_of(name, test, kind)) for test in tests)
    if name not in narrow:
        if isinstance(outer[name], Absence):
            return f"A asks for {asked_for}; B also matches events that have it"
        return f"A asks for {asked_for}; B also matches events without {name}"
    if isinstance(narrow[name], Absence) != isinstance(outer[name], Absence):
        return f"A asks for {asked_for}, which B rules out"
    return f"A asks for {asked_for}, which B does not ensure"
