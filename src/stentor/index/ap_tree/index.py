"""`ApTree`: the AP-Tree as an index, its saved form and its statistics."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stentor._jit import direct
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int32,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    event_count,
    read_only,
    subscription_count,
)
from stentor.encoding.event import EventBuffer
from stentor.encoding.kinds import KIND_MASK, OWN_CIRCLE
from stentor.encoding.ragged import children, take
from stentor.errors import FolderError
from stentor.index.ap_tree.check import check_live_lists, check_tree
from stentor.index.ap_tree.cost_model import HAS_MOVED, PACE, STEP, MotionHistory, joined
from stentor.index.ap_tree.keywords import KeywordTable
from stentor.index.ap_tree.layout import (
    COPIES,
    DEPTH,
    FIELDS,
    FREE,
    KEYWORDS,
    KIND,
    LEAF,
    LIST_CAPACITY,
    LIST_CLASSES,
    LIST_SIZE,
    LIST_START,
    LISTED,
    NODES,
    NONE,
    ROOT,
    SIZE,
    SPACE,
    ApTreeArrays,
    Vocabulary,
)
from stentor.index.ap_tree.live import LiveLists, by_row
from stentor.index.ap_tree.match import (
    ApMatchScratch,
    find_leaves,
    match_event,
    match_leaves,
    match_scratch,
    match_scratch_for,
)
from stentor.index.ap_tree.move import find_changes, move_entries_all
from stentor.index.ap_tree.nodes import used_part
from stentor.index.ap_tree.settings import PRESETS, ApTreeSettings
from stentor.index.ap_tree.state import ApTreeState
from stentor.index.contract import Learned
from stentor.index.pairs import MatchChanges
from stentor.index.storage.arrays import Arrays, bundle_of, read_arrays, with_prefix, write_arrays
from stentor.index.structure import Bool, Structure
from stentor.index.verify import Candidates, verify
from stentor.index.verify.scratch import EventScratch
from stentor.index.verify.single import SingleMatch

#: Version of a tree's folder. 1: clauses of a byte, no motion.
VERSION = 2

_VOCABULARY = "keywords"
#: The name in earlier versions, which looked for a hash in the slot of its lowest bits.
_UNSPREAD = "vocabulary"

#: Capacity for leaves and candidates at first, per event.
LEAVES, CANDIDATES = 48, 32

#: Alternatives that are inserted before nodes are rebalanced: until then copies may grow.
PIECE = 1 << 13

_match_event = direct(match_event)


def write_tree(
    folder: Path, store: ApTreeState, reach: int, learned: Learned, *, kind: str
) -> None:
    """Write *store*, whose alternatives are below *reach*, and what was *learned* into *folder*."""
    meta = {
        "version": VERSION,
        "stand_ins": store.stand_ins,
        "place": store.location,
        "entries": store.entries,
        "built": store.built,
        "reach": reach,
    }
    arrays = {
        **with_prefix("tree", _without_events(store.tree)),
        **with_prefix(_VOCABULARY, store.keywords.view),
        **learned,
    }
    write_arrays(folder, arrays, kind=kind, meta=meta)


def read_tree(
    folder: Path, settings: ApTreeSettings, columns: SubscriptionColumns, *, kind: str
) -> tuple[ApTreeState, Learned]:
    """The read-only tree in *folder*, of the subscriptions in *columns*, and what was learned."""
    arrays, meta = read_arrays(folder, kind=kind)
    if meta["reach"] != len(columns.predicate_start) - 1:
        raise FolderError(
            f"{folder} holds the tree of other subscriptions than those it was opened with; "
            "open both from one saved folder"
        )
    if meta.get("version", 1) > VERSION:
        raise FolderError(f"{folder} was written by a newer Stentor; open it with that")
    if meta.get("version", 1) == 1:  # clauses of a byte, no motion
        arrays["tree.clause"] = read_only(arrays["tree.clause"].astype(np.uint16))
    store = ApTreeState(settings)
    store.tree = bundle_of(ApTreeArrays, "tree", arrays)
    store.keywords = _keywords(arrays, store.tree.counter)
    store.location, store.entries, store.built = meta["place"], meta["entries"], meta["built"]
    store.stand_ins = meta.get("stand_ins", 0)
    return store, _motion(folder, arrays, subscription_count(columns))


def read_motion(folder: Path, columns: SubscriptionColumns, *, kind: str) -> Learned:
    """What the tree in *folder*, of the subscriptions in *columns*, had learned of their motion."""
    arrays, _ = read_arrays(folder, kind=kind)
    motion = _motion(folder, arrays, subscription_count(columns))
    return {name: array.copy() for name, array in motion.items()}


def _motion(folder: Path, arrays: Arrays, rows: int) -> Learned:
    """What was learned of the motion of so many *rows*, if anything was."""
    forms = {
        STEP: (2 * rows, np.dtype(np.float64)),
        HAS_MOVED: (rows, np.dtype(np.uint8)),
        PACE: (2, np.dtype(np.float64)),
    }
    learned = {name: arrays[name] for name in forms if name in arrays}
    found = {name: (len(array), array.dtype) for name, array in learned.items()}
    if learned and (found != forms or not np.isfinite(learned[PACE]).all()):
        raise FolderError(f"{folder} holds the motion of other subscriptions; write it again")
    return learned


def _keywords(arrays: Arrays, counter: Int64) -> KeywordTable:
    if f"{_UNSPREAD}.hashed" not in arrays:
        return KeywordTable.over(counter, bundle_of(Vocabulary, _VOCABULARY, arrays))
    spread = np.zeros(0, np.uint64)
    vocabulary = bundle_of(Vocabulary, _UNSPREAD, {**arrays, f"{_UNSPREAD}.spread": spread})
    keywords = KeywordTable.over(counter, vocabulary)
    keywords.rehash(len(vocabulary.hashed))
    return keywords


def _without_events(tree: ApTreeArrays) -> ApTreeArrays:
    used = used_part(tree)
    counter, node = used.counter.copy(), used.node.copy().reshape(-1, FIELDS)
    counter[LISTED] = 0
    counter[LIST_CLASSES:] = NONE
    node[:, [LIST_START, LIST_SIZE, LIST_CAPACITY]] = 0
    return used._replace(counter=counter, node=node.reshape(-1), listed=np.zeros(0, np.int32))


def shape_of(store: ApTreeState) -> dict[str, Any]:
    """Counts of nodes, their depth, and how many copies of entries and live events there are."""
    counter = store.tree.counter
    is_optimal = store.settings.partition == "dp"
    nodes = store.tree.node[: int(counter[NODES]) * FIELDS].reshape(-1, FIELDS)
    used = nodes[nodes[:, KIND] != FREE]
    kinds = {
        name: int(np.count_nonzero(used[:, KIND] == kind))
        for name, kind in (("keyword nodes", KEYWORDS), ("space nodes", SPACE), ("leaves", LEAF))
    }
    return {
        **kinds,
        "depth": int(used[:, DEPTH].max(initial=0)),
        "copies per entry": float(counter[COPIES]) / max(1, store.entries),
        "message places": int(counter[LISTED]),
        "keywords": store.keywords.count,
        "nodes built anew": store.rebuilt,
        **({"nodes cut by the heuristic": store.stand_ins} if is_optimal else {}),
    }


class Walk(NamedTuple):
    """Scratch for one event; `read_…` are the same memory, read-only."""

    path: ApMatchScratch
    starts: Int64
    leaves: Int32
    visited: Int64
    read_starts: Int64
    read_leaves: Int32


def _walk_for(keywords: int, leaves: int) -> Walk:
    starts, found = np.zeros(2, np.int64), np.empty(leaves, np.int32)
    visited = np.zeros(1, np.int64)
    return Walk(
        match_scratch_for(keywords), starts, found, visited, read_only(starts), read_only(found)
    )


class ApTree(Structure):
    """Keywords and boxes prune, in the order that costs least.

    Until the first subscription is inserted, and in a tree that was opened from a folder, which is
    read-only, live events are in no lists: `match_live` compares their signatures.
    """

    name = "ap_tree"
    settings: ClassVar[ApTreeSettings] = ApTreeSettings()
    presets: ClassVar[Mapping[str, ApTreeSettings]] = PRESETS

    def __init__(self) -> None:
        super().__init__()
        self._store = ApTreeState(self.settings)
        self._lists: LiveLists | None = None  # of the live events in the tree
        self._movements = MotionHistory()
        self._view: ApTreeArrays | None = (
            None  # the used part, read-only; made again after each change
        )
        self._vocabulary = self._store.keywords.view
        self._walk: Walk | None = None  # scratch for a single event
        self._is_mapped = False

    # Matching.

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        tree = self._readable()
        starts, leaves, _ = self._find_leaves(tree, events)
        self._movements.events += event_count(events)
        capacity, found = 0, 1 + CANDIDATES * event_count(events)
        while found > capacity:
            capacity = found
            event, alternative = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
            found = match_leaves(
                tree, events, self._store.location, starts, leaves, np.empty(2), event, alternative
            )
        candidates = Candidates(event[:found], alternative[:found], np.zeros(0, np.uint8))
        return verify(self.subscriptions.columns, self.subscriptions.validity, events, candidates)

    def _match_into(
        self, event: EventBuffer, scratch: EventScratch, scoring: int, found: SingleMatch
    ) -> int:
        tree, table, walk = self._readable(), self.subscriptions, self._walk
        keywords = event.term_count + event.value_stop[1]
        capacity = len(found.alternative)
        if walk is None or len(walk.path.rank) < keywords or len(walk.leaves) < capacity:
            walk = self._walk = _walk_for(2 * keywords, capacity)
        rows = _match_event(
            tree,
            self._vocabulary,
            self._store.location,
            *walk,
            table.columns,
            table.validity,
            event.columns,
            scratch,
            scoring,
            found,
        )
        if rows >= 0:
            self._movements.events += 1
        return rows

    def _find_leaves(self, tree: ApTreeArrays, events: EventColumns) -> tuple[Int64, Int32, int]:
        """Where the leaves of each event start, the leaves, and how many nodes all events visit."""
        starts = np.zeros(event_count(events) + 1, np.int64)
        visited = np.zeros(1, np.int64)
        path, vocabulary = match_scratch(events), self._store.keywords.view
        capacity, found = 0, 1 + LEAVES * event_count(events)
        while found > capacity:
            capacity = found
            leaves = np.empty(capacity, np.int32)
            visited[0] = 0
            found = find_leaves(
                tree, vocabulary, events, self._store.location, path, starts, leaves, visited
            )
        return read_only(starts), read_only(leaves[:found]), int(visited[0])

    def _readable(self) -> ApTreeArrays:
        if self._view is None:
            self._view = used_part(self._store.tree)
        return self._view

    def _match_live(self, columns: SubscriptionColumns) -> MatchPairs:
        """For each subscription the live events that match it.

        Cost: the lists of the leaves that it leads to, the verifier for candidates.
        """
        if self._lists is None:
            return super()._match_live(columns)
        return self._lists.match(columns, self.live, self._signatures.view)

    # Moving.

    def move(self, rows: Int64, positions: Float64) -> None:
        self._move(rows, positions, reporting=False)

    def move_and_match(self, rows: Int64, positions: Float64) -> MatchChanges:
        """Algorithm 6: `move`, and how it changes which live events match each of *rows*.

        Cost: the lists where a circle was or is, the verifier for the events that came into it or
        went out of it.
        """
        if self._lists is None:
            return super().move_and_match(rows, positions)
        return self._move(rows, positions, reporting=True)

    def _move(self, rows: Int64, positions: Float64, *, reporting: bool) -> MatchChanges:
        """Move *rows* to *positions*; what changes, if *reporting*."""
        last = dict(zip(rows.tolist(), range(len(rows)), strict=True))  # one given twice: the last
        rows, positions = np.array([*last], np.int64), positions[[*last.values()]]
        old = take(self.subscriptions.columns, rows)
        self.subscriptions.move(rows, positions)
        new = take(self.subscriptions.columns, rows)
        self._movements.add(rows, old.position, new.position)
        is_current = self.subscriptions.validity.hidden[rows] == 0
        local = np.flatnonzero(_moves(old) & np.repeat(is_current, np.diff(old.alternative_start)))
        before = self._store.entries_of(old, local, learn=False)
        after = self._store.entries_of(new, local, learn=False)
        nothing = np.zeros(0, np.int64)
        changes = MatchChanges(*(by_row(nothing, nothing, len(rows)) for _ in range(2)))
        if reporting and self._lists is not None:
            owner, event = find_changes(
                self._lists, old, new, before, after, self.live, self._signatures.view
            )
            was = self._lists.verify(old, owner, self.live, event)
            now = self._lists.verify(new, owner, self.live, event)
            changes = MatchChanges(
                *(
                    by_row(owner[chosen], event[chosen], len(rows))
                    for chosen in (now & ~was, was & ~now)
                )
            )
        start = self.subscriptions.columns.alternative_start
        owner = np.searchsorted(old.alternative_start, before.alternative, side="right") - 1
        alternative = start[rows[owner]] + before.alternative - old.alternative_start[owner]
        self._rebalance(move_entries_all(self._store, before, after, alternative.astype(np.int32)))
        return changes

    # Changes.

    def _insert_rows(self, first: int) -> None:
        start = self.subscriptions.columns.alternative_start
        added = np.arange(start[first], start[-1])
        self._movements.extend(self.subscriptions.count)
        if self._store.has_doubled(len(added)):
            self.rebuild()
            return
        store = self._store
        for done in range(0, len(added), PIECE):
            piece = added[done : done + PIECE]
            self._rebalance(store.insert(self.subscriptions.columns, piece))
            if self._store is not store:
                return  # it was rebuilt, with the pieces still to come

    def remove(self, rows: Int64) -> None:
        fresh = rows[self.subscriptions.validity.hidden[rows] == 0]
        super().remove(np.unique(fresh))

    def _remove_rows(self, rows: Int64) -> None:
        if not self._is_mapped:
            alternatives = self._alternatives_of(rows)
            self._rebalance(self._store.remove(self.subscriptions.columns, alternatives))

    def rebuild(self) -> None:
        """Rebuild the tree: keywords are ordered and probabilities measured again."""
        rows = np.flatnonzero(self.subscriptions.validity.hidden == 0)
        columns, rebuilt = self.subscriptions.columns, self._store.rebuilt
        self._store = ApTreeState.build(
            self.settings,
            columns,
            self._alternatives_of(rows),
            self.history,
            self._movements.motion(columns.alternative_start),
        )
        self._store.rebuilt = rebuilt + 1
        self._view, self._vocabulary = None, self._store.keywords.view
        self._lists = LiveLists(self._store, self.settings.messages)
        self._lists.hold(self.live, 0)

    def _rebalance(self, dirty: list[int]) -> None:
        """Split, collapse or rebuild what changes have made too large, small or different."""
        self._view = None
        store = self._store
        if ROOT in dirty:
            self.rebuild()  # with a new region and a new order of keywords
            return
        for node in dirty:
            if store.is_dirty(node):
                store.unmark([node])
                columns = self.subscriptions.columns
                motion = self._movements.motion(columns.alternative_start)
                events = store.rebuild(columns, node, motion)
                if self._lists is not None and self.settings.messages == "tree":
                    self._lists.insert(self.live, events, node)
        self._vocabulary = store.keywords.view
        if store.needs_rebuild:
            self.rebuild()

    def learned(self, rows: Int64) -> Learned:
        return self._movements.learned(rows)

    @classmethod
    def learned_together(cls, base: Learned, delta: Learned, is_base: Bool) -> Learned:
        return joined(base, delta, is_base)

    def _take_over(self, learned: Learned) -> None:
        self._movements = MotionHistory(learned)

    def _hold_events(self, first: int) -> None:
        super()._hold_events(first)
        if self._lists is not None:
            self._view = None
            self._lists.hold(self.live, first)

    def _drop_events(self, rows: Int64) -> None:
        if self._lists is not None:
            self._view = None
            self._lists.drop(self.live, len(rows))

    def _renumbered(self, kept: Int64, count: int) -> None:
        super()._renumbered(kept, count)
        if self._lists is not None:
            self._view = None
            self._lists.renumber(kept, count)

    def _alternatives_of(self, rows: Int64) -> Int64:
        return children(self.subscriptions.columns.alternative_start, rows)[0]

    # Files, figures, invariants.

    def save(self, folder: Path) -> None:
        reach = len(self.subscriptions.columns.predicate_start) - 1
        learned = self.learned(np.arange(self.count))
        write_tree(folder, self._store, reach, learned, kind=self.name)

    @classmethod
    def learned_in(cls, folder: Path, columns: SubscriptionColumns) -> Learned:
        return read_motion(folder, columns, kind=cls.name)

    def _open_arrays(self, folder: Path) -> None:
        columns = self.subscriptions.columns
        self._store, learned = read_tree(folder, self.settings, columns, kind=self.name)
        self._vocabulary = self._store.keywords.view
        self._take_over(learned)
        self._is_mapped = True

    def counted_work(self, events: EventColumns) -> dict[str, float]:
        tree = self._readable()
        _, leaves, visited = self._find_leaves(tree, events)
        compared = tree.node.reshape(-1, FIELDS)[leaves, SIZE].sum()
        count = max(1, event_count(events))
        return {
            "nodes/event": visited / count,
            "entries/event": float(compared) / count,
            **super().counted_work(events),
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
            check_live_lists(self._lists, self._store, self.live)


def _moves(columns: SubscriptionColumns) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which alternatives have a circle around the subscriber."""
    is_here = np.concatenate([[0], np.cumsum(columns.kind & KIND_MASK == OWN_CIRCLE)])
    start = columns.predicate_start
    return np.asarray(is_here[start[1:]] > is_here[start[:-1]])
