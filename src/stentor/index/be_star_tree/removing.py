"""Records go out: boundaries shrink upward, buckets merge, empty p-nodes go (IV-B, IV-C).

Every bucket knows the hull of its leaf and of all beneath it on each attribute from its own up to
the root's. So when a record goes only its own leaf is looked through; above, a hull is that of a
few hulls. Where the record touched no border of a bucket it touched none of a bucket above.
"""

from __future__ import annotations

import math

from stentor._jit import kernel, kernel_part
from stentor.encoding.columns import Int64
from stentor.index.be_star_tree.filing import has_room
from stentor.index.be_star_tree.layout import (
    ABOVE,
    ALL_SUMMARY,
    BOX_WORDS,
    BOXES,
    DEPTH,
    DESK,
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
    OWNER,
    PARENT,
    PARTITIONS,
    RECORDS,
    RIGHT,
    ROOT,
    ROOT_NODE,
    SIZE,
    SUMMARY,
    Desk,
    Knobs,
    Tree,
)
from stentor.index.be_star_tree.nodes import (
    append,
    drop_partition,
    free_bucket,
    settle_capacity,
)
from stentor.index.be_star_tree.records import (
    alternative_of,
    at_least,
    box_on,
    high_at,
    low_at,
    summarise,
    widen_summary,
    words_of,
)
from stentor.index.be_star_tree.slabs import allocate, copy_words, release, room_of


@kernel
def take_out(alternatives: Int64, start: int, tree: Tree, desk: Desk, knobs: Knobs) -> int:
    """Take the records of *alternatives* out, from place *start* on; where it stopped.

    It stops for want of room, as filing does, or at the end. What is not in the tree is passed
    over.
    """
    for place in range(start, len(alternatives)):
        node = tree.home[alternatives[place]]
        if node == NONE:
            continue
        if not has_room(tree, desk):
            return place
        take_out_one(tree, node, alternatives[place], desk, knobs)
    return len(alternatives)


@kernel_part
def take_out_one(tree: Tree, node: int, alternative: int, desk: Desk, knobs: Knobs) -> None:
    """Take the record of *alternative* out of the leaf of *node*."""
    word = tree.word
    record = word[node + LEAF]
    while alternative_of(tree, record) != alternative:
        record += words_of(tree, record)
    words = words_of(tree, record)
    # What it was is needed on the way up.
    copy_words(tree, record, DESK, words)
    stop = word[node + LEAF] + word[node + LEAF_WORDS]
    copy_words(tree, record + words, record, stop - record - words)
    word[node + LEAF_WORDS] -= words
    word[node + LEAF_COUNT] -= 1
    tree.home[alternative] = NONE
    tree.state[RECORDS] -= 1
    if touches(tree, node, LEAF_LOW):
        bound_leaf(tree, node, desk)
    summarise(tree, DESK, desk)
    if touches_summary(tree, node + LEAF_SUMMARY, desk):
        summarise_leaf(tree, node, desk)
        summarise(tree, DESK, desk)
    tighten_leaf(tree, node, knobs.capacity)
    shrink_upward(tree, node, desk)
    tidy(tree, node, desk, knobs)


@kernel_part
def tighten_leaf(tree: Tree, node: int, capacity: int) -> None:
    """Give back what the leaf of *node* needs no longer."""
    word = tree.word
    leaf, used, count = word[node + LEAF], word[node + LEAF_WORDS], word[node + LEAF_COUNT]
    settle_capacity(tree, node, capacity)
    if count == 0:
        release(tree, leaf)
        word[node + LEAF] = NONE
    elif used < room_of(tree, leaf) >> 1:
        word[node + LEAF] = allocate(tree, used)
        copy_words(tree, leaf, word[node + LEAF], used)
        release(tree, leaf)


@kernel_part
def touches_summary(tree: Tree, summary: int, desk: Desk) -> bool:
    """Whether the weights in `desk.slot` are the greatest somewhere in the summary."""
    for place in range(SUMMARY):
        if desk.slot[place] > 0.0 and at_least(desk.slot[place]) >= tree.half[2 * summary + place]:
            return True
    return False


@kernel_part
def touches(tree: Tree, node: int, which: int) -> bool:
    """Whether the record on the desk is at a border of the hulls *which* of *node*."""
    word, number = tree.word, tree.number
    box, owner = node + BOXES + which, word[node + OWNER]
    while owner != NONE:
        own = box_on(tree, DESK, word[owner + DIMENSION])
        if low_at(tree, own) <= number[box] or high_at(tree, DESK, own) >= number[box + 1]:
            return True
        box += BOX_WORDS
        owner = word[word[owner + PARENT] + OWNER]
    return False


@kernel_part
def bound_leaf(tree: Tree, node: int, desk: Desk) -> None:
    """Work out the hulls of the leaf of *node* anew."""
    word, number = tree.word, tree.number
    depth, owner = word[node + DEPTH], word[node + OWNER]
    for level in range(depth):
        desk.seen[level] = word[owner + DIMENSION]
        owner = word[word[owner + PARENT] + OWNER]
        box = node + BOXES + BOX_WORDS * level
        number[box + LEAF_LOW], number[box + LEAF_HIGH] = math.inf, -math.inf
    record = word[node + LEAF]
    for _ in range(word[node + LEAF_COUNT]):
        for level in range(depth):
            box = node + BOXES + BOX_WORDS * level
            own = box_on(tree, record, desk.seen[level])
            number[box + LEAF_LOW] = min(number[box + LEAF_LOW], low_at(tree, own))
            number[box + LEAF_HIGH] = max(number[box + LEAF_HIGH], high_at(tree, record, own))
        record += words_of(tree, record)


