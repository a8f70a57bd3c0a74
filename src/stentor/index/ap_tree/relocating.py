"""The kernels of Algorithm 6 over batches of moved entries."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import Int32, Int64, SubscriptionColumns, UInt64
from stentor.encoding.readonly import read_only
from stentor.index.ap_tree.layout import Entries
from stentor.index.ap_tree.message_lists import MessageLists, unique_pairs
from stentor.index.ap_tree.moving import file_moved, messages_around
from stentor.index.ap_tree.store import TreeStore
from stentor.index.table import EventTable

_ROOM = 1 << 12


def messages_that_change(
    lists: MessageLists,
    old: SubscriptionColumns,
    new: SubscriptionColumns,
    before: Entries,
    after: Entries,
    live: EventTable,
    signature: UInt64,
) -> tuple[Int64, Int64]:
    """Rows of *old* and *new* and messages that came into or out of one of their circles.

    Each pair once, in the order of messages.
    """
    owner = np.searchsorted(old.alternative_start, before.alternative, side="right") - 1
    way, other = lists.ways
    room, found = 0, _ROOM
    while found > room:
        room = found
        rows, messages = np.empty(room, np.int64), np.empty(room, np.int64)
        found = messages_around(
            lists.tree,
            old,
            new,
            before,
            after,
            read_only(owner),
            lists.attribute,
            live.hidden,
            signature,
            lists.points,
            way,
            other,
            rows,
            messages,
        )
    return unique_pairs(rows[:found], messages[:found])


def file_at_new_places(
    store: TreeStore, before: Entries, after: Entries, filed: Int32
) -> list[int]:
    """Bring moved entries to the leaves of their new boxes; the nodes to be looked after."""

    def step(done: int, used: Int64) -> int:
        way, other = store.ways
        return file_moved(
            store.tree,
            before,
            after,
            done,
            read_only(filed),
            store.policy,
            store.entries,
            way,
            other,
            used,
        )

    return store.until_done(len(filed), step)
