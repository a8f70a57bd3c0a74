"""Insertion: Algorithms 1 and 2.

A record is inserted into the leaf of the lowest bucket that its boxes lead to.
"""

from __future__ import annotations

import math

from stentor._jit import inner_kernel, kernel
from stentor.encoding.columns import Int64, SubscriptionColumns
from stentor.index.be_star_tree.buckets import (
    PASS_DOWN,
    TO_PARTITION,
    append,
    depth_of,
    new_bucket,
    widen_bounds,
)
from stentor.index.be_star_tree.layout import (
    ABOVE,
    ALL_SUMMARY,
    BOX_WORDS,
    BOXES,
    DIMENSION,
    HIGH,
    LEFT,
    LOW,
    NONE,
    PENDING,
    RECORD_WORDS,
    RECORDS,
    RIGHT,
    ROOT,
    ROOT_NODE,
    SIZE,
    STAGED,
    SUMMARY,
    UNBALANCED,
    WIDE_BOX,
    BEKernelSettings,
    BEStarTreeArrays,
    SplitScratch,
    has_capacity,
    take_run,
)
from stentor.index.be_star_tree.promises import append_promise
from stentor.index.be_star_tree.ranking import best_partition
from stentor.index.be_star_tree.rebalance import note_depth, rebalance
from stentor.index.be_star_tree.records import (
    alternative_of,
    box_on,
    high_at,
    low_at,
    stage_record,
    sum_weights,
)
from stentor.index.be_star_tree.splitting import push_if_full, split_or_partition


@kernel
def new_root(tree: BEStarTreeArrays, width: int, capacity: int) -> None:
    """Allocate the root and the staged record at ROOT_NODE and STAGED, in an empty arena."""
    new_bucket(tree, NONE, NONE, 0, capacity)
    take_run(tree, RECORD_WORDS + WIDE_BOX * width)
    tree.state[UNBALANCED] = NONE


@kernel
def insert_alternatives(
    columns: SubscriptionColumns,
    alternatives: Int64,
    start: int,
    tree: BEStarTreeArrays,
    scratch: SplitScratch,
    settings: BEKernelSettings,
) -> int:
    """Insert *alternatives* from position *start* on; where it stopped, at the latest at the end.

    It stops where capacity is missing; called again after the tree has grown it goes on. At the end
    nothing is pending.
    """
    position = start
    while True:
        if not resolve_overflows(tree, scratch, settings):
            return position
        if position == len(alternatives) or not has_capacity(tree):
            return position
        stage_record(columns, alternatives[position], tree, settings.width)
        insert_record(tree, STAGED, NONE, scratch, settings)
        position += 1


@inner_kernel
def resolve_overflows(
    tree: BEStarTreeArrays, scratch: SplitScratch, settings: BEKernelSettings
) -> bool:
    """Split or partition all buckets that overflow, then rebalance the directory that is too deep.

    False where capacity is missing.
    """
    while tree.state[PENDING] > 0:
        if not has_capacity(tree):
            return False
        tree.state[PENDING] -= 1
        if not split_or_partition(tree, tree.pending[tree.state[PENDING]], scratch, settings):
            tree.state[PENDING] += 1
            return False
    if tree.state[UNBALANCED] != NONE:
        return rebalance(tree, tree.state[UNBALANCED], scratch, settings.capacity)
    return True


@inner_kernel
def insert_record(
    tree: BEStarTreeArrays,
    record: int,
    first: int,
    scratch: SplitScratch,
    settings: BEKernelSettings,
) -> None:
    """Insert *record* into its home bucket (Algorithm 1), under the p-node *first* if given."""
    sum_weights(tree, record, scratch)
    node, partition = ROOT_NODE, first
    if partition == NONE:
        partition = best_partition(tree, node, record, settings)
    while partition != NONE:
        widen_bounds(tree, node, record, TO_PARTITION, scratch)
        tree.word[partition + SIZE] += 1
        node = home_bucket(tree, record, partition, scratch, settings)
        partition = best_partition(tree, node, record, settings)
    append(tree, node, record, scratch)
    append_promise(tree, node, tree.offset[alternative_of(tree, record)], scratch)
    tree.state[RECORDS] += 1
    push_if_full(tree, node)


