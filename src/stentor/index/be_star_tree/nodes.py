"""Nodes of the BE*-Tree: made, joined to their directories, widened and emptied.

Widening is Algorithm 3: a record's boxes on the attributes that lead to a bucket, the active one
and the inactive ones above it, and its weights.
"""

from __future__ import annotations

import math

from stentor._jit import kernel_inline, kernel_part
from stentor.index.be_star_tree.layout import (
    ABOVE,
    ALL_SUMMARY,
    BOX_WORDS,
    BOXES,
    BUCKETS,
    CAPACITY,
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
    OWNER,
    PARENT,
    PARTITION_WORDS,
    PARTITIONS,
    RIGHT,
    ROOT,
    SIZE,
    SUMMARY,
    Desk,
    Readable,
    Tree,
)
from stentor.index.be_star_tree.records import (
    alternative_of,
    box_on,
    high_at,
    low_at,
    summarise,
    widen_summary,
    words_of,
)
from stentor.index.be_star_tree.slabs import allocate, copy_words, release, room_of

# What a record does to a bucket: it passes to a child, to its p-directory, or stays in its leaf.
PASSES, ENTERS, STAYS = 0, 1, 2


@kernel_part
def new_bucket(tree: Tree, owner: int, above: int, depth: int, capacity: int) -> int:
    """An empty c-node with boxes for *depth* attributes."""
    node = allocate(tree, BOXES + BOX_WORDS * depth)
    tree.state[BUCKETS] += 1
    word, number = tree.word, tree.number
    word[node + OWNER], word[node + ABOVE] = owner, above
    word[node + LEFT] = word[node + RIGHT] = NONE
    word[node + DEPTH] = depth
    word[node + LEAF] = word[node + DIRECTORY] = NONE
    word[node + LEAF_WORDS] = word[node + LEAF_COUNT] = word[node + PARTITIONS] = 0
    word[node + CAPACITY] = capacity
    number[node + OWN_LOW], number[node + OWN_HIGH] = math.inf, -math.inf
    for place in range(SUMMARY):
        tree.half[2 * (node + ALL_SUMMARY) + place] = 0.0
    for level in range(depth):
        box = node + BOXES + BOX_WORDS * level
        number[box + LOW], number[box + HIGH] = math.inf, -math.inf
    empty_leaf_bounds(tree, node)
    return node


@kernel_part
def empty_leaf_bounds(tree: Tree, node: int) -> None:
    """Let the leaf of *node* bound nothing."""
    for place in range(SUMMARY):
        tree.half[2 * (node + LEAF_SUMMARY) + place] = 0.0
    for level in range(tree.word[node + DEPTH]):
        box = node + BOXES + BOX_WORDS * level
        tree.number[box + LEAF_LOW], tree.number[box + LEAF_HIGH] = math.inf, -math.inf


@kernel_part
def new_partition(tree: Tree, node: int, dimension: int, capacity: int) -> int:
    """A p-node for *dimension* in the p-directory of *node*, with one empty bucket."""
    word = tree.word
    partition = allocate(tree, PARTITION_WORDS)
    word[partition + DIMENSION] = dimension
    word[partition + PARENT] = node
    word[partition + SIZE] = 0
    tree.number[partition + LOSS] = 0.0
    root = new_bucket(tree, partition, NONE, word[node + DEPTH] + 1, capacity)
    word[partition + ROOT] = root
    directory, count = word[node + DIRECTORY], word[node + PARTITIONS]
    if directory == NONE or count == room_of(tree, directory):
        grown = allocate(tree, count + count // 2 + 4)
        if directory != NONE:
            copy_words(tree, directory, grown, count)
            release(tree, directory)
        word[node + DIRECTORY] = directory = grown
    place = directory + count
    while place > directory and tree.code[2 * (place - 1)] > dimension:
        word[place] = word[place - 1]
        place -= 1
    tree.code[2 * place] = dimension
    tree.code[2 * place + 1] = partition
    word[node + PARTITIONS] = count + 1
    return partition


@kernel_part
def drop_partition(tree: Tree, partition: int) -> None:
    """Take *partition*, whose buckets are gone, out of its p-directory."""
    word = tree.word
    node = word[partition + PARENT]
    directory, count = word[node + DIRECTORY], word[node + PARTITIONS]
    place = directory
    while tree.code[2 * place + 1] != partition:
        place += 1
    while place < directory + count - 1:
        word[place] = word[place + 1]
        place += 1
    word[node + PARTITIONS] = count - 1
    if count == 1:
        release(tree, directory)
        word[node + DIRECTORY] = NONE
    release(tree, partition)


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


@kernel_part
def enclose(tree: Tree, node: int, record: int, how: int, desk: Desk) -> None:
    """Widen *node* around *record*, whose weights are in `desk.slot`, for what it does there."""
    word, number = tree.word, tree.number
    widen_summary(tree, node + ALL_SUMMARY, desk)
    if how == STAYS:
        widen_summary(tree, node + LEAF_SUMMARY, desk)
    box, owner = node + BOXES, word[node + OWNER]
    while owner != NONE:
        own = box_on(tree, record, word[owner + DIMENSION])
        low, high = low_at(tree, own), high_at(tree, record, own)
        number[box + LOW] = min(number[box + LOW], low)
        number[box + HIGH] = max(number[box + HIGH], high)
        if how == STAYS:
            number[box + LEAF_LOW] = min(number[box + LEAF_LOW], low)
            number[box + LEAF_HIGH] = max(number[box + LEAF_HIGH], high)
        if how != PASSES and box == node + BOXES:
            number[node + OWN_LOW] = min(number[node + OWN_LOW], low)
            number[node + OWN_HIGH] = max(number[node + OWN_HIGH], high)
        box += BOX_WORDS
        owner = word[word[owner + PARENT] + OWNER]


@kernel_part
def reserve_leaf(tree: Tree, node: int, words: int) -> None:
    """Let the leaf of *node* have room for *words* words in all."""
    leaf, used = tree.word[node + LEAF], tree.word[node + LEAF_WORDS]
    if leaf != NONE and room_of(tree, leaf) >= words:
        return
    grown = allocate(tree, words)
    if leaf != NONE:
        copy_words(tree, leaf, grown, used)
        release(tree, leaf)
    tree.word[node + LEAF] = grown
    tree.state[LARGEST_LEAF] = max(tree.state[LARGEST_LEAF], words)


@kernel_part
def append(tree: Tree, node: int, record: int, desk: Desk) -> None:
    """Copy *record*, which stands elsewhere, to the end of the leaf of *node*."""
    word, words = tree.word, words_of(tree, record)
    used = word[node + LEAF_WORDS]
    reserve_leaf(tree, node, used + words)
    copy_words(tree, record, word[node + LEAF] + used, words)
    word[node + LEAF_WORDS] = used + words
    word[node + LEAF_COUNT] += 1
    tree.home[alternative_of(tree, record)] = node
    summarise(tree, record, desk)
    enclose(tree, node, record, STAYS, desk)


@kernel_inline
def settle_capacity(tree: Tree, node: int, capacity: int) -> None:
    """Let *node* have the ordinary *capacity* again where that is enough."""
    if tree.word[node + LEAF_COUNT] <= capacity:
        tree.word[node + CAPACITY] = capacity


@kernel_part
def free_bucket(tree: Tree, node: int) -> None:
    """Release *node* with its leaf; it has neither children nor p-nodes."""
    if tree.word[node + LEAF] != NONE:
        release(tree, tree.word[node + LEAF])
    release(tree, node)
    tree.state[BUCKETS] -= 1
