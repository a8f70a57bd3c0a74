"""Events → candidates: which lines an event asks for, and what their intersection leaves.

Blocks are the outer loop and events the inner one, so that a block's lines stay in the first
cache while a tile of events passes.
"""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import EventColumns, Float64, Int64, SubscriptionColumns, UInt64
from stentor.index.lean import kernel, kernel_inline
from stentor.index.scan.entering import cell_of
from stentor.index.scan.filters import MOST_LEFT
from stentor.index.scan.layout import BLOCK, LIVE, WORDS, Blocks, Filters, Plan, X, Y
from stentor.index.scan.signature import event_signature
from stentor.index.table import Validity
from stentor.index.verify.alternatives import holds_at, subscription_matches
from stentor.index.verify.scratch import EventScratch, scatter

#: Where more than this share is left, testing all signatures of a block takes less time.
DENSE = 1 / 64

Words = tuple[
    np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64
]

_NONE = np.uint64(0)
_ONE = np.uint64(1)
_TOP_SIX = np.uint64(58)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
#: The place of a single bit, by the top six bits of its product with the de Bruijn number.
_PLACE_OF = np.array(
    sorted(range(64), key=lambda place: (int(_DE_BRUIJN) << place & (1 << 64) - 1) >> 58)
)


@kernel
def match_rows(
    columns: SubscriptionColumns,
    validity: Validity,
    events: EventColumns,
    scratch: EventScratch,
    starts: Int64,
    rows: Int64,
) -> int:
    """The plain loop: every row is verified. The number of matches; those beyond *rows* count.

    What the blocks are measured against, and what they are tested against.
    """
    found = 0
    for event in range(len(starts) - 1):
        starts[event] = found
        scatter(events, event, scratch)
        for row in range(len(validity.hidden)):
            wanted = holds_at(columns, validity, row, events, event)
            if wanted and subscription_matches(columns, row, scratch):
                if found < len(rows):
                    rows[found] = row
                found += 1
    starts[len(starts) - 1] = found
    return found


@kernel
def plan_events(
    events: EventColumns, filters: Filters, left: Float64, order: Float64, plan: Plan
) -> None:
    """Fill *plan*. *left* is the share of alternatives that each line leaves; *order* is scratch.

    (events × filters) cells in all; a line that leaves nearly everything is not used.
    """
    width = len(filters.attribute)
    for event in range(len(plan.used)):
        plan.signature[event] = event_signature(events, event, filters.first_of)
        first = plan.first[event * width : (event + 1) * width]
        last = plan.last[event * width : (event + 1) * width]
        used = 0
        survival = 1.0
        value, stop = events.value_start[event], events.value_start[event + 1]
        for filter_row in range(width):
            while value < stop and events.attribute[value] < filters.attribute[filter_row]:
                value += 1
            low_line = high_line = filters.line_start[filter_row]
            if value < stop and events.attribute[value] == filters.attribute[filter_row]:
                axis = filters.axis[filter_row]
                low = events.high[value] if axis == Y else events.low[value]
                high = events.low[value] if axis == X else events.high[value]
                low_line += 1 + cell_of(filters, filter_row, low)
                high_line += 1 + cell_of(filters, filter_row, high)
            share = 0.0
            for line in range(low_line, high_line + 1):
                share += left[line]
            if share > MOST_LEFT or low_line > high_line:
                continue
            place = used
            while place > 0 and order[place - 1] > share:
                order[place] = order[place - 1]
                first[place], last[place] = first[place - 1], last[place - 1]
                place -= 1
            order[place] = share
            first[place], last[place] = low_line, high_line
            used += 1
            survival *= share
        plan.used[event] = used
        plan.survival[event] = survival


@kernel
def scan_blocks(
    blocks: Blocks,
    lines: int,
    plan: Plan,
    words: UInt64,
    found_event: Int64,
    found_alternative: Int64,
) -> int:
    """The number of candidates; those that do not fit into *found_…* are only counted.

    *words* is scratch for one line.
    """
    found = 0
    width = len(plan.first) // max(1, len(plan.used))
    for block in range(len(blocks.line) // (lines * WORDS)):
        line = blocks.line[block * lines * WORDS : (block + 1) * lines * WORDS]
        member = blocks.member[block * BLOCK : (block + 1) * BLOCK]
        signature = blocks.signature[block * BLOCK : (block + 1) * BLOCK]
        for event in range(len(plan.used)):
            alive = words_of(line, LIVE)
            for place in range(event * width, event * width + plan.used[event]):
                allowed = words_of(line, plan.first[place])
                for joined in range(plan.first[place] + 1, plan.last[place] + 1):
                    allowed = either(allowed, words_of(line, joined))
                alive = both(alive, allowed)
                if is_empty(alive):
                    break
            if is_empty(alive):
                continue
            lacking = ~plan.signature[event]
            store(alive, words)
            if plan.survival[event] > DENSE:
                keep_signed(words, signature, lacking)
            for word in range(WORDS):
                bits = words[word]
                while bits != _NONE:
                    lowest = bits & (~bits + _ONE)
                    bits ^= lowest
                    slot = 64 * word + _PLACE_OF[np.int64((lowest * _DE_BRUIJN) >> _TOP_SIX)]
                    if signature[slot] & lacking == _NONE:
                        if found < len(found_event):
                            found_event[found] = event
                            found_alternative[found] = member[slot]
                        found += 1
    return found


@kernel_inline
def words_of(line: UInt64, number: int) -> Words:
    """The words of the line *number* of a block."""
    w = line[number * WORDS : (number + 1) * WORDS]
    return w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]


@kernel_inline
def both(a: Words, b: Words) -> Words:
    """The bits that are in both."""
    return (
        a[0] & b[0],
        a[1] & b[1],
        a[2] & b[2],
        a[3] & b[3],
        a[4] & b[4],
        a[5] & b[5],
        a[6] & b[6],
        a[7] & b[7],
    )


@kernel_inline
def either(a: Words, b: Words) -> Words:
    """The bits that are in either."""
    return (
        a[0] | b[0],
        a[1] | b[1],
        a[2] | b[2],
        a[3] | b[3],
        a[4] | b[4],
        a[5] | b[5],
        a[6] | b[6],
        a[7] | b[7],
    )


@kernel_inline
def is_empty(a: Words) -> bool:
    """Whether no bit is set."""
    return bool((a[0] | a[1] | a[2] | a[3] | a[4] | a[5] | a[6] | a[7]) == _NONE)


@kernel_inline
def store(a: Words, words: UInt64) -> None:
    """Write *a* where words can be reached by number."""
    words[0], words[1], words[2], words[3] = a[0], a[1], a[2], a[3]
    words[4], words[5], words[6], words[7] = a[4], a[5], a[6], a[7]


@kernel_inline
def keep_signed(words: UInt64, signature: UInt64, lacking: np.uint64) -> None:
    """Keep the slots whose signature has no *lacking* bit, without a branch for each."""
    for word in range(WORDS):
        signed = _NONE
        for place in range(64):
            fits = signature[64 * word + place] & lacking == _NONE
            signed |= np.uint64(fits) << np.uint64(place)
        words[word] &= signed
