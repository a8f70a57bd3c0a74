"""The AP-Tree as an index."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from stentor.encoding.columns import (
    HERE,
    KIND_MASK,
    EventColumns,
    Float64,
    Int32,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    event_count,
)
from stentor.encoding.ragged import children, take
from stentor.encoding.readonly import read_only
from stentor.index.ap_tree.check import check_messages, check_tree
from stentor.index.ap_tree.layout import FIELDS, ROOT, SIZE, Tree
from stentor.index.ap_tree.message_lists import MessageLists, by_row
from stentor.index.ap_tree.motion import Movements
from stentor.index.ap_tree.pools import used_part
from stentor.index.ap_tree.probing import probe_leaves
from stentor.index.ap_tree.relocating import file_at_new_places, messages_that_change
from stentor.index.ap_tree.saving import read_tree, write_tree
from stentor.index.ap_tree.settings import PRESETS, Settings
from stentor.index.ap_tree.statistics import shape_of
from stentor.index.ap_tree.store import TreeStore
from stentor.index.ap_tree.visiting import path_for, visit_leaves
from stentor.index.relocation import Relocation
from stentor.index.structure import Structure
from stentor.index.verify import Candidates, settle

#: Leaves and candidates that there is room for at first, by event.
LEAVES, CANDIDATES = 48, 32


class ApTree(Structure):
    """Keywords and boxes prune, in the order that costs least.

    Until the first subscription comes there is no tree, and live events are only signed. What was
    opened from a folder is read-only: its live events are only signed, too.
    """

    name = "ap_tree"
    settings: ClassVar[Settings] = Settings()
    presets: ClassVar[Mapping[str, Settings]] = PRESETS

    def __init__(self) -> None:
        super().__init__()
        self._store = TreeStore(self.settings)
        self._lists: MessageLists | None = None  # where live messages stand in the tree
        self._movements = Movements()
        self._view: Tree | None = None  # what readers see; made anew after each change
        self._is_mapped = False

    # Matching.

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        tree = self._readable()
        starts, leaves, _ = self._visit(tree, events)
        self._movements.seen(event_count(events))
        room, found = 0, 1 + CANDIDATES * event_count(events)
        while found > room:
            room = found
            event, alternative = np.empty(room, np.int64), np.empty(room, np.int64)
            found = probe_leaves(
                tree, events, self._store.place, starts, leaves, np.empty(2), event, alternative
            )
        candidates = Candidates(event[:found], alternative[:found], np.zeros(0, np.uint8))
        return settle(self.subscriptions.columns, self.subscriptions.validity, events, candidates)

    def _visit(self, tree: Tree, events: EventColumns) -> tuple[Int64, Int32, int]:
        """The leaves that each event visits, from where, and how many nodes all visit."""
        starts = np.zeros(event_count(events) + 1, np.int64)
        visited = np.zeros(1, np.int64)
        path, vocabulary = path_for(events), self._store.keywords.view
        room, found = 0, 1 + LEAVES * event_count(events)
        while found > room:
            room = found
            leaves = np.empty(room, np.int32)
            visited[0] = 0
            found = visit_leaves(
                tree, vocabulary, events, self._store.place, path, starts, leaves, visited
            )
        return read_only(starts), read_only(leaves[:found]), int(visited[0])

    def _readable(self) -> Tree:
        if self._view is None:
            self._view = used_part(self._store.tree)
        return self._view

    def match_back(self, columns: SubscriptionColumns) -> MatchPairs:
        """For each subscription the live events that it wants.

        Cost: the message lists of the leaves that it leads to, the verifier for what is left.
        """
        if self._lists is None:
            return super().match_back(columns)
        return self._lists.match(columns, self.live, self._signatures.view)

    # Moving.

    def move(self, rows: Int64, positions: Float64) -> None:
        self._move(rows, positions, reporting=False)

    def relocate(self, rows: Int64, positions: Float64) -> Relocation:
        """Algorithm 6: `move`, and how it changes which live events each of *rows* wants.

        Cost: the message lists where a circle was or is, the verifier for what came into it or
        went out of it.
        """
        if self._lists is None:
            return super().relocate(rows, positions)
        return self._move(rows, positions, reporting=True)

    def _move(self, rows: Int64, positions: Float64, *, reporting: bool) -> Relocation:
        """Put *rows* at *positions*; what changes, where that is asked for."""
        last = dict(zip(rows.tolist(), range(len(rows)), strict=True))  # one given twice: the last
        rows, positions = np.array([*last], np.int64), positions[[*last.values()]]
        old = take(self.subscriptions.columns, rows)
        self.subscriptions.move(rows, positions)
        new = take(self.subscriptions.columns, rows)
        self._movements.add(rows, old.position, new.position)
        stands = self.subscriptions.validity.hidden[rows] == 0
        local = np.flatnonzero(_moves(old) & np.repeat(stands, np.diff(old.alternative_start)))
        before = self._store.entries_of(old, local, learn=False)
        after = self._store.entries_of(new, local, learn=False)
        nothing = np.zeros(0, np.int64)
        relocation = Relocation(*(by_row(nothing, nothing, len(rows)) for _ in range(2)))
        if reporting and self._lists is not None:
            owner, message = messages_that_change(
                self._lists, old, new, before, after, self.live, self._signatures.view
            )
            was = self._lists.answers(old, owner, self.live, message)
            now = self._lists.answers(new, owner, self.live, message)
            relocation = Relocation(
                *(
                    by_row(owner[chosen], message[chosen], len(rows))
                    for chosen in (now & ~was, was & ~now)
                )
            )
        start = self.subscriptions.columns.alternative_start
        owner = np.searchsorted(old.alternative_start, before.alternative, side="right") - 1
        filed = start[rows[owner]] + before.alternative - old.alternative_start[owner]
        self._look_after(file_at_new_places(self._store, before, after, filed.astype(np.int32)))
        return relocation

    # What changes.

    def _inserted(self, first: int) -> None:
        start = self.subscriptions.columns.alternative_start
        added = np.arange(start[first], start[-1])
        self._movements.extend(self.subscriptions.count)
        if self._store.has_doubled(len(added)):
            self.rebuild()
        else:
            self._look_after(self._store.insert(self.subscriptions.columns, added))

    def remove(self, rows: Int64) -> None:
        fresh = rows[self.subscriptions.validity.hidden[rows] == 0]
        super().remove(np.unique(fresh))

    def _removed(self, rows: Int64) -> None:
        if not self._is_mapped:
            alternatives = self._alternatives_of(rows)
            self._look_after(self._store.remove(self.subscriptions.columns, alternatives))

    def rebuild(self) -> None:
        """Build all anew: keywords are ordered and probabilities measured once more."""
        rows = np.flatnonzero(self.subscriptions.validity.hidden == 0)
        columns, rebuilt = self.subscriptions.columns, self._store.rebuilt
        self._store = TreeStore.build(
            self.settings,
            columns,
            self._alternatives_of(rows),
            self.history,
            self._movements.motion(columns.alternative_start),
        )
        self._store.rebuilt = rebuilt + 1
        self._view = None
        self._lists = MessageLists(self._store, self.settings.messages)
        self._lists.add(self.live, 0)

    def _look_after(self, dirty: list[int]) -> None:
        """Split, collapse or rebuild what changes have made too large, small or different."""
        self._view = None
        store = self._store
        if ROOT in dirty:
            self.rebuild()  # with a region and an order of keywords of its own
            return
        for node in dirty:
            if store.is_dirty(node):
                store.unmark([node])
                columns = self.subscriptions.columns
                motion = self._movements.motion(columns.alternative_start)
                messages = store.rebuild(columns, node, motion)
                if self._lists is not None and self.settings.messages == "tree":
                    self._lists.file(self.live, messages, node)
        if store.is_worn:
            self.rebuild()

    def _held(self, first: int) -> None:
        super()._held(first)
        if self._lists is not None:
            self._view = None
            self._lists.add(self.live, first)

    def _dropped(self, rows: Int64) -> None:
        if self._lists is not None:
            self._lists.forget(self.live, len(rows))

    def _alternatives_of(self, rows: Int64) -> Int64:
        return children(self.subscriptions.columns.alternative_start, rows)[0]

    # Files, figures, invariants.

    def save(self, folder: Path) -> None:
        reach = len(self.subscriptions.columns.predicate_start) - 1
        write_tree(folder, self._store, reach, kind=self.name)

    def _opened(self, folder: Path) -> None:
        columns = self.subscriptions.columns
        self._store = read_tree(folder, self.settings, columns, kind=self.name)
        self._is_mapped = True

    def effort(self, events: EventColumns) -> dict[str, float]:
        tree = self._readable()
        _, leaves, visited = self._visit(tree, events)
        looked_at = tree.node.reshape(-1, FIELDS)[leaves, SIZE].sum()
        count = max(1, event_count(events))
        return {
            "nodes/event": visited / count,
            "entries/event": float(looked_at) / count,
            **super().effort(events),
        }

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        lists = 0 if self._lists is None else self._lists.nbytes
        return {
            **inherited,
            "bytes": inherited["bytes"] + self._store.nbytes + lists,
            **shape_of(self._store),
        }

    def check(self) -> None:
        super().check()
        live = np.flatnonzero(self.subscriptions.validity.hidden == 0)
        check_tree(self._store, self.subscriptions.columns, self._alternatives_of(live))
        if self._lists is not None:
            check_messages(self._lists, self._store, self.live)


def _moves(columns: SubscriptionColumns) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which alternatives have a circle around the subscriber."""
    is_here = np.concatenate([[0], np.cumsum(columns.kind & KIND_MASK == HERE)])
    start = columns.predicate_start
    return np.asarray(is_here[start[1:]] > is_here[start[:-1]])
