"""IS NULL: whether an event has an attribute at all."""

from __future__ import annotations

from stentor.language import syntax_errors
from stentor.language.cursor import Cursor
from stentor.language.lexer import RESERVED
from stentor.language.normal_predicates import IsMissing, IsPresent
from stentor.model.expression import IsNull, Not


def read(cursor: Cursor, attribute: str, start: int) -> IsNull | Not:
    """`[NOT] NULL`, after IS."""
    tokens = cursor.tokens
    negated = RESERVED.get(tokens[cursor.at]) == "NOT"
    cursor.at += negated
    word = RESERVED.get(tokens[cursor.at])
    if word != "NULL":
        error = syntax_errors.expected("NULL or NOT NULL after IS", tokens[cursor.at])
        if word in ("TRUE", "FALSE"):
            error.hint = "compare a boolean with =, as in attribute = TRUE"
        raise cursor.with_position(error, cursor.at)
    cursor.at += 1
    return Not(IsNull(attribute)) if negated else IsNull(attribute)


def to_text(predicate: IsNull, name: str, negation: str) -> str:
    """The text, of the attribute written as *name*; *negation* is empty or `NOT `."""
    return f"{name} IS {negation}NULL"


def normal_form(predicate: IsNull, negated: bool) -> IsMissing | IsPresent:
    """The normal form of *predicate*, or of its negation."""
    return IsPresent() if negated else IsMissing()
