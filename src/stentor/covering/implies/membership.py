"""Lists of strings inside lists, over columns."""

from __future__ import annotations

from stentor._jit import inner_kernel, kernel_inline
from stentor.covering.implies.operands import COVERED, NOT_COVERED
from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.kinds import (
    KIND_MASK,
    MEMBERSHIP,
    NEGATED,
    PATTERN,
    STRING_INTERVAL,
)
from stentor.index.verify.comparison import in_string_span
from stentor.index.verify.membership import is_one_of
from stentor.index.verify.pattern import is_like


@inner_kernel
def list_implies(columns: SubscriptionColumns, narrow: int, wide: int) -> int:
    """Whether each string of the list *narrow* satisfies *wide*."""
    wanted = columns.kind[wide] & KIND_MASK
    refused = (columns.kind[wide] & NEGATED) != 0
    for string in range(columns.operand_start[narrow], columns.operand_stop[narrow]):
        text = columns.string_bytes[columns.string_start[string] : columns.string_start[string + 1]]
        if wanted == MEMBERSHIP:
            matches = is_one_of(columns, wide, columns.string_hash[string], text)
        elif wanted == STRING_INTERVAL:
            matches = in_string_span(columns, wide, text)
        elif wanted != PATTERN:
            return NOT_COVERED
        else:
            pattern = columns.operand_start[wide]
            start, stop = columns.string_start[pattern], columns.string_start[pattern + 1]
            matches = is_like(text, columns.string_bytes[start:stop])
        if matches == refused:
            return NOT_COVERED
    return COVERED


@kernel_inline
def string_is_one_of(columns: SubscriptionColumns, predicate: int, string: int) -> bool:
    """Whether *string* is one of the predicate's strings."""
    start, stop = columns.string_start[string], columns.string_start[string + 1]
    return is_one_of(
        columns, predicate, columns.string_hash[string], columns.string_bytes[start:stop]
    )
