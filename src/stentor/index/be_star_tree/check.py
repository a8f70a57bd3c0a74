"""The invariants of the BE*-Tree, asserted in plain Python: for tests."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from stentor.encoding.columns import Int64, SubscriptionColumns
from stentor.encoding.kinds import (
    INTERVAL,
    MEMBERSHIP,
    MISSING,
    NEGATED,
    REGIONS,
    is_among,
)
from stentor.index.be_star_tree import layout as at
from stentor.index.be_star_tree.layout import (
    AXES,
    HASH,
    NONE,
    ROOT_NODE,
    SLOTS,
    VALUE,
    BEReadArrays,
    X,
    Y,
)
from stentor.index.be_star_tree.remove import LARGE
from stentor.index.be_star_tree.state import BEStarTreeState

Interval = tuple[float, float]
EMPTY: Interval = (math.inf, -math.inf)


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
            self.hulls[dimension] = _hull(self.hulls.get(dimension, EMPTY), interval)
        self.weights = np.maximum(self.weights, other.weights)
        self.records += other.records


def check_tree(store: BEStarTreeState, columns: SubscriptionColumns, live: Int64) -> None:
    """Assert that *store* holds the alternatives *live*, each once, and that bounds are tight."""
    checker = _Checker(store, columns)
    found = checker.bucket(ROOT_NODE, NONE, NONE, [])
    assert found.records == store.records == len(checker.seen)
    assert set(live.tolist()) <= checker.seen.keys(), "a live alternative is not in the tree"
    assert checker.buckets == store.buckets
    checker.runs.sort()
    for (_, stop), (start, _) in zip(checker.runs, checker.runs[1:], strict=False):
        assert stop <= start, "runs overlap"
    if not store.is_mapped:
        home = store.tree.home
        assert {a: int(home[a]) for a in np.flatnonzero(home != NONE).tolist()} == checker.seen
        assert store.tree.state[at.PENDING] == 0
        assert not store.scratch.tally.any()


class _Checker:
    def __init__(self, store: BEStarTreeState, columns: SubscriptionColumns) -> None:
        self.tree: BEReadArrays = store.reading
        self.settings = store.settings
        self.key_of = store.tree.key_of
        self.proved = store.tree.proved
        self.columns = columns
        self.seen: dict[int, int] = {}
        self.offset = store.tree.offset
        self.usual, self.heaviest = store.tree.usual, store.tree.heaviest
        self.is_mapped = store.is_mapped
        self.clusters: dict[int, int] = {}  # by p-node
        self.runs: list[tuple[int, int]] = []
        self.buckets = 0

    def bucket(self, node: int, owner: int, above: int, path: list[int]) -> Beneath:
        """Assert what holds for the c-node *node*, to which the dimensions *path* led."""
        word, number = self.tree.word, self.tree.number
        self.buckets += 1
        self._run(node)
        assert (word[node + at.PARTITION], word[node + at.ABOVE]) == (owner, above)
        assert self.tree.code[2 * (node + at.DEPTH)] == len(path)
        own, leaf = Beneath(), self._leaf(node, path)
        self._encloses(node, leaf, path)
        own.add(leaf)
        directory, dimensions = self._directory(node)
        if directory:
            self._run(int(word[node + at.DIRECTORY]))
        assert dimensions == sorted(set(dimensions))
        assert not set(dimensions) & set(path), "no attribute is twice on a path"
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
        self.clusters[owner] = self.clusters.get(owner, 0) + 1
        if path:
            assert (number[node + at.OWN_LOW], number[node + at.OWN_HIGH]) == own.hulls.get(
                path[0], EMPTY
            )
            self._tight(node, at.ALL_SUMMARY, at.LOW, beneath, path)
        return beneath

    def _tight(self, node: int, summary: int, which: int, found: Beneath, path: list[int]) -> None:
        """Assert that bounds of *node* are those of what was *found*, on each of *path*."""
        half = self.tree.half[2 * (node + summary) : 2 * (node + summary) + at.SUMMARY]
        assert half.tolist() == found.weights.tolist(), "summaries are the greatest beneath"
        for level, dimension in enumerate(path):
            box = node + at.BOXES + at.BOX_WORDS * level + which
            low, high = self.tree.number[box : box + 2].tolist()
            assert (low, high) == found.hulls.get(dimension, EMPTY), "boxes are hulls"

    def _capacity(self, node: int) -> tuple[int, int]:
        """How many records the leaf of *node* may have, and how many of it are dead."""
        capacity, dead = self.tree.code[2 * (node + at.CAPACITY) : 2 * (node + at.CAPACITY + 1)]
        return int(capacity), int(dead)

    def _encloses(self, node: int, leaf: Beneath, path: list[int]) -> None:
        """Assert that the bounds of a *leaf* are tight, or, with dead records in it, none less.

        They count as its own then: the bounds above are compared with them.
        """
        if not self._capacity(node)[1]:
            self._tight(node, at.LEAF_SUMMARY, at.LEAF_LOW, leaf, path)
            return
        summary = 2 * (node + at.LEAF_SUMMARY)
        half = self.tree.half[summary : summary + at.SUMMARY]
        assert (half >= leaf.weights).all()
        leaf.weights = half.copy()
        for level, dimension in enumerate(path):
            box = node + at.BOXES + at.BOX_WORDS * level + at.LEAF_LOW
            low, high = self.tree.number[box : box + 2].tolist()
            assert (low, high) == _hull((low, high), leaf.hulls[dimension])
            leaf.hulls[dimension] = low, high

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
        self._run(partition)
        assert word[partition + at.DIMENSION] == dimension
        assert word[partition + at.PARENT] == node
        found = self.bucket(int(word[partition + at.ROOT]), partition, NONE, [dimension, *path])
        assert found.records == word[partition + at.SIZE] > 0
        assert self.tree.number[partition + at.LOSS] >= 0.0
        if not self.is_mapped:  # what was saved before these were counted has none of them
            assert word[partition + at.CLUSTERS] == self.clusters[partition]
        return found

    def _leaf(self, node: int, path: list[int]) -> Beneath:
        """Assert what holds for the l-node of *node*."""
        word = self.tree.word
        leaf, count = int(word[node + at.LEAF]), int(word[node + at.LEAF_COUNT])
        assert (leaf == NONE) == (count == 0)
        capacity, dead = self._capacity(node)
        assert 2 * dead <= count, "a leaf is swept when more than half of it is dead"
        assert not dead or count > LARGE * self.settings.capacity, (
            "only a large leaf has dead records"
        )
        found = Beneath(records=count - dead)
        location = leaf
        if count:
            self._run(leaf)
        used = set(self._directory(node)[1])
        starts: list[int] = []
        for _ in range(count):
            start, (record, location) = location, self._record(location)
            starts.append(start - leaf)
            if int(self.tree.code[2 * start + 1]) & at.DEAD:
                dead -= 1
                continue
            assert record.alternative not in self.seen
            self.seen[record.alternative] = node
            assert self.is_mapped or self.offset[record.alternative] == start - leaf
            assert set(path) <= record.boxes.keys(), "what led here is among its boxes"
            assert not used & record.boxes.keys(), "a p-node would have taken it"
            hulls = {dimension: record.boxes[dimension] for dimension in path}
            found.add(Beneath(hulls, record.weights))
        assert not dead
        self._sketch(node, starts)
        assert location == leaf + word[node + at.LEAF_WORDS] or not count
        assert count <= capacity, "no leaf overflows"
        is_raised = capacity > self.settings.capacity
        assert not is_raised or count > self.settings.capacity, (
            "capacity is raised only while it is needed"
        )
        return found

    def _sketch(self, node: int, starts: list[int]) -> None:
        """Assert that the sketch of the leaf of *node* bounds the weights of each record in it."""
        code, half = self.tree.code, self.tree.half
        sketch = int(code[2 * (node + at.DEPTH) + 1])
        if sketch == at.NO_PROMISES:
            assert not starts
            return
        self._run(sketch)
        rows, first = int(self.tree.word[sketch]), 2 * (sketch + 1)
        assert len(starts) <= rows
        assert code[first + 3 * rows : first + 3 * rows + len(starts)].tolist() == starts
        for row, start in enumerate(starts):
            position = int(self.tree.word[node + at.LEAF]) + start
            assert half[first + row] >= self._promise(position) * (1 - 1e-6)
            assert half[first + rows + row] == half[2 * position + 2]

    def _promise(self, location: int) -> float:
        """The promise of the record at *location*; each of its weights is known."""
        weights = self._weights(location)
        del weights[NONE]
        assert all(self.heaviest[dimension] >= 0.99 * weights[dimension] for dimension in weights)
        assert all(self.usual[dimension] > 0 for dimension in weights if weights[dimension] > 0)
        return float(sum(weights[dimension] * self.usual[dimension] for dimension in weights))

    def _weights(self, position: int) -> dict[int, float]:
        """The weights of the record at *position* by dimension; under NONE what is no box."""
        code, half = self.tree.code, self.tree.half
        head = int(code[2 * position + 1])
        weights = {NONE: float(half[2 * position + 3])}
        box = position + at.RECORD_WORDS
        for _ in range(head & at.COUNT_MASK):
            dimension = int(code[2 * box])
            if head & at.NARROW:
                bits = np.array([dimension >> 16 << 16], np.int32)
                weights[dimension & 0xFFFF] = float(bits.view(np.float32)[0])
            else:
                weights[dimension] = float(half[2 * box + 1])
            box += at.NARROW_BOX if head & at.NARROW else at.WIDE_BOX
        return weights

    def _record(self, position: int) -> tuple[Record, int]:
        """The record at *position*, compared with its alternative; and where the next one is."""
        code, half, number = self.tree.code, self.tree.half, self.tree.number
        alternative, head = int(code[2 * position]), int(code[2 * position + 1])
        count, is_narrow = head & at.COUNT_MASK, bool(head & at.NARROW)
        weights = np.zeros(at.SUMMARY)
        weights[at.TOTAL], weights[at.OTHER] = half[2 * position + 2], half[2 * position + 3]
        weights[at.PROMISE] = self._promise(position)
        boxes = {}
        own = self._weights(position)
        box = position + at.RECORD_WORDS
        for _ in range(count):
            dimension, low = int(code[2 * box]), float(number[box + 1])
            if is_narrow:
                dimension, high = dimension & 0xFFFF, low + float(half[2 * box + 1])
            else:
                high = float(number[box + 2])
            assert dimension not in boxes
            boxes[dimension] = (low, high)
            weights[dimension % SLOTS] += own[dimension]
            box += at.NARROW_BOX if is_narrow else at.WIDE_BOX
        is_covered = bool(head & at.COVERED)
        assert is_covered == bool(self.proved[alternative])
        self._compare_with(alternative, boxes, weights, is_covered)
        rounded = weights.astype(np.float32)
        up = np.nextafter(rounded, np.float32(np.inf))
        return Record(alternative, is_covered, boxes, np.where(rounded < weights, up, rounded)), box

    def _compare_with(
        self,
        alternative: int,
        boxes: dict[int, Interval],
        weights: np.ndarray[tuple[int], np.dtype[np.float64]],
        is_covered: bool,
    ) -> None:
        """Assert that *boxes* and *weights* bound what *alternative* tests."""
        columns, key_of = self.columns, self.key_of
        start, stop = columns.predicate_start[alternative : alternative + 2].tolist()
        assert weights[at.TOTAL] >= columns.weight[start:stop].sum() * (1 - 1e-12)
        parts = weights[: at.SLOTS].sum() + weights[at.OTHER]
        assert parts >= columns.weight[start:stop].sum() * (1 - 1e-6)
        wanted: dict[int, list[Interval]] = {}
        for predicate in range(start, stop):
            for key, interval in _intervals(columns, predicate):
                wanted.setdefault(key, []).append(interval)
        for dimension, interval in boxes.items():
            intervals = wanted.pop(int(key_of[dimension]))
            low, high = max(one[0] for one in intervals), min(one[1] for one in intervals)
            assert interval == (low, high) or low > high
        if is_covered:
            assert (columns.kind[start:stop] == INTERVAL).all()
            assert not wanted
            assert len(boxes) == stop - start
        assert not wanted or len(boxes) >= self.settings.width

    def _run(self, run: int) -> None:
        size = (4 + (self.tree.word[run - 1] & 3)) << ((self.tree.word[run - 1] >> 2) + 1)
        self.runs.append((run - 1, run - 1 + int(size)))


def _intervals(columns: SubscriptionColumns, predicate: int) -> list[tuple[int, Interval]]:
    """What *predicate* leaves possible: an interval for each axis that it is about."""
    kind, key = int(columns.kind[predicate]), AXES * int(columns.attribute[predicate])
    if is_among(kind, REGIONS):
        pair = columns.operand_start[predicate]
        (west, south), (east, north) = (
            pairs[pair : pair + 2].tolist() for pairs in (columns.pair_low, columns.pair_high)
        )
        if kind & NEGATED or not west <= east:
            return []
        return [(key + X, (west, east)), (key + Y, (south, north))]
    operand, stop = int(columns.operand_start[predicate]), int(columns.operand_stop[predicate])
    interval = float(columns.low[predicate]), float(columns.high[predicate])
    if kind == MEMBERSHIP and operand < stop and (stop == operand + 1 or len(set(interval)) == 1):
        hashes = [float(int(one) >> 11) for one in columns.string_hash[operand:stop]]
        return [(key + HASH, (min(hashes), max(hashes)))]
    if kind == MISSING:
        return []
    return [(key + VALUE, interval)]


def _hull(one: Interval, other: Interval) -> Interval:
    return min(one[0], other[0]), max(one[1], other[1])
