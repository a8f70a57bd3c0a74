r"""LIKE: `%` is any text, `_` is one character, `\` makes the next character plain.

The tree has `\` as the escape, which escapes only what needs it (`canonical_pattern`); the normal
form has each run of wildcards in one order too (`normal_pattern`).
"""

from __future__ import annotations

from functools import lru_cache

from stentor.errors import ExpressionError, LimitError
from stentor.language.cursor import Cursor
from stentor.language.lexer import is_word
from stentor.language.literals import quote
from stentor.language.normal_predicates import Pattern
from stentor.model.expression import Like, Regular
from stentor.model.kind import Kind

ANY_TEXT = "%"
ANY_CHARACTER = "_"
ESCAPE = "\\"


def read(cursor: Cursor, attribute: str, start: int) -> Like:
    """`'pattern' [ESCAPE 'c']`, after LIKE."""
    at = cursor.at
    pattern = cursor.string("a LIKE pattern")
    escape = ESCAPE
    if is_word(cursor.tokens[cursor.at], "ESCAPE"):
        cursor.at += 1
        escape = cursor.string("what ESCAPE takes")
    try:
        pattern = canonical_pattern(pattern, escape, cursor.limits.pattern_length)
    except ExpressionError as error:
        raise cursor.with_position(error, at, cursor.at) from None
    cursor.use(attribute, Kind.STRING, start)
    return Like(attribute, pattern)


def read_ilike(cursor: Cursor, attribute: str, start: int) -> Regular:
    """`'pattern' [ESCAPE 'c']`, after ILIKE."""
    at = cursor.at
    found = Regular(attribute, "ILIKE", read(cursor, attribute, start).pattern)
    _check_regular(cursor, found, at)
    return found


def read_rlike(cursor: Cursor, attribute: str, start: int) -> Regular:
    """`'pattern'`, after RLIKE."""
    at = cursor.at
    found = Regular(attribute, "RLIKE", cursor.string("an RLIKE pattern"))
    _check_regular(cursor, found, at)
    cursor.use(attribute, Kind.STRING, start)
    return found


def _check_regular(cursor: Cursor, predicate: Regular, at: int) -> None:
    try:
        if len(predicate.pattern) > cursor.limits.pattern_length:
            raise LimitError(
                f"the pattern has {len(predicate.pattern):,} characters; "
                f"the limit is {cursor.limits.pattern_length:,}"
            )
        cursor.tables.add(predicate)
    except ExpressionError as error:
        raise cursor.with_position(error, at, cursor.at) from None


def regular_text(predicate: Regular, name: str, negation: str) -> str:
    """The text of ILIKE and RLIKE."""
    return f"{name} {negation}{predicate.syntax} {quote(predicate.pattern)}"


def to_text(predicate: Like, name: str, negation: str) -> str:
    """The text, of the attribute written as *name*; *negation* is empty or `NOT `."""
    return f"{name} {negation}LIKE {quote(predicate.pattern)}"


def attribute_kind(predicate: Like | Regular) -> Kind:
    """Strings have a form."""
    return Kind.STRING


def normal_form(predicate: Like, negated: bool) -> Pattern:
    """The normal form of *predicate*, or of its negation."""
    return Pattern(normal_pattern(predicate.pattern), negated)


def canonical_pattern(pattern: str, escape: str, limit: int) -> str:
    r"""*pattern*, whose escape character is *escape*, with `\` instead.

    The same object comes back where nothing has to change. What Spark refuses when it runs (an
    escape before an ordinary character, or before nothing) is refused here.

    >>> canonical_pattern("100!% \\", "!", 100)
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


def normal_pattern(pattern: str) -> str:
    r"""The same form with each run of wildcards in one order: first every `_`, then one `%`.

    >>> normal_pattern("a%_%b"), normal_pattern(r"\\%%_")
    ('a_%b', '\\\\_%')
    """
    if "%%" not in pattern and "%_" not in pattern:
        return pattern
    written: list[str] = []
    text = False
    for character, wildcard in pattern_parts(pattern):
        if wildcard and character == ANY_TEXT:
            text = True
            continue
        if text and not wildcard:
            written.append(ANY_TEXT)
            text = False
        special = not wildcard and character in (ANY_TEXT, ANY_CHARACTER, ESCAPE)
        written.append(ESCAPE + character if special else character)
    return "".join(written) + ANY_TEXT * text


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


#: What is between two `%`: plain text, or characters and None for each `_`.
Part = str | tuple[str | None, ...]


def like(text: str, pattern: str) -> bool:
    """Whether the whole of *text* is of the form *pattern*.

    A `%` may take as little as it can: were the next part to begin later, it could only leave less
    for the rest. So each part is looked for once, behind the part before.

    Cost: O(text + pattern), and O(pattern / 64) for each character where the pattern has a `_`.
    """
    first, *rest = parts_of(pattern)
    if not rest:
        return len(text) == len(first) and _stands_at(text, 0, first)
    *middle, last = rest
    at, stop = len(first), len(text) - len(last)
    if at > stop or not (_stands_at(text, 0, first) and _stands_at(text, stop, last)):
        return False
    for part in middle:
        at = _end_of(text, at, stop, part)
        if at < 0:
            return False
    return True


@lru_cache(maxsize=1024)
def parts_of(pattern: str) -> tuple[Part, ...]:
    r"""The parts before, between and behind the `%` of *pattern*.

    >>> parts_of(r"i%P_d%\%")
    ('i', ('P', None, 'd'), '%')
    """
    parts: list[list[str | None]] = [[]]
    for character, wildcard in pattern_parts(pattern):
        if wildcard and character == ANY_TEXT:
            parts.append([])
        else:
            parts[-1].append(None if wildcard else character)
    return tuple(tuple(part) if None in part else "".join(map(str, part)) for part in parts)


def steps_of(pattern: str) -> int:
    r"""How many steps *pattern* takes at most for each character of a text.

    One where every part can be found by a linear search; a part with a `_` or an escape is compared
    where it might begin, all of it, which takes eight times as long for each of its characters.
    (The first and the last part have one position each.)

    >>> steps_of("a_c%def%ghi%"), steps_of("%a_c%"), steps_of(r"%100\%%")
    (1, 24, 32)
    """
    most, length, plain, first = 1, 0, True, True
    for character, wildcard in pattern_parts(pattern):
        if wildcard and character == ANY_TEXT:
            if not (plain or first):
                most = max(most, 8 * length)
            length, plain, first = 0, True, False
        else:
            length += 1
            plain = plain and not wildcard and character not in (ANY_TEXT, ANY_CHARACTER, ESCAPE)
    return most


def _stands_at(text: str, at: int, part: Part) -> bool:
    if isinstance(part, str):
        return text.startswith(part, at)
    return all(one is None or text[at + position] == one for position, one in enumerate(part))


def _end_of(text: str, at: int, stop: int, part: Part) -> int:
    """Where the first *part* that lies in text[at:stop] ends; −1 where there is none."""
    if isinstance(part, str):
        found = text.find(part, at, stop)
        return found if found < 0 else found + len(part)
    # Shift-And: a bit for each position in the part up to which the text before `at` agrees.
    wild = sum(1 << position for position, one in enumerate(part) if one is None)
    agreeing: dict[str, int] = {}
    for position, one in enumerate(part):
        if one is not None:
            agreeing[one] = agreeing.get(one, wild) | 1 << position
    state, whole = 0, 1 << len(part) - 1
    for position in range(at, stop):
        state = (state << 1 | 1) & agreeing.get(text[position], wild)
        if state & whole:
            return position + 1
    return -1
