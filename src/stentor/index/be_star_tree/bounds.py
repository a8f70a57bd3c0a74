"""Bounds shrink to what is left after a removal (IV-B), and large leaves are swept.

Every bucket has the hull of its leaf and of all beneath it on each attribute from its own up to
the root's. So when a record is removed only its own leaf is scanned; above, a hull is that of a few
hulls. Where the record was on no border of a bucket it was on none of a bucket above.

A large leaf is not scanned for each removal: the record is marked DEAD, the leaf's bounds stay as
they are, and when half of it is dead it is swept. So the average cost of a removal is the same
however many records are alike.
"""

from __future__ import annotations

import math

from stentor._jit import inner_kernel
from stentor.index.be_star_tree.buckets import depth_of, reset_capacity
from stentor.index.be_star_tree.layout import (
    ABOVE,
    ALL_SUMMARY,
    BOX_WORDS,
    BOXES,
    CAPACITY,
    DEAD,
    DIMENSION,
    DIRECTORY,
    HIGH,
    LEAF,
    LEAF_COUNT,
    LEAF_HIGH,
    LEAF_LOW,
    LEAF_SUMMARY,
    LEAF_WORDS,
    LEFT,
    LOW,
    NONE,
    OWN_HIGH,
    OWN_LOW,
    PARENT,
    PARTITION,
    PARTITIONS,
    RIGHT,
    ROOT,
    ROOT_NODE,
    STAGED,
    SUMMARY,
    BEStarTreeArrays,
    SplitScratch,
    capacity_of_class,
    copy_words,
    free_run,
    take_run,
)
from stentor.index.be_star_tree.promises import write_promises
from stentor.index.be_star_tree.records import (
    alternative_of,
    at_least,
    box_on,
    high_at,
    low_at,
    sum_weights,
    widen_summary,
    words_of,
)


@inner_kernel
def sweep(tree: BEStarTreeArrays, node: int, scratch: SplitScratch, capacity: int) -> None:
    """Remove DEAD records from the leaf of *node*, and bound what is left there and above."""
    word = tree.word
    leaf, count = word[node + LEAF], word[node + LEAF_COUNT]
    source = target = leaf
    for _ in range(count):
        words = words_of(tree, source)
        if tree.code[2 * source + 1] & DEAD:
            word[node + LEAF_COUNT] -= 1
        else:
            copy_words(tree, source, target, words)
            tree.offset[alternative_of(tree, target)] = target - leaf
            target += words
        source += words
    word[node + LEAF_WORDS] = target - leaf
    tree.code[2 * (node + CAPACITY) + 1] = 0
    bound_leaf(tree, node, scratch)
    summarise_leaf(tree, node, scratch)
    tighten_leaf(tree, node, scratch, capacity)
    while node != ROOT_NODE:
        bound_bucket(tree, node)
        above = word[node + ABOVE]
        node = above if above != NONE else word[word[node + PARTITION] + PARENT]


@inner_kernel
def tighten_leaf(tree: BEStarTreeArrays, node: int, scratch: SplitScratch, capacity: int) -> None:
    """Shrink the leaf of *node* to what it needs, and write its sketch again."""
    word = tree.word
    leaf, used, count = word[node + LEAF], word[node + LEAF_WORDS], word[node + LEAF_COUNT]
    reset_capacity(tree, node, capacity)
    write_promises(tree, node, scratch)
    if count == 0:
        free_run(tree, leaf)
        word[node + LEAF] = NONE
    elif used < capacity_of_class(tree, leaf) >> 1:
        word[node + LEAF] = take_run(tree, used)
        copy_words(tree, leaf, word[node + LEAF], used)
        free_run(tree, leaf)


@inner_kernel
def is_on_summary(tree: BEStarTreeArrays, summary: int, scratch: SplitScratch) -> bool:
    """Whether the weights in `scratch.slot` are the greatest somewhere in the summary."""
    for position in range(SUMMARY):
        if (
            scratch.slot[position] > 0.0
            and at_least(scratch.slot[position]) >= tree.half[2 * summary + position]
        ):
            return True
    return False


@inner_kernel
def is_on_border(tree: BEStarTreeArrays, node: int, which: int) -> bool:
    """Whether the staged record is at a border of the hulls *which* of *node*."""
    word, number = tree.word, tree.number
    box, owner = node + BOXES + which, word[node + PARTITION]
    while owner != NONE:
        own = box_on(tree, STAGED, word[owner + DIMENSION])
        if low_at(tree, own) <= number[box] or high_at(tree, STAGED, own) >= number[box + 1]:
            return True
        box += BOX_WORDS
        owner = word[word[owner + PARENT] + PARTITION]
    return False


