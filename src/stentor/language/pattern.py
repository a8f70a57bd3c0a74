r"""LIKE patterns as the tree has them: `\` is the escape, and escapes only what needs it."""

from __future__ import annotations

from stentor.errors import ExpressionError, LimitError
from stentor.language.like import ANY_CHARACTER, ANY_TEXT, ESCAPE


def tree_pattern(pattern: str, escape: str, limit: int) -> str:
    r"""*pattern*, whose escape character is *escape*, with `\` in its place.

    The same object comes back where nothing has to change. What Spark refuses when it runs (an
    escape before an ordinary character, or before nothing) is refused here.

    >>> tree_pattern("100!% \\", "!", 100)
    '100\\% \\\\'
    """
    if len(pattern) > limit:
        raise LimitError(
            f"the LIKE pattern has {len(pattern):,} characters; the limit is {limit:,}"
        )
    if len(escape) != 1 or ord(escape) > 0xFFFF:
        raise ExpressionError(f"ESCAPE takes one character, got {escape!r}")
    if escape not in pattern and ESCAPE not in pattern:
        return pattern
    special = (ANY_TEXT, ANY_CHARACTER, escape)
    written: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            plain = next(characters, None)
            if plain is None or plain not in special:
                raise _wrong_escape(pattern, escape, plain)
            written.append(_plain(plain))
        else:
            written.append(character if character in special else _plain(character))
    return pattern if escape == ESCAPE else "".join(written)


def _plain(character: str) -> str:
    special = character in (ANY_TEXT, ANY_CHARACTER, ESCAPE)
    return ESCAPE + character if special else character


def _wrong_escape(pattern: str, escape: str, plain: str | None) -> ExpressionError:
    shown = repr(pattern) if len(pattern) <= 60 else repr(pattern[:60] + "…")
    where = "at its end" if plain is None else f"before {plain!r}"
    return ExpressionError(
        f"the LIKE pattern {shown} has its escape {escape} {where}; "
        f"it can stand before %, _ and itself only",
        hint=r"in a plain string literal a backslash is written \\, so one to be matched is \\\\"
        if escape == ESCAPE
        else f"to match {escape} itself, write it twice",
    )
