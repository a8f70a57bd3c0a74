"""One event by itself: its candidates → matches, and scores, inside a structure's own kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    SubscriptionColumns,
    UInt8,
)
from stentor.index.table import RowSpans
from stentor.index.verify.candidates import row_of, sort_rows
from stentor.index.verify.predicates import alternative_holds, is_valid_at, subscription_score
from stentor.index.verify.scratch import EventScratch, load_event

#: Instead of a scoring: only rows are wanted.
NO_SCORES = -1
#: Where a structure proves nothing by itself.
NOTHING_PROVED = np.zeros(0, np.uint8)
NOTHING_PROVED.flags.writeable = False


class SingleMatch(NamedTuple):
    """What is found of one event: candidates first, then rows and scores."""

    event: Int64  # (capacity,) zeros: structures write events beside their candidates
    alternative: Int64  # (capacity,)
    row: Int64  # (capacity,)
    score: Float64  # (capacity,)


@inner_kernel
def verify_one(
    columns: SubscriptionColumns,
    validity: RowSpans,
    events: EventColumns,
    scratch: EventScratch,
    proved: UInt8,
    scoring: int,
    count: int,
    found: SingleMatch,
) -> int:
    """The rows of the first event among its *count* candidates, ascending, and their scores.

    Alternatives that are *proved* (where it is not empty) hold whatever the rest says. Returns how
    many rows there are; where the candidates did not fit, −1 less their number.
    """
    if count > len(found.alternative):
        return ~count
    rows = 0
    is_spread = False
    for position in range(count):
        alternative = found.alternative[position]
        row = row_of(columns.alternative_start, alternative)
        if rows > 0 and found.row[rows - 1] == row:
            continue  # another alternative of the same subscription
        if not is_valid_at(columns, validity, row, events, 0):
            continue
        if len(proved) == 0 or proved[alternative] == 0:
            if not is_spread:
                load_event(events, 0, scratch)
                is_spread = True
            if not alternative_holds(columns, alternative, scratch):
                continue
        found.row[rows] = row
        rows += 1
    rows = sort_rows(found.row, 0, rows)
    if scoring >= 0 and rows > 0:
        if not is_spread:
            load_event(events, 0, scratch)
        for position in range(rows):
            found.score[position] = subscription_score(
                columns, found.row[position], scratch, scoring
            )
    return rows
