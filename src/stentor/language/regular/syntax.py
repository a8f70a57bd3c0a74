r"""Patterns → nodes: RE2's syntax (RLIKE), and LIKE without regard to capitals (ILIKE).

RE2 refuses what is no pattern, or takes more than linear time. What is left is taken apart here;
which characters an atom (`.`, `[a-z]`, `\w`, `\pL`, a letter under `(?i)`) stands for, RE2 says.
"""

from __future__ import annotations

import re
import sys
from array import array
from functools import lru_cache
from itertools import groupby
from typing import Any, Final

from stentor.errors import ExpressionError, LimitError
from stentor.language.regular.nodes import (
    EVERY_CHARACTER,
    AnyByte,
    AnyOf,
    At,
    Characters,
    CodePoints,
    Edge,
    Node,
    Repeat,
    Sequence,
)

#: Memory that RE2 may take for one pattern, and for an atom: with less it takes seconds for `\PL`.
_MOST_BYTES, _ATOM_BYTES = 1 << 20, 8 << 20
_EDGES: Final[dict[str, Edge]] = {"A": "begin", "z": "end", "b": "word edge", "B": "no word edge"}
_PLAIN_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_CLASS_ESCAPES: Final = "dDsSwWpPxC01234567"
_FLAGS: Final = "imsU"
_USUAL: Final = frozenset((".", *(f"\\{one}" for one in "dDsSwW")))
#: What asking RE2 for the characters of an atom weighs, in steps of building a table; what most
#: patterns have is asked for once.
_ASKED: Final = 40_000
#: A class that stands for what it says; RE2 need not be asked.
_PLAIN_CLASS: Final = re.compile(r"\[(?:\w(?:-\w)?)+\]", re.ASCII)


@lru_cache(maxsize=4096)
def checked_pattern(pattern: str, most_bytes: int = _MOST_BYTES) -> Any:
    """RE2's own form of *pattern*; an ExpressionError says what is wrong with it."""
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    options.max_mem = most_bytes
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error.args[0])
        if "too large" in said:
            raise LimitError(f"the pattern is too large: {said}; shorten it") from None
        raise ExpressionError(
            f"this is no pattern for RLIKE: {said}",
            hint="patterns are RE2's: no look-around, no references to groups",
        ) from None


def found_in(text: str, pattern: str) -> bool:
    """Whether *pattern* is found in *text*, as RE2 says.

    >>> found_in("iPad Pro", "^i.*[0-9]?o$")
    True
    """
    return checked_pattern(pattern).search(text) is not None


def folded(text: str) -> str:
    """*text*, each letter as its small one where that is a single one.

    >>> folded("STRASSE İ É")
    'strasse İ é'
    """
    small = text.lower()
    if len(small) == len(text) and text.isascii():
        return small
    return "".join(one if len(one.lower()) != 1 else one.lower() for one in text)


def node_of_pattern(pattern: str, most_work: int) -> tuple[Node, int]:
    """What *pattern* asks for, somewhere in a text; and how much work that was to find out."""
    checked_pattern(pattern)
    parser = _Parser(pattern, most_work)
    try:
        found = parser.all()
    except RecursionError:
        raise LimitError("the pattern is nested too deep; flatten it") from None
    anything = Repeat(AnyByte(), 0, None)  # RE2 looks at every byte, also for what has no width
    return Sequence((anything, found, anything)), parser.work


def folded_like(pattern: str) -> Node:
    r"""What a LIKE *pattern* (`%`, `_`, `\`) asks for, whatever the capitals, of a whole text."""
    parts: list[Node] = []
    characters = iter(pattern)
    for one in characters:
        if one == "%":
            parts.append(Repeat(Characters(EVERY_CHARACTER), 0, None))
        elif one == "_":
            parts.append(Characters(EVERY_CHARACTER))
        else:
            plain = next(characters, one) if one == "\\" else one
            parts.append(Characters(_ranges(cases(plain))))
    return Sequence(tuple(parts))


@lru_cache(maxsize=1)
def _cased() -> dict[str, list[str]]:
    """Letters by their small ones, where there are several."""
    found: dict[str, list[str]] = {}
    for point in range(sys.maxunicode + 1):
        one = chr(point)
        small = one.lower()
        if len(small) == 1 and small != one:
            found.setdefault(small, [small]).append(one)
    return found


