"""Removal: bounds shrink upward, buckets merge, empty p-nodes are dropped (IV-B, IV-C)."""

from __future__ import annotations

import math

from stentor._jit import inner_kernel, kernel
from stentor.encoding.columns import Int64
from stentor.index.be_star_tree.bounds import (
    bound_leaf,
    is_on_border,
    is_on_summary,
    shrink_upward,
    summarise_leaf,
    sweep,
    tighten_leaf,
)
from stentor.index.be_star_tree.buckets import dead_in, drop_partition, free_bucket, move_up
from stentor.index.be_star_tree.layout import (
    ABOVE,
    CAPACITY,
    DEAD,
    LEAF,
    LEAF_COUNT,
    LEAF_LOW,
    LEAF_SUMMARY,
    LEAF_WORDS,
    LEFT,
    NONE,
    PARENT,
    PARTITION,
    PARTITIONS,
    RECORDS,
    RIGHT,
    ROOT,
    ROOT_NODE,
    SIZE,
    STAGED,
    BEKernelSettings,
    BEStarTreeArrays,
    SplitScratch,
    copy_words,
    has_capacity,
)
from stentor.index.be_star_tree.records import alternative_of, sum_weights, words_of

#: A leaf of more than so many times the capacity is large: removed records are swept together.
LARGE = 2


@kernel
def remove_records(
    alternatives: Int64,
    start: int,
    tree: BEStarTreeArrays,
    scratch: SplitScratch,
    settings: BEKernelSettings,
) -> int:
    """Remove the records of *alternatives* from position *start* on; where it stopped.

    It stops where capacity is missing, as insertion does, or at the end. What is not in the tree is
    passed over.
    """
    for position in range(start, len(alternatives)):
        node = tree.home[alternatives[position]]
        if node == NONE:
            continue
        if not has_capacity(tree):
            return position
        remove_one(tree, node, alternatives[position], scratch, settings)
    return len(alternatives)


@inner_kernel
def remove_one(
    tree: BEStarTreeArrays,
    node: int,
    alternative: int,
    scratch: SplitScratch,
    settings: BEKernelSettings,
) -> None:
    """Remove the record of *alternative* from the leaf of *node*."""
    word = tree.word
    record = word[node + LEAF] + tree.offset[alternative]
    tree.home[alternative] = NONE
    tree.state[RECORDS] -= 1
    subtract_counts(tree, node)
    if word[node + LEAF_COUNT] > LARGE * settings.capacity:
        tree.code[2 * record + 1] |= DEAD
        tree.code[2 * (node + CAPACITY) + 1] += 1
        if 2 * dead_in(tree, node) > word[node + LEAF_COUNT]:
            sweep(tree, node, scratch, settings.capacity)
    else:
        close_gap(tree, node, record)
        if is_on_border(tree, node, LEAF_LOW):
            bound_leaf(tree, node, scratch)
        sum_weights(tree, STAGED, scratch)
        if is_on_summary(tree, node + LEAF_SUMMARY, scratch):
            summarise_leaf(tree, node, scratch)
        tighten_leaf(tree, node, scratch, settings.capacity)
        sum_weights(tree, STAGED, scratch)
        shrink_upward(tree, node, scratch)
    merge_underflow(tree, node, scratch, settings)


@inner_kernel
def subtract_counts(tree: BEStarTreeArrays, node: int) -> None:
    """Subtract a record from the size of each p-node above *node*."""
    owner = tree.word[node + PARTITION]
    while owner != NONE:
        tree.word[owner + SIZE] -= 1
        owner = tree.word[tree.word[owner + PARENT] + PARTITION]


@inner_kernel
def close_gap(tree: BEStarTreeArrays, node: int, record: int) -> None:
    """Copy *record* to STAGED, for the bounds above, and move the records after it forward."""
    word, words = tree.word, words_of(tree, record)
    copy_words(tree, record, STAGED, words)
    stop = word[node + LEAF] + word[node + LEAF_WORDS] - words
    copy_words(tree, record + words, record, stop - record)
    word[node + LEAF_WORDS] -= words
    word[node + LEAF_COUNT] -= 1
    while record < stop:
        tree.offset[alternative_of(tree, record)] -= words
        record += words_of(tree, record)


@inner_kernel
def merge_underflow(
    tree: BEStarTreeArrays, node: int, scratch: SplitScratch, settings: BEKernelSettings
) -> None:
    """Merge *node* with the bucket above where it underflows, and drop what is empty."""
    word = tree.word
    least = math.ceil(settings.least_share * settings.capacity)
    while node != ROOT_NODE and word[node + PARTITIONS] == 0:
        above, owner = word[node + ABOVE], word[node + PARTITION]
        left, right = word[node + LEFT], word[node + RIGHT]
        count = word[node + LEAF_COUNT]
        if left == NONE and right == NONE:
            if above == NONE:
                if count > 0:
                    return
                free_bucket(tree, node)
                node = word[owner + PARENT]
                drop_partition(tree, owner)
                continue
            is_open = word[above + PARTITIONS] == 0
            fits = word[above + LEAF_COUNT] + count <= settings.capacity
            if count > 0 and not (count < least and is_open and fits):
                return
            move_up(tree, node, above, scratch)
            replace_child(tree, node, above, owner, NONE)
            free_bucket(tree, node)
            node = above
        elif count == 0 and (left == NONE or right == NONE):
            child = right if left == NONE else left
            replace_child(tree, node, above, owner, child)
            word[child + ABOVE] = above
            free_bucket(tree, node)
            return
        else:
            return


@inner_kernel
def replace_child(tree: BEStarTreeArrays, node: int, above: int, owner: int, child: int) -> None:
    """Replace *node* by *child*, or NONE, in *above* or as the root of *owner*."""
    word = tree.word
    if above == NONE:
        word[owner + ROOT] = child
    elif word[above + LEFT] == node:
        word[above + LEFT] = child
    else:
        word[above + RIGHT] = child