@inner_kernel
def bound_leaf(tree: BEStarTreeArrays, node: int, scratch: SplitScratch) -> None:
    """Compute the hulls of the leaf of *node*."""
    word, number = tree.word, tree.number
    depth, owner = depth_of(tree, node), word[node + PARTITION]
    for level in range(depth):
        scratch.seen[level] = word[owner + DIMENSION]
        owner = word[word[owner + PARENT] + PARTITION]
        box = node + BOXES + BOX_WORDS * level
        number[box + LEAF_LOW], number[box + LEAF_HIGH] = math.inf, -math.inf
    record = word[node + LEAF]
    for _ in range(word[node + LEAF_COUNT]):
        for level in range(depth):
            box = node + BOXES + BOX_WORDS * level
            own = box_on(tree, record, scratch.seen[level])
            number[box + LEAF_LOW] = min(number[box + LEAF_LOW], low_at(tree, own))
            number[box + LEAF_HIGH] = max(number[box + LEAF_HIGH], high_at(tree, record, own))
        record += words_of(tree, record)


@inner_kernel
def summarise_leaf(tree: BEStarTreeArrays, node: int, scratch: SplitScratch) -> None:
    """Compute the summary of the leaf of *node*."""
    for position in range(SUMMARY):
        tree.half[2 * (node + LEAF_SUMMARY) + position] = 0.0
    record = tree.word[node + LEAF]
    for _ in range(tree.word[node + LEAF_COUNT]):
        sum_weights(tree, record, scratch)
        widen_summary(tree, node + LEAF_SUMMARY, scratch)
        record += words_of(tree, record)


@inner_kernel
def shrink_upward(tree: BEStarTreeArrays, node: int, scratch: SplitScratch) -> None:
    """Compute the bounds of *node* and of all above it, as far as the record determined them."""
    word = tree.word
    while node != ROOT_NODE:
        matters = is_on_border(tree, node, LOW) or is_on_summary(tree, node + ALL_SUMMARY, scratch)
        if matters or is_at_own_border(tree, node):
            bound_bucket(tree, node)
        if not matters:
            return
        above = word[node + ABOVE]
        node = above if above != NONE else word[word[node + PARTITION] + PARENT]


@inner_kernel
def is_at_own_border(tree: BEStarTreeArrays, node: int) -> bool:
    """Whether the staged record is at a border of the own bucket of *node*."""
    own = box_on(tree, STAGED, tree.word[tree.word[node + PARTITION] + DIMENSION])
    low, high = low_at(tree, own), high_at(tree, STAGED, own)
    return bool(low <= tree.number[node + OWN_LOW] or high >= tree.number[node + OWN_HIGH])


@inner_kernel
def bound_bucket(tree: BEStarTreeArrays, node: int) -> None:
    """Compute the bounds of all beneath *node* from its leaf, its p-nodes and its children."""
    word, number, half = tree.word, tree.number, tree.half
    depth = depth_of(tree, node)
    for level in range(depth):
        box = node + BOXES + BOX_WORDS * level
        number[box + LOW], number[box + HIGH] = number[box + LEAF_LOW], number[box + LEAF_HIGH]
    for position in range(SUMMARY):
        half[2 * (node + ALL_SUMMARY) + position] = half[2 * (node + LEAF_SUMMARY) + position]
    directory = word[node + DIRECTORY]
    for position in range(directory, directory + word[node + PARTITIONS]):
        join(tree, node, word[tree.code[2 * position + 1] + ROOT], 1)
    number[node + OWN_LOW] = number[node + BOXES + LOW]
    number[node + OWN_HIGH] = number[node + BOXES + HIGH]
    if word[node + LEFT] != NONE:
        join(tree, node, word[node + LEFT], 0)
    if word[node + RIGHT] != NONE:
        join(tree, node, word[node + RIGHT], 0)


@inner_kernel
def join(tree: BEStarTreeArrays, node: int, child: int, skipped: int) -> None:
    """Widen *node* around what is beneath *child*, whose first *skipped* attributes are others."""
    number, half = tree.number, tree.half
    for level in range(depth_of(tree, node)):
        box = node + BOXES + BOX_WORDS * level
        other = child + BOXES + BOX_WORDS * (level + skipped)
        number[box + LOW] = min(number[box + LOW], number[other + LOW])
        number[box + HIGH] = max(number[box + HIGH], number[other + HIGH])
    for position in range(SUMMARY):
        mine, others = 2 * (node + ALL_SUMMARY) + position, 2 * (child + ALL_SUMMARY) + position
        half[mine] = max(half[mine], half[others])
