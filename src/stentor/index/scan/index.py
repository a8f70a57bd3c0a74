"""The scan as an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    empty,
    event_count,
)
from stentor.encoding.ragged import children, events_between
from stentor.encoding.readonly import all_read_only
from stentor.errors import FolderError
from stentor.index.scan.blocks import BlockStore
from stentor.index.scan.check import check_blocks
from stentor.index.scan.filters import choose_filters
from stentor.index.scan.kernels import scan_blocks
from stentor.index.scan.layout import BLOCK, BUCKETS, WORDS, Plan
from stentor.index.scan.planning import plan_events
from stentor.index.storage import read_arrays, write_arrays
from stentor.index.structure import Structure
from stentor.index.tiles import joined
from stentor.index.verify import Candidates, settle

#: Candidates (16 bytes each) that there is room for at first, and at most: a tile that brings more
#: than these is halved.
ROOM, MOST_ROOM = 1 << 15, 1 << 22


class Scan(Structure):
    """Every block looks at every event: no workload is bad for it, none is very good."""

    name = "scan"

    def __init__(self) -> None:
        super().__init__()
        self._store = BlockStore(choose_filters(empty(SubscriptionColumns), np.zeros(0, np.int64)))

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        """The matches of a few events.

        Cost: a few cache lines per block and event, and the verifier for what they leave.
        """
        store = self._store  # a writer may put another one in its place
        plan, blocks = _plan(events, store), store.blocks
        room, found = 0, ROOM
        while found > room:
            if found > MOST_ROOM and event_count(events) > 1:
                half = event_count(events) // 2
                cuts = (events_between(events, 0, half), events_between(events, half, None))
                return joined([self._match_tile(one) for one in cuts])
            room = found
            event, alternative = np.empty(room, np.int64), np.empty(room, np.int64)
            words = np.empty(WORDS, np.uint64)
            found = scan_blocks(blocks, store.lines, plan, words, event, alternative)
        candidates = Candidates(event[:found], alternative[:found], np.zeros(0, np.uint8))
        return settle(self.subscriptions.columns, self.subscriptions.validity, events, candidates)

    # What changes.

    def _inserted(self, first: int) -> None:
        start = self.subscriptions.columns.alternative_start
        added = np.arange(start[first], start[-1])
        if self._store.is_stale(len(added)):
            self._rebuild()
        else:
            self._store.append(self.subscriptions.columns, added)

    def _removed(self, rows: Int64) -> None:
        self._store.retire(self._alternatives_of(rows))
        if self._store.is_stale():
            self._rebuild()

    def _moved(self, rows: Int64) -> None:
        self._store.refresh(self.subscriptions.columns, self._alternatives_of(rows))

    def _rebuild(self) -> None:
        rows = np.flatnonzero(self.subscriptions.validity.hidden == 0)
        self._store = BlockStore.build(self.subscriptions.columns, self._alternatives_of(rows))

    def _alternatives_of(self, rows: Int64) -> Int64:
        return children(self.subscriptions.columns.alternative_start, rows)[0]

    # Files, figures, invariants.

    def save(self, folder: Path) -> None:
        write_arrays(folder, self._store.arrays(), kind=self.name, meta={})

    def _opened(self, folder: Path) -> None:
        arrays, _ = read_arrays(folder, kind=self.name)
        self._store = BlockStore.over(arrays)
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


def _plan(events: EventColumns, store: BlockStore) -> Plan:
    """What *events* ask of the blocks of *store*."""
    count, width = event_count(events), len(store.filters.attribute)
    plan = Plan(
        signature=np.empty(count, np.uint64),
        survival=np.empty(count),
        used=np.empty(count, np.int64),
        first=np.empty(count * width, np.int32),
        last=np.empty(count * width, np.int32),
        term_lines=np.empty(count, np.int64),
        term_line=np.empty(count * (1 + BUCKETS), np.int32),
    )
    plan_events(events, store.filters, store.left, np.empty(width), plan)
    return all_read_only(plan)
