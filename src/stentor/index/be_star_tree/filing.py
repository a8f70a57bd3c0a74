"""Records go in: Algorithms 1 and 2.

An overflowing bucket is put on a stack and relieved one step at a time, so that before each step
the caller can see to it that the pool has room.
"""

from __future__ import annotations

import math

from stentor._jit import kernel, kernel_part
from stentor.encoding.columns import Int64, SubscriptionColumns
from stentor.index.be_star_tree.layout import (
    ABOVE,
    ALL_SUMMARY,
    BOX_WORDS,
    BOXES,
    DEPTH,
    DESK,
    DIMENSION,
    HIGH,
    LARGEST_LEAF,
    LEAF_COUNT,
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
    SUMMARY,
    USED,
    WIDE_BOX,
    Desk,
    Knobs,
    Tree,
)
from stentor.index.be_star_tree.nodes import (
    ENTERS,
    PASSES,
    append,
    enclose,
    new_bucket,
)
from stentor.index.be_star_tree.overflow import push_if_full, relieve
from stentor.index.be_star_tree.ranking import (
    best_partition,
)
from stentor.index.be_star_tree.records import (
    box_on,
    high_at,
    low_at,
    summarise,
    write_record,
)
from stentor.index.be_star_tree.slabs import (
    allocate,
)

#: Words that any one step may take beside the records that it copies.
SPARE_WORDS = 4096
#: Buckets that one step may add to the stack.
MOST_PENDING = 4


@kernel
def plant(tree: Tree, width: int, capacity: int) -> None:
    """Put the root and the desk where they are looked for, into an empty pool."""
    new_bucket(tree, NONE, NONE, 0, capacity)
    allocate(tree, RECORD_WORDS + WIDE_BOX * width)


@kernel
def file_alternatives(
    columns: SubscriptionColumns,
    alternatives: Int64,
    start: int,
    tree: Tree,
    desk: Desk,
    knobs: Knobs,
) -> int:
    """File *alternatives* from place *start* on; where it stopped, for want of room or at the end.

    Called again with more room it goes on. At the end nothing is pending.
    """
    place = start
    while True:
        while tree.state[PENDING] > 0:
            if not has_room(tree, desk):
                return place
            tree.state[PENDING] -= 1
            relieve(tree, tree.pending[tree.state[PENDING]], desk, knobs)
        if place == len(alternatives) or not has_room(tree, desk):
            return place
        write_record(columns, alternatives[place], tree, knobs.width)
        file_record(tree, DESK, NONE, desk, knobs)
        place += 1


@kernel_part
def has_room(tree: Tree, desk: Desk) -> bool:
    """Whether any one step has room in the pool, on the stack and on the desk."""
    state = tree.state
    words = 3 * state[LARGEST_LEAF] + SPARE_WORDS
    if state[PENDING] > 0:
        node = tree.pending[state[PENDING] - 1]
        if tree.word[node + LEAF_COUNT] >= len(desk.at):
            return False
    return bool(
        state[USED] + words <= len(tree.word) and state[PENDING] + MOST_PENDING <= len(tree.pending)
    )


@kernel_part
def file_record(tree: Tree, record: int, first: int, desk: Desk, knobs: Knobs) -> None:
    """Put *record* into its home bucket (Algorithm 1), under the p-node *first* if there is one."""
    summarise(tree, record, desk)
    node, partition = ROOT_NODE, first
    if partition == NONE:
        partition = best_partition(tree, node, record, knobs)
    while partition != NONE:
        enclose(tree, node, record, ENTERS, desk)
        tree.word[partition + SIZE] += 1
        node = home_bucket(tree, record, partition, desk, knobs)
        partition = best_partition(tree, node, record, knobs)
    append(tree, node, record, desk)
    tree.state[RECORDS] += 1
    push_if_full(tree, node)


@kernel_part
def home_bucket(tree: Tree, record: int, partition: int, desk: Desk, knobs: Knobs) -> int:
    """The smallest bucket of *partition* that may enclose *record* (Algorithm 2).

    Buckets on the way to it are widened; it is not. Where the record would stretch a bucket too
    far, a new one is put above that.
    """
    word = tree.word
    dimension = word[partition + DIMENSION]
    gap = tree.extension[dimension]
    box = box_on(tree, record, dimension)
    low, high = low_at(tree, box), high_at(tree, record, box)
    node = int(word[partition + ROOT])
    while True:
        left, right = word[node + LEFT], word[node + RIGHT]
        if left == NONE and right == NONE:
            return node
        if stretches(tree, node, low, high, knobs.most_growth):
            return put_above(tree, node, partition, knobs.capacity)
        to_left = left != NONE and meets(tree, left, low, high, gap)
        to_right = right != NONE and meets(tree, right, low, high, gap)
        if to_left and to_right:
            return node
        if not to_left and not to_right:
            if left == NONE or right == NONE:
                return node
            to_left = is_nearer_left(tree, left, right, low, high)
        enclose(tree, node, record, PASSES, desk)
        node = int(left if to_left else right)


@kernel_part
def meets(tree: Tree, node: int, low: float, high: float, gap: float) -> bool:
    """Whether low … high comes as near as *gap* to what is beneath *node*."""
    box = node + BOXES
    return bool(low <= tree.number[box + HIGH] + gap and high >= tree.number[box + LOW] - gap)


@kernel_part
def is_nearer_left(tree: Tree, left: int, right: int, low: float, high: float) -> bool:
    """Whether the bucket *left* grows less around low … high, which meets neither, than *right*."""
    if low > tree.number[right + BOXES + HIGH]:
        return False
    if high < tree.number[left + BOXES + LOW]:
        return True
    return bool(high - tree.number[left + BOXES + LOW] < tree.number[right + BOXES + HIGH] - low)


@kernel_part
def stretches(tree: Tree, node: int, low: float, high: float, most_growth: float) -> bool:
    """Whether low … high makes *node* more than *most_growth* times as long as it is."""
    before_low, before_high = tree.number[node + BOXES + LOW], tree.number[node + BOXES + HIGH]
    length = before_high - before_low
    grown = max(high, before_high) - min(low, before_low)
    return bool(length > 0.0 and grown < math.inf and grown > most_growth * length)


@kernel_part
def put_above(tree: Tree, node: int, partition: int, capacity: int) -> int:
    """A new bucket in the place of *node*, which becomes its left child (bottom-up expansion)."""
    word, depth = tree.word, tree.word[node + DEPTH]
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
    for place in range(SUMMARY):
        tree.half[2 * (new + ALL_SUMMARY) + place] = tree.half[2 * (node + ALL_SUMMARY) + place]
    return new
