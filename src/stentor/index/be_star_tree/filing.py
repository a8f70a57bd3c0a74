"""Records go in: Algorithms 1, 2, 4 and 5.

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
    CAPACITY,
    DEPTH,
    DESK,
    DIMENSION,
    HIGH,
    LARGEST_LEAF,
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
    empty_leaf_bounds,
    enclose,
    new_bucket,
    new_partition,
    reserve_leaf,
)
from stentor.index.be_star_tree.ranking import best_dimension, best_partition
from stentor.index.be_star_tree.records import (
    box_on,
    high_at,
    low_at,
    summarise,
    words_of,
    write_record,
)
from stentor.index.be_star_tree.slabs import allocate, release
from stentor.index.be_star_tree.splitting import (
    NO_CUT,
    approximate_cut,
    exhaustive_cut,
    space_cut,
)

# Where a record of an overflowing leaf goes.
KEPT, GOES_LEFT, GOES_RIGHT = 0, 1, 2
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
def push_if_full(tree: Tree, node: int) -> None:
    """Put *node* on the stack where its leaf overflows."""
    if tree.word[node + LEAF_COUNT] > tree.word[node + CAPACITY]:
        tree.pending[tree.state[PENDING]] = node
        tree.state[PENDING] += 1


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
