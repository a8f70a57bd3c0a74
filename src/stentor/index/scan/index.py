"""The scan as an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from stentor._jit import direct
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    UInt64,
    all_read_only,
    empty,
    event_count,
)
from stentor.encoding.event import EventBuffer
from stentor.encoding.ragged import children, events_between
from stentor.errors import FolderError
from stentor.index.scan.build import ScanBlocks
from stentor.index.scan.check import check_blocks
from stentor.index.scan.filters import choose_filters
from stentor.index.scan.layout import BLOCK, BUCKETS, WORDS, EventLines
from stentor.index.scan.match import lines_of_events, match_event, scan_blocks
from stentor.index.storage.arrays import read_arrays, write_arrays
from stentor.index.structure import Structure, concatenate_pairs
from stentor.index.verify import Candidates, verify
from stentor.index.verify.scratch import EventScratch
from stentor.index.verify.single import SingleMatch

#: Candidates (16 bytes each) that fit at first, and at most: a tile that has more is halved.
FIRST_CAPACITY, MOST_CAPACITY = 1 << 15, 1 << 22

_match_event = direct(match_event)


class Scan(Structure):
    """Every block looks at every event: no workload is bad for it, none is very good."""

    name = "scan"

    def __init__(self) -> None:
        super().__init__()
        self._store = ScanBlocks(choose_filters(empty(SubscriptionColumns), np.zeros(0, np.int64)))
        self._scratch: tuple[ScanBlocks, Float64, EventLines, EventLines, UInt64] | None = (
            None  # of one event
        )

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        """The matches of a few events.

        Cost: a few cache lines per block and event, and the verifier for what they leave.
        """
        store = self._store  # a writer may replace it meanwhile
        order, written, plan, words = _plan_scratch(event_count(events), store)
        lines_of_events(events, store.filters, store.left, order, written)
        blocks = store.blocks
        capacity, found = 0, FIRST_CAPACITY
        while found > capacity:
            if found > MOST_CAPACITY and event_count(events) > 1:
                half = event_count(events) // 2
                cuts = (events_between(events, 0, half), events_between(events, half, None))
                return concatenate_pairs([self._match_tile(one) for one in cuts])
            capacity = found
            event, alternative = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
            found = scan_blocks(blocks, store.lines, plan, words, event, alternative)
        candidates = Candidates(event[:found], alternative[:found], np.zeros(0, np.uint8))
        return verify(self.subscriptions.columns, self.subscriptions.validity, events, candidates)

    def _match_into(
        self, event: EventBuffer, scratch: EventScratch, scoring: int, found: SingleMatch
    ) -> int:
        store, table = self._store, self.subscriptions
        if self._scratch is None or self._scratch[0] is not store:
            self._scratch = store, *_plan_scratch(1, store)
        _, order, written, plan, words = self._scratch
        return _match_event(
            store.blocks,
            store.lines,
            store.filters,
            store.left,
            order,
            written,
            plan,
            words,
            table.columns,
            table.validity,
            event.columns,
            scratch,
            scoring,
            found,
        )

    # Changes.

    def _insert_rows(self, first: int) -> None:
        start = self.subscriptions.columns.alternative_start
        added = np.arange(start[first], start[-1])
        if self._store.is_stale(len(added)):
            self._rebuild()
        else:
            self._store.append(self.subscriptions.columns, added)

    def _remove_rows(self, rows: Int64) -> None:
        self._store.retire(self._alternatives_of(rows))
        if self._store.is_stale():
            self._rebuild()

    def _move_rows(self, rows: Int64) -> None:
        self._store.refresh(self.subscriptions.columns, self._alternatives_of(rows))

    def _rebuild(self) -> None:
        rows = np.flatnonzero(self.subscriptions.validity.hidden == 0)
        self._store = ScanBlocks.build(self.subscriptions.columns, self._alternatives_of(rows))

    def _alternatives_of(self, rows: Int64) -> Int64:
        return children(self.subscriptions.columns.alternative_start, rows)[0]

    # Files, figures, invariants.

    def save(self, folder: Path) -> None:
        write_arrays(folder, self._store.arrays(), kind=self.name, meta={})

    def _open_arrays(self, folder: Path) -> None:
        arrays, _ = read_arrays(folder, kind=self.name)
        self._store = ScanBlocks.over(arrays)
        if self._store.reach > len(self.subscriptions.columns.predicate_start) - 1:
            raise FolderError(
                f"{folder} holds the scan of other subscriptions than those it was opened with; "
                "open both from one saved folder"
            )

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        return {
            **inherited,
            "bytes": inherited["bytes"] + self._store.nbytes,
            "blocks": -(-self._store.count // BLOCK),
            "filters": len(self._store.filters.attribute),
            "lines": self._store.lines,
        }

    def check(self) -> None:
        super().check()
        live = np.flatnonzero(self.subscriptions.validity.hidden == 0)
        check_blocks(self._store, self.subscriptions.columns, self._alternatives_of(live))


def _plan_scratch(count: int, store: ScanBlocks) -> tuple[Float64, EventLines, EventLines, UInt64]:
    """Scratch for the plans of *count* events against *store*, writable and read-only."""
    width = len(store.filters.attribute)
    plan = EventLines(
        signature=np.empty(count, np.uint64),
        survival=np.empty(count),
        used=np.empty(count, np.int64),
        first=np.empty(count * width, np.int32),
        last=np.empty(count * width, np.int32),
        term_lines=np.empty(count, np.int64),
        term_line=np.empty(count * (1 + BUCKETS), np.int32),
    )
    return np.empty(width), plan, all_read_only(plan), np.empty(WORDS, np.uint64)
