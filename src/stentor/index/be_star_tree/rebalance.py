"""A directory of clusters that has grown too deep is rebuilt from its buckets (not in the paper).

Keys that ascend, or descend, or double, are always split at one end, and would make a chain. The
lowest bucket that is far deeper than its number of buckets allows is found from the deep one up (a
scapegoat tree), and all beneath it is built again. No record is touched but those of overlapping
buckets that are merged. Cost: on average O(log n) for each record inserted.

Buckets without children are disjoint, so the middle one of them is where the next one above cuts.
A bucket that has records of its own and spans the cut is put there, or several one above the other
where they cannot be merged.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import inner_kernel, kernel_inline
from stentor.encoding.columns import Int64
from stentor.index.be_star_tree.bounds import bound_bucket
from stentor.index.be_star_tree.buckets import (
    capacity_of,
    dead_in,
    depth_of,
    empty_leaf_bounds,
    free_bucket,
    move_up,
    new_bucket,
    raise_capacity,
    reset_capacity,
)
from stentor.index.be_star_tree.layout import (
    ABOVE,
    BOX_WORDS,
    BOXES,
    CLUSTERS,
    DEEPEST,
    LARGEST_LEAF,
    LEAF,
    LEAF_COUNT,
    LEAF_WORDS,
    LEFT,
    NODE_CAPACITY,
    NODE_FIELDS,
    NONE,
    OWN_HIGH,
    OWN_LOW,
    PARTITION,
    PARTITIONS,
    RIGHT,
    ROOT,
    UNBALANCED,
    BEStarTreeArrays,
    SplitScratch,
    free_run,
    has_capacity,
)
from stentor.index.be_star_tree.promises import free_promises

#: A bucket has at most this share of the buckets beneath the one above, or it may get too deep.
_SHARE = math.log(1.5)
#: Buckets that are no deeper are not rebalanced.
_SHALLOW = 4

# Fields of a frame: buckets that are to be built into the subtree of one.
_LEAVES, _LEAVES_STOP, _INNER, _INNER_STOP, _ABOVE, _SIDE, _LEVEL = range(7)
_FRAME = 7


@kernel_inline
def depth_limit(buckets: int) -> float:
    """How deep a directory of so many *buckets* may be."""
    return _SHALLOW + math.log(buckets) / _SHARE


@inner_kernel
def note_depth(tree: BEStarTreeArrays, partition: int, node: int, depth: int) -> None:
    """Remember *node* where *depth* is more than the directory of *partition* may have."""
    if depth <= _SHALLOW or depth <= tree.word[partition + DEEPEST]:
        return
    if depth > depth_limit(tree.word[partition + CLUSTERS]):
        tree.state[UNBALANCED] = node


@inner_kernel
def rebalance(tree: BEStarTreeArrays, node: int, scratch: SplitScratch, capacity: int) -> bool:
    """Rebuild what makes *node* too deep; False where capacity is missing, and nothing is done."""
    word, state = tree.word, tree.state
    partition, depth = word[node + PARTITION], depth_of(tree, node)
    clusters = word[partition + CLUSTERS]
    state[NODE_CAPACITY] = clusters
    if NODE_FIELDS * (clusters + 1) > len(scratch.nodes):
        return False
    top = unbalanced_above(tree, node)
    leaves, inner = scratch.nodes[:clusters], scratch.nodes[clusters : 2 * clusters]
    spare, attached = (
        scratch.nodes[2 * clusters : 3 * clusters],
        scratch.nodes[3 * clusters : 4 * clusters],
    )
    frames = scratch.nodes[4 * clusters :]
    leaf_count, inner_count, spare_count, words = gather_buckets(tree, top, leaves, inner, spare)
    words += max(0, leaf_count - spare_count) * 2 * (BOXES + BOX_WORDS * depth)
    state[LARGEST_LEAF] = max(state[LARGEST_LEAF], words)
    if not has_capacity(tree):
        return False
    state[UNBALANCED] = NONE
    above, side = word[top + ABOVE], LEFT
    if above != NONE and word[above + RIGHT] == top:
        side = RIGHT
    put_frame(frames, 0, 0, leaf_count, 0, inner_count, above, side, level_of(tree, top))
    height, count, deepest = 1, 0, 0
    while height > 0:
        height -= 1
        frame = frames[_FRAME * height : _FRAME * (height + 1)]
        start, stop = frame[_LEAVES], frame[_LEAVES_STOP]
        first, last = frame[_INNER], frame[_INNER_STOP]
        above, side, level = frame[_ABOVE], frame[_SIDE], frame[_LEVEL]
        bucket = NONE
        middle, spanning, right = start, first, last
        if stop - start == 1 and first == last:
            middle = stop = start
            bucket = leaves[start]
            count = attach(tree, partition, bucket, above, side, attached, count)
        else:
            middle, spanning, right = divide(tree, leaves, start, stop, inner, first, last)
        for position in range(spanning, right):
            other = inner[position]
            if bucket != NONE and is_plain(tree, bucket) and is_plain(tree, other):
                move_up(tree, other, bucket, scratch)
                empty_leaf(tree, other, capacity)
                spare[spare_count] = other
                spare_count += 1
            else:
                if bucket != NONE:
                    above, side, level = bucket, LEFT, level + 1
                bucket = other
                count = attach(tree, partition, bucket, above, side, attached, count)
        if bucket == NONE:
            if spare_count > 0:
                spare_count -= 1
                bucket = spare[spare_count]
            else:
                bucket = new_bucket(tree, partition, NONE, depth, capacity)
            count = attach(tree, partition, bucket, above, side, attached, count)
        elif word[bucket + LEAF_COUNT] > capacity_of(tree, bucket):
            raise_capacity(tree, bucket)
        deepest = max(deepest, level)
        if middle > start or spanning > first:
            put_frame(frames, height, start, middle, first, spanning, bucket, LEFT, level + 1)
            height += 1
        if stop > middle or last > right:
            put_frame(frames, height, middle, stop, right, last, bucket, RIGHT, level + 1)
            height += 1
    for position in range(spare_count):
        free_bucket(tree, spare[position])
    for position in range(count - 1, -1, -1):
        bound_bucket(tree, attached[position])
    if deepest > depth_limit(word[partition + CLUSTERS]):
        word[partition + DEEPEST] = 2 * deepest
    return True


@inner_kernel
def unbalanced_above(tree: BEStarTreeArrays, node: int) -> int:
    """The lowest bucket from *node* up that has too few buckets for how deep *node* is in it."""
    word = tree.word
    size, height = count_beneath(tree, node), 0
    while word[node + ABOVE] != NONE:
        above = word[node + ABOVE]
        sibling = word[above + LEFT] + word[above + RIGHT] - node  # one of them is *node*
        size += 1
        if sibling != NONE:
            size += count_beneath(tree, sibling)
        height += 1
        node = above
        if height * _SHARE > math.log(size):
            return int(node)
    return node


@inner_kernel
def level_of(tree: BEStarTreeArrays, node: int) -> int:
    """How many buckets of its directory are above *node*."""
    level = 0
    while tree.word[node + ABOVE] != NONE:
        node = tree.word[node + ABOVE]
        level += 1
    return level


@kernel_inline
def first_beneath(tree: BEStarTreeArrays, node: int) -> int:
    """The bucket to the left of all others beneath *node*."""
    while tree.word[node + LEFT] != NONE:
        node = tree.word[node + LEFT]
    return node


@kernel_inline
def next_beneath(tree: BEStarTreeArrays, node: int, top: int) -> int:
    """The bucket after *node* from left to right, of those beneath *top*; NONE after the last."""
    word = tree.word
    if word[node + RIGHT] != NONE:
        return first_beneath(tree, word[node + RIGHT])
    while node != top and word[word[node + ABOVE] + RIGHT] == node:
        node = word[node + ABOVE]
    return NONE if node == top else int(word[node + ABOVE])


@inner_kernel
def count_beneath(tree: BEStarTreeArrays, top: int) -> int:
    """The number of buckets from *top* down."""
    count, node = 0, first_beneath(tree, top)
    while node != NONE:
        count += 1
        node = next_beneath(tree, node, top)
    return count


@inner_kernel
def gather_buckets(
    tree: BEStarTreeArrays, top: int, leaves: Int64, inner: Int64, spare: Int64
) -> tuple[int, int, int, int]:
    """Fill in buckets from *top* down: without children, with them, and without records.

    How many there are of each, and the words of records with those that have children.
    """
    word = tree.word
    leaf_count = inner_count = spare_count = words = 0
    node = first_beneath(tree, top)
    while node != NONE:
        if word[node + LEAF_COUNT] == 0 and word[node + PARTITIONS] == 0:
            spare[spare_count] = node
            spare_count += 1
        elif word[node + LEFT] == NONE and word[node + RIGHT] == NONE:
            leaves[leaf_count] = node
            leaf_count += 1
        else:
            inner[inner_count] = node
            inner_count += 1
            words += word[node + LEAF_WORDS]
        node = next_beneath(tree, node, top)
    return leaf_count, inner_count, spare_count, words


@inner_kernel
def divide(
    tree: BEStarTreeArrays,
    leaves: Int64,
    start: int,
    stop: int,
    inner: Int64,
    first: int,
    last: int,
) -> tuple[int, int, int]:
    """Cut *leaves* from *start* to *stop*, and order *inner* by where the cut leaves each.

    Where the right ones of *leaves* start; where of *inner*, left ones first, those that span the
    cut start, and those to its right.
    """
    if stop - start > 1:
        middle = (start + stop) >> 1
        low = tree.number[leaves[middle] + OWN_LOW]
        high = np.nextafter(low, -math.inf)
    else:  # what touches this bucket spans the cut
        middle = stop
        pivot = leaves[start] if stop > start else inner[(first + last) >> 1]
        low, high = tree.number[pivot + OWN_LOW], tree.number[pivot + OWN_HIGH]
    spanning, position, right = first, first, last
    while position < right:
        bucket = inner[position]
        if tree.number[bucket + OWN_HIGH] < low:
            inner[position], inner[spanning] = inner[spanning], bucket
            spanning += 1
            position += 1
        elif tree.number[bucket + OWN_LOW] > high:
            right -= 1
            inner[position], inner[right] = inner[right], bucket
        else:
            position += 1
    if stop - start == 1 and spanning > first and spanning == right:
        middle = start  # all that is left of the one bucket without children
    return middle, spanning, right


@kernel_inline
def put_frame(
    frames: Int64,
    height: int,
    leaves: int,
    leaves_stop: int,
    inner: int,
    inner_stop: int,
    above: int,
    side: int,
    level: int,
) -> None:
    """Push a frame of the buckets that go beneath *above*."""
    frame = frames[_FRAME * height : _FRAME * (height + 1)]
    frame[_LEAVES], frame[_LEAVES_STOP] = leaves, leaves_stop
    frame[_INNER], frame[_INNER_STOP] = inner, inner_stop
    frame[_ABOVE], frame[_SIDE], frame[_LEVEL] = above, side, level


@inner_kernel
def attach(
    tree: BEStarTreeArrays,
    partition: int,
    node: int,
    above: int,
    side: int,
    attached: Int64,
    count: int,
) -> int:
    """Put *node* beneath *above*, without children; how many are *attached*, with it."""
    word = tree.word
    word[node + ABOVE] = above
    word[node + LEFT] = word[node + RIGHT] = NONE
    if above == NONE:
        word[partition + ROOT] = node
    else:
        word[above + side] = node
    attached[count] = node
    return count + 1


@kernel_inline
def is_plain(tree: BEStarTreeArrays, node: int) -> bool:
    """Whether the leaf of *node* is all that it has, and can be read as it is."""
    return tree.word[node + PARTITIONS] == 0 and dead_in(tree, node) == 0


@inner_kernel
def empty_leaf(tree: BEStarTreeArrays, node: int, capacity: int) -> None:
    """Empty the leaf of *node*, whose records were copied."""
    free_run(tree, tree.word[node + LEAF])
    tree.word[node + LEAF] = NONE
    tree.word[node + LEAF_WORDS] = tree.word[node + LEAF_COUNT] = 0
    free_promises(tree, node)
    empty_leaf_bounds(tree, node)
    reset_capacity(tree, node, capacity)
