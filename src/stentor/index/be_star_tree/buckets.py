"""c-nodes and p-nodes: made, added to directories, widened (Algorithm 3), filled and freed."""

from __future__ import annotations

import math

from stentor._jit import inner_kernel, kernel_inline
from stentor.index.be_star_tree.layout import (
    ABOVE,
    ALL_SUMMARY,
    BOX_WORDS,
    BOXES,
    BUCKETS,
    CAPACITY,
    CLUSTERS,
    DEEPEST,
    DEPTH,
    DIMENSION,
    DIRECTORY,
    HIGH,
    LARGEST_LEAF,
    LEAF,
    LEAF_COUNT,
    LEAF_HIGH,
    LEAF_LOW,
    LEAF_SUMMARY,
    LEAF_WORDS,
    LEFT,
    LOSS,
    LOW,
    NONE,
    OWN_HIGH,
    OWN_LOW,
    PARENT,
    PARTITION,
    PARTITION_WORDS,
    PARTITIONS,
    RIGHT,
    ROOT,
    SIZE,
    SUMMARY,
    BEStarTreeArrays,
    Readable,
    SplitScratch,
    capacity_of_class,
    copy_words,
    free_run,
    take_run,
)
from stentor.index.be_star_tree.promises import free_promises, write_promises
from stentor.index.be_star_tree.records import (
    alternative_of,
    box_on,
    high_at,
    low_at,
    sum_weights,
    widen_summary,
    words_of,
)

# Where a record of a bucket goes: to a child, to its p-directory, or into its leaf.
PASS_DOWN, TO_PARTITION, IN_LEAF = 0, 1, 2


@kernel_inline
def depth_of(tree: Readable, node: int) -> int:
    """How many attributes lead to *node*."""
    return int(tree.code[2 * (node + DEPTH)])


@inner_kernel
def new_bucket(tree: BEStarTreeArrays, owner: int, above: int, depth: int, capacity: int) -> int:
    """An empty c-node with boxes for *depth* attributes."""
    node = take_run(tree, BOXES + BOX_WORDS * depth)
    tree.state[BUCKETS] += 1
    word, number = tree.word, tree.number
    word[node + PARTITION], word[node + ABOVE] = owner, above
    word[node + LEFT] = word[node + RIGHT] = NONE
    word[node + DEPTH] = depth  # and there is no sketch
    word[node + LEAF] = word[node + DIRECTORY] = NONE
    word[node + LEAF_WORDS] = word[node + LEAF_COUNT] = word[node + PARTITIONS] = 0
    word[node + CAPACITY] = capacity  # and none of its records is DEAD
    if owner != NONE:
        word[owner + CLUSTERS] += 1
    number[node + OWN_LOW], number[node + OWN_HIGH] = math.inf, -math.inf
    for position in range(SUMMARY):
        tree.half[2 * (node + ALL_SUMMARY) + position] = 0.0
    for level in range(depth):
        box = node + BOXES + BOX_WORDS * level
        number[box + LOW], number[box + HIGH] = math.inf, -math.inf
    empty_leaf_bounds(tree, node)
    return node


@inner_kernel
def empty_leaf_bounds(tree: BEStarTreeArrays, node: int) -> None:
    """Reset the bounds of the leaf of *node* to those of no record."""
    for position in range(SUMMARY):
        tree.half[2 * (node + LEAF_SUMMARY) + position] = 0.0
    for level in range(depth_of(tree, node)):
        box = node + BOXES + BOX_WORDS * level
        tree.number[box + LEAF_LOW], tree.number[box + LEAF_HIGH] = math.inf, -math.inf


