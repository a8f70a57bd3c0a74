"""LIKE patterns inside and apart from one another.

A pattern is a row of symbols: characters, ANY (one character), TEXT (any text). One pattern is
inside another where the other, read as a pattern over symbols, matches it: its TEXT takes any
symbols, its ANY takes one that stands for one character. Whatever the inner symbols stand for, the
outer pattern then takes it. Sound; it misses what only a case distinction shows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from stentor.language.like import ANY_TEXT, pattern_parts

#: Symbols beside characters, which are strings of length one.
ANY: Final = "any"
TEXT: Final = "text"


@lru_cache(maxsize=4096)
def symbols(pattern: str) -> tuple[str, ...]:
    r"""The symbols of *pattern*; in a run of wildcards ANY comes first, then at most one TEXT.

    >>> symbols("a%_%b")
    ('a', 'any', 'text', 'b')
    """
    found: list[str] = []
    text = False
    for character, wildcard in pattern_parts(pattern):
        if wildcard and character == ANY_TEXT:
            text = True
            continue
        if text and not wildcard:
            found.append(TEXT)
            text = False
        found.append(ANY if wildcard else character)
    return (*found, TEXT) if text else tuple(found)


def plain_ends(pattern: tuple[str, ...]) -> tuple[str, str]:
    """What every match begins with and what it ends with."""
    wild = [place for place, symbol in enumerate(pattern) if symbol in (ANY, TEXT)]
    if not wild:
        return "".join(pattern), "".join(pattern)
    return "".join(pattern[: wild[0]]), "".join(pattern[wild[-1] + 1 :])


def prefix_only(pattern: tuple[str, ...]) -> bool:
    """Whether *pattern* is plain text with nothing but a TEXT behind it, or plain text."""
    return not any(symbol in (ANY, TEXT) for symbol in pattern[:-1]) and pattern[-1:] != (ANY,)


def inside(inner: tuple[str, ...], outer: tuple[str, ...]) -> bool:
    """Whether everything of the form *inner* is surely of the form *outer*.

    Cost: O(inner × outer); only the last TEXT ever needs to take more.
    """
    at_inner, at_outer = 0, 0
    retry_inner, retry_outer = 0, -1
    while at_inner < len(inner):
        symbol = outer[at_outer] if at_outer < len(outer) else None
        if symbol == TEXT:
            at_outer += 1
            retry_inner, retry_outer = at_inner, at_outer
        elif symbol is not None and _takes(symbol, inner[at_inner]):
            at_inner, at_outer = at_inner + 1, at_outer + 1
        elif retry_outer >= 0:
            retry_inner += 1
            at_inner, at_outer = retry_inner, retry_outer
        else:
            return False
    return all(symbol == TEXT for symbol in outer[at_outer:])


def _takes(outer: str, inner: str) -> bool:
    return inner != TEXT if outer == ANY else outer == inner


def ends_differ(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether no text can end as both patterns ask."""
    left, right = plain_ends(one)[1], plain_ends(other)[1]
    return not (left.endswith(right) or right.endswith(left))
