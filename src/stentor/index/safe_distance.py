"""How far subscribers may go before their answers among the live events can change.

The border of a circle around `here()` passes an event only after the subscriber has gone as far as
the event now is from that border. For each event, then:

- while no alternative holds, one must come to hold: each of its circles that fails must give way,
  so the farthest of their borders counts, of the alternative that is nearest to it;
- while some hold, all of these must cease to: each can by any one of its circles, so the nearest of
  its borders counts, of the alternative that lasts longest.

Whatever else an alternative asks does not change with the place. On the globe as on a plane this is
the triangle inequality; lengths are rounded to the safe side.

Paper: AP-Tree, section 5.2.3, whose subscriptions have one circle each.
"""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import (
    HERE,
    KIND_MASK,
    EventColumns,
    Float64,
    SubscriptionColumns,
    UInt8,
    UInt64,
    event_count,
)
from stentor.encoding.ragged import events_between
from stentor.encoding.readonly import read_only
from stentor.index.backwards import signatures_of
from stentor.index.growing import GrowingArray
from stentor.index.safe_margins import prepare, shrink_rows
from stentor.index.table import EventTable
from stentor.index.verify.scratch import EventScratch, scratch_for


class SafeDistances:
    """Answers about the live events of one table; what they are signed by is kept in between."""

    def __init__(self, live: EventTable) -> None:
        self._live = live
        self._signature = GrowingArray(np.uint64)
        self._columns: EventColumns | None = None

    def of(self, columns: SubscriptionColumns, now: int) -> Float64:
        """How far each of *columns* may go before its answer can change but by expiry.

        Events that are over *now* are left out. ∞ where nothing can change, however far; so it is
        for a subscriber whose place nobody knows, until it is known.

        Cost: a signature compared per event and alternative, a few more comparisons for what fits,
        the verifier for what is near.
        """
        distance = np.full(len(columns.until), np.inf)
        if has_circles(columns) and self._live.live_count:
            self._catch_up()
            hidden, signature = self._live.hidden, self._signature.view
            shrink(columns, self._live.columns, hidden, signature, self._scratch, now, distance)
        return distance

    def _catch_up(self) -> None:
        """Sign what has come since the last question."""
        columns = self._live.columns
        if columns is self._columns:
            return
        self._columns, self._scratch = columns, scratch_for(columns)
        fresh = events_between(columns, len(self._signature), None)
        self._signature.extend(signatures_of(fresh), event_count(fresh))


def shrunk_distances(
    columns: SubscriptionColumns, events: EventColumns, distance: Float64
) -> Float64:
    """How far each of *columns*, which might go *distance*, may go when *events* are live too."""
    shrunk = distance.copy()
    hidden = read_only(np.zeros(event_count(events), np.uint8))
    signature, scratch = read_only(signatures_of(events)), scratch_for(events)
    shrink(columns, events, hidden, signature, scratch, np.iinfo(np.int64).min, shrunk)
    return shrunk


def has_circles(columns: SubscriptionColumns) -> bool:
    """Whether any of *columns* asks for something around its subscriber."""
    return bool(((columns.kind & KIND_MASK) == HERE).any())


def largest_radii(columns: SubscriptionColumns) -> Float64:
    """The largest radius of a circle around each subscriber; −∞ where it asks for none."""
    radius = np.full(len(columns.until), -np.inf)
    circles = np.flatnonzero((columns.kind & KIND_MASK) == HERE)
    alternative = np.searchsorted(columns.predicate_start, circles, side="right") - 1
    row = np.searchsorted(columns.alternative_start, alternative, side="right") - 1
    np.maximum.at(radius, row, columns.pair_low[columns.operand_start[circles] + 4])
    return radius


def shrink(
    columns: SubscriptionColumns,
    events: EventColumns,
    hidden: UInt8,
    signature: UInt64,
    scratch: EventScratch,
    now: int,
    distance: Float64,
) -> None:
    """Lower *distance* to what *events* leave of it."""
    alternatives = len(columns.predicate_start) - 1
    needed, circle = np.empty(alternatives, np.uint64), np.empty(alternatives, np.int64)
    prepare(columns, needed, circle)
    shrink_rows(
        columns,
        read_only(needed),
        read_only(circle),
        events,
        hidden,
        signature,
        scratch,
        now,
        distance,
    )
