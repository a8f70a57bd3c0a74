"""Live events in the lists of nodes, where subscriptions that are inserted or move find them.

An event is listed at the branches that it visits; events that were dropped leave the lists when
these are packed.
"""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int32,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    UInt8,
    UInt64,
    read_only,
    subscription_count,
)
from stentor.encoding.ragged import events_between
from stentor.index.ap_tree.build import keyword_root, space_root
from stentor.index.ap_tree.insert import ApInsertScratch, insert_scratch
from stentor.index.ap_tree.keywords import most_keywords, ranks_of_event
from stentor.index.ap_tree.layout import (
    BRANCH,
    COUNTERS,
    FIELDS,
    FREE,
    KIND,
    LEAF,
    LIST_CAPACITY,
    LIST_CLASSES,
    LIST_SIZE,
    LIST_START,
    LISTED,
    NODES,
    NONE,
    PARENT,
    ROOT,
    SIZE,
    ApEntries,
    ApTreeArrays,
    Vocabulary,
)
from stentor.index.ap_tree.match import (
    _NO_BITS,
    ApMatchScratch,
    branches_of_event,
    keyword_at,
    make_node,
    match_scratch_for,
    point_of,
    points_of,
)
from stentor.index.ap_tree.nodes import SMALLEST_BLOCK, append_event, free_node, grow, power_for
from stentor.index.ap_tree.remove import leaves_of_entries
from stentor.index.ap_tree.state import ApTreeState
from stentor.index.arena import GrowingArray
from stentor.index.sort import distinct
from stentor.index.table import EventTable
from stentor.index.verify.predicates import subscription_matches
from stentor.index.verify.scratch import (
    EventScratch,
    ScratchSize,
    load_event,
    scratch_for,
    scratch_size,
)

#: Dropped events stay in the lists until they are so many, and twice the live ones; an engine
#: renumbers rows before.
MOST_DROPPED = 4096

#: Capacity for leaves and pairs at first.
FIRST_CAPACITY = 1 << 12


@kernel
def insert_events(
    tree: ApTreeArrays,
    vocabulary: Vocabulary,
    events: EventColumns,
    rows: Int32,
    first: int,
    node: int,
    attribute: int,
    most: int,
    path: ApMatchScratch,
    position: Int32,
    parent: Int32,
    needed: Int64,
) -> int:
    """List the events *rows* from *first* on beneath *node*; the first that lacks capacity.

    An event that does not visit *node* is not listed there. *position* and *parent* are scratch;
    *needed* gets how many branches, nodes and list slots that first one needs.
    """
    for number in range(first, len(rows)):
        event = rows[number]
        keywords = ranks_of_event(events, event, vocabulary, True, path.rank)
        has_location = point_of(events, event, attribute, path.point)
        start = keyword_at(tree, keywords, path.rank, node, path.ancestors)
        if start == NONE:
            continue
        used = branches_of_event(
            tree,
            keywords,
            path.point,
            has_location,
            most,
            node,
            start,
            path,
            position,
            parent,
            0,
        )
        capacity = fresh = 0
        for one in range(min(used, len(position))):
            if parent[one] != NONE:
                fresh += 1
                capacity += SMALLEST_BLOCK
                continue
            kept = tree.child[position[one]]
            size = tree.node[kept * FIELDS + LIST_SIZE]
            if size == tree.node[kept * FIELDS + LIST_CAPACITY]:
                capacity += 1 << power_for(size + 1)
        if (
            used > len(position)
            or (tree.counter[NODES] + fresh) * FIELDS > len(tree.node)
            or tree.counter[LISTED] + capacity > len(tree.listed)
        ):
            needed[0], needed[1], needed[2] = used, fresh, capacity
            return number
        for one in range(used):
            if parent[one] != NONE:
                make_node(tree, position[one], parent[one])
            append_event(tree, tree.child[position[one]], event)
    return len(rows)


def branches_of_live(
    tree: ApTreeArrays,
    vocabulary: Vocabulary,
    events: EventColumns,
    event: int,
    attribute: int,
    path: ApMatchScratch,
) -> list[tuple[int, int]]:
    """All branches of *event*, and the node above where one has no child: for checks."""
    branch = np.empty(len(tree.child) + 1, np.int32)
    parent = np.empty_like(branch)
    used = find_branches(tree, vocabulary, events, event, attribute, path, branch, parent)
    return list(zip(branch[:used].tolist(), parent[:used].tolist(), strict=True))


@kernel
def find_branches(
    tree: ApTreeArrays,
    vocabulary: Vocabulary,
    events: EventColumns,
    event: int,
    attribute: int,
    path: ApMatchScratch,
    branch: Int32,
    parent: Int32,
) -> int:
    """How many of *branch* and *parent* are filled for *event*, however many copies."""
    keywords = ranks_of_event(events, event, vocabulary, True, path.rank)
    has_location = point_of(events, event, attribute, path.point)
    most = len(tree.child) + 1
    return branches_of_event(
        tree, keywords, path.point, has_location, most, ROOT, 0, path, branch, parent, 0
    )


