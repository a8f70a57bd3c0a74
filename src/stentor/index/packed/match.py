"""What homes find → rows: those that hold now, candidates verified, ascending, each once."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import EventColumns, Int32, Int64, SubscriptionColumns, UInt64
from stentor.index.live import bounding_predicate, meets_bounds
from stentor.index.packed.homes import Found
from stentor.index.row_set import RowSet, add_row, take_rows
from stentor.index.signature import alternative_signature, event_signature
from stentor.index.table import RowSpans
from stentor.index.verify.candidates import row_of, sort_rows
from stentor.index.verify.predicates import alternative_holds, subscription_score
from stentor.index.verify.scratch import EventScratch, load_event
from stentor.index.verify.single import SingleMatch

#: Of more rows a bitmap is read in order, which takes less time than sorting them.
MANY_ROWS: Final = 48


class Holding(NamedTuple):
    """When rows hold, and which of it some event of a batch could miss."""

    validity: RowSpans
    is_single: bool  # every row has one alternative, of the same number
    is_whole: bool  # no row was removed
    has_begun: bool  # every row held before the first event
    has_end: bool  # some row ends before the last event


@kernel_inline
def holds_at(
    columns: SubscriptionColumns, holding: Holding, row: int, events: EventColumns, event: int
) -> bool:
    """Whether subscription *row* holds at the seq and time of *event*."""
    validity = holding.validity
    if not holding.is_whole and validity.hidden[row] != 0:
        return False
    if holding.has_end and events.time[event] >= columns.until[row]:
        return False
    if not holding.has_begun and validity.since[row] >= events.seq[event]:
        return False
    return len(validity.upto) == 0 or events.seq[event] < validity.upto[row]


@kernel
def rows_of_found(
    columns: SubscriptionColumns,
    holding: Holding,
    events: EventColumns,
    found: Found,
    order: Int64,
    scratch: EventScratch,
    marks: RowSet,
    starts: Int64,
    rows: Int64,
) -> int:
    """Fill *rows* with those of each event, and *starts* where they start; how many there are.

    *starts* comes as the starts of the events in *order*. Never more rows than pairs.
    """
    count, stop = 0, 0
    for event in range(len(starts) - 1):
        start, stop = stop, starts[event + 1]
        first = count
        starts[event] = count
        spread = False
        for position in order[start:stop]:
            alternative = found.alternative[position]
            row = alternative
            if not holding.is_single:
                row = row_of(columns.alternative_start, alternative)
            if not holds_at(columns, holding, row, events, event):
                continue
            if found.covered[position] == 0:
                if not spread:
                    load_event(events, event, scratch)
                    spread = True
                if not alternative_holds(columns, alternative, scratch):
                    continue
            rows[count] = row
            count += 1
        count = in_order(rows, first, count, marks)
    starts[len(starts) - 1] = count
    return count


@inner_kernel
def in_order(rows: Int64, start: int, stop: int, marks: RowSet) -> int:
    """Sort a slice of *rows*, each once; where it ends then."""
    if stop - start <= MANY_ROWS:
        return sort_rows(rows, start, stop)
    for position in range(start, stop):
        add_row(marks, rows[position])
    return take_rows(marks, rows, start)


@inner_kernel
def rows_of_one(
    columns: SubscriptionColumns,
    holding: Holding,
    events: EventColumns,
    scratch: EventScratch,
    scoring: int,
    found: Found,
    count: int,
    marks: RowSet,
    single: SingleMatch,
) -> int:
    """The rows of the first event and, with a *scoring*, their scores: see `verify_one`."""
    if count > len(single.row):
        return ~count
    rows, is_spread = 0, False
    for position in range(count):
        alternative = found.alternative[position]
        row = alternative
        if not holding.is_single:
            row = row_of(columns.alternative_start, alternative)
        if not holds_at(columns, holding, row, events, 0):
            continue
        if found.covered[position] == 0:
            if not is_spread:
                load_event(events, 0, scratch)
                is_spread = True
            if not alternative_holds(columns, alternative, scratch):
                continue
        single.row[rows] = row
        rows += 1
    rows = in_order(single.row, 0, rows, marks)
    if scoring >= 0 and rows > 0:
        if not is_spread:
            load_event(events, 0, scratch)
        for position in range(rows):
            single.score[position] = subscription_score(
                columns, single.row[position], scratch, scoring
            )
    return rows


class Pending(NamedTuple):
    """Alternatives that are in no home yet: their signatures, and a predicate that bounds each."""

    alternative: Int64  # (pending,)
    signature: UInt64  # (pending,)
    bound: Int64  # (pending,) or NO_BOUND


@kernel
def match_pending(
    columns: SubscriptionColumns,
    pending: Pending,
    no_filters: Int32,
    events: EventColumns,
    found: Found,
    count: int,
) -> int:
    """So many pairs and the candidates among what is *pending*: *count* grows past what fits."""
    for event in range(len(events.value_start) - 1):
        lacking = ~event_signature(events, event, no_filters)
        for position in range(len(pending.alternative)):
            if pending.signature[position] & lacking != np.uint64(0):
                continue
            if not meets_bounds(columns, pending.bound[position], events, event):
                continue
            if count < len(found.event):
                found.event[count] = event
                found.alternative[count] = pending.alternative[position]
                found.covered[count] = 0
            count += 1
    return count


@kernel
def match_event(
    columns: SubscriptionColumns,
    pending: Pending,
    no_filters: Int32,
    holding: Holding,
    events: EventColumns,
    scratch: EventScratch,
    scoring: int,
    found: Found,
    count: int,
    marks: RowSet,
    single: SingleMatch,
) -> int:
    """`match_pending`, then `rows_of_one`; where either does not fit, −1 less the number."""
    if len(pending.alternative) > 0:
        count = match_pending(columns, pending, no_filters, events, found, count)
    if count > len(found.event):
        return ~count
    return rows_of_one(columns, holding, events, scratch, scoring, found, count, marks, single)


@kernel
def sign_pending(
    columns: SubscriptionColumns,
    alternative: Int64,
    no_filters: Int32,
    signature: UInt64,
    bound: Int64,
) -> None:
    """Fill *signature* and *bound* for each *alternative*."""
    for position in range(len(alternative)):
        signature[position] = alternative_signature(columns, alternative[position], no_filters)
        bound[position] = bounding_predicate(columns, alternative[position])
