r"""String literals and quoted names, read and written as Spark 4 does.

In '…' and "…" a backslash begins an escape and a doubled quote is one quote; r'…' has neither.
A backslash stays before % and _, so that 'a\%' means the same in LIKE as r'a\%'.
Source: Spark's SparkParserUtils.unescapeSQLString, and SPARK-52545 for the doubled quote.
"""

from __future__ import annotations

import re

from stentor.errors import ExpressionError, ExpressionSyntaxError
from stentor.language.lexer import is_plain_name

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


def is_string(token: str) -> bool:
    """Whether *token* is a string literal, closed or not."""
    return token[:1] in ("'", '"') or (token[:1] in ("r", "R") and token[1:2] in ("'", '"'))


def unquote(token: str) -> str:
    r"""The text that a string literal stands for.

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
    """The attribute that a name in backquotes stands for.

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

    >>> quote_name("price"), quote_name("in"), quote_name("a.b")
    ('price', '`in`', '`a.b`')
    """
    return name if is_plain_name(name) else "`" + name.replace("`", "``") + "`"