@kernel
def pack_lists(tree: ApTreeArrays, row_of: Int32, packed: Int32) -> int:
    """How many list slots are used when events are renumbered; *packed* gets the lists.

    Where *packed* is too short nothing changes. Else it has the lists one after the other, each
    with row_of[event] where that is not NONE, and leaves that were made for events alone are freed
    with their last one.
    """
    used = 0
    for node in range(tree.counter[NODES]):
        fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
        if fields[KIND] != FREE:
            for event in tree.listed[fields[LIST_START] : fields[LIST_START] + fields[LIST_SIZE]]:
                used += row_of[event] != NONE
    if used > len(packed):
        return used
    used = 0
    for node in range(tree.counter[NODES]):
        fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
        if fields[KIND] == FREE:
            continue
        start = used
        for event in tree.listed[fields[LIST_START] : fields[LIST_START] + fields[LIST_SIZE]]:
            if row_of[event] != NONE:
                packed[used] = row_of[event]
                used += 1
        fields[LIST_START] = start
        fields[LIST_SIZE] = fields[LIST_CAPACITY] = used - start
    # There are no free blocks any more.
    for size in range(LIST_CLASSES, COUNTERS):
        tree.counter[size] = NONE
    tree.counter[LISTED] = used
    for node in range(ROOT + 1, tree.counter[NODES]):
        fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
        if fields[KIND] == LEAF and fields[SIZE] == 0 and fields[LIST_SIZE] == 0:
            tree.child[fields[BRANCH]] = NONE
            fields[LIST_CAPACITY] = 0
            free_node(tree, node)
    return used


@kernel
def match_lists(
    tree: ApTreeArrays,
    entries: ApEntries,
    owner: Int64,
    starts: Int64,
    leaves: Int32,
    hidden: UInt8,
    signature: UInt64,
    point: Float64,
    found_owner: Int64,
    found_event: Int64,
) -> int:
    """Live events in the lists of *leaves* and above that each entry may match.

    The number of pairs of the entry's *owner* and an event; those that do not fit are counted.
    A list above several leaves is compared for each: a pair may come more than once.
    """
    found = 0
    for entry in range(len(owner)):
        needed = entries.signature[entry]
        box = entries.box[4 * entry : 4 * entry + 4]
        for leaf in leaves[starts[entry] : starts[entry + 1]]:
            node = np.int32(leaf)
            while node != NONE:
                first = tree.node[node * FIELDS + LIST_START]
                for event in tree.listed[first : first + tree.node[node * FIELDS + LIST_SIZE]]:
                    x, y = point[2 * event], point[2 * event + 1]
                    if (
                        (needed & ~signature[event] == _NO_BITS)
                        & (box[0] <= x)
                        & (box[1] <= y)
                        & (box[2] >= x)
                        & (box[3] >= y)
                        & (hidden[event] == 0)
                    ):
                        if found < len(found_owner):
                            found_owner[found] = owner[entry]
                            found_event[found] = event
                        found += 1
                node = tree.node[node * FIELDS + PARENT]
    return found


@kernel
def pairs_match(
    columns: SubscriptionColumns,
    rows: Int64,
    events: EventColumns,
    event_rows: Int64,
    scratch: EventScratch,
    is_match: UInt8,
) -> None:
    """Fill *is_match* with whether each of *rows* matches its event; pairs in order of events."""
    loaded = -1
    for pair in range(len(rows)):
        if event_rows[pair] != loaded:
            loaded = event_rows[pair]
            load_event(events, loaded, scratch)
        is_match[pair] = subscription_matches(columns, rows[pair], scratch)


