r"""LIKE patterns: `%` is any text, `_` is one character, `\` makes the next character plain."""

from __future__ import annotations

import re
from functools import lru_cache

ANY_TEXT = "%"
ANY_CHARACTER = "_"
ESCAPE = "\\"


def pattern_parts(pattern: str) -> list[tuple[str, bool]]:
    r"""The pattern's characters, each with whether it is a wildcard.

    >>> pattern_parts(r"a%\%")
    [('a', False), ('%', True), ('%', False)]
    """
    parts: list[tuple[str, bool]] = []
    plain = False
    for character in pattern:
        if plain:
            parts.append((character, False))
            plain = False
        elif character == ESCAPE:
            plain = True
        else:
            parts.append((character, character in (ANY_TEXT, ANY_CHARACTER)))
    return parts


def plain_prefix(pattern: str) -> str:
    r"""The text that every match begins with.

    >>> plain_prefix(r"iP%d"), plain_prefix("iPad")
    ('iP', 'iPad')
    """
    prefix = []
    for character, wildcard in pattern_parts(pattern):
        if wildcard:
            break
        prefix.append(character)
    return "".join(prefix)


def like(text: str, pattern: str) -> bool:
    """Whether the whole of *text* is of the form *pattern*."""
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """A regular expression in which each `%` takes as little as it can and never gives back.

    A `%` followed by plain text may take the first place where that text fits: a later place
    could only leave less for the rest. So runs between `%` are atomic, and matching is quadratic
    at worst instead of exponential in the number of `%`.
    """
    runs: list[list[str]] = [[]]
    for character, wildcard in pattern_parts(pattern):
        if wildcard and character == ANY_TEXT:
            runs.append([])
        else:
            runs[-1].append("." if wildcard else re.escape(character))
    first, *rest = ("".join(run) for run in runs)
    if not rest:
        return re.compile(first, re.DOTALL)
    *middle, last = rest
    body = "".join(f"(?>.*?{run})" for run in middle if run)
    return re.compile(f"{first}{body}.*{last}", re.DOTALL)
