"""The tree and its vocabulary: entries come and go, nodes are split, collapsed and rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from stentor.encoding.columns import (
    BOX,
    NEGATED,
    ONE_OF,
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
)
from stentor.encoding.readonly import all_read_only, read_only
from stentor.index.ap_tree.construction import (
    MADE,
    NEED_LINES,
    NEED_NODES,
    NEED_PLACES,
    NEED_SEGMENT,
    NEED_SLOTS,
    PENDING,
    PROGRESS,
    construct,
)
from stentor.index.ap_tree.entries import entries_of, sort_keys
from stentor.index.ap_tree.filing import (
    Way,
    count_subtree,
    file_entries,
    room_for_ways,
    take_out_entries,
    way_for,
    weigh,
)
from stentor.index.ap_tree.layout import (
    COPIES,
    COUNT,
    DIRTY,
    FIELDS,
    FLAGS,
    FREE,
    GRID_LINES,
    KIND,
    NODES,
    OUTSIDE,
    PLACES,
    ROOT,
    SLOTS,
    WASTED,
    Entries,
    Policy,
)
from stentor.index.ap_tree.motion import Motion
from stentor.index.ap_tree.partitions import SAMPLE, Messages, Work
from stentor.index.ap_tree.planting import planted
from stentor.index.ap_tree.pools import trimmed, with_room
from stentor.index.ap_tree.radix import DIGITS
from stentor.index.ap_tree.settings import WORDS, Settings
from stentor.index.ap_tree.subtrees import clear, gather
from stentor.index.ap_tree.visiting import points_of
from stentor.index.ap_tree.vocabulary import Keywords, order_of

ALL_CLAUSES: UInt8 = read_only(np.zeros(0, np.uint8))
#: Leaves that there is room made for, when there is too little.
_MORE = 1024
#: Messages of a history that say where messages are.
_MOST_PLACES = 20_000


def policy_of(settings: Settings) -> Policy:
    """*settings* as kernels take them."""
    return Policy(
        fanout=settings.fanout,
        leaf=settings.leaf,
        grain=float(settings.grain),
        partition=WORDS["partition"].index(settings.partition),
        priority=WORDS["priority"].index(settings.priority),
        visit=float(settings.visit),
        lookahead=int(settings.lookahead),
        by_area=int(settings.places == "area"),
        copies=float(settings.copies),
        collapse=float(settings.collapse),
        divergence=float(settings.divergence),
        share=float(settings.share),
        rebuilds=int(settings.rebuilds),
        by_chance=int(settings.grain != 0.0),
        duplicates=settings.duplicates,
    )


class TreeStore:
    """An AP-Tree of alternatives.

    Invariant: an entry is in exactly the leaves that its keywords and its box lead to.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.policy = policy_of(settings)
        self.place = -1  # the attribute whose regions count
        self.tree = planted(np.zeros(4), 0, has_place=False)
        self.keywords = Keywords(self.tree.counter)
        self.entries = 0
        self.built = 0  # entries when all was built
        self.built_keywords = 0
        self.rebuilt = 0  # how often something was built anew
        self._messages_x = self._messages_y = np.zeros(0)
        self._work: Work | None = None
        self._way, self._other = way_for(self.tree), way_for(self.tree)

    # Building.

    @classmethod
    def build(
        cls,
        settings: Settings,
        columns: SubscriptionColumns,
        alternatives: Int64,
        history: EventColumns | None,
        motion: Motion | None = None,
    ) -> TreeStore:
        """A tree of *alternatives*, with probabilities from *history* where there is one."""
        store = cls(settings)
        store.place = _place_of(columns)
        store.keywords.matched_strings = _matched_strings(columns)
        entries = entries_of(
            columns,
            alternatives.astype(np.int32),
            ALL_CLAUSES,
            store.keywords,
            store.place,
            learn=True,
        )
        entries = store._order(entries, history)
        region = _hull(entries)
        store.tree = planted(
            region,
            store.keywords.count,
            len(entries.alternative),
            has_place=bool(region[0] <= region[2]),
        )
        store.keywords.rebase(store.tree.counter)
        store.entries = store.built = len(entries.alternative)
        store.built_keywords = store.keywords.count
        if history is not None and store.place >= 0:
            store._messages_x, store._messages_y = _sample_of_places(history, store.place)
        store._construct(ROOT, entries, motion)
        store.tree = trimmed(store.tree)
        store._work = None
        return store

    def _order(self, entries: Entries, history: EventColumns | None) -> Entries:
        """*entries* with the ranks that keywords have from now on."""
        keys = entries.key[: entries.key_start[-1]]
        asked = np.bincount(keys, minlength=self.keywords.count)
        rank_of = order_of(asked, self.settings.order)
        self.keywords.reorder(rank_of)
        ordered = np.empty(len(asked), np.int64)
        ordered[rank_of] = asked
        self.keywords.learn(ordered, history, self.settings.terms)
        ranked = rank_of[keys]
        sort_keys(entries.key_start, ranked)
        return all_read_only(entries._replace(key=ranked))

    def _construct(self, node: int, entries: Entries, motion: Motion | None) -> None:
        """Build all beneath *node*, an empty leaf, from *entries*."""
        somewhere = np.flatnonzero(entries.box[0::4] <= entries.box[2::4])
        count = len(somewhere)
        leaf = self.policy.leaf
        needed = {NODES: 64 + 4 * count // leaf, PLACES: 64 + 6 * count // leaf, SLOTS: count}
        self.tree = with_room(self.tree, needed)
        work = self._work_for(len(entries.alternative))
        work.segment[:count] = somewhere
        work.pending[:3] = node, 0, count
        progress = np.zeros(PROGRESS, np.int64)
        progress[PENDING], progress[MADE] = 1, 1
        work.made[0] = node
        self.tree.counter[COPIES] += count
        messages = self._messages(entries, motion)
        most = self.policy.copies * max(self.entries, 1024)
        while not construct(
            self.tree,
            entries,
            read_only(self.keywords.likely),
            messages,
            self.policy,
            work,
            most,
            progress,
        ):
            needs = progress.tolist()
            self.tree = with_room(
                self.tree,
                {
                    NODES: needs[NEED_NODES],
                    PLACES: needs[NEED_PLACES],
                    GRID_LINES: needs[NEED_LINES],
                    SLOTS: needs[NEED_SLOTS],
                },
            )
            work = self._more_work(work, needs[NEED_SEGMENT], needs[NEED_NODES] + needs[MADE])
        weigh(self.tree, work.made, int(progress[MADE]))

    def _messages(self, entries: Entries, motion: Motion | None) -> Messages:
        nothing = read_only(np.zeros(0))
        x, y = read_only(self._messages_x), read_only(self._messages_y)
        if motion is None or not self.settings.moving:
            return Messages(x, y, nothing, nothing, 0.0)
        dx, dy = motion.of(entries.alternative)
        return Messages(x, y, read_only(dx), read_only(dy), motion.rate)

    def _work_for(self, count: int) -> Work:
        if self._work is None or len(self._work.target) < count:
            self._work = _new_work(count, self.policy)
        return self._work

    def _more_work(self, work: Work, segment: int, made: int) -> Work:
        """*work* with room for what was missing."""
        fields = {"segment": segment, "made": made, "pending": 3 * made}
        for name, wanted in fields.items():
            array = getattr(work, name)
            if wanted > len(array):
                larger = np.empty(max(wanted, len(array) * 2), array.dtype)
                larger[: len(array)] = array
                work = work._replace(**{name: larger})
        self._work = work
        return work

    # Changes.

    def insert(self, columns: SubscriptionColumns, alternatives: Int64) -> list[int]:
        """File *alternatives*; the nodes that want to be looked after."""
        entries = self.entries_of(columns, alternatives, learn=True)
        self.keywords.expect_new()
        self.entries += len(entries.alternative)
        return self.until_done(
            len(entries.alternative),
            lambda done, used: file_entries(
                self.tree, entries, done, self.policy, self.entries, self.ways[0], used
            ),
        )

    def remove(self, columns: SubscriptionColumns, alternatives: Int64) -> list[int]:
        """Take *alternatives* out; the nodes that want to be looked after."""
        entries = self.entries_of(columns, alternatives, learn=False)
        self.entries -= len(entries.alternative)
        return self.until_done(
            len(entries.alternative),
            lambda done, used: take_out_entries(
                self.tree, entries, done, self.policy, self.entries, self.ways[0], used
            ),
        )

    def until_done(self, count: int, step: Callable[[int, Int64], int]) -> list[int]:
        """Let *step* go on from where it stopped for lack of room, until *count* are done.

        It counts the nodes that it finds to be looked after; they are the answer.
        """
        used, done, more = np.zeros(1, np.int64), 0, _MORE
        while True:
            before, done = done, step(done, used)
            if done == count:
                return [int(node) for node in self._way.dirty[: used[0]]]
            more = 2 * more if done == before else _MORE
            self.make_room(more)

    def make_room(self, more: int) -> None:
        """Let *more* leaves and slots for them fit, and scratch for as many nodes."""
        self.tree = with_room(
            self.tree,
            {
                NODES: more,
                SLOTS: max(more * 16, int(self.tree.counter[SLOTS]) // 4),
            },
        )

    @property
    def ways(self) -> tuple[Way, Way]:
        """Scratch for two ways through the tree, however it has grown."""
        if len(self._way.node) < room_for_ways(self.tree):
            dirty = self._way.dirty
            self._way, self._other = way_for(self.tree), way_for(self.tree)
            self._way.dirty[: len(dirty)] = dirty
        return self._way, self._other

    def entries_of(
        self, columns: SubscriptionColumns, alternatives: Int64, *, learn: bool
    ) -> Entries:
        """The entries of *alternatives* in this tree."""
        is_mapped = not self.keywords.rank.flags.writeable
        return entries_of(
            columns,
            alternatives.astype(np.int32),
            ALL_CLAUSES,
            self.keywords.copy() if is_mapped else self.keywords,
            self.place,
            learn=learn,
        )

    def rebuild(self, columns: SubscriptionColumns, node: int, motion: Motion | None) -> Int32:
        """Build *node* anew from what hangs beneath it; the messages that were kept there.

        A leaf that is too large is split, a node that has become small is a leaf again.
        """
        alternative, clause, message = self._gather(node)
        before = int(self.tree.node[node * FIELDS + COUNT])
        clear(self.tree, node, self.ways[0].node)
        entries = entries_of(columns, alternative, clause, self.keywords, self.place, learn=False)
        self._construct(node, entries, motion)
        after = int(self.tree.node[node * FIELDS + COUNT])
        count_subtree(self.tree, node, after - before)
        self.rebuilt += 1
        return message

    def _gather(self, node: int) -> tuple[Int32, UInt8, Int32]:
        """The entries at and beneath *node*, and the messages, each once."""
        stack = self.ways[0].node
        found = np.zeros(2, np.int64)
        nothing = np.zeros(0, np.int32)
        gather(self.tree, node, stack, nothing, np.zeros(0, np.uint8), nothing, found)
        alternative, clause = np.empty(found[0], np.int32), np.empty(found[0], np.uint8)
        message = np.empty(found[1], np.int32)
        gather(self.tree, node, stack, alternative, clause, message, found)
        entry = np.unique(alternative.astype(np.int64) * 256 + clause)
        return (
            read_only((entry >> 8).astype(np.int32)),
            read_only((entry & 255).astype(np.uint8)),
            np.unique(message),
        )

    def is_dirty(self, node: int) -> bool:
        """Whether *node* is still there and waits to be looked after."""
        fields = self.tree.node[node * FIELDS : (node + 1) * FIELDS]
        return bool(fields[KIND] != FREE and fields[FLAGS] & DIRTY)

    def unmark(self, nodes: Iterable[int]) -> None:
        """Let *nodes* not wait any more."""
        for node in nodes:
            self.tree.node[node * FIELDS + FLAGS] &= ~DIRTY

    def has_doubled(self, added: int = 0) -> bool:
        """Whether there are, with *added* ones, twice as many entries as when all was built."""
        return self.entries + added > 2 * max(self.built, self.policy.leaf)

    @property
    def is_worn(self) -> bool:
        """Whether it is time to build all anew.

        More places or slots are wasted than used, keywords have doubled, or many entries are
        beyond the region that the root was built for.
        """
        counter = self.tree.counter
        return bool(
            self.has_doubled()
            or counter[WASTED] > max(1024, counter[PLACES] // 2)
            or counter[SLOTS] > max(4096, 4 * counter[COPIES])
            or self.keywords.count > 2 * max(1024, self.built_keywords)
            or counter[OUTSIDE] > max(self.policy.leaf, self.entries // 5)
        )

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.tree) + self.keywords.nbytes


def _place_of(columns: SubscriptionColumns) -> int:
    """The attribute that most regions are about; −1 where there is none."""
    is_region = (columns.kind >= BOX) & (columns.kind < NEGATED)
    counts = np.bincount(columns.attribute[is_region])
    return int(counts.argmax()) if len(counts) else -1


def _matched_strings(columns: SubscriptionColumns) -> UInt8:
    """1 for each attribute that must be one of some strings."""
    attributes = columns.attribute[columns.kind == ONE_OF]
    return (np.bincount(attributes) > 0).astype(np.uint8)


def _hull(entries: Entries) -> Float64:
    """What surrounds all boxes that are somewhere; west above east where there is none."""
    box = entries.box.reshape(-1, 4).astype(np.float64)
    box = box[np.isfinite(box).all(axis=1)]
    if not len(box):
        return np.array([0.0, 0.0, -1.0, -1.0])
    return np.concatenate([box[:, :2].min(axis=0), box[:, 2:].max(axis=0)])


def _sample_of_places(history: EventColumns, place: int) -> tuple[Float64, Float64]:
    """Where some of the messages in *history* were."""
    points = points_of(history, place)
    points = points[np.isfinite(points[:, 0])]
    points = points[:: max(1, len(points) // _MOST_PLACES)]
    return points[:, 0].copy(), points[:, 1].copy()


def _new_work(count: int, policy: Policy) -> Work:
    fan = max(policy.fanout + 4, DIGITS, 256)
    steps = policy.partition == WORDS["partition"].index("dp")
    return Work(
        segment=np.empty(3 * count + 1024, np.int32),
        pending=np.empty(3 * (64 + 2 * count // policy.leaf), np.int64),
        made=np.empty(64 + 4 * count // policy.leaf, np.int32),
        target=np.empty(count, np.int32),
        rank=np.empty(count + 1, np.int32),
        other=np.empty(max(count, fan), np.int32),
        weight=np.empty(count + 2),
        likely=np.empty(count + 2),
        cut=np.empty(fan, np.int32),
        tally=np.empty(fan, np.int64),
        line=np.empty(2 * fan),
        expected=np.empty(2),
        edge=np.empty(8 * SAMPLE),
        best=np.empty(20_000 if steps else 0),
        choice=np.empty(4_000_000 if steps else 0, np.int32),
    )
