"""array_contains and arrays_overlap: what a set has.

In the normal form a member is a term beside the terms of texts: a character that no term has comes
before it, so that neither is ever taken for the other. What finds words finds members.
"""

from __future__ import annotations

from typing import Final

from stentor.errors import ExpressionError, LimitError
from stentor.language import syntax_errors
from stentor.language.cursor import Cursor
from stentor.language.literals import constant_text, read_number, write_number
from stentor.language.normal_predicates import Keywords
from stentor.language.predicates.calls import opened, take
from stentor.model.expression import Overlaps
from stentor.model.kind import Kind
from stentor.model.values import Constant

#: What a term begins with that is a member of a set: a string, a number.
STRING: Final = "="
NUMBER: Final = "#"


def read(cursor: Cursor, name: str) -> Overlaps:
    """`array_contains(attribute, value)` or `arrays_overlap(attribute, array(value, …))`."""
    attribute = cursor.attribute()
    take(cursor, ",", name)
    values: list[Constant] = []
    if name == "array_contains":
        values.append(_value(cursor))
    else:
        at = cursor.at
        if opened(cursor) != "array":
            error = syntax_errors.expected("array('x', 'y')", cursor.tokens[at])
            raise cursor.with_position(error, at)
        values.append(_value(cursor))
        while cursor.tokens[cursor.at] == ",":
            cursor.at += 1
            if len(values) == cursor.limits.list_length:
                large = LimitError(f"more than {len(values):,} values, which is the limit")
                raise cursor.with_position(large, cursor.at)
            values.append(_value(cursor))
        take(cursor, ")", "array")
    take(cursor, ")", name)
    return Overlaps(attribute, tuple(values))


def _value(cursor: Cursor) -> Constant:
    at = cursor.at
    value = cursor.constant()
    if value.kind not in (Kind.STRING, Kind.NUMBER):
        error = ExpressionError(f"a set has strings and numbers, got a {value.kind}")
        raise cursor.with_position(error, at, cursor.at)
    return value


def to_text(predicate: Overlaps, name: str) -> str:
    """The text, of the attribute written as *name*."""
    texts = [constant_text(value) for value in predicate.values]
    if len(texts) == 1:
        return f"array_contains({name}, {texts[0]})"
    return f"arrays_overlap({name}, array({', '.join(texts)}))"


def normal_form(predicate: Overlaps, negated: bool) -> Keywords:
    """The normal form of *predicate*, or of its negation: a group for each value."""
    terms = sorted({member_term(value) for value in predicate.values})
    return Keywords(tuple((term,) for term in terms), negated)


def member_term(member: Constant) -> str:
    """The term that stands for *member*.

    >>> member_term(Constant(Kind.STRING, "new")), member_term(Constant(Kind.NUMBER, 42.0))
    ('=new', '#42')
    """
    if isinstance(member.value, str):
        return STRING + member.value
    return NUMBER + write_number(member.value)


def is_member(term: str) -> bool:
    """Whether *term* stands for a member of a set."""
    return term[:1] in (STRING, NUMBER)


def member_of(term: str) -> Constant:
    """The member that *term* stands for."""
    if term[0] == STRING:
        return Constant(Kind.STRING, term[1:])
    negative = term[1] == "-"
    number = read_number(term[1 + negative :])
    return Constant(Kind.NUMBER, -number if negative else number)