@lru_cache(maxsize=4096)
def cases(one: str) -> str:
    """The letters that count as the letter *one* whatever the capitals."""
    small = folded(one)
    return "".join(_cased().get(small, [small]))


@lru_cache(maxsize=1)
def _every_character() -> str:
    points = array("I", (point for low, high in EVERY_CHARACTER for point in range(low, high + 1)))
    return points.tobytes().decode("utf-32-le" if sys.byteorder == "little" else "utf-32-be")


@lru_cache(maxsize=1)
def _every_cased_character() -> str:
    return "".join(one for one in _every_character() if {one} != {one.lower(), one.upper()})


@lru_cache(maxsize=4096)
def _characters(atom: str, flags: str) -> CodePoints:
    """The characters that RE2 takes *atom*, which matches one, to stand for."""
    wanted = checked_pattern(f"(?{flags}:{atom})+" if flags else f"(?:{atom})+", _ATOM_BYTES)
    text = _every_character()
    return tuple(
        part
        for found in wanted.finditer(text)
        for part in _without_surrogates(ord(text[found.start()]), ord(text[found.end() - 1]))
    )


def _between(low: str, high: str) -> str:
    return "".join(map(chr, range(ord(low), ord(high) + 1)))


def _without_surrogates(low: int, high: int) -> CodePoints:
    """The characters from *low* to *high*, which no surrogate is."""
    (_, last), (first, _) = EVERY_CHARACTER
    return ((low, last), (first, high)) if low <= last and high >= first else ((low, high),)


@lru_cache(maxsize=4096)
def _letter(one: str) -> CodePoints:
    """The characters that RE2 takes for *one* where capitals do not count."""
    atom = one if one.isalnum() or not one.isascii() else "\\" + one
    found = checked_pattern(f"(?i:{atom})+").findall(_every_cased_character())
    return _ranges("".join([one, *found]))


def _ranges(characters: str) -> CodePoints:
    points = sorted(set(map(ord, characters)))
    found = []
    for _, group in groupby(enumerate(points), key=lambda pair: pair[1] - pair[0]):
        own = [point for _, point in group]
        found.append((own[0], own[-1]))
    return tuple(found)


