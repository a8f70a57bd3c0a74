r"""Literals: numbers, strings, names and constants, read and written.

A number is read without rounding an integer, and written so that it reads back the same. Strings
are as in Spark 4: in '…' and "…" a backslash begins an escape and a doubled quote is one quote;
r'…' has neither. A backslash stays before % and _, so that 'a\%' means the same in LIKE as r'a\%'.
Source: Spark's SparkParserUtils.unescapeSQLString, and SPARK-52545 for the doubled quote.
"""

from __future__ import annotations

import math
import re
from datetime import date
from typing import Any

from stentor.errors import ExpressionError, ExpressionSyntaxError, RecordError, TypeConflictError
from stentor.language.lexer import is_plain_name
from stentor.model.kind import Kind
from stentor.model.values import Constant, read_value
from stentor.model.values.number import read_number as read_integer
from stentor.model.values.time import format_timestamp, read_timestamp

TRUE = Constant(Kind.BOOLEAN, 1.0)
FALSE = Constant(Kind.BOOLEAN, 0.0)

#: Every integer of so many digits is a double.
_EXACT_DIGITS = 15
#: No double has more digits before its point.
_MOST_DIGITS = 309
_SUFFIXES = ("BD", "D", "F", "L", "S", "Y")

_CLOSED = re.compile(
    r"""
      ' (?: [^'\\]++ | \\. | '' )*+ '
    | " (?: [^"\\]++ | \\. | "" )*+ "
    | [rR] (?: '[^']*+' | "[^"]*+" )
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSED_NAME = re.compile(r"`((?:[^`]++|``)*+)`")
_ESCAPE = r"\\u([0-9A-Fa-f]{4}) | \\U([0-9A-Fa-f]{8}) | \\([01][0-7]{2}) | \\(.)"
_SPECIAL = {
    quote: re.compile(f"{_ESCAPE} | {quote}{quote}", re.VERBOSE | re.DOTALL) for quote in "'\""
}
_LETTERS = {
    "0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": r"\%", "_": r"\_"
}  # fmt: skip
_WRITTEN = {"\\": r"\\", "'": r"\'", "\b": r"\b", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_number(token: str) -> float:
    """The double of *token*.

    >>> read_number("1e3")
    1000.0
    >>> read_number("9007199254740993")
    Traceback (most recent call last):
    stentor.errors.ExpressionError: 9007199254740993 is an integer that a double cannot hold; \
send it as a string, or round it yourself
    """
    if not token.isascii() or "_" in token:  # digits to Python, not to SQL
        raise _no_number(token)
    if token.isdigit():
        return float(token) if len(token) <= _EXACT_DIGITS else _read_long_integer(token)
    try:
        double = float(token)
    except ValueError:
        raise _no_number(token) from None
    if math.isinf(double):
        raise ExpressionError(
            f"{_short(token)} is beyond the largest double, 1.7976931348623157e308"
        )
    return double


def _read_long_integer(token: str) -> float:
    digits = token.lstrip("0") or "0"
    try:
        if len(digits) <= _MOST_DIGITS:
            return read_integer(int(digits))
    except RecordError as error:
        raise ExpressionError(str(error)) from None
    raise ExpressionError(
        f"{_short(token)} is an integer beyond the largest double, 1.7976931348623157e308"
    )


def _no_number(token: str) -> ExpressionSyntaxError:
    plain = token.upper()
    for suffix in _SUFFIXES:
        stem = plain.removesuffix(suffix)
        if stem != plain and stem.replace(".", "", 1).isdigit():
            return ExpressionSyntaxError(
                f"{_short(token)} has a type suffix, which numbers here do not need",
                hint=f"every number is a double: write {token[: len(stem)]}",
            )
    return ExpressionSyntaxError(
        f"{_short(token)} is not a number",
        hint="write 1, 1.5, .5 or 1e3; a name that begins with a digit goes in backquotes",
    )


def _short(token: str, width: int = 40) -> str:
    return token if len(token) <= width else f"{token[:width]}…"


def write_number(double: float) -> str:
    """The shortest text that reads back as *double*, without a point where it is whole.

    >>> write_number(3300.0), write_number(0.1), write_number(1e300)
    ('3300', '0.1', '1e+300')
    """
    if double.is_integer() and abs(double) < 10**_EXACT_DIGITS:
        return str(int(double))
    return repr(float(double))


def is_string(token: str) -> bool:
    """Whether *token* is a string literal, closed or not."""
    return token[:1] in ("'", '"') or (token[:1] in ("r", "R") and token[1:2] in ("'", '"'))


def unquote(token: str) -> str:
    r"""The text of a string literal.

    >>> unquote(r"'it\'s \u2260 it''s'")
    "it's ≠ it's"
    """
    quote, body = token[0], token[1:-1]
    if token[-1] == quote and len(token) > 1 and quote not in body and "\\" not in body:
        return body
    if _CLOSED.fullmatch(token) is None:
        raise ExpressionSyntaxError(
            "the string that starts here has no end",
            hint=r"close it with the same quote; a quote inside it is written \' or twice",
        )
    if quote in "rR":
        return body[1:]
    return _paired(_SPECIAL[quote].sub(_meaning, body))


def _meaning(special: re.Match[str]) -> str:
    utf16, utf32, octal, letter = special.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    if octal is not None:
        return chr(int(octal, 8))
    if utf16 is None and utf32 is None:
        return special[0][0]
    try:
        return chr(int(utf16 or utf32, 16))
    except (ValueError, OverflowError):
        raise ExpressionError(
            f"{special[0]} is no character: the last one is \\U0010FFFF"
        ) from None


def _paired(text: str) -> str:
    r"""*text* with \ud83d\ude00 made one character, as UTF-16 has it."""
    if _SURROGATE.search(text) is None:
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ExpressionError(
            "the string has half of a surrogate pair, which has no UTF-8 form",
            hint=r"write a character beyond \uFFFF as \U0001F600",
        ) from None


def quote(text: str) -> str:
    r"""The literal that `unquote` reads as *text*; nothing invisible is left in it.

    >>> print(quote("it's\n≠ \0"))
    'it\'s\n≠ \u0000'
    """
    if text.isprintable() and "'" not in text and "\\" not in text:
        return f"'{text}'"
    return f"'{''.join(map(_written, text))}'"


def _written(character: str) -> str:
    if character.isprintable():
        return _WRITTEN.get(character, character)
    code = ord(character)
    plain = f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
    return _WRITTEN.get(character, plain)


def unquote_name(token: str) -> str:
    """The attribute of a name in backquotes.

    >>> unquote_name("`my``price`")
    'my`price'
    """
    closed = _CLOSED_NAME.fullmatch(token)
    if closed is None:
        raise ExpressionSyntaxError(
            "the name that starts here has no end",
            hint="close it with a backquote; a backquote inside it is written twice",
        )
    if not closed[1]:
        raise ExpressionSyntaxError("an attribute's name cannot be empty")
    return closed[1].replace("``", "`")


def quote_name(name: str) -> str:
    """*name* as an expression has it: in backquotes unless it is a plain one.

    >>> quote_name("price"), quote_name("in"), quote_name("a.b"), quote_name("a-b")
    ('price', '`in`', 'a.b', '`a-b`')
    """
    return name if is_plain_name(name) else "`" + name.replace("`", "``") + "`"


def constant_of(raw: Any, name: str | None = None) -> Constant:
    """The constant of a number, string, boolean or datetime; *name* is for errors.

    >>> constant_of(3300)
    Constant(kind=<Kind.NUMBER: 'number'>, value=3300.0)
    """
    if isinstance(raw, date):
        return timestamp_constant(raw)
    try:
        value = read_value(raw, field=name)
    except RecordError as error:
        raise ExpressionError(str(error)) from None
    if not isinstance(value, Constant) or value.value in (math.inf, -math.inf):
        owner = f"{name}: " if name else ""
        raise ExpressionError(
            f"{owner}expected a finite number, a string, a boolean or a datetime, "
            f"got {shown_value(raw)}",
            hint="a missing value is tested by IS NULL" if value is None else None,
        )
    return value


def timestamp_constant(raw: str | date) -> Constant:
    """The instant of a text or a datetime, within the years 1 to 9999 of UTC."""
    try:
        micros = read_timestamp(raw)
    except RecordError as error:
        raise ExpressionError(str(error)) from None
    return Constant(Kind.TIMESTAMP, micros)


def unordered() -> ExpressionError:
    """The error for a boolean that is compared by size."""
    return ExpressionError("booleans have no order", hint="test them with =, != or IN")


def mixed(kind: Kind, other: Kind) -> TypeConflictError:
    """The error for a *kind* of value beside values of an *other* kind."""
    return TypeConflictError(
        f"a {kind} beside a {other}", hint="values side by side are of one type"
    )


def constant_text(constant: Constant) -> str:
    """The literal of *constant*.

    >>> constant_text(Constant(Kind.TIMESTAMP, 0.0))
    "TIMESTAMP '1970-01-01T00:00:00+00:00'"
    """
    if isinstance(constant.value, str):
        return quote(constant.value)
    if constant.kind is Kind.BOOLEAN:
        return "TRUE" if constant.value else "FALSE"
    if constant.kind is Kind.TIMESTAMP:
        return f"TIMESTAMP {quote(format_timestamp(constant.value))}"
    return write_number(constant.value)


def shown_value(value: object, width: int = 60) -> str:
    """*value* as a message shows it: short, and of any value at all."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = f"a value of type {type(value).__name__}"
    return text[:width]
