"""The message lists of an AP+-Tree: live messages come, are found backwards, and are forgotten.

They stand in the tree of the subscriptions, or in a tree of their own whose root is cut by keyword
or by place (the variants AP+k and AP+s of section 5.2.2).
"""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import (
    Int32,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    UInt8,
    UInt64,
    subscription_count,
)
from stentor.encoding.ragged import events_between
from stentor.encoding.readonly import read_only
from stentor.index.ap_tree.filing import Way, nodes_of_entries, way_for
from stentor.index.ap_tree.layout import LISTED, NODES, ROOT, Tree
from stentor.index.ap_tree.messages import file_messages, forget_hidden
from stentor.index.ap_tree.moving import wanted
from stentor.index.ap_tree.planting import by_keywords, by_space
from stentor.index.ap_tree.pools import with_room
from stentor.index.ap_tree.probing import probe_messages
from stentor.index.ap_tree.store import TreeStore
from stentor.index.ap_tree.visiting import path_of, points_of
from stentor.index.ap_tree.vocabulary import most_keywords
from stentor.index.growing import GrowingArray
from stentor.index.table import EventTable
from stentor.index.verify.scratch import Widest, scratch_for, widest_of

#: Messages that are gone stay in the lists until they are so many, and more than those that live.
MOST_FORGOTTEN = 4096
_ROOM = 1 << 12


class MessageLists:
    """Which live messages each node keeps.

    Invariant: a live message is in the list of a node above or at each leaf that a subscription
    which matches it is, or would be, filed in.
    """

    def __init__(self, store: TreeStore, kept_in: str) -> None:
        self._store = store
        self._kept_in = kept_in
        self._own: Tree | None = None
        self._point = GrowingArray(np.float64)
        self._forgotten = 0
        self._widest = Widest()  # of all messages, so that none has to be looked at again
        self._keywords = 0
        if kept_in != "tree":
            region = store.tree.region[:4]
            make = by_keywords if kept_in == "keywords" else by_space
            self._own = make(region, store.keywords.count)

    @property
    def tree(self) -> Tree:
        """The tree whose nodes have the lists."""
        return self._store.tree if self._own is None else self._own

    @property
    def attribute(self) -> int:
        """The place of messages that counts."""
        return self._store.place

    @property
    def ways(self) -> tuple[Way, Way]:
        """Scratch for two ways through that tree."""
        return self._store.ways if self._own is None else (way_for(self._own), way_for(self._own))

    @property
    def nbytes(self) -> int:
        own = 0 if self._own is None else sum(array.nbytes for array in self._own)
        return self._point.nbytes + own

    @property
    def points(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Where each message is (2 × messages), or NOWHERE."""
        return self._point.view

    def add(self, live: EventTable, first: int) -> None:
        """Keep the messages of *live* from *first* on."""
        fresh = events_between(live.columns, first, None)
        points = points_of(fresh, self._store.place).reshape(-1)
        self._point.extend(points, len(points))
        self._widest = self._widest.joined(widest_of(fresh))
        self._keywords = max(self._keywords, most_keywords(fresh))
        self.file(live, np.arange(first, live.count, dtype=np.int32))

    def file(self, live: EventTable, messages: Int32, node: int = ROOT) -> None:
        """Put *messages* that are not gone where a subscription finds them beneath *node*."""
        messages = read_only(messages[live.hidden[messages] == 0])
        if not len(messages):
            return
        path, vocabulary = path_of(self._keywords), self._store.keywords.view
        place = np.empty(4 * self._store.settings.duplicates + 256, np.int32)
        done = 0
        while True:
            done = file_messages(
                self.tree,
                vocabulary,
                live.columns,
                messages,
                done,
                node,
                self._store.place,
                self._store.policy.duplicates,
                path,
                place,
                np.empty_like(place),
            )
            if done == len(messages):
                return
            place = np.empty(2 * len(place), np.int32)
            self._make_room(len(place) + 4 * (len(messages) - done))

    def _make_room(self, more: int) -> None:
        listed = int(self.tree.counter[LISTED])
        needed = {NODES: more, LISTED: max(more * 8, listed // 4)}
        if self._own is None:
            self._store.tree = with_room(self._store.tree, needed)
        else:
            self._own = with_room(self._own, needed)

    def match(
        self, columns: SubscriptionColumns, live: EventTable, signature: UInt64
    ) -> MatchPairs:
        """For each of *columns* the live messages that it wants. Cost: that of their lists."""
        alternatives = np.arange(len(columns.predicate_start) - 1)
        entries = self._store.entries_of(columns, alternatives, learn=False)
        owner = np.searchsorted(columns.alternative_start, entries.alternative, side="right") - 1
        tree, (way, _) = self.tree, self.ways
        starts = np.zeros(len(owner) + 1, np.int64)
        room, found = 0, _ROOM
        while found > room:
            room = found
            nodes = np.empty(room, np.int32)
            found = nodes_of_entries(tree, entries, way, starts, nodes)
        nodes = nodes[:found]
        room, found = 0, _ROOM
        while found > room:
            room = found
            rows, messages = np.empty(room, np.int64), np.empty(room, np.int64)
            found = probe_messages(
                tree,
                entries,
                read_only(owner),
                read_only(starts),
                read_only(nodes),
                live.hidden,
                signature,
                self._point.view,
                rows,
                messages,
            )
        rows, messages = unique_pairs(rows[:found], messages[:found])
        is_wanted = self.answers(columns, rows, live, messages)
        return by_row(rows[is_wanted], messages[is_wanted], subscription_count(columns))

    def answers(
        self, columns: SubscriptionColumns, rows: Int64, live: EventTable, messages: Int64
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether each of *rows* of *columns* wants its message; pairs in the order of messages."""
        answer: UInt8 = np.empty(len(rows), np.uint8)
        scratch = scratch_for(live.columns, self._widest)
        wanted(columns, read_only(rows), live.columns, read_only(messages), scratch, answer)
        return answer.astype(np.bool_)

    def forget(self, live: EventTable, count: int) -> None:
        """*count* messages are gone; drop them from the lists where many are."""
        self._forgotten += count
        if self._forgotten > max(MOST_FORGOTTEN, live.live_count):
            forget_hidden(self.tree, live.hidden)
            self._forgotten = 0


def unique_pairs(rows: Int64, messages: Int64) -> tuple[Int64, Int64]:
    """Each pair once, in the order of messages."""
    width = 1 + int(rows.max(initial=0))
    keys = np.unique(messages * width + rows)
    return keys % width, keys // width


def by_row(rows: Int64, messages: Int64, count: int) -> MatchPairs:
    """The messages of each of *count* rows, ascending."""
    order = np.lexsort((messages, rows))
    starts = np.searchsorted(rows[order], np.arange(count + 1)).astype(np.int64)
    return MatchPairs(starts, messages[order])
