"""Terms as a filter: alternatives by the bucket of a term that they need."""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel_inline, kernel_part
from stentor.encoding.columns import TERMS, EventColumns, Int32, Int64, SubscriptionColumns
from stentor.index.scan.layout import BUCKET_SHIFT, NO_TERM
from stentor.index.signature import is_one_group

_ONE = np.uint64(1)
_SHIFT = np.uint64(BUCKET_SHIFT)


@kernel_inline
def line_of_term(hashed: np.uint64) -> int:
    """The line for alternatives that need the term."""
    return int(NO_TERM + 1 + np.int64(hashed >> _SHIFT))


@kernel_part
def term_line(columns: SubscriptionColumns, alternative: int, bucket_use: Int64) -> int:
    """The line of *alternative*: of the terms that it cannot do without, the least used one's."""
    chosen, least = NO_TERM, -1
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
        if columns.kind[predicate] == TERMS and is_one_group(columns, start, stop):
            for string in range(start, stop):
                line = line_of_term(columns.string_hash[string])
                use = bucket_use[line - NO_TERM - 1]
                if least < 0 or use < least:
                    chosen, least = line, use
    return chosen


@kernel_part
def ask_term_lines(events: EventColumns, event: int, lines: Int32) -> int:
    """How many of *lines* are filled with those that *event* asks for, each once.

    The first is that of alternatives that need no term.
    """
    lines[0] = NO_TERM
    used, asked = 1, np.uint64(0)
    for hashed in events.term_hash[events.term_start[event] : events.term_start[event + 1]]:
        bucket = _ONE << (hashed >> _SHIFT)
        if asked & bucket == np.uint64(0):
            asked |= bucket
            lines[used] = line_of_term(hashed)
            used += 1
    return used
