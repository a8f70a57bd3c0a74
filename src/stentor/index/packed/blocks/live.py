"""Live events in blocks, for the subscriptions that look for them.

Events come in order, so that a segment of blocks has consecutive rows, and goes as a whole when
all of them are over. The latest events are in no block yet: their signatures are compared one by
one. Segments are joined as they become many, large ones by a thread of their own.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from stentor._jit import direct, is_plain, kernel
from stentor.encoding.columns import (
    EventColumns,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    UInt8,
    all_read_only,
    read_only,
    subscription_count,
)
from stentor.encoding.ragged import events_between
from stentor.index.live import (
    SIGN_ALL_ATTRIBUTES,
    LiveSignatures,
    match_events,
    prepare_alternatives,
)
from stentor.index.packed.blocks.build import aligned
from stentor.index.packed.blocks.dimensions import choose_live_dimensions
from stentor.index.packed.blocks.layout import QUERY_LINES, RECORD, BlockDimensions
from stentor.index.packed.blocks.live_encode import write_live_records, write_queries
from stentor.index.packed.blocks.store import TILE, BlockStore, TileMemory
from stentor.index.packed.homes import Found, found_for
from stentor.index.table import EventTable
from stentor.index.verify.candidates import group_by_event, sort_rows
from stentor.index.verify.predicates import alternative_holds
from stentor.index.verify.scratch import (
    EventScratch,
    ScratchSize,
    load_event,
    scratch_for,
    scratch_size,
)

#: Events that are in no block yet, at most.
TAIL = 1024
#: Segments, at most, but for those that are being joined.
MOST_SEGMENTS = 8
#: Segments of more events than this are joined by a thread.
FOREGROUND = 1 << 14
#: Pairs that fit at first.
FIRST_CAPACITY = 1 << 12

_write_queries = direct(write_queries)


class _Segment(NamedTuple):
    """Blocks of the live events start … stop, those that were not dropped when it was built."""

    start: int
    stop: int
    store: BlockStore


class _Joining(NamedTuple):
    """Segments that a thread is joining."""

    parts: list[_Segment]
    thread: threading.Thread
    joined: list[_Segment]  # filled by the thread


class LiveBlocks:
    """Live events of a table, found by subscriptions.

    Invariant: an event that was not dropped is in one segment, or in the tail, which starts after
    all of them.
    """

    def __init__(self) -> None:
        self._segments: list[_Segment] = []
        self._joining: _Joining | None = None
        self._tail = LiveSignatures()
        self._tail_start = 0
        self._widest = ScratchSize()

    @property
    def nbytes(self) -> int:
        return sum(segment.store.nbytes for segment in self._segments) + self._tail.nbytes

    @property
    def segments(self) -> int:
        """How many segments there are."""
        return len(self._segments)

    def hold(self, live: EventTable) -> None:
        """Take the events that were added to *live*; put them into blocks, once they are many.

        Cost: amortised about 5 µs each; in one call that of the events themselves.
        """
        self._adopt(live)
        fresh = events_between(live.columns, self._tail_start + len(self._tail.view), None)
        self._widest = self._widest.joined(scratch_size(fresh))
        self._tail.add(fresh)
        if live.count - self._tail_start >= TAIL:
            self._segments.append(_segment(live.columns, live.hidden, self._tail_start, live.count))
            self._tail, self._tail_start = LiveSignatures(), live.count
            self._join(live)

    def drop(self, rows: Int64) -> None:
        """Drop the events *rows*; a segment that has none left goes as a whole."""
        for segment in self._segments:
            segment.store.remove(rows)
        if self._joining is None:
            self._segments = [one for one in self._segments if one.store.count]

    def keep(self, rows: Int64, live: EventTable) -> None:
        """Let each of *rows*, those that were not dropped, be known by its position there.

        Cost: some nanoseconds for each event.
        """
        self._joining = None
        for segment in self._segments:
            segment.store.renumber(rows)
        self._segments = [
            _Segment(
                int(np.searchsorted(rows, segment.start)),
                int(np.searchsorted(rows, segment.stop)),
                segment.store,
            )
            for segment in self._segments
            if segment.store.count
        ]
        in_tail = rows[rows >= self._tail_start] - self._tail_start
        self._tail.keep(in_tail)
        self._tail_start = len(rows) - len(in_tail)
        self._join(live)

    def match(self, columns: SubscriptionColumns, live: EventTable) -> MatchPairs:
        """For each of *columns* the rows of the *live* events that it wants.

        Cost: that of matching an event for each segment, a signature for each event of the tail.
        """
        self._adopt(live)
        found, total = found_for(FIRST_CAPACITY), 0
        while (total := self._match_blocks(columns, live, found)) > len(found.event):
            found = found_for(total)
        parts = all_read_only(part_of(found, 0, total))
        owner = np.searchsorted(columns.alternative_start, parts.event, side="right") - 1
        starts = np.zeros(subscription_count(columns) + 1, np.int64)
        order, rows = np.empty(total, np.int64), np.empty(total, np.int64)
        group_by_event(read_only(owner), starts, order)
        scratch = scratch_for(live.columns, self._widest)
        kept = verify_live(
            columns, live.columns, live.hidden, parts, read_only(order), scratch, starts, rows
        )
        return MatchPairs(starts, rows[:kept])

    def _match_blocks(self, columns: SubscriptionColumns, live: EventTable, found: Found) -> int:
        """The number of pairs: an alternative is found as event, a live event as alternative."""
        total, alternatives = 0, len(columns.predicate_start) - 1
        for segment in self._segments:
            store = segment.store
            if not store.count or not alternatives:
                continue
            memory = TileMemory(store.blocks, min(TILE, alternatives), QUERY_LINES)
            for start in range(0, alternatives, TILE):
                count = min(TILE, alternatives - start)
                _write_queries(
                    columns, start, count, store.dimensions, store.blocks.left, memory.written
                )
                total = store.match_tile(memory, count, start, total, found)
        return self._match_tail(columns, live, total, found)

    def _match_tail(
        self, columns: SubscriptionColumns, live: EventTable, total: int, found: Found
    ) -> int:
        """*total*, and the pairs with events that are in no block, which are verified."""
        first, alternatives = self._tail_start, len(columns.predicate_start) - 1
        if first == live.count:
            return total
        needed, bound = np.empty(alternatives, np.uint64), np.empty(alternatives, np.int64)
        prepare_alternatives(columns, SIGN_ALL_ATTRIBUTES, needed, bound)
        rest = part_of(found, total, None)
        count = match_events(
            columns,
            read_only(needed),
            read_only(bound),
            events_between(live.columns, first, None),
            live.hidden[first:],
            self._tail.view,
            scratch_for(live.columns, self._widest),
            rest.event,
            rest.alternative,
        )
        if count <= len(rest.event):
            rest.event[:count] = columns.alternative_start[rest.event[:count]]
            rest.alternative[:count] += first
            rest.covered[:count] = 1
        return total + count

    def _join(self, live: EventTable) -> None:
        """Join segments so that each is much larger than the next."""
        while self._joining is None and len(self._segments) > 1:
            sizes = [segment.store.count for segment in self._segments]
            first = len(sizes) - 2
            if sizes[first] > 2 * sizes[first + 1]:
                if len(sizes) <= MOST_SEGMENTS:
                    return
                first = int(np.argmin(np.add(sizes[1:], sizes[:-1])))
            parts = self._segments[first : first + 2]
            columns, hidden = live.columns, live.hidden.copy()
            joined: list[_Segment] = []

            def join(
                parts: list[_Segment] = parts,
                columns: EventColumns = columns,
                hidden: UInt8 = hidden,
                joined: list[_Segment] = joined,
            ) -> None:
                joined.append(_segment(columns, hidden, parts[0].start, parts[-1].stop))

            thread = threading.Thread(target=join, daemon=True)
            self._joining = _Joining(parts, thread, joined)
            if is_plain() or sum(part.store.count for part in parts) <= FOREGROUND:
                join()
                self._adopt(live)
            else:
                thread.start()

    def _adopt(self, live: EventTable) -> None:
        """Take over what a thread has joined, if it has; what was dropped meanwhile goes."""
        if self._joining is None or not self._joining.joined:
            return
        parts, _, (joined,) = self._joining
        self._joining = None
        at = self._segments.index(parts[0])
        self._segments[at : at + len(parts)] = [joined]
        dropped = np.flatnonzero(live.hidden[joined.start : joined.stop]) + joined.start
        joined.store.remove(dropped)
        self._join(live)

    def check(self, live: EventTable) -> None:
        """Assert that each of *live* that was not dropped is in a block, or in the tail."""
        start = 0
        for segment in self._segments:
            assert start <= segment.start < segment.stop <= self._tail_start
            assert not _rows(live.hidden, start, segment.start).size
            start = segment.stop
            rows = _rows(live.hidden, segment.start, segment.stop)
            assert segment.store.count == len(rows)
            segment.store.check_records(_records(live.columns, rows, segment.store.dimensions))
        assert not _rows(live.hidden, start, self._tail_start).size
        assert len(self._tail.view) == live.count - self._tail_start


def part_of(found: Found, start: int, stop: int | None) -> Found:
    """The pairs start … stop of *found*."""
    return Found(found.event[start:stop], found.alternative[start:stop], found.covered[start:stop])


def _rows(hidden: UInt8, start: int, stop: int) -> Int64:
    """The rows start … stop that are not *hidden*."""
    return np.flatnonzero(hidden[start:stop] == 0) + start


def _records(events: EventColumns, rows: Int64, dimensions: BlockDimensions) -> UInt8:
    """The records of the live events *rows*."""
    record = aligned(len(rows) * RECORD, np.uint8)
    views = record.view(np.int32), record.view(np.float32)
    write_live_records(events, read_only(rows), dimensions, record, *views)
    return record


def _segment(events: EventColumns, hidden: UInt8, start: int, stop: int) -> _Segment:
    """Blocks of the events start … stop that are not *hidden*."""
    rows = _rows(hidden, start, stop)
    dimensions = choose_live_dimensions(events, rows)
    record = _records(events, rows, dimensions)
    return _Segment(start, stop, BlockStore.of_records(dimensions, record, len(rows)))


@kernel
def verify_live(
    columns: SubscriptionColumns,
    live: EventColumns,
    hidden: UInt8,
    found: Found,
    order: Int64,
    scratch: EventScratch,
    starts: Int64,
    rows: Int64,
) -> int:
    """Keep what matches: *rows* gets each subscription's live events; returns how many.

    *starts* comes as the starts of the subscriptions in *order*, and becomes those in *rows*.
    """
    kept = stop = 0
    for owner in range(len(starts) - 1):
        start, stop, first = stop, starts[owner + 1], kept
        starts[owner] = kept
        for position in order[start:stop]:
            event = found.alternative[position]
            if hidden[event] != 0:
                continue
            if found.covered[position] == 0:
                load_event(live, event, scratch)
                if not alternative_holds(columns, found.event[position], scratch):
                    continue
            rows[kept] = event
            kept += 1
        kept = sort_rows(rows, first, kept)
    starts[len(starts) - 1] = kept
    return kept
