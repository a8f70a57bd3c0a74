"""LIKE patterns inside and apart from one another, as texts and over columns.

A pattern is inside another where every reading of it is; where that is not known, it is not.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from stentor._jit import inner_kernel, kernel_inline
from stentor.covering.implies.operands import COVERED, NOT_COVERED, UNDECIDED
from stentor.encoding.columns import SubscriptionColumns, UInt8
from stentor.index.verify.pattern import find_bytes, is_like, next_character
from stentor.language.predicates.pattern import ANY_TEXT, normal_pattern, pattern_parts

#: Symbols beside characters, which are strings of length one.
ANY: Final = "any"

TEXT: Final = "text"


@lru_cache(maxsize=4096)
def symbols(pattern: str) -> tuple[str, ...]:
    r"""The symbols of *pattern*; in a run of wildcards ANY comes first, then at most one TEXT.

    >>> symbols("a%_%b")
    ('a', 'any', 'text', 'b')
    """
    return tuple(
        (TEXT if character == ANY_TEXT else ANY) if wildcard else character
        for character, wildcard in pattern_parts(normal_pattern(pattern))
    )


def plain_ends(pattern: tuple[str, ...]) -> tuple[str, str]:
    """What every match begins with and what it ends with."""
    wild = [position for position, symbol in enumerate(pattern) if symbol in (ANY, TEXT)]
    if not wild:
        return "".join(pattern), "".join(pattern)
    return "".join(pattern[: wild[0]]), "".join(pattern[wild[-1] + 1 :])


def prefix_only(pattern: tuple[str, ...]) -> bool:
    """Whether *pattern* is plain text with nothing but a TEXT behind it, or plain text."""
    return not any(symbol in (ANY, TEXT) for symbol in pattern[:-1]) and pattern[-1:] != (ANY,)


def inside(inner: tuple[str, ...], outer: tuple[str, ...]) -> bool:
    """Whether everything of the form *inner* is proved to be of the form *outer*.

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
    """Whether no text can have the ends of both patterns."""
    left, right = plain_ends(one)[1], plain_ends(other)[1]
    return not (left.endswith(right) or right.endswith(left))


@inner_kernel
def is_wild(pattern: UInt8) -> bool:
    """Whether *pattern* has a wildcard that is not escaped."""
    plain = False
    for byte in pattern:
        if not plain and (byte == ord("%") or byte == ord("_")):
            return True
        plain = not plain and byte == ord("\\")
    return False


@inner_kernel
def is_anything(pattern: UInt8) -> bool:
    """Whether every string is of the form *pattern*."""
    for byte in pattern:
        if byte != ord("%"):
            return False
    return len(pattern) > 0


_ANY_TEXT = ord("%")

_ANY_CHARACTER = ord("_")

_ESCAPE = ord("\\")


@inner_kernel
def pattern_implies(
    columns: SubscriptionColumns, narrow: int, negated: bool, wide: int, refused: bool
) -> int:
    """Whether one LIKE or NOT LIKE implies another.

    UNDECIDED where a pattern is not in canonical form, and for some with escapes.
    """
    inner, outer = columns.operand_start[narrow], columns.operand_start[wide]
    mine = columns.string_bytes[columns.string_start[inner] : columns.string_start[inner + 1]]
    wanted = columns.string_bytes[columns.string_start[outer] : columns.string_start[outer + 1]]
    if not (is_canonical(mine) and is_canonical(wanted)):
        return UNDECIDED
    if negated and not refused:
        return COVERED if is_anything(wanted) else NOT_COVERED
    if negated:  # what the one forbids must be all that the other forbids
        if is_prefix(wanted) and not is_prefix(mine):
            return NOT_COVERED  # as the definition has it: ranges of strings are compared apart
        return like_implies(wanted, mine)
    if not refused:
        return like_implies(mine, wanted)
    if has_escape(mine) or has_escape(wanted):
        return UNDECIDED
    if not is_wild(mine):
        return NOT_COVERED if is_like(mine, wanted) else COVERED
    return COVERED if are_apart(mine, wanted) else NOT_COVERED


@inner_kernel
def like_implies(mine: UInt8, wanted: UInt8) -> int:
    """Whether everything of the form *mine* is of the form *wanted*."""
    if is_wild(mine):
        return COVERED if pattern_inside(mine, wanted) else NOT_COVERED
    if has_escape(mine):
        return UNDECIDED
    return COVERED if is_like(mine, wanted) else NOT_COVERED


@kernel_inline
def has_escape(pattern: UInt8) -> bool:
    """Whether *pattern* has a backslash."""
    for byte in pattern:
        if byte == _ESCAPE:
            return True
    return False


@inner_kernel
def is_prefix(pattern: UInt8) -> bool:
    """Whether *pattern* is plain text, perhaps with a `%` behind it: a range of strings."""
    return text_after(pattern, 0) >= len(pattern) - 1 and not has_single(pattern)


