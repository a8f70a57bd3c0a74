"""Overflowing leaves: split or partitioned, one step at a time (Algorithms 4 and 5)."""

from __future__ import annotations

import math

from stentor._jit import kernel_part
from stentor.index.be_star_tree.layout import (
    BOXES,
    CAPACITY,
    DEPTH,
    DIMENSION,
    HIGH,
    LEAF,
    LEAF_COUNT,
    LEAF_LOW,
    LEAF_WORDS,
    LEFT,
    LOW,
    NONE,
    OWN_LOW,
    OWNER,
    PARTITIONS,
    PENDING,
    RIGHT,
    ROOT,
    SIZE,
    Desk,
    Knobs,
    Tree,
)
from stentor.index.be_star_tree.nodes import (
    append,
    empty_leaf_bounds,
    new_bucket,
    new_partition,
    reserve_leaf,
    settle_capacity,
)
from stentor.index.be_star_tree.ranking import best_dimension
from stentor.index.be_star_tree.records import box_on, high_at, low_at, words_of
from stentor.index.be_star_tree.slabs import release
from stentor.index.be_star_tree.splitting import (
    NO_CUT,
    approximate_cut,
    exhaustive_cut,
    space_cut,
)

# Where a record of an overflowing leaf goes.
KEPT, GOES_LEFT, GOES_RIGHT = 0, 1, 2


@kernel_part
def push_if_full(tree: Tree, node: int) -> None:
    """Put *node* on the stack where its leaf overflows."""
    if tree.word[node + LEAF_COUNT] > tree.word[node + CAPACITY]:
        tree.pending[tree.state[PENDING]] = node
        tree.state[PENDING] += 1


@kernel_part
def relieve(tree: Tree, node: int, desk: Desk, knobs: Knobs) -> None:
    """One step against the overflow of *node*: split its bucket, or else partition (Algorithm 5).

    A bucket is split before it is partitioned; one that has children on both sides, or p-nodes, is
    not split any more; one with a child on one side may get the other.
    """
    word = tree.word
    if word[node + LEAF_COUNT] <= word[node + CAPACITY]:
        return
    is_open = word[node + OWNER] != NONE and word[node + PARTITIONS] == 0
    has_room_beneath = word[node + LEFT] == NONE or word[node + RIGHT] == NONE
    if is_open and has_room_beneath and split(tree, node, desk, knobs):
        return
    dimension = best_dimension(tree, node, desk, knobs)
    if dimension == NONE:
        word[node + CAPACITY] = 2 * word[node + LEAF_COUNT]
        return
    partition_by(tree, node, dimension, desk, knobs)


@kernel_part
def split(tree: Tree, node: int, desk: Desk, knobs: Knobs) -> bool:
    """Cut the bucket of *node* in three where that separates anything; whether it did."""
    word, number = tree.word, tree.number
    count = word[node + LEAF_COUNT]
    dimension = word[word[node + OWNER] + DIMENSION]
    gap = tree.extension[dimension]
    left, right = word[node + LEFT], word[node + RIGHT]
    gather(tree, node, dimension, desk)
    if left != NONE:  # put above it: what lies to its right may leave
        stop, start = -math.inf, number[left + BOXES + HIGH] + gap
    elif right != NONE:
        stop, start = number[right + BOXES + LOW] - gap, math.inf
    else:
        least = max(1, math.ceil(knobs.least_share * count))
        if knobs.exhaustive:
            stop, start = exhaustive_cut(desk, count, least, gap)
        else:
            stop, start = approximate_cut(desk, count, least, gap)
        if stop == NO_CUT[0]:
            stop, start = space_cut(desk, count)
            if not stop + gap < start:
                stop, start = NO_CUT
    lefts = rights = 0
    for place in range(count):
        desk.mark[place] = KEPT
        record = desk.at[place]
        box = box_on(tree, record, dimension)
        low, high = low_at(tree, box), high_at(tree, record, box)
        if high <= stop and (right == NONE or high < stop):
            desk.mark[place] = GOES_LEFT
            lefts += 1
        elif low >= start and (left == NONE or low > start):
            desk.mark[place] = GOES_RIGHT
            rights += 1
    if lefts + rights == 0:
        return False
    owner, depth = word[node + OWNER], word[node + DEPTH]
    if lefts > 0:
        left = word[node + LEFT] = new_bucket(tree, owner, node, depth, knobs.capacity)
    if rights > 0:
        right = word[node + RIGHT] = new_bucket(tree, owner, node, depth, knobs.capacity)
    distribute(tree, node, left, right, desk)
    settle_capacity(tree, node, knobs.capacity)
    for place in range(2):
        number[node + OWN_LOW + place] = number[node + BOXES + LEAF_LOW + place]
    push_if_full(tree, node)
    if lefts > 0:
        push_if_full(tree, left)
    if rights > 0:
        push_if_full(tree, right)
    return True