@inner_kernel
def home_bucket(
    tree: BEStarTreeArrays,
    record: int,
    partition: int,
    scratch: SplitScratch,
    settings: BEKernelSettings,
) -> int:
    """The smallest bucket of *partition* that may enclose *record* (Algorithm 2).

    Buckets on the path to it are widened; it is not. Where the record would stretch a bucket too
    far, a new one is put above that.
    """
    word = tree.word
    dimension = word[partition + DIMENSION]
    gap = tree.extension[dimension]
    box = box_on(tree, record, dimension)
    low, high = low_at(tree, box), high_at(tree, record, box)
    node = int(word[partition + ROOT])
    depth = 0
    while True:
        left, right = word[node + LEFT], word[node + RIGHT]
        if left == NONE and right == NONE:
            note_depth(tree, partition, node, depth)
            return node
        if grows_too_much(tree, node, low, high, settings.most_growth):
            return expand_upward(tree, node, partition, settings.capacity)
        depth += 1
        to_left = left != NONE and meets(tree, left, low, high, gap)
        to_right = right != NONE and meets(tree, right, low, high, gap)
        if to_left and to_right:
            return node
        if not to_left and not to_right:
            if left == NONE or right == NONE:
                return node
            to_left = is_nearer_left(tree, left, right, low, high)
        widen_bounds(tree, node, record, PASS_DOWN, scratch)
        node = int(left if to_left else right)


@inner_kernel
def meets(tree: BEStarTreeArrays, node: int, low: float, high: float, gap: float) -> bool:
    """Whether low … high comes as near as *gap* to what is beneath *node*."""
    box = node + BOXES
    return bool(low <= tree.number[box + HIGH] + gap and high >= tree.number[box + LOW] - gap)


@inner_kernel
def is_nearer_left(tree: BEStarTreeArrays, left: int, right: int, low: float, high: float) -> bool:
    """Whether the bucket *left* grows less around low … high, which meets neither, than *right*."""
    if low > tree.number[right + BOXES + HIGH]:
        return False
    if high < tree.number[left + BOXES + LOW]:
        return True
    return bool(high - tree.number[left + BOXES + LOW] < tree.number[right + BOXES + HIGH] - low)


@inner_kernel
def grows_too_much(
    tree: BEStarTreeArrays, node: int, low: float, high: float, most_growth: float
) -> bool:
    """Whether low … high makes *node* more than *most_growth* times as long as it is."""
    before_low, before_high = tree.number[node + BOXES + LOW], tree.number[node + BOXES + HIGH]
    length = before_high - before_low
    grown = max(high, before_high) - min(low, before_low)
    return bool(length > 0.0 and grown < math.inf and grown > most_growth * length)


@inner_kernel
def expand_upward(tree: BEStarTreeArrays, node: int, partition: int, capacity: int) -> int:
    """A new bucket instead of *node*, which becomes its left child (bottom-up expansion)."""
    word, depth = tree.word, depth_of(tree, node)
    above = word[node + ABOVE]
    new = new_bucket(tree, partition, above, depth, capacity)
    if above == NONE:
        word[partition + ROOT] = new
    elif word[above + LEFT] == node:
        word[above + LEFT] = new
    else:
        word[above + RIGHT] = new
    word[new + LEFT] = node
    word[node + ABOVE] = new
    for level in range(depth):
        box, child = new + BOXES + BOX_WORDS * level, node + BOXES + BOX_WORDS * level
        tree.number[box + LOW] = tree.number[child + LOW]
        tree.number[box + HIGH] = tree.number[child + HIGH]
    for position in range(SUMMARY):
        tree.half[2 * (new + ALL_SUMMARY) + position] = tree.half[
            2 * (node + ALL_SUMMARY) + position
        ]
    return new
