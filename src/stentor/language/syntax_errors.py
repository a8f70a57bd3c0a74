"""What to say about text that is not an expression: what was got, what was expected, what to try.

Every function returns an error without a position; the parser adds it.
"""

from __future__ import annotations

from difflib import get_close_matches

from stentor.errors import ExpressionError, ExpressionSyntaxError, UnknownFunctionError
from stentor.language.lexer import END, RESERVED
from stentor.language.literals import is_string, quote, quote_name
from stentor.model.record import field_not_attribute

_ARITHMETIC = "there is no arithmetic here: compute the value first"
_QUOTES = "use straight quotes: ' or \""
_NAMED = "a parameter has a name: write :name"

_HINTS = {
    "==": "write =",
    "<=>": "write =, or IS NULL where the value may be missing",
    "=>": "write >=",
    "=<": "write <=",
    "&&": "write AND",
    "&": "write AND",
    "||": "write OR",
    "|": "write OR",
    "!": "write NOT",
    ";": "leave the semicolon out",
    ".": "a name that has a dot in it goes in backquotes: `a.b`",
    "::": "there are no casts; a timestamp is written TIMESTAMP '2026-11-15 12:00:00+01:00'",
    "?": _NAMED,
    ":": _NAMED,
    **dict.fromkeys("+-*/%^", _ARITHMETIC),
    **dict.fromkeys("\u2018\u2019\u201a\u201c\u201d\u201e\u00b4", _QUOTES),
}
_COMMENTS = ("--", "/*", "#")
_BEHIND_ATTRIBUTE = ("BETWEEN", "LIKE", "ILIKE", "RLIKE", "IN", "IS", "NOT")
_COMPARISONS = ("=", "!=", "<>", "<", "<=", ">", ">=")

#: Words of other dialects, and what does the same here.
_WORD_HINTS = {
    "WHERE": "write the condition alone, without WHERE",
    "SELECT": "write the condition alone, without SELECT … WHERE",
    "REGEXP": "write RLIKE",
    "SIMILAR": "write RLIKE",
    "CONTAINS": "write has_all(attribute, 'word')",
    "DATE": "write TIMESTAMP '2026-11-15'",
    "CASE": "there is no CASE: join conditions with AND, OR and NOT",
    "XOR": "write (a OR b) AND NOT (a AND b)",
}

#: Functions of other dialects, and what does the same here.
_FUNCTION_HINTS = {
    "st_distance": "write ST_DWithin(attribute, ST_Point(lon, lat), metres)",
    "st_distancesphere": "write ST_DWithin(attribute, ST_Point(lon, lat), metres)",
    "st_intersects": "write ST_Within(attribute, region)",
    "st_buffer": "write ST_DWithin(attribute, ST_Point(lon, lat), metres)",
    "contains": "write has_all(attribute, 'word')",
    "startswith": "write attribute LIKE 'text%'",
    "endswith": "write attribute LIKE '%text'",
    "isnull": "write attribute IS NULL",
    "isnotnull": "write attribute IS NOT NULL",
}


def shown(token: str) -> str:
    """*token* as a message names it: short, and visible."""
    if token == END:
        return "the end"
    if len(token) == 1 and not token.isprintable():
        return f"the character U+{ord(token):04X}"
    return token if len(token) <= 40 else f"{token[:40]}…"


def expected(what: str, token: str) -> ExpressionSyntaxError:
    """The error for *token* where *what* should be."""
    if token in _COMMENTS:
        return ExpressionSyntaxError("comments are not part of an expression")
    return ExpressionSyntaxError(f"expected {what}, got {shown(token)}", hint=_hint(token))


def _hint(token: str) -> str | None:
    if token in _HINTS or not token.isidentifier():
        return _HINTS.get(token)
    return _WORD_HINTS.get(token.upper())


def no_value(token: str, following: str) -> ExpressionSyntaxError:
    """The error for *token* where a value should be."""
    if RESERVED.get(token) == "NULL":
        return ExpressionSyntaxError(
            "nothing compares with NULL, not even NULL",
            hint="write attribute IS NULL or attribute IS NOT NULL",
        )
    if token.isidentifier() and token not in RESERVED:
        if following == "(":
            return ExpressionSyntaxError(f"expected a value, got the function {shown(token)}")
        if is_string(following):
            return ExpressionSyntaxError(
                f"expected a value, got {shown(token)}",
                hint=_hint(token) or "only TIMESTAMP stands before a string",
            )
        return ExpressionSyntaxError(
            f"expected a value, got the attribute {shown(token)}: "
            "two attributes cannot be compared",
            hint=f"if it is a string, write {quote(token)}" if token.isprintable() else None,
        )
    if token[:1] == "`":
        return ExpressionSyntaxError(
            "expected a value, got an attribute: two attributes cannot be compared",
            hint="a string is written in straight quotes: 'text'",
        )
    return expected("a value", token)


