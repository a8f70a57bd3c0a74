"""Terms of a text, group by group: some group of which all terms are there."""

from __future__ import annotations

from stentor._jit import kernel_inline
from stentor.encoding.columns import LAST, SubscriptionColumns
from stentor.index.verify.scratch import EventScratch, term_slot


@kernel_inline
def has_some_group(columns: SubscriptionColumns, predicate: int, scratch: EventScratch) -> bool:
    """Whether the event has all terms of at least one of the predicate's groups."""
    has_all = True
    for string in range(columns.operand_start[predicate], columns.operand_stop[predicate]):
        has_all = has_all and has_term(columns, string, scratch)
        if columns.string_mark[string] == LAST:
            if has_all:
                return True
            has_all = True
    return False


@kernel_inline
def has_term(columns: SubscriptionColumns, string: int, scratch: EventScratch) -> bool:
    """Whether the event has the term *string*: its hash finds it, its bytes decide."""
    start, stop = columns.string_start[string], columns.string_start[string + 1]
    term = columns.string_bytes[start:stop]
    slot = term_slot(scratch, columns.string_hash[string], term)
    return bool(scratch.term_mark[slot] == scratch.stamp[0])