@inner_kernel
def has_single(pattern: UInt8) -> bool:
    """Whether *pattern* has a `_` that is not escaped."""
    at = 0
    while at < len(pattern):
        if pattern[at] == _ANY_CHARACTER:
            return True
        at += 2 if pattern[at] == _ESCAPE else 1
    return False


@inner_kernel
def are_apart(mine: UInt8, wanted: UInt8) -> bool:
    """Whether no text can begin, or end, like both; *mine* has a wildcard, neither an escape."""
    at = 0
    while at < len(mine) and at < len(wanted) and not is_wildcard(mine[at]):
        if is_wildcard(wanted[at]):
            break
        if mine[at] != wanted[at]:
            return True
        at += 1
    if not is_wild(wanted):
        return at == len(wanted) and not is_wildcard(mine[at])
    if is_prefix(wanted):
        return False
    for back in range(1, min(len(mine), len(wanted)) + 1):
        if is_wildcard(mine[-back]) or is_wildcard(wanted[-back]):
            return False
        if mine[-back] != wanted[-back]:
            return True
    return False


@kernel_inline
def is_wildcard(byte: int) -> bool:
    """Whether *byte* is a wildcard where there are no escapes."""
    return byte in (_ANY_TEXT, _ANY_CHARACTER)


@inner_kernel
def is_canonical(pattern: UInt8) -> bool:
    """Whether no `%` comes before another wildcard, as the normal form writes patterns."""
    plain, text = False, False
    for byte in pattern:
        if text and byte in (_ANY_TEXT, _ANY_CHARACTER):
            return False
        text = byte == _ANY_TEXT and not plain
        plain = not plain and byte == _ESCAPE
    return True


@inner_kernel
def pattern_inside(mine: UInt8, wanted: UInt8) -> bool:
    """`inside` over bytes: *wanted*, read as a pattern over symbols, matches *mine*.

    Part by part, as `is_like` does it. Cost: O(mine + wanted), and O(mine × part) for a part with a
    `_` or where either has an escape.
    """
    first = text_after(wanted, 0)
    at = part_inside(mine, 0, len(mine), wanted, 0, min(first, len(wanted)))
    if at < 0 or first == len(wanted):
        return at == len(mine)
    last = first
    while text_after(wanted, last + 1) < len(wanted):
        last = text_after(wanted, last + 1)
    behind = symbols_from(mine, at) - symbols_from(wanted, last + 1)
    stop = at
    while behind > 0 and stop < len(mine):
        stop = next_symbol(mine, stop)
        behind -= 1
    if behind < 0 or part_inside(mine, stop, len(mine), wanted, last + 1, len(wanted)) != len(mine):
        return False
    escaped = False
    for byte in mine:
        escaped = escaped or byte == _ESCAPE
    while first < last:
        start, first = first + 1, text_after(wanted, first + 1)
        plain = not escaped
        for position in range(start, first):
            plain = plain and wanted[position] != _ANY_CHARACTER and wanted[position] != _ESCAPE
        if plain:
            at = find_bytes(mine, at, stop, wanted, start, first)
        else:
            end = -1
            while end < 0 and at < stop:
                end = part_inside(mine, at, stop, wanted, start, first)
                at = next_symbol(mine, at)
            at = end
        if at < 0:
            return False
    return True


@inner_kernel
def text_after(pattern: UInt8, at: int) -> int:
    """The position of the first `%` from *at* on; the length where there is none."""
    while at < len(pattern) and pattern[at] != _ANY_TEXT:
        at += 2 if pattern[at] == _ESCAPE else 1
    return min(at, len(pattern))


@inner_kernel
def next_symbol(pattern: UInt8, at: int) -> int:
    """Where the symbol behind the one at *at* begins: a wildcard, or a character."""
    return next_character(pattern, at + (pattern[at] == _ESCAPE and at + 1 < len(pattern)))


@inner_kernel
def symbols_from(pattern: UInt8, at: int) -> int:
    """How many symbols there are from *at* on."""
    count = 0
    while at < len(pattern):
        at = next_symbol(pattern, at)
        count += 1
    return count


@inner_kernel
def part_inside(mine: UInt8, at: int, stop: int, wanted: UInt8, start: int, end: int) -> int:
    """Where the part *start* … *end* of *wanted* ends if it begins at *at*; −1 where it does not.

    The part has no `%`. Its characters take themselves, its `_` any symbol but `%`.
    """
    while start < end:
        if at >= stop or mine[at] == _ANY_TEXT:
            return -1
        if wanted[start] == _ANY_CHARACTER:
            at = next_symbol(mine, at)
        else:
            if mine[at] == _ANY_CHARACTER:
                return -1
            at += mine[at] == _ESCAPE and at + 1 < stop
            start += wanted[start] == _ESCAPE and start + 1 < end
            if wanted[start] != mine[at]:
                return -1
            at += 1
        start += 1
    return at
