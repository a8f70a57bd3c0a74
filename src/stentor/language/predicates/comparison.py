"""= != < <= > >= and BETWEEN.

All tests of numbers, booleans and timestamps, lists of them too, come down to closed
intervals of doubles (an open end is the next double): `Intervals`. Strings that are equal to one
are a list of one (`membership`), others an interval of strings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from stentor.language import syntax_errors
from stentor.language.cursor import Cursor
from stentor.language.lexer import RESERVED
from stentor.language.literals import constant_text, unordered
from stentor.language.normal_predicates import Interval, Intervals, Membership, StringInterval
from stentor.model.expression import Between, Comparison, Operator
from stentor.model.kind import Kind
from stentor.model.values import Constant

_COMPLEMENT: dict[Operator, Operator] = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
}
_STRING = Kind.STRING
_BOOLEAN = Kind.BOOLEAN


def read(
    cursor: Cursor, attribute: str, operator: Operator, constant: Constant, start: int, at: int
) -> Comparison:
    """`attribute operator constant`, all of it read; the constant is the *at*-th token."""
    kind = constant.kind
    if cursor.schema is not None and kind is _STRING:
        constant = cursor.fitted(attribute, constant, at)
        kind = constant.kind
    elif kind is _BOOLEAN and operator not in ("=", "!="):
        raise cursor.with_position(unordered(), start, cursor.at)
    cursor.use(attribute, kind, start)
    return Comparison(attribute, operator, constant)


def read_between(cursor: Cursor, attribute: str, start: int) -> Between:
    """`low AND high`, after BETWEEN."""
    low = cursor.listed(attribute, None)
    token = cursor.tokens[cursor.at]
    if RESERVED.get(token) != "AND":
        error = syntax_errors.expected("AND and the upper end of BETWEEN", token)
        raise cursor.with_position(error, cursor.at)
    cursor.at += 1
    high = cursor.listed(attribute, low.kind)
    if low.kind is _BOOLEAN:
        raise cursor.with_position(unordered(), start, cursor.at)
    cursor.use(attribute, low.kind, start)
    return Between(attribute, low, high)


def to_text(predicate: Comparison | Between, name: str, negation: str) -> str:
    """The text, of the attribute written as *name*; *negation* is empty or `NOT `."""
    if isinstance(predicate, Comparison):
        return f"{name} {predicate.operator} {constant_text(predicate.value)}"
    low, high = constant_text(predicate.low), constant_text(predicate.high)
    return f"{name} {negation}BETWEEN {low} AND {high}"


def attribute_kind(predicate: Comparison | Between) -> Kind:
    """That of the constants."""
    return predicate.value.kind if isinstance(predicate, Comparison) else predicate.low.kind


def opposite(predicate: Comparison) -> Comparison:
    """What holds where *predicate* does not, both unknown where the attribute is missing."""
    return Comparison(predicate.attribute, _COMPLEMENT[predicate.operator], predicate.value)


def normal_form(
    predicate: Comparison | Between, negated: bool
) -> Intervals | StringInterval | Membership:
    """The normal form of *predicate*, or of its negation."""
    if attribute_kind(predicate).numeric:
        intervals = _intervals(predicate)
        return Intervals(complement(intervals) if negated else intervals)
    if isinstance(predicate, Between):
        low, high = str(predicate.low.value), str(predicate.high.value)
        return StringInterval(low, False, high, False, negated)
    text, operator = str(predicate.value.value), predicate.operator
    match operator:
        case "=" | "!=":
            return Membership((text,), negated != (operator == "!="))
        case "<" | "<=":
            return StringInterval(None, False, text, operator == "<", negated)
        case _:
            return StringInterval(text, operator == ">", None, False, negated)


def _intervals(predicate: Comparison | Between) -> tuple[Interval, ...]:
    if isinstance(predicate, Between):
        low, high = float(predicate.low.value), float(predicate.high.value)
        return ((low, high),) if low <= high else ()
    value = float(predicate.value.value)
    match predicate.operator:
        case "=":
            return ((value, value),)
        case "!=":
            return complement(((value, value),))
        case "<":
            return ((-math.inf, math.nextafter(value, -math.inf)),)
        case "<=":
            return ((-math.inf, value),)
        case ">":
            return ((math.nextafter(value, math.inf), math.inf),)
        case _:
            return ((value, math.inf),)


def intersection(left: tuple[Interval, ...], right: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """What lies in both; cost: O(|left| + |right|).

    >>> intersection(((0.0, 5.0), (8.0, 9.0)), ((4.0, 8.0),))
    ((4.0, 5.0), (8.0, 8.0))
    """
    both: list[Interval] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            both.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(both)


def complement(intervals: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """Every double that is in none of *intervals*.

    >>> complement(((-math.inf, 1.0),))
    ((1.0000000000000002, inf),)
    """
    rest: list[Interval] = []
    low = -math.inf
    covered = False  # whether the largest double is covered
    for start, stop in intervals:
        if start > low:
            rest.append((low, math.nextafter(start, -math.inf)))
        covered = stop == math.inf
        low = math.nextafter(stop, math.inf)
    if not covered:
        rest.append((low, math.inf))
    return tuple(rest)


def points(values: Iterable[float]) -> tuple[Interval, ...]:
    """Each of *values* by itself."""
    return tuple((value, value) for value in sorted(set(values)))


def narrowed(left: StringInterval, right: StringInterval) -> StringInterval:
    """What lies in both of two that are not negated."""
    low, low_open = left.low, left.low_open
    if right.low is not None and (low is None or (right.low, right.low_open) > (low, low_open)):
        low, low_open = right.low, right.low_open
    high, high_open = left.high, left.high_open
    if right.high is not None and (
        high is None or (right.high, not right.high_open) < (high, not high_open)
    ):
        high, high_open = right.high, right.high_open
    return StringInterval(low, low_open, high, high_open, False)


def is_empty(span: StringInterval) -> bool:
    """Whether no string lies in it."""
    if span.negated:
        return False
    if span.low is None or span.high is None:
        # Nothing is below the empty string.
        return span.high == "" and span.high_open
    if span.low == span.high:
        return span.low_open or span.high_open
    return span.low > span.high
