"""Rules of other systems as expressions: percolator queries, event patterns.

A rule that an expression cannot say is an `ExpressionError` that names the part, never something
near it. `docs/convert.md` has the tables of their words and ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from stentor.errors import ExpressionError, RecordError
from stentor.language.printer import to_text
from stentor.model.expression import Expression
from stentor.wire.foreign import event_patterns, percolator
from stentor.wire.foreign.percolator import FieldTypes

#: How deep a rule may be nested; JSON itself is limited before.
MOST_DEPTH: Final = 40


class ForeignRule(NamedTuple):
    """A rule as it came: its id, and what it says."""

    id: str
    body: Any


class System(NamedTuple):
    """A system whose rules are understood."""

    rules: Callable[[Any], Iterator[tuple[str | None, Any]]]
    """The rules of a document, each with its id where it has one."""
    expression: Callable[[Any, FieldTypes], Expression]


SYSTEMS: Final[Mapping[str, System]] = {
    "percolator": System(percolator.rules_of, percolator.expression_of),
    "eventbridge": System(event_patterns.rules_of, event_patterns.expression_of),
}


def rules_of(document: Any, system: str, first: int = 1) -> Iterator[ForeignRule]:
    """The rules in *document*; one without an id is called by its number, counted from *first*."""
    for number, (id, body) in enumerate(SYSTEMS[system].rules(document), first):
        yield ForeignRule(id if id is not None else f"rule-{number}", body)


def converted(body: Any, system: str, types: FieldTypes | None = None) -> str:
    """The text of the expression that says what the rule *body* says.

    >>> converted({"price": [{"numeric": ["<", 300]}], "brand": ["Apple"]}, "eventbridge")
    "price < 300 AND brand = 'Apple'"
    """
    if _depth(body) > MOST_DEPTH:
        raise ExpressionError(f"the rule is nested more than {MOST_DEPTH} deep")
    try:
        return to_text(SYSTEMS[system].expression(body, types or {}))
    except RecordError as error:
        raise ExpressionError(str(error)) from None


def _depth(body: Any) -> int:
    """How deep *body* is nested, without recursion."""
    level, depth = [body], 0
    while level and depth <= MOST_DEPTH:
        depth += 1
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return depth