@kernel_part
def summarise_leaf(tree: Tree, node: int, desk: Desk) -> None:
    """Work out the summary of the leaf of *node* anew."""
    for place in range(SUMMARY):
        tree.half[2 * (node + LEAF_SUMMARY) + place] = 0.0
    record = tree.word[node + LEAF]
    for _ in range(tree.word[node + LEAF_COUNT]):
        summarise(tree, record, desk)
        widen_summary(tree, node + LEAF_SUMMARY, desk)
        record += words_of(tree, record)


@kernel_part
def shrink_upward(tree: Tree, node: int, desk: Desk) -> None:
    """Work out the bounds of *node* and of all above it anew, as far as the record mattered."""
    word = tree.word
    matters = True
    while node != ROOT_NODE:
        if matters:
            matters = touches(tree, node, LOW) or touches_summary(tree, node + ALL_SUMMARY, desk)
            if matters or is_at_own_border(tree, node):
                bound_bucket(tree, node)
        owner = word[node + OWNER]
        if word[node + ABOVE] != NONE:
            node = word[node + ABOVE]
        else:
            word[owner + SIZE] -= 1
            node = word[owner + PARENT]


@kernel_part
def is_at_own_border(tree: Tree, node: int) -> bool:
    """Whether the record on the desk is at a border of the own bucket of *node*."""
    own = box_on(tree, DESK, tree.word[tree.word[node + OWNER] + DIMENSION])
    low, high = low_at(tree, own), high_at(tree, DESK, own)
    return bool(low <= tree.number[node + OWN_LOW] or high >= tree.number[node + OWN_HIGH])


@kernel_part
def bound_bucket(tree: Tree, node: int) -> None:
    """Work out what is beneath *node* from its leaf, its p-nodes and its children."""
    word, number, half = tree.word, tree.number, tree.half
    depth = word[node + DEPTH]
    for level in range(depth):
        box = node + BOXES + BOX_WORDS * level
        number[box + LOW], number[box + HIGH] = number[box + LEAF_LOW], number[box + LEAF_HIGH]
    for place in range(SUMMARY):
        half[2 * (node + ALL_SUMMARY) + place] = half[2 * (node + LEAF_SUMMARY) + place]
    directory = word[node + DIRECTORY]
    for place in range(directory, directory + word[node + PARTITIONS]):
        join(tree, node, word[tree.code[2 * place + 1] + ROOT], 1)
    number[node + OWN_LOW] = number[node + BOXES + LOW]
    number[node + OWN_HIGH] = number[node + BOXES + HIGH]
    if word[node + LEFT] != NONE:
        join(tree, node, word[node + LEFT], 0)
    if word[node + RIGHT] != NONE:
        join(tree, node, word[node + RIGHT], 0)


@kernel_part
def join(tree: Tree, node: int, child: int, skipped: int) -> None:
    """Widen *node* around what is beneath *child*, whose first *skipped* attributes are others."""
    number, half = tree.number, tree.half
    for level in range(tree.word[node + DEPTH]):
        box = node + BOXES + BOX_WORDS * level
        other = child + BOXES + BOX_WORDS * (level + skipped)
        number[box + LOW] = min(number[box + LOW], number[other + LOW])
        number[box + HIGH] = max(number[box + HIGH], number[other + HIGH])
    for place in range(SUMMARY):
        mine, others = 2 * (node + ALL_SUMMARY) + place, 2 * (child + ALL_SUMMARY) + place
        half[mine] = max(half[mine], half[others])


@kernel_part
def tidy(tree: Tree, node: int, desk: Desk, knobs: Knobs) -> None:
    """Merge *node* with the bucket above where it underflows, and drop what is empty."""
    word = tree.word
    least = math.ceil(knobs.least_share * knobs.capacity)
    while node != ROOT_NODE and word[node + PARTITIONS] == 0:
        above, owner = word[node + ABOVE], word[node + OWNER]
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
            fits = word[above + LEAF_COUNT] + count <= knobs.capacity
            if count > 0 and not (count < least and is_open and fits):
                return
            move_up(tree, node, above, desk)
            unhook(tree, node, above, owner, NONE)
            free_bucket(tree, node)
            node = above
        elif count == 0 and (left == NONE or right == NONE):
            child = right if left == NONE else left
            unhook(tree, node, above, owner, child)
            word[child + ABOVE] = above
            free_bucket(tree, node)
            return
        else:
            return


@kernel_part
def move_up(tree: Tree, node: int, above: int, desk: Desk) -> None:
    """Copy the records of *node* into the leaf of *above*, which encloses them already."""
    word = tree.word
    record, count = word[node + LEAF], word[node + LEAF_COUNT]
    for _ in range(count):
        append(tree, above, record, desk)
        record += words_of(tree, record)


@kernel_part
def unhook(tree: Tree, node: int, above: int, owner: int, child: int) -> None:
    """Put *child*, or nothing, where *node* stood."""
    word = tree.word
    if above == NONE:
        word[owner + ROOT] = child
    elif word[above + LEFT] == node:
        word[above + LEFT] = child
    else:
        word[above + RIGHT] = child
