"""The row scan: the verifier asked about every row, without any index."""

from __future__ import annotations

from typing import Final

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import EventColumns, Int64, MatchPairs, SubscriptionColumns
from stentor.index.table import RowSpans, SubscriptionTable
from stentor.index.verify.predicates import is_valid_at, subscription_matches
from stentor.index.verify.scratch import EventScratch, load_event, scratch_for

#: Matches of the row scan that there is room for at first: with too little it would run twice.
ROOM: Final = 1 << 20


def matched_by_rows(table: SubscriptionTable, events: EventColumns) -> MatchPairs:
    """The matches of *events*, by the verifier asked about every row."""
    starts = np.empty(len(events.until) + 1, np.int64)
    found = np.empty(ROOM, np.int64)
    while True:
        count = match_rows(
            table.columns, table.validity, events, scratch_for(events), starts, found
        )
        if count <= len(found):
            return MatchPairs(starts, found[:count])
        found = np.empty(count, np.int64)


@kernel
def match_rows(
    columns: SubscriptionColumns,
    validity: RowSpans,
    events: EventColumns,
    scratch: EventScratch,
    starts: Int64,
    rows: Int64,
) -> int:
    """The number of matches, by verifying every row; those that do not fit are only counted."""
    found = 0
    for event in range(len(starts) - 1):
        starts[event] = found
        load_event(events, event, scratch)
        for row in range(len(validity.hidden)):
            wanted = is_valid_at(columns, validity, row, events, event)
            if wanted and subscription_matches(columns, row, scratch):
                if found < len(rows):
                    rows[found] = row
                found += 1
    starts[len(starts) - 1] = found
    return found
