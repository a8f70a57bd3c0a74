"""Number literals: read without rounding an integer, written so that they read back the same."""

from __future__ import annotations

import math

from stentor.errors import ExpressionError, ExpressionSyntaxError, RecordError
from stentor.model.value import number

#: Every integer of so many digits is a double.
_EXACT_DIGITS = 15
#: No double has more digits before its point.
_MOST_DIGITS = 309
_SUFFIXES = ("BD", "D", "F", "L", "S", "Y")


def read_number(token: str) -> float:
    """The double that *token* stands for.

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
            return number(int(digits))
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