def no_attribute(token: str) -> ExpressionSyntaxError:
    """The error for *token* where an attribute's name should be."""
    return no_predicate(token) if token.isidentifier() else expected("an attribute's name", token)


def no_predicate(token: str) -> ExpressionSyntaxError:
    """The error for *token* where a predicate should start."""
    if RESERVED.get(token) == "NULL":
        return ExpressionSyntaxError(
            "NULL is not a condition", hint="write attribute IS NULL or attribute IS NOT NULL"
        )
    if token.isidentifier() and not token.isascii():
        return ExpressionSyntaxError(
            f"the name {shown(token)} has letters beyond A to Z",
            hint=f"put it in backquotes: {quote_name(token)}",
        )
    if token in RESERVED:
        hint = f"an attribute of that name goes in backquotes: {quote_name(token)}"
        return ExpressionSyntaxError(f"expected a predicate, got {token}", hint=hint)
    return expected("a predicate such as price < 3300", token)


def no_operator(attribute: str, token: str, following: str) -> ExpressionSyntaxError:
    """The error for *token* where an operator should follow *attribute*."""
    error = expected("an operator (= != < <= > >= IN BETWEEN LIKE ILIKE RLIKE IS)", token)
    if attribute.upper() in ("WHERE", "SELECT"):
        error.hint = _WORD_HINTS[attribute.upper()]
    elif token == "." and following.isidentifier():
        error.hint = f"a name that has a dot in it goes in backquotes: `{attribute}.{following}`"
    return _with_keyword(error, token, (*_BEHIND_ATTRIBUTE, "AND", "OR"))


def no_joint(before: str, token: str, closing: str) -> ExpressionSyntaxError:
    """The error for *token* after a whole predicate or group, whose last token is *before*."""
    error = expected(f"AND, OR or {closing}", token)
    if token in _COMPARISONS:
        error.hint = (
            "what is compared stands without parentheses"
            if before == ")"
            else "comparisons cannot be chained: join them with AND"
        )
    elif is_string(token):
        error.hint = "strings side by side are not joined: write one string"
    return _with_keyword(error, token, ("AND", "OR", "ESCAPE"))


def _with_keyword(
    error: ExpressionSyntaxError, token: str, keywords: tuple[str, ...]
) -> ExpressionSyntaxError:
    if error.hint is None and token.isidentifier():
        close = get_close_matches(token.upper()[:40], keywords, n=1)
        error.hint = f"did you mean {close[0]}?" if close else None
    return error


def lone_value(token: str) -> ExpressionSyntaxError:
    """The error for a value that *token*, which compares nothing, follows."""
    error = ExpressionSyntaxError("a value alone is not a condition")
    if RESERVED.get(token) in _BEHIND_ATTRIBUTE:
        error.hint = f"an attribute stands before {token.upper()}"
    else:
        error.hint = _HINTS.get(token, "compare an attribute with it, as in price < 3300")
    return error


def two_values() -> ExpressionSyntaxError:
    """The error for a value compared with a value."""
    return ExpressionSyntaxError(
        "two values are compared, and no attribute", hint="TRUE or FALSE says the same"
    )


def nested_weight() -> ExpressionSyntaxError:
    """The error for a weight inside a weight."""
    return ExpressionSyntaxError("a weight inside a weight", hint="keep one of them")


def no_such_predicate(name: str, known: list[str]) -> ExpressionSyntaxError | UnknownFunctionError:
    """The error for a call of *name*, which is not a predicate; all functions are *known*."""
    if name.lower() in (function.lower() for function in known):
        return ExpressionSyntaxError(
            f"{name} gives a place or a region, which is not a condition",
            hint="it goes into ST_Within(attribute, …) or ST_DWithin(attribute, …, metres)",
        )
    hint = _FUNCTION_HINTS.get(name.lower())
    if hint is None:
        by_lower = {function.lower(): function for function in known}
        close = get_close_matches(name.lower()[:40], by_lower, n=1)
        hint = (
            f"did you mean {by_lower[close[0]]}?"
            if close
            else f"the functions are {', '.join(known)}"
        )
    return UnknownFunctionError(f"there is no function {shown(name)}", hint=hint)


def no_term(word: str) -> ExpressionError:
    """For a word in which there is nothing to search for."""
    return ExpressionError(
        f"the word {word!r} holds no letter or digit to search for",
        hint="has_all and has_any look for whole terms: runs of letters and digits",
    )


def part_of_a_word(word: str) -> ExpressionError:
    """For a word with a wildcard, which has_all and has_any do not have."""
    return ExpressionError(
        f"the word {word[:60]!r} has a wildcard, and has_all and has_any look for whole words",
        hint="leave the wildcard out, or look for part of a text by attribute LIKE '%part%'",
    )


def field_asked_for(name: str) -> ExpressionError:
    """For a question about *name*, a field of records."""
    message, hint = field_not_attribute(name)
    return ExpressionError(message, hint=hint)
