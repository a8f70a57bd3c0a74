"""Terms of a text: some group of which all are there; a phrase."""

from __future__ import annotations

from stentor._jit import kernel_inline
from stentor.encoding.columns import LAST, SubscriptionColumns
from stentor.index.verify.scratch import EventScratch, same_bytes, term_slot


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


@kernel_inline
def has_phrase(columns: SubscriptionColumns, predicate: int, scratch: EventScratch) -> bool:
    """Whether the event has the predicate's terms one right after another.

    They are hashed with their attribute: no run goes from one text to the next.

    Cost: O(terms of the event), and of the phrase where it begins.
    """
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    for first in range(scratch.terms[0], scratch.terms[1] - (stop - start) + 1):
        matches = True
        for string in range(start, stop):
            term = first + string - start
            if scratch.ordered_hash[term] != columns.string_hash[string]:
                matches = False
                break
            known = scratch.term_bytes[scratch.ordered_start[term] : scratch.ordered_stop[term]]
            begin, end = columns.string_start[string], columns.string_start[string + 1]
            if not same_bytes(known, columns.string_bytes[begin:end]):
                matches = False
                break
        if matches:
            return True
    return False
