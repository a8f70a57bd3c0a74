"""Which alternative of a subscription an event satisfies: the first, in their order."""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel
from stentor.encoding.choices import choices_of_pairs, with_choices
from stentor.encoding.columns import (
    EventColumns,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    all_read_only,
)
from stentor.index.verify.predicates import alternative_holds
from stentor.index.verify.scratch import EventScratch, load_event, scratch_for

#: Instead of an alternative, where none holds.
NO_ALTERNATIVE = -1


def first_alternatives(
    columns: SubscriptionColumns, events: EventColumns, pairs: MatchPairs
) -> Int64:
    """For each of *pairs* (an event's rows) the number of the first alternative that holds.

    Cost: that of verifying them.
    """
    if len(with_choices(events)):
        choices, named, of = choices_of_pairs(events, pairs)
        own = first_alternatives(columns, choices, named)
        least = np.full(len(pairs.rows), np.iinfo(np.int64).max)
        np.minimum.at(least, of[own != NO_ALTERNATIVE], own[own != NO_ALTERNATIVE])
        return np.where(least == np.iinfo(np.int64).max, NO_ALTERNATIVE, least)
    found: Int64 = np.full(len(pairs.rows), NO_ALTERNATIVE, np.int64)
    find_alternatives(columns, events, all_read_only(pairs), scratch_for(events), found)
    return found


@kernel
def find_alternatives(
    columns: SubscriptionColumns,
    events: EventColumns,
    pairs: MatchPairs,
    scratch: EventScratch,
    found: Int64,
) -> None:
    """Fill *found* for each of *pairs*."""
    for event in range(len(pairs.starts) - 1):
        if pairs.starts[event] == pairs.starts[event + 1]:
            continue
        load_event(events, event, scratch)
        for position in range(pairs.starts[event], pairs.starts[event + 1]):
            row = pairs.rows[position]
            start = columns.alternative_start[row]
            for alternative in range(start, columns.alternative_start[row + 1]):
                if alternative_holds(columns, alternative, scratch):
                    found[position] = alternative - start
                    break
