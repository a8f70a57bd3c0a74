r"""Lucene's regular expressions as RLIKE's, where the two syntaxes agree.

Agreed are characters, `.`, classes, groups, `|` and one quantifier at a time. Refused are Lucene's
own operators (`~ & @ # < > "`), which RE2 takes for characters, what RE2 reads as operators of its
own (lazy quantifiers, letters after `\`), and what Lucene itself reads in a way of its own. Lucene
asks whether the whole value is of the form; its `^` and `$` are characters.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from stentor.model.values.string import describe
from stentor.wire.foreign.rule import refuse

_QUANTIFIER: Final = re.compile(r"[*+?]|\{[0-9]{1,4}(,[0-9]{0,4})?\}")
_OWN: Final = frozenset('~&@#<>"')


def rlike_of(pattern: str) -> str:
    """The pattern by which RLIKE matches what the regexp *pattern* matches."""
    # Lucene's dot is any character, also the end of a line.
    return f"^(?s:{_Reader(pattern).whole()})$"


class _Reader:
    """One pass over a pattern; what it has read is written in RE2's words."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0

    def whole(self) -> str:
        """The whole pattern."""
        written = self._union() if self.pattern else ""
        return written if not self._next() else self._refuse("a ) that nothing opened")

    def _next(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def _take(self) -> str:
        self.position += 1
        return self.pattern[self.position - 1 : self.position]

    def _union(self) -> str:
        branches = [self._branch()]
        while self._next() == "|":
            self._take()
            branches.append(self._branch())
        return "|".join(branches)

    def _branch(self) -> str:
        parts = []
        while self._next() not in ("", "|", ")"):
            parts.append(self._atom())
            if quantifier := _QUANTIFIER.match(self.pattern, self.position):
                parts.append(quantifier[0])
                self.position = quantifier.end()
        return "".join(parts) or self._refuse("an empty branch")

    def _atom(self) -> str:
        if self._next() in {"*", "+", "?", "{"}:
            self._refuse("a quantifier of nothing, or of a quantifier")
        one = self._take()
        if one == ".":
            return one
        if one == "[":
            return self._class()
        if one == "(":
            inner = self._union()
            return f"(?:{inner})" if self._take() == ")" else self._refuse("a ( left open")
        return self._character(one)

    def _class(self) -> str:
        written = "[^" if self._next() == "^" else "["
        self.position += written == "[^"
        while self._next() != "]" or written in ("[", "[^"):
            if self._next() in ("", "]"):
                self._refuse("an empty class, or a [ left open")
            low = self._character(self._take(), in_class=True)
            if self._next() == "-" and self.pattern[self.position + 1 :][:1] not in ("]", ""):
                self._take()
                low += "-" + self._character(self._take(), in_class=True)
            written += low
        self._take()
        return written + "]"

    def _character(self, one: str, *, in_class: bool = False) -> str:
        if one == "\\":
            one = self._take()
            if not one or one.isalnum():
                self._refuse(f"\\{one}")
        elif one in _OWN and not in_class:
            self._refuse(f"the operator {one}")
        return one if one.isalnum() or one in " _\n" or not one.isascii() else f"\\{one}"

    def _refuse(self, what: str) -> NoReturn:
        refuse(
            f"{what} in the regexp {describe(self.pattern)}",
            "Lucene and RE2 read it in two ways; write characters, classes, groups, | and "
            "one quantifier at a time",
        )