class LiveLists:
    """Which live events each node lists.

    Invariant: a live event is in the list of a node above or at each leaf that a subscription which
    matches it is, or would be, inserted into.
    """

    def __init__(self, store: ApTreeState, kept_in: str) -> None:
        self._store = store
        self._kept_in = kept_in
        self._own: ApTreeArrays | None = None
        self._point = GrowingArray(np.float64)
        self._dropped = 0
        self._widest = ScratchSize()  # of all events, so that none has to be measured again
        self._keywords = 0
        if kept_in != "tree":
            region = store.tree.region[:4]
            make = keyword_root if kept_in == "keywords" else space_root
            self._own = make(region, store.keywords.count)
        self._pack(np.zeros(0, np.int32))  # compiled or loaded now, not when events expire

    @property
    def tree(self) -> ApTreeArrays:
        """The tree whose nodes have the lists."""
        return self._store.tree if self._own is None else self._own

    @property
    def attribute(self) -> int:
        """The location attribute of the tree."""
        return self._store.location

    @property
    def walks(self) -> tuple[ApInsertScratch, ApInsertScratch]:
        """Scratch for two walks through that tree."""
        return (
            self._store.walks
            if self._own is None
            else (insert_scratch(self._own), insert_scratch(self._own))
        )

    @property
    def nbytes(self) -> int:
        own = 0 if self._own is None else sum(array.nbytes for array in self._own)
        return self._point.nbytes + own

    @property
    def points(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The location of each event (2 × events), or NOWHERE."""
        return self._point.view

    def hold(self, live: EventTable, first: int) -> None:
        """Hold the events of *live* from *first* on."""
        fresh = events_between(live.columns, first, None)
        points = points_of(fresh, self._store.location).reshape(-1)
        self._point.extend(points, len(points))
        self._widest = self._widest.joined(scratch_size(fresh))
        self._keywords = max(self._keywords, most_keywords(fresh))
        self.insert(live, np.arange(first, live.count, dtype=np.int32))

    def insert(self, live: EventTable, event_rows: Int32, node: int = ROOT) -> None:
        """List those of *event_rows* that are live where subscriptions find them beneath *node*."""
        event_rows = read_only(event_rows[live.hidden[event_rows] == 0])
        if not len(event_rows):
            return
        path, vocabulary = match_scratch_for(self._keywords), self._store.keywords.view
        branch = np.empty(4 * self._store.settings.duplicates + 256, np.int32)
        needed = np.zeros(3, np.int64)
        done = 0
        while True:
            done = insert_events(
                self.tree,
                vocabulary,
                live.columns,
                event_rows,
                done,
                node,
                self._store.location,
                self._store.policy.duplicates,
                path,
                branch,
                np.empty_like(branch),
                needed,
            )
            if done == len(event_rows):
                return
            branches, nodes, listed = needed.tolist()
            if branches > len(branch):
                branch = np.empty(2 * branches, np.int32)
            self._put(grow(self.tree, {NODES: nodes, LISTED: listed}))

    def _put(self, tree: ApTreeArrays) -> None:
        """Replace the tree whose nodes have the lists."""
        if self._own is None:
            self._store.tree = tree
        else:
            self._own = tree

    def match(
        self, columns: SubscriptionColumns, live: EventTable, signature: UInt64
    ) -> MatchPairs:
        """For each of *columns* the live events that match it. Cost: that of their lists."""
        alternatives = np.arange(len(columns.predicate_start) - 1)
        entries = self._store.entries_of(columns, alternatives, learn=False)
        owner = np.searchsorted(columns.alternative_start, entries.alternative, side="right") - 1
        tree, (walk, _) = self.tree, self.walks
        starts = np.zeros(len(owner) + 1, np.int64)
        capacity, found = 0, FIRST_CAPACITY
        while found > capacity:
            capacity = found
            nodes = np.empty(capacity, np.int32)
            found = leaves_of_entries(tree, entries, walk, starts, nodes)
        nodes = nodes[:found]
        capacity, found = 0, FIRST_CAPACITY
        while found > capacity:
            capacity = found
            rows, event_rows = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
            found = match_lists(
                tree,
                entries,
                read_only(owner),
                read_only(starts),
                read_only(nodes),
                live.hidden,
                signature,
                self._point.view,
                rows,
                event_rows,
            )
        rows, event_rows = unique_pairs(rows[:found], event_rows[:found])
        is_match = self.verify(columns, rows, live, event_rows)
        return by_row(rows[is_match], event_rows[is_match], subscription_count(columns))

    def verify(
        self, columns: SubscriptionColumns, rows: Int64, live: EventTable, event_rows: Int64
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether each of *rows* of *columns* matches its event; pairs in the order of events."""
        is_match: UInt8 = np.empty(len(rows), np.uint8)
        scratch = scratch_for(live.columns, self._widest)
        pairs_match(
            columns, read_only(rows), live.columns, read_only(event_rows), scratch, is_match
        )
        return is_match.astype(np.bool_)

    def drop(self, live: EventTable, count: int) -> None:
        """*count* events were dropped; pack the lists where that is many."""
        self._dropped += count
        if self._dropped > max(MOST_DROPPED, 2 * live.current_count):
            rows = np.arange(live.count, dtype=np.int32)
            self._pack(np.where(live.hidden == 0, rows, np.int32(NONE)))

    def renumber(self, kept: Int64, count: int) -> None:
        """Give the events *kept* of *count* their positions there as rows, and drop the others."""
        row_of = np.full(count, NONE, np.int32)
        row_of[kept] = np.arange(len(kept), dtype=np.int32)
        self._pack(row_of)
        self._point.keep(self._point.view.reshape(-1, 2)[kept].reshape(-1))

    def _pack(self, row_of: Int32) -> None:
        """Give each event that stays the row that *row_of* says, in lists without gaps."""
        row_of = read_only(row_of)
        packed = np.empty(0, np.int32)
        used = pack_lists(self.tree, row_of, packed)
        packed = np.empty(used, np.int32)
        pack_lists(self.tree, row_of, packed)
        self._put(self.tree._replace(listed=packed))
        self._dropped = 0


def unique_pairs(rows: Int64, event_rows: Int64) -> tuple[Int64, Int64]:
    """Each pair once, in the order of events."""
    width = 1 + int(rows.max(initial=0))
    keys = distinct(event_rows * width + rows)
    return keys % width, keys // width


def by_row(rows: Int64, event_rows: Int64, count: int) -> MatchPairs:
    """The events of each of *count* rows, ascending."""
    order = np.lexsort((event_rows, rows))
    starts = np.searchsorted(rows[order], np.arange(count + 1)).astype(np.int64)
    return MatchPairs(starts, event_rows[order])
