"""IN: one of a list.

Of strings it stays a list; one of numbers is so many intervals of the normal form (`comparison`).
"""

from __future__ import annotations

from stentor.errors import LimitError
from stentor.language import syntax_errors
from stentor.language.cursor import Cursor
from stentor.language.literals import constant_text
from stentor.language.normal_predicates import Intervals, Membership
from stentor.language.predicates.comparison import complement, points
from stentor.model.expression import In
from stentor.model.kind import Kind
from stentor.model.values import Constant


def read(cursor: Cursor, attribute: str, start: int) -> In:
    """`(constant, …)`, after IN."""
    tokens = cursor.tokens
    if tokens[cursor.at] != "(":
        error = syntax_errors.expected("a list in parentheses after IN", tokens[cursor.at])
        raise cursor.with_position(error, cursor.at)
    values: list[Constant] = []
    kind: Kind | None = None
    more = True
    while more:
        cursor.at += 1
        if len(values) == cursor.limits.list_length:
            large = LimitError(f"more than {len(values):,} values, which is the limit")
            raise cursor.with_position(large, cursor.at)
        constant = cursor.listed(attribute, kind)
        kind = constant.kind
        values.append(constant)
        more = tokens[cursor.at] == ","
    if tokens[cursor.at] != ")":
        error = syntax_errors.expected("',' or ')'", tokens[cursor.at])
        raise cursor.with_position(error, cursor.at)
    cursor.at += 1
    cursor.use(attribute, values[0].kind, start)
    return In(attribute, tuple(values))


def to_text(predicate: In, name: str, negation: str) -> str:
    """The text, of the attribute written as *name*; *negation* is empty or `NOT `."""
    return f"{name} {negation}IN ({', '.join(map(constant_text, predicate.values))})"


def attribute_kind(predicate: In) -> Kind:
    """That of the constants."""
    return predicate.values[0].kind


def normal_form(predicate: In, negated: bool) -> Membership | Intervals:
    """The normal form of *predicate*, or of its negation."""
    if attribute_kind(predicate).numeric:
        intervals = points(float(value.value) for value in predicate.values)
        return Intervals(complement(intervals) if negated else intervals)
    return Membership(tuple(sorted({str(value.value) for value in predicate.values})), negated)


def intersection(tests: list[Membership]) -> Membership:
    """What all of *tests*, at least one of them, leave: some strings, or all but some."""
    wanted = [set(test.strings) for test in tests if not test.negated]
    unwanted = {string for test in tests if test.negated for string in test.strings}
    if wanted:
        return Membership(tuple(sorted(set.intersection(*wanted) - unwanted)), False)
    return Membership(tuple(sorted(unwanted)), True)
