"""PATTERN: the form that a string has; its hull is that of the text which it begins with.

It has no template: a pattern of which constants were taken out is another pattern.
"""

from __future__ import annotations

from stentor.encoding.hashing import prefix
from stentor.encoding.kinds import PATTERN, REGULAR
from stentor.encoding.predicates.growing import Appended, AppendedColumns
from stentor.language.normal_predicates import Pattern, RegularPattern
from stentor.language.predicates.pattern import plain_prefix
from stentor.language.regular import compiled


def append(columns: AppendedColumns, test: Pattern) -> Appended:
    """The pattern, as the normal form has it."""
    start = len(columns.string_hash)
    columns.add_string(test.pattern.encode(), 0)
    begin = plain_prefix(test.pattern).encode()
    return columns.with_strings(PATTERN, start, (prefix(begin), prefix(begin, b"\xff")))


def append_regular(columns: AppendedColumns, test: RegularPattern) -> Appended:
    """The pattern behind the word for its syntax, and its table; any string may be of that form."""
    start = len(columns.string_hash)
    columns.add_string(f"{test.syntax} {test.pattern}".encode(), 0)
    columns.add_string(compiled(test.syntax, test.pattern).table, 0)
    return columns.with_strings(REGULAR, start)
