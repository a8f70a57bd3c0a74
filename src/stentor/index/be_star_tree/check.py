"""The invariants of the BE*-Tree, asserted in plain Python: for tests."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from stentor.encoding.columns import (
    BOX,
    KIND_MASK,
    MISSING,
    NEGATED,
    SPAN,
    Int64,
    SubscriptionColumns,
)
from stentor.index.be_star_tree import layout as at
from stentor.index.be_star_tree.layout import AXES, NONE, ROOT_NODE, SLOTS, VALUE, Reading, X, Y
from stentor.index.be_star_tree.store import TreeStore

Interval = tuple[float, float]
NOTHING: Interval = (math.inf, -math.inf)


@dataclass
class Record:
    """A record as it is read back."""

    alternative: int
    is_covered: bool
    boxes: dict[int, Interval]  # by dimension
    weights: np.ndarray[tuple[int], np.dtype[np.float32]]  # as a summary


@dataclass
class Beneath:
    """What is beneath a node: hulls by dimension, the greatest weights, records."""

    hulls: dict[int, Interval] = field(default_factory=dict)
    weights: np.ndarray[tuple[int], np.dtype[np.float32]] = field(
        default_factory=lambda: np.zeros(at.SUMMARY, np.float32)
    )
    records: int = 0

    def add(self, other: Beneath) -> None:
        for dimension, interval in other.hulls.items():
            self.hulls[dimension] = _hull(self.hulls.get(dimension, NOTHING), interval)
        self.weights = np.maximum(self.weights, other.weights)
        self.records += other.records


def check_tree(store: TreeStore, columns: SubscriptionColumns, live: Int64) -> None:
    """Assert that *store* holds the alternatives *live*, each once, and that bounds are tight."""
    checker = _Checker(store, columns)
    found = checker.bucket(ROOT_NODE, NONE, NONE, [])
    assert found.records == store.records == len(checker.seen)
    assert set(live.tolist()) <= checker.seen.keys(), "each live alternative is filed"
    assert checker.buckets == store.buckets
    checker.slabs.sort()
    for (_, stop), (start, _) in zip(checker.slabs, checker.slabs[1:], strict=False):
        assert stop <= start, "slabs do not overlap"
    if not store.is_mapped:
        home = store.tree.home
        assert {a: int(home[a]) for a in np.flatnonzero(home != NONE).tolist()} == checker.seen
        assert store.tree.state[at.PENDING] == 0
        assert not store.desk.tally.any()


class _Checker:
    def __init__(self, store: TreeStore, columns: SubscriptionColumns) -> None:
        self.tree: Reading = store.reading
        self.knobs = store.knobs
        self.key_of = store.tree.key_of
        self.proved = store.tree.proved
        self.columns = columns
        self.seen: dict[int, int] = {}
        self.slabs: list[tuple[int, int]] = []
        self.buckets = 0

    def bucket(self, node: int, owner: int, above: int, path: list[int]) -> Beneath:
        """Assert what holds for the c-node *node*, to which the dimensions *path* led."""
        word, number = self.tree.word, self.tree.number
        self.buckets += 1
        self._slab(node)
        assert (word[node + at.OWNER], word[node + at.ABOVE]) == (owner, above)
        assert word[node + at.DEPTH] == len(path)
        own, leaf = Beneath(), self._leaf(node, path)
        own.add(leaf)
        directory, dimensions = self._directory(node)
        if directory:
            self._slab(int(word[node + at.DIRECTORY]))
        assert dimensions == sorted(set(dimensions))
        assert not set(dimensions) & set(path), "no attribute stands twice on a path"
        for partition, dimension in zip(directory, dimensions, strict=True):
            own.add(self._partition(partition, node, dimension, path))
        beneath = Beneath()
        beneath.add(own)
        sides = []
        for side in (at.LEFT, at.RIGHT):
            child = int(word[node + side])
            if child != NONE:
                inner = self.bucket(child, owner, node, path)
                assert inner.records, "no bucket is empty for good"
                beneath.add(inner)
                sides.append(inner.hulls[path[0]])
        if len(sides) == 2:
            assert sides[0][1] < sides[1][0], "left and right are disjoint"
        if path:
            assert (number[node + at.OWN_LOW], number[node + at.OWN_HIGH]) == own.hulls.get(
                path[0], NOTHING
            )
            self._tight(node, at.ALL_SUMMARY, at.LOW, beneath, path)
        self._tight(node, at.LEAF_SUMMARY, at.LEAF_LOW, leaf, path)
        return beneath

    def _tight(self, node: int, summary: int, which: int, found: Beneath, path: list[int]) -> None:
        """Assert that bounds of *node* are those of what was *found*, on each of *path*."""
        half = self.tree.half[2 * (node + summary) : 2 * (node + summary) + at.SUMMARY]
        assert half.tolist() == found.weights.tolist(), "summaries are the greatest beneath"
        for level, dimension in enumerate(path):
            box = node + at.BOXES + at.BOX_WORDS * level + which
            low, high = self.tree.number[box : box + 2].tolist()
            assert (low, high) == found.hulls.get(dimension, NOTHING), "boxes are hulls"

    def _directory(self, node: int) -> tuple[list[int], list[int]]:
        """The p-nodes of *node*, and their dimensions."""
        count, start = (
            int(self.tree.word[node + at.PARTITIONS]),
            self.tree.word[node + at.DIRECTORY],
        )
        assert (start == NONE) == (count == 0)
        if not count:
            return [], []
        entries = self.tree.code[2 * start : 2 * (start + count)].reshape(-1, 2)
        return entries[:, 1].tolist(), entries[:, 0].tolist()

    def _partition(self, partition: int, node: int, dimension: int, path: list[int]) -> Beneath:
        word = self.tree.word
        self._slab(partition)
        assert word[partition + at.DIMENSION] == dimension
        assert word[partition + at.PARENT] == node
        found = self.bucket(int(word[partition + at.ROOT]), partition, NONE, [dimension, *path])
        assert found.records == word[partition + at.SIZE] > 0
        assert self.tree.number[partition + at.LOSS] >= 0.0
        return found

    def _leaf(self, node: int, path: list[int]) -> Beneath:
        """Assert what holds for the l-node of *node*."""
        word = self.tree.word
        leaf, count = int(word[node + at.LEAF]), int(word[node + at.LEAF_COUNT])
        assert (leaf == NONE) == (count == 0)
        found = Beneath(records=count)
        place = leaf
        if count:
            self._slab(leaf)
        used = set(self._directory(node)[1])
        for _ in range(count):
            record, place = self._record(place)
            assert record.alternative not in self.seen
            self.seen[record.alternative] = node
            assert set(path) <= record.boxes.keys(), "what led here is among its boxes"
            assert not used & record.boxes.keys(), "a p-node would have taken it"
            hulls = {dimension: record.boxes[dimension] for dimension in path}
            found.add(Beneath(hulls, record.weights))
        assert place == leaf + word[node + at.LEAF_WORDS] or not count
        capacity = int(word[node + at.CAPACITY])
        assert count <= capacity, "no leaf overflows"
        is_raised = capacity > self.knobs.capacity
        assert not is_raised or count > self.knobs.capacity, "capacity is raised for want of other"
        return found

    def _record(self, place: int) -> tuple[Record, int]:
        """The record at *place*, held against its alternative; and where the next one is."""
        code, half, number = self.tree.code, self.tree.half, self.tree.number
        alternative, head = int(code[2 * place]), int(code[2 * place + 1])
        count, is_narrow = head & at.COUNT_MASK, bool(head & at.NARROW)
        weights = np.zeros(at.SUMMARY)
        weights[at.TOTAL], weights[at.OTHER] = half[2 * place + 2], half[2 * place + 3]
        boxes = {}
        box = place + at.RECORD_WORDS
        for _ in range(count):
            dimension, low = int(code[2 * box]), float(number[box + 1])
            if is_narrow:
                bits = np.array([dimension >> 16 << 16], np.int32)
                weight = float(bits.view(np.float32)[0])
                dimension, high = dimension & 0xFFFF, low + float(half[2 * box + 1])
            else:
                weight, high = float(half[2 * box + 1]), float(number[box + 2])
            assert dimension not in boxes
            boxes[dimension] = (low, high)
            weights[dimension % SLOTS] += weight
            box += at.NARROW_BOX if is_narrow else at.WIDE_BOX
        is_covered = bool(head & at.COVERED)
        assert is_covered == bool(self.proved[alternative])
        self._holds_against(alternative, boxes, weights, is_covered)
        rounded = weights.astype(np.float32)
        up = np.nextafter(rounded, np.float32(np.inf))
        return Record(alternative, is_covered, boxes, np.where(rounded < weights, up, rounded)), box

    def _holds_against(
        self,
        alternative: int,
        boxes: dict[int, Interval],
        weights: np.ndarray[tuple[int], np.dtype[np.float64]],
        is_covered: bool,
    ) -> None:
        """Assert that *boxes* and *weights* bound what *alternative* asks."""
        columns, key_of = self.columns, self.key_of
        start, stop = columns.predicate_start[alternative : alternative + 2].tolist()
        assert weights[at.TOTAL] >= columns.weight[start:stop].sum() * (1 - 1e-12)
        assert weights[: at.TOTAL].sum() >= columns.weight[start:stop].sum() * (1 - 1e-6)
        asked: dict[int, list[Interval]] = {}
        for predicate in range(start, stop):
            for key, interval in _intervals(columns, predicate):
                asked.setdefault(key, []).append(interval)
        for dimension, interval in boxes.items():
            intervals = asked.pop(int(key_of[dimension]))
            low, high = max(one[0] for one in intervals), min(one[1] for one in intervals)
            assert interval == (low, high) or low > high
        if is_covered:
            assert (columns.kind[start:stop] == SPAN).all()
            assert not asked
            assert len(boxes) == stop - start
        assert not asked or len(boxes) >= self.knobs.width

    def _slab(self, slab: int) -> None:
        size = (4 + (self.tree.word[slab - 1] & 3)) << ((self.tree.word[slab - 1] >> 2) + 1)
        self.slabs.append((slab - 1, slab - 1 + int(size)))


def _intervals(columns: SubscriptionColumns, predicate: int) -> list[tuple[int, Interval]]:
    """What *predicate* leaves possible: an interval for each axis that it is about."""
    kind, key = int(columns.kind[predicate]), AXES * int(columns.attribute[predicate])
    if kind & KIND_MASK >= BOX:
        pair = columns.operand_start[predicate]
        (west, south), (east, north) = (
            pairs[pair : pair + 2].tolist() for pairs in (columns.pair_low, columns.pair_high)
        )
        if kind >= NEGATED or not west <= east:
            return []
        return [(key + X, (west, east)), (key + Y, (south, north))]
    if kind == MISSING:
        return []
    return [(key + VALUE, (float(columns.low[predicate]), float(columns.high[predicate])))]


def _hull(one: Interval, other: Interval) -> Interval:
    return min(one[0], other[0]), max(one[1], other[1])
