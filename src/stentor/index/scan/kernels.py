"""Events → candidates, and the plain loop that this is measured against.

Blocks are the outer loop and events the inner one, so that a block's lines stay in the first
cache while a tile of events passes.
"""

from __future__ import annotations

from stentor._jit import kernel
from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns, UInt64
from stentor.index.bit_places import NO_BITS, lowest_bit, place_of
from stentor.index.scan.bits import (
    both,
    either,
    is_empty,
    keep_signed,
    store,
    words_of,
)
from stentor.index.scan.layout import BLOCK, BUCKETS, LIVE, NO_TERM, WORDS, Blocks, Plan
from stentor.index.table import Validity
from stentor.index.verify.alternatives import holds_at, subscription_matches
from stentor.index.verify.scratch import EventScratch, scatter

#: Where more than this share is left, testing all signatures of a block takes less time.
DENSE = 1 / 64


@kernel
def match_rows(
    columns: SubscriptionColumns,
    validity: Validity,
    events: EventColumns,
    scratch: EventScratch,
    starts: Int64,
    rows: Int64,
) -> int:
    """The number of matches, found by verifying every row; those that do not fit are only counted.

    What the blocks are measured and tested against.
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
            if plan.term_lines[event] > 0:
                place = event * (1 + BUCKETS)
                allowed = words_of(line, NO_TERM)
                for joined in plan.term_line[place + 1 : place + plan.term_lines[event]]:
                    allowed = either(allowed, words_of(line, joined))
                alive = both(alive, allowed)
            if is_empty(alive):
                continue
            lacking = ~plan.signature[event]
            store(alive, words)
            if plan.survival[event] > DENSE:
                keep_signed(words, signature, lacking)
            for word in range(WORDS):
                bits = words[word]
                while bits != NO_BITS:
                    lowest = lowest_bit(bits)
                    bits ^= lowest
                    slot = 64 * word + place_of(lowest)
                    if signature[slot] & lacking == NO_BITS:
                        if found < len(found_event):
                            found_event[found] = event
                            found_alternative[found] = member[slot]
                        found += 1
    return found
