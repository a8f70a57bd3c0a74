"""PATTERN: the form that a string has; its hull is that of the text which it begins with.

It has no template: a pattern of which constants were taken out is another pattern.
"""

from __future__ import annotations

from stentor.encoding.hashing import prefix
from stentor.encoding.kinds import PATTERN
from stentor.encoding.predicates.growing import Appended, AppendedColumns
from stentor.language.normal_predicates import Pattern
from stentor.language.predicates.pattern import plain_prefix


def append(columns: AppendedColumns, test: Pattern) -> Appended:
    """The pattern, as the normal form has it."""
    start = len(columns.string_hash)
    columns.add_string(test.pattern.encode(), 0)
    begin = plain_prefix(test.pattern).encode()
    return columns.with_strings(PATTERN, start, (prefix(begin), prefix(begin, b"\xff")))