@kernel_part
def gather(tree: Tree, node: int, dimension: int, desk: Desk) -> None:
    """Put the places of the records in the leaf of *node* on the desk, and their boxes.

    Boxes without an end are cut off where the last finite end is: they have a length then.
    """
    least, most = math.inf, -math.inf
    count, record = tree.word[node + LEAF_COUNT], tree.word[node + LEAF]
    for place in range(count):
        box = box_on(tree, record, dimension)
        low, high = low_at(tree, box), high_at(tree, record, box)
        desk.at[place], desk.low[place], desk.high[place] = record, low, high
        if low > -math.inf:
            least, most = min(least, low), max(most, low)
        if high < math.inf:
            least, most = min(least, high), max(most, high)
        record += words_of(tree, record)
    for place in range(count):
        desk.low[place] = max(desk.low[place], least)
        desk.high[place] = min(desk.high[place], most)


@kernel_part
def partition_by(tree: Tree, node: int, dimension: int, desk: Desk, knobs: Knobs) -> None:
    """Move the records of *node* that ask for *dimension* to a new p-node (Algorithm 4)."""
    word = tree.word
    partition = new_partition(tree, node, dimension, knobs.capacity)
    root = word[partition + ROOT]
    record = word[node + LEAF]
    for place in range(word[node + LEAF_COUNT]):
        desk.at[place] = record
        asks = box_on(tree, record, dimension) != NONE
        desk.mark[place] = GOES_LEFT if asks else KEPT
        record += words_of(tree, record)
    distribute(tree, node, root, NONE, desk)
    settle_capacity(tree, node, knobs.capacity)
    word[partition + SIZE] = word[root + LEAF_COUNT]
    push_if_full(tree, node)
    push_if_full(tree, root)


@kernel_part
def distribute(tree: Tree, node: int, left: int, right: int, desk: Desk) -> None:
    """Move the records of *node* to where the marks on the desk say; what is kept stays."""
    word = tree.word
    count, leaf = word[node + LEAF_COUNT], word[node + LEAF]
    kept = to_left = to_right = 0
    for place in range(count):
        words = words_of(tree, desk.at[place])
        if desk.mark[place] == KEPT:
            kept += words
        elif desk.mark[place] == GOES_LEFT:
            to_left += words
        else:
            to_right += words
    word[node + LEAF] = NONE
    word[node + LEAF_WORDS] = word[node + LEAF_COUNT] = 0
    empty_leaf_bounds(tree, node)
    if kept > 0:
        reserve_leaf(tree, node, kept)
    if to_left > 0:
        reserve_leaf(tree, left, to_left)
    if to_right > 0:
        reserve_leaf(tree, right, to_right)
    for place in range(count):
        mark = desk.mark[place]
        target = node if mark == KEPT else left if mark == GOES_LEFT else right
        append(tree, target, desk.at[place], desk)
    release(tree, leaf)