class _Parser:
    """Takes apart a pattern that RE2 has taken."""

    def __init__(self, pattern: str, most_work: int) -> None:
        self._pattern = _unquoted(pattern)
        self._at = 0
        self._most_work = most_work
        self._asked: set[tuple[str, str]] = set()
        self.work = 0

    def _points(self, atom: str, flags: str) -> CodePoints:
        """`_characters`, where there is work left; an atom is counted once for a pattern."""
        if not flags and _PLAIN_CLASS.fullmatch(atom):
            spans = re.findall(r"(\w)(?:-(\w))?", atom)
            return _ranges("".join(_between(low, high or low) for low, high in spans))
        if (atom, flags) not in self._asked and atom not in _USUAL:
            self._asked.add((atom, flags))
            self.work += _ASKED
            if self.work > self._most_work:
                raise LimitError("the pattern has too many classes of characters; use fewer")
        return _characters(atom, flags)

    def all(self) -> Node:
        """What the whole pattern asks for."""
        node, _ = self._choice("")
        return node

    def _peek(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _choice(self, flags: str) -> tuple[Node, str]:
        """Alternatives up to a closing parenthesis or the end; flags set inside hold on."""
        choices: list[Node] = []
        parts: list[Node] = []
        while self._at < len(self._pattern) and not self._peek(")"):
            if self._peek("|"):
                self._at += 1
                choices.append(Sequence(tuple(parts)))
                parts = []
                continue
            node, flags = self._atom(flags)
            if node is not None:
                parts.append(self._repeated(node))
        choices.append(Sequence(tuple(parts)))
        return (choices[0] if len(choices) == 1 else AnyOf(tuple(choices))), flags

    def _repeated(self, node: Node) -> Node:
        while self._at < len(self._pattern):
            start = self._pattern[self._at]
            if start in "*+?":
                self._at += 1
                node = Repeat(node, int(start == "+"), 1 if start == "?" else None)
            elif start == "{" and (bounds := self._bounds()) is not None:
                node = Repeat(node, *bounds)
            else:
                return node
            if self._peek("?"):
                self._at += 1  # as few as possible: the same texts have it
        return node

    def _bounds(self) -> tuple[int, int | None] | None:
        stop = self._pattern.find("}", self._at)
        least, comma, most = self._pattern[self._at + 1 : stop].partition(",")
        if stop < 0 or not (least.isascii() and least.isdigit()) or (most and not most.isdigit()):
            return None
        self._at = stop + 1
        return int(least), (int(most) if most else None) if comma else int(least)

    def _atom(self, flags: str) -> tuple[Node | None, str]:
        one = self._pattern[self._at]
        if one == "(":
            return self._group(flags)
        if one == "[":
            return self._class(flags), flags
        if one == "\\":
            return self._escape(flags), flags
        self._at += 1
        if one == "^":
            return At("line begin" if "m" in flags else "begin"), flags
        if one == "$":
            return At("line end" if "m" in flags else "end"), flags
        if one == ".":
            return Characters(self._points(".", flags.replace("m", ""))), flags
        return self._literal(one, flags), flags

    def _literal(self, one: str, flags: str) -> Node:
        if "i" not in flags:
            return Characters(((ord(one), ord(one)),))
        return Characters(_letter(one))

    def _group(self, flags: str) -> tuple[Node | None, str]:
        self._at += 1
        inner = flags
        if self._peek("?P<") or (self._peek("?<")):
            self._at = self._pattern.index(">", self._at) + 1
        elif self._peek("?"):
            stop = self._at + 1
            while self._pattern[stop] in _FLAGS + "-":
                stop += 1
            inner = _changed(flags, self._pattern[self._at + 1 : stop])
            self._at = stop + 1
            if self._pattern[stop] == ")":
                return None, inner
        node, _ = self._choice(inner)
        self._at += 1
        return node, flags

    def _class(self, flags: str) -> Node:
        stop = self._at + 1
        if self._pattern[stop] == "^":
            stop += 1
        if self._pattern[stop] == "]":
            stop += 1
        while self._pattern[stop] != "]":
            if self._pattern.startswith("[:", stop):
                end = self._pattern.find(":]", stop)
                stop = end + 2 if end >= 0 else stop + 1
            elif self._pattern[stop] == "\\":
                stop += 2
            else:
                stop += 1
        atom, self._at = self._pattern[self._at : stop + 1], stop + 1
        return Characters(self._points(atom, "i" if "i" in flags else ""))

    def _escape(self, flags: str) -> Node:
        one = self._pattern[self._at + 1]
        if one in _EDGES:
            self._at += 2
            return At(_EDGES[one])
        if one == "C":
            raise ExpressionError(r"\C, one byte, is no character; write . instead")
        if one in _PLAIN_ESCAPES:
            self._at += 2
            return Characters(((ord(_PLAIN_ESCAPES[one]),) * 2,))
        if one not in _CLASS_ESCAPES:
            self._at += 2
            return self._literal(one, flags)
        stop = self._at + 2
        if one in "pP" or one == "x":
            if self._pattern.startswith("{", stop):
                stop = self._pattern.index("}", stop) + 1
            else:
                stop += 1 if one in "pP" else 2
        elif one.isdigit():
            while (
                stop < min(self._at + 4, len(self._pattern)) and self._pattern[stop] in "01234567"
            ):
                stop += 1
        atom, self._at = self._pattern[self._at : stop], stop
        return Characters(self._points(atom, "i" if "i" in flags else ""))


def _unquoted(pattern: str) -> str:
    r"""*pattern* with each character between `\Q` and `\E` behind a backslash of its own."""
    written: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("\\Q", at):
            stop = pattern.find("\\E", at)
            stop = len(pattern) if stop < 0 else stop
            written += [
                one if one.isalnum() or not one.isascii() else "\\" + one
                for one in pattern[at + 2 : stop]
            ]
            at = stop + 2
        else:
            width = 2 if pattern[at] == "\\" else 1
            written.append(pattern[at : at + width])
            at += width
    return "".join(written)


def _changed(flags: str, change: str) -> str:
    """*flags* after what stands behind `(?`: those to set, and behind a minus those to unset."""
    on, _, off = change.partition("-")
    kept = {*flags, *on} - {*off}
    return "".join(one for one in "ims" if one in kept)