@inner_kernel
def new_partition(tree: BEStarTreeArrays, node: int, dimension: int, capacity: int) -> int:
    """A p-node for *dimension* in the p-directory of *node*, with one empty bucket."""
    word = tree.word
    partition = take_run(tree, PARTITION_WORDS)
    word[partition + DIMENSION] = dimension
    word[partition + PARENT] = node
    word[partition + SIZE] = 0
    word[partition + CLUSTERS] = word[partition + DEEPEST] = 0
    tree.number[partition + LOSS] = 0.0
    root = new_bucket(tree, partition, NONE, depth_of(tree, node) + 1, capacity)
    word[partition + ROOT] = root
    directory, count = word[node + DIRECTORY], word[node + PARTITIONS]
    if directory == NONE or count == capacity_of_class(tree, directory):
        grown = take_run(tree, count + count // 2 + 4)
        if directory != NONE:
            copy_words(tree, directory, grown, count)
            free_run(tree, directory)
        word[node + DIRECTORY] = directory = grown
    position = directory + count
    while position > directory and tree.code[2 * (position - 1)] > dimension:
        word[position] = word[position - 1]
        position -= 1
    tree.code[2 * position] = dimension
    tree.code[2 * position + 1] = partition
    word[node + PARTITIONS] = count + 1
    return partition


@inner_kernel
def drop_partition(tree: BEStarTreeArrays, partition: int) -> None:
    """Remove *partition*, whose buckets are freed, from its p-directory."""
    word = tree.word
    node = word[partition + PARENT]
    directory, count = word[node + DIRECTORY], word[node + PARTITIONS]
    position = directory
    while tree.code[2 * position + 1] != partition:
        position += 1
    while position < directory + count - 1:
        word[position] = word[position + 1]
        position += 1
    word[node + PARTITIONS] = count - 1
    if count == 1:
        free_run(tree, directory)
        word[node + DIRECTORY] = NONE
    free_run(tree, partition)


@kernel_inline
def partition_on(tree: Readable, node: int, dimension: int) -> int:
    """The p-node for *dimension* in the p-directory of *node*, or NONE."""
    start = tree.word[node + DIRECTORY]
    stop = start + tree.word[node + PARTITIONS]
    last = stop
    while start < stop:
        middle = (start + stop) >> 1
        if tree.code[2 * middle] < dimension:
            start = middle + 1
        else:
            stop = middle
    if start < last and tree.code[2 * start] == dimension:
        return int(tree.code[2 * start + 1])
    return NONE


@inner_kernel
def widen_bounds(
    tree: BEStarTreeArrays, node: int, record: int, how: int, scratch: SplitScratch
) -> None:
    """Widen *node* around *record*, which goes where *how* says; its weights are in the scratch."""
    word, number = tree.word, tree.number
    widen_summary(tree, node + ALL_SUMMARY, scratch)
    if how == IN_LEAF:
        widen_summary(tree, node + LEAF_SUMMARY, scratch)
    box, owner = node + BOXES, word[node + PARTITION]
    while owner != NONE:
        own = box_on(tree, record, word[owner + DIMENSION])
        low, high = low_at(tree, own), high_at(tree, record, own)
        number[box + LOW] = min(number[box + LOW], low)
        number[box + HIGH] = max(number[box + HIGH], high)
        if how == IN_LEAF:
            number[box + LEAF_LOW] = min(number[box + LEAF_LOW], low)
            number[box + LEAF_HIGH] = max(number[box + LEAF_HIGH], high)
        if how != PASS_DOWN and box == node + BOXES:
            number[node + OWN_LOW] = min(number[node + OWN_LOW], low)
            number[node + OWN_HIGH] = max(number[node + OWN_HIGH], high)
        box += BOX_WORDS
        owner = word[word[owner + PARENT] + PARTITION]


@inner_kernel
def reserve_leaf(tree: BEStarTreeArrays, node: int, words: int) -> None:
    """Make capacity for *words* words in all in the leaf of *node*."""
    leaf, used = tree.word[node + LEAF], tree.word[node + LEAF_WORDS]
    if leaf != NONE and capacity_of_class(tree, leaf) >= words:
        return
    grown = take_run(tree, words)
    if leaf != NONE:
        copy_words(tree, leaf, grown, used)
        free_run(tree, leaf)
    tree.word[node + LEAF] = grown
    tree.state[LARGEST_LEAF] = max(tree.state[LARGEST_LEAF], words)


@inner_kernel
def append(tree: BEStarTreeArrays, node: int, record: int, scratch: SplitScratch) -> None:
    """Copy *record* to the end of the leaf of *node*; its sketch is not updated."""
    word, words = tree.word, words_of(tree, record)
    used = word[node + LEAF_WORDS]
    reserve_leaf(tree, node, used + words)
    copy_words(tree, record, word[node + LEAF] + used, words)
    word[node + LEAF_WORDS] = used + words
    word[node + LEAF_COUNT] += 1
    alternative = alternative_of(tree, record)
    tree.home[alternative], tree.offset[alternative] = node, used
    sum_weights(tree, record, scratch)
    widen_bounds(tree, node, record, IN_LEAF, scratch)


@kernel_inline
def reset_capacity(tree: BEStarTreeArrays, node: int, capacity: int) -> None:
    """Reset the capacity of *node* to *capacity* where that is enough."""
    if tree.word[node + LEAF_COUNT] <= capacity:
        tree.code[2 * (node + CAPACITY)] = capacity


@kernel_inline
def raise_capacity(tree: BEStarTreeArrays, node: int) -> None:
    """Double the capacity of the leaf of *node*, which can be neither split nor partitioned."""
    tree.code[2 * (node + CAPACITY)] = 2 * tree.word[node + LEAF_COUNT]


@kernel_inline
def capacity_of(tree: Readable, node: int) -> int:
    """How many records the leaf of *node* may have."""
    return int(tree.code[2 * (node + CAPACITY)])


@kernel_inline
def dead_in(tree: Readable, node: int) -> int:
    """How many records of the leaf of *node* are DEAD."""
    return int(tree.code[2 * (node + CAPACITY) + 1])


@inner_kernel
def move_up(tree: BEStarTreeArrays, node: int, above: int, scratch: SplitScratch) -> None:
    """Copy the records of *node* into the leaf of *above*, which encloses them already."""
    word = tree.word
    record, count = word[node + LEAF], word[node + LEAF_COUNT]
    for _ in range(count):
        append(tree, above, record, scratch)
        record += words_of(tree, record)
    write_promises(tree, above, scratch)


@inner_kernel
def free_bucket(tree: BEStarTreeArrays, node: int) -> None:
    """Free *node* with its leaf; it has neither children nor p-nodes."""
    if tree.word[node + LEAF] != NONE:
        free_run(tree, tree.word[node + LEAF])
    free_promises(tree, node)
    tree.word[tree.word[node + PARTITION] + CLUSTERS] -= 1
    free_run(tree, node)
    tree.state[BUCKETS] -= 1
