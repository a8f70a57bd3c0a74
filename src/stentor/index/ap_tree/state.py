"""The tree and its keywords: built, entries inserted and removed, nodes rebuilt."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
    all_read_only,
    read_only,
)
from stentor.encoding.kinds import MEMBERSHIP, NEGATED, REGIONS, are_among
from stentor.index.ap_tree.build import (
    MADE,
    NEED_BRANCHES,
    NEED_LINES,
    NEED_NODES,
    NEED_SEGMENT,
    NEED_SLOTS,
    PENDING,
    PROGRESS,
    STAND_INS,
    construct,
    empty_tree,
)
from stentor.index.ap_tree.cost_model import Motion
from stentor.index.ap_tree.entries import entries_of, sort_keys
from stentor.index.ap_tree.insert import (
    ApInsertScratch,
    insert_capacity,
    insert_entries,
    insert_scratch,
)
from stentor.index.ap_tree.keyword_cuts import HALVINGS, MOST_CHOICES
from stentor.index.ap_tree.keywords import KeywordTable, order_of
from stentor.index.ap_tree.layout import (
    BRANCHES,
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
    ROOT,
    SLOTS,
    WASTED,
    ApEntries,
    ApKernelSettings,
    UInt16,
)
from stentor.index.ap_tree.match import points_of
from stentor.index.ap_tree.nodes import grow, trimmed
from stentor.index.ap_tree.partitions import SAMPLE, ApBuildScratch, EventSample
from stentor.index.ap_tree.rebalance import clear, count_subtree, gather, measure_shares
from stentor.index.ap_tree.remove import remove_entries
from stentor.index.ap_tree.settings import WORDS, ApTreeSettings
from stentor.index.sort import DIGITS

ALL_CLAUSES: UInt16 = read_only(np.zeros(0, np.uint16))


#: Leaves that capacity is made for at least, when it is missing.
_MORE = 1024

#: Events of a history that say where events are.
_MOST_LOCATIONS = 20_000


def policy_of(settings: ApTreeSettings) -> ApKernelSettings:
    """*settings* as kernels take them."""
    return ApKernelSettings(
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


class ApTreeState:
    """An AP-Tree of alternatives.

    Invariant: an entry is in exactly the leaves that its keywords and its box lead to.
    """

    def __init__(self, settings: ApTreeSettings) -> None:
        self.settings = settings
        self.policy = policy_of(settings)
        self.location = -1  # the attribute whose regions count
        self.tree = empty_tree(np.zeros(4), 0, has_location=False)
        self.keywords = KeywordTable(self.tree.counter)
        self.entries = 0
        self.built = 0  # entries when all was built
        self.built_keywords = 0
        self.rebuilt = 0  # how often a node or the tree was rebuilt
        self.stand_ins = 0  # k-nodes that were cut by the heuristic although dp is set
        self._sample_x = self._sample_y = np.zeros(0)
        self._work: ApBuildScratch | None = None
        self._walk, self._other_walk = insert_scratch(self.tree), insert_scratch(self.tree)

    # Building.

    @classmethod
    def build(
        cls,
        settings: ApTreeSettings,
        columns: SubscriptionColumns,
        alternatives: Int64,
        history: EventColumns | None,
        motion: Motion | None = None,
    ) -> ApTreeState:
        """A tree of *alternatives*, with probabilities from *history* where there is one."""
        store = cls(settings)
        store.location = _location_attribute(columns)
        store.keywords.matched_strings = _matched_strings(columns)
        entries = entries_of(
            columns,
            alternatives.astype(np.int32),
            ALL_CLAUSES,
            store.keywords,
            store.location,
            learn=True,
        )
        entries = store._order(entries, history)
        region = _hull(entries)
        store.tree = empty_tree(
            region,
            store.keywords.count,
            len(entries.alternative),
            has_location=bool(region[0] <= region[2]),
        )
        store.keywords.rebase(store.tree.counter)
        store.entries = store.built = len(entries.alternative)
        store.built_keywords = store.keywords.count
        if history is not None and store.location >= 0:
            store._sample_x, store._sample_y = _sample_of_locations(history, store.location)
        store._construct(ROOT, entries, motion)
        store.tree = trimmed(store.tree)
        store._work = None
        return store

    def _order(self, entries: ApEntries, history: EventColumns | None) -> ApEntries:
        """*entries* with the ranks that keywords have from now on."""
        keys = entries.key[: entries.key_start[-1]]
        wanted = np.bincount(keys, minlength=self.keywords.count)
        rank_of = order_of(wanted, self.settings.order)
        self.keywords.reorder(rank_of)
        ordered = np.empty(len(wanted), np.int64)
        ordered[rank_of] = wanted
        self.keywords.learn(ordered, history, self.settings.terms)
        ranked = rank_of[keys]
        sort_keys(entries.key_start, ranked)
        return all_read_only(entries._replace(key=ranked))

    def _construct(self, node: int, entries: ApEntries, motion: Motion | None) -> None:
        """Build all beneath *node*, an empty leaf, from *entries*."""
        somewhere = np.flatnonzero(entries.box[0::4] <= entries.box[2::4])
        count = len(somewhere)
        leaf = self.policy.leaf
        needed = {NODES: 64 + 4 * count // leaf, BRANCHES: 64 + 6 * count // leaf, SLOTS: count}
        self.tree = grow(self.tree, needed)
        work = self._work_for(len(entries.alternative))
        work.segment[:count] = somewhere
        work.pending[:3] = node, 0, count
        progress = np.zeros(PROGRESS, np.int64)
        progress[PENDING], progress[MADE] = 1, 1
        work.made[0] = node
        self.tree.counter[COPIES] += count
        sample = self._sample(entries, motion)
        most = self.policy.copies * max(self.entries, 1024)
        while not construct(
            self.tree,
            entries,
            read_only(self.keywords.likely),
            sample,
            self.policy,
            work,
            most,
            progress,
        ):
            needs = progress.tolist()
            self.tree = grow(
                self.tree,
                {
                    NODES: needs[NEED_NODES],
                    BRANCHES: needs[NEED_BRANCHES],
                    GRID_LINES: needs[NEED_LINES],
                    SLOTS: needs[NEED_SLOTS],
                },
            )
            work = self._more_work(work, needs[NEED_SEGMENT], needs[NEED_NODES] + needs[MADE])
        measure_shares(self.tree, work.made, int(progress[MADE]))
        if progress[STAND_INS] and not self.stand_ins:
            warnings.warn(
                "ap_tree partition=dp: a node has too many keywords for optimal cuts, so the "
                "heuristic cuts it; a smaller fanout allows more of them (stats() counts such "
                "nodes)",
                stacklevel=2,
            )
        self.stand_ins += int(progress[STAND_INS])

    def _sample(self, entries: ApEntries, motion: Motion | None) -> EventSample:
        nothing = read_only(np.zeros(0))
        x, y = read_only(self._sample_x), read_only(self._sample_y)
        if motion is None or not self.settings.moving:
            return EventSample(x, y, nothing, nothing, 0.0)
        dx, dy = motion.of(entries.alternative)
        return EventSample(x, y, read_only(dx), read_only(dy), motion.rate)

    def _work_for(self, count: int) -> ApBuildScratch:
        if self._work is None or len(self._work.target) < count:
            self._work = _new_work(count, self.policy)
        return self._work

    def _more_work(self, work: ApBuildScratch, segment: int, made: int) -> ApBuildScratch:
        """*work* with the capacity that was missing."""
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
        """Insert *alternatives*; the nodes to be rebalanced."""
        entries = self.entries_of(columns, alternatives, learn=True)
        self.keywords.expect_new()
        self.entries += len(entries.alternative)
        return self.run_to_end(
            len(entries.alternative),
            lambda done, used: insert_entries(
                self.tree, entries, done, self.policy, self.entries, self.walks[0], used
            ),
        )

    def remove(self, columns: SubscriptionColumns, alternatives: Int64) -> list[int]:
        """Remove *alternatives*; the nodes to be rebalanced."""
        entries = self.entries_of(columns, alternatives, learn=False)
        self.entries -= len(entries.alternative)
        return self.run_to_end(
            len(entries.alternative),
            lambda done, used: remove_entries(
                self.tree, entries, done, self.policy, self.entries, self.walks[0], used
            ),
        )

    def run_to_end(self, count: int, step: Callable[[int, Int64], int]) -> list[int]:
        """Run *step* again from where it stopped for lack of capacity, until *count* are done.

        The nodes to be rebalanced, which it counts.
        """
        used, done, more = np.zeros(1, np.int64), 0, _MORE
        while True:
            before, done = done, step(done, used)
            if done == count:
                return [int(node) for node in self._walk.dirty[: used[0]]]
            more = 2 * more if done == before else _MORE
            self.grow(more)

    def grow(self, more: int) -> None:
        """Make capacity for *more* leaves and slots in them."""
        self.tree = grow(
            self.tree,
            {
                NODES: more,
                SLOTS: max(more * 16, int(self.tree.counter[SLOTS]) // 4),
            },
        )

    @property
    def walks(self) -> tuple[ApInsertScratch, ApInsertScratch]:
        """Scratch for two walks through the tree, however it has grown."""
        if len(self._walk.node) < insert_capacity(self.tree):
            dirty = self._walk.dirty
            self._walk, self._other_walk = insert_scratch(self.tree), insert_scratch(self.tree)
            self._walk.dirty[: len(dirty)] = dirty
        return self._walk, self._other_walk

    def entries_of(
        self, columns: SubscriptionColumns, alternatives: Int64, *, learn: bool
    ) -> ApEntries:
        """The entries of *alternatives* in this tree."""
        is_mapped = not self.keywords.rank.flags.writeable
        return entries_of(
            columns,
            alternatives.astype(np.int32),
            ALL_CLAUSES,
            self.keywords.copy() if is_mapped else self.keywords,
            self.location,
            learn=learn,
        )

    def rebuild(self, columns: SubscriptionColumns, node: int, motion: Motion | None) -> Int32:
        """Rebuild *node* from its subtree; the events that were listed there.

        A leaf that is too large is split, a node that has become small becomes a leaf.
        """
        alternative, clause, event = self._gather(node)
        before = int(self.tree.node[node * FIELDS + COUNT])
        clear(self.tree, node, self.walks[0].node)
        entries = entries_of(
            columns, alternative, clause, self.keywords, self.location, learn=False
        )
        self._construct(node, entries, motion)
        after = int(self.tree.node[node * FIELDS + COUNT])
        count_subtree(self.tree, node, after - before)
        self.rebuilt += 1
        return event

    def _gather(self, node: int) -> tuple[Int32, UInt16, Int32]:
        """The entries at and beneath *node*, and the events, each once."""
        stack = self.walks[0].node
        found = np.zeros(2, np.int64)
        nothing = np.zeros(0, np.int32)
        gather(self.tree, node, stack, nothing, np.zeros(0, np.uint16), nothing, found)
        alternative, clause = np.empty(found[0], np.int32), np.empty(found[0], np.uint16)
        event = np.empty(found[1], np.int32)
        gather(self.tree, node, stack, alternative, clause, event, found)
        entry = np.unique(alternative.astype(np.int64) << 16 | clause)
        return (
            read_only((entry >> 16).astype(np.int32)),
            read_only((entry & 0xFFFF).astype(np.uint16)),
            np.unique(event),
        )

    def is_dirty(self, node: int) -> bool:
        """Whether *node* still exists and is to be rebalanced."""
        fields = self.tree.node[node * FIELDS : (node + 1) * FIELDS]
        return bool(fields[KIND] != FREE and fields[FLAGS] & DIRTY)

    def unmark(self, nodes: Iterable[int]) -> None:
        """*nodes* are not to be rebalanced any more."""
        for node in nodes:
            self.tree.node[node * FIELDS + FLAGS] &= ~DIRTY

    def has_doubled(self, added: int = 0) -> bool:
        """Whether there are, with *added* ones, twice as many entries as when all was built."""
        return self.entries + added > 2 * max(self.built, self.policy.leaf)

    @property
    def needs_rebuild(self) -> bool:
        """Whether it is time to rebuild the tree.

        Entries or keywords have doubled, too many branches or slots are wasted, there are twice the
        copies that a tree is built with, or many entries are outside the region that the root was
        built for.
        """
        counter = self.tree.counter
        return bool(
            self.has_doubled()
            or counter[WASTED] > max(1024, counter[BRANCHES] // 2)
            or counter[COPIES] > 2 * self.policy.copies * max(1024, self.entries)
            or counter[SLOTS] > max(4096, 4 * counter[COPIES])
            or self.keywords.count > 2 * max(1024, self.built_keywords)
            or counter[OUTSIDE] > max(self.policy.leaf, self.entries // 5)
        )

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.tree) + self.keywords.nbytes


def _location_attribute(columns: SubscriptionColumns) -> int:
    """The attribute that most regions are about; −1 where there is none."""
    is_region = are_among(columns.kind, REGIONS) & (columns.kind & NEGATED == 0)
    counts = np.bincount(columns.attribute[is_region])
    return int(counts.argmax()) if len(counts) else -1


def _matched_strings(columns: SubscriptionColumns) -> UInt8:
    """1 for each attribute that some predicate compares with whole strings."""
    attributes = columns.attribute[columns.kind == MEMBERSHIP]
    return (np.bincount(attributes) > 0).astype(np.uint8)


def _hull(entries: ApEntries) -> Float64:
    """The bounds of all boxes that are bounded; west above east where there is none."""
    box = entries.box.reshape(-1, 4).astype(np.float64)
    box = box[np.isfinite(box).all(axis=1)]
    if not len(box):
        return np.array([0.0, 0.0, -1.0, -1.0])
    return np.concatenate([box[:, :2].min(axis=0), box[:, 2:].max(axis=0)])


def _sample_of_locations(history: EventColumns, location: int) -> tuple[Float64, Float64]:
    """The locations of some events in *history*: each as likely, in random order.

    So the first of those in any region are a sample, however the history is ordered.
    """
    points = points_of(history, location)
    points = points[np.isfinite(points[:, 0])]
    some = min(len(points), _MOST_LOCATIONS)
    points = points[np.random.default_rng(0).choice(len(points), some, replace=False)]
    return points[:, 0].copy(), points[:, 1].copy()


def _new_work(count: int, policy: ApKernelSettings) -> ApBuildScratch:
    fan = max(policy.fanout + 4, DIGITS, 256)
    is_optimal = policy.partition == WORDS["partition"].index("dp")
    choices = min(count, policy.fanout) * (count + 1)
    return ApBuildScratch(
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
        best=np.empty(2 * (count + 1) if is_optimal else 0),
        choice=np.empty(min(MOST_CHOICES, choices) if is_optimal else 0, np.int32),
        halving=np.empty(HALVINGS, np.int64),
    )
