"""Insertion: the branches of an entry, a slot in each of their leaves, counts and divergences."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import Int32, Int64, UInt8
from stentor.index.ap_tree.keywords import bloom_add
from stentor.index.ap_tree.layout import (
    BRANCH,
    CAPACITY,
    COPIES,
    COUNT,
    DIRTY,
    FIELDS,
    FLAGS,
    KEYWORDS,
    KIND,
    LEAF,
    LINES,
    NODES,
    NONE,
    OFFSET,
    OUTSIDE,
    PARENT,
    ROOT,
    SIZE,
    SLOT_CLASSES,
    SLOTS,
    SPLIT_ABOVE,
    START,
    ApEntries,
    ApKernelSettings,
    ApTreeArrays,
    Float32,
    X,
    Y,
)
from stentor.index.ap_tree.match import cell_along, contains_region, cut_of, is_wide, make_node
from stentor.index.ap_tree.nodes import SMALLEST_BLOCK, free_run, power_for, take_run
from stentor.index.ap_tree.rebalance import SMOOTHING, is_changed


@kernel_inline
def add_slot(
    tree: ApTreeArrays,
    node: int,
    signature: np.uint64,
    box: np.ndarray[Any, np.dtype[np.float32]],
    alternative: int,
    clause: int,
) -> None:
    """Insert an entry into the leaf *node*, in a larger block where its own is full."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    size, start = fields[SIZE], fields[START]
    if size == fields[CAPACITY]:
        power = power_for(size + 1)
        larger = take_run(tree.counter, SLOT_CLASSES, SLOTS, tree.alternative, power)
        for position in range(size):
            tree.signature[larger + position] = tree.signature[start + position]
            tree.alternative[larger + position] = tree.alternative[start + position]
            tree.clause[larger + position] = tree.clause[start + position]
        for position in range(4 * size):
            tree.box[4 * larger + position] = tree.box[4 * start + position]
        free_run(tree.counter, SLOT_CLASSES, tree.alternative, start, fields[CAPACITY])
        fields[START], fields[CAPACITY] = larger, 1 << power
        start = larger
    slot = start + size
    tree.signature[slot] = signature
    for side in range(4):
        tree.box[4 * slot + side] = box[side]
    tree.alternative[slot] = alternative
    tree.clause[slot] = clause
    fields[SIZE] = size + 1


class ApInsertScratch(NamedTuple):
    """Scratch: the branches of an entry, and the nodes to be rebalanced."""

    node: Int32  # still to be visited
    branch: Int32  # where the entry belongs
    parent: Int32  # of a branch without a child: the node above; else NONE
    dirty: Int32  # nodes to be rebalanced
    mark: UInt8  # by branch: zeros, but while two walks are compared


def insert_capacity(tree: ApTreeArrays) -> int:
    """As many nodes and branches as *tree* has capacity for, and some."""
    return 1024 + len(tree.node) // FIELDS + len(tree.child)


def insert_scratch(tree: ApTreeArrays) -> ApInsertScratch:
    """Scratch for a walk through *tree*."""
    capacity = insert_capacity(tree)
    node, branch, parent, dirty = (np.empty(capacity, np.int32) for _ in range(4))
    return ApInsertScratch(node, branch, parent, dirty, np.zeros(capacity, np.uint8))


@kernel_inline
def mark_branches(walk: ApInsertScratch, count: int, mark: int) -> None:
    """Set the marks of the first *count* branches of *walk*."""
    for number in range(count):
        walk.mark[walk.branch[number]] = mark


@inner_kernel
def branches_of_entry(
    tree: ApTreeArrays,
    entries: ApEntries,
    entry: int,
    box: Float32,
    start_node: int,
    marking: bool,
    walk: ApInsertScratch,
) -> int:
    """How many branches beneath *start_node* hold *entry*: those of walk.branch.

    walk.parent is NONE where the branch has a leaf, else the node above. With *marking*, the Bloom
    filter gets its keywords. An entry whose box is empty has no branches.
    """
    keys = entries.key[entries.key_start[entry] : entries.key_start[entry + 1]]
    walk.node[0] = start_node
    top, found = 1 if box[0] <= box[2] else 0, 0
    while top > 0:
        top -= 1
        node = walk.node[top]
        fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
        if fields[KIND] == LEAF:
            walk.branch[found], walk.parent[found] = fields[BRANCH], NONE
            found += 1
            continue
        start, size = fields[START], fields[SIZE]
        west = east = south = north = 0
        if fields[KIND] == KEYWORDS:
            offset = fields[OFFSET]
            first = start + size
            if offset < len(keys):
                first = cut_of(tree.bound, start, size, keys[offset])
                if marking:
                    bloom_add(tree.present, node, keys[offset])
            columns = 1
        elif contains_region(box, tree.region[4 * node : 4 * node + 4]):
            first, columns = start + size, 1
        else:
            columns, lines = fields[X], fields[LINES]
            first = start
            west = cell_along(tree.line, lines, columns - 1, box[0])
            east = cell_along(tree.line, lines, columns - 1, box[2])
            south = cell_along(tree.line, lines + columns - 1, fields[Y] - 1, box[1])
            north = cell_along(tree.line, lines + columns - 1, fields[Y] - 1, box[3])
            if is_wide(west, east, south, north):
                first = start + size
                west = east = south = north = 0
        for row in range(south, north + 1):
            for column in range(west, east + 1):
                position = first + row * columns + column
                child = tree.child[position]
                if child == NONE:
                    walk.branch[found], walk.parent[found] = position, node
                    found += 1
                else:
                    walk.node[top] = child
                    top += 1
    return found


@kernel
def insert_entries(
    tree: ApTreeArrays,
    entries: ApEntries,
    first: int,
    policy: ApKernelSettings,
    total: int,
    walk: ApInsertScratch,
    used: Int64,
) -> int:
    """Insert entries from *first* on; the first for which capacity is missing.

    *used* counts the nodes in walk.dirty: leaves that are too large, nodes that have changed.
    *total* is how many entries there are in all.
    """
    for entry in range(first, len(entries.alternative)):
        box = entries.box[4 * entry : 4 * entry + 4]
        found = branches_of_entry(tree, entries, entry, box, ROOT, True, walk)
        if not has_capacity(tree, policy, found, used[0], walk):
            return entry
        for number in range(found):
            position = walk.branch[number]
            if walk.parent[number] != NONE:
                make_node(tree, position, walk.parent[number])
            leaf = tree.child[position]
            add_slot(
                tree,
                leaf,
                entries.signature[entry],
                box,
                entries.alternative[entry],
                entries.clause[entry],
            )
            tree.counter[COPIES] += 1
            fields = tree.node[leaf * FIELDS : (leaf + 1) * FIELDS]
            if fields[SIZE] > max(policy.leaf, fields[SPLIT_ABOVE]):
                queue_node(tree, leaf, walk.dirty, used)
            add_to_counts(tree, leaf, 1, policy, total, walk.dirty, used)
        tree.counter[OUTSIDE] += is_outside(tree, box)
    return len(entries.alternative)


@kernel_inline
def is_outside(tree: ApTreeArrays, box: Float32) -> bool:
    """Whether *box* is not empty, and all of it outside the root's region."""
    region = tree.region[4 * ROOT : 4 * ROOT + 4]
    beside = box[0] > region[2] or box[2] < region[0]
    return bool(box[0] <= box[2] and (beside or box[1] > region[3] or box[3] < region[1]))


@kernel_inline
def has_capacity(
    tree: ApTreeArrays, policy: ApKernelSettings, found: int, dirty: int, walk: ApInsertScratch
) -> bool:
    """Whether *found* more leaves, and as many slots, surely fit."""
    largest = SMALLEST_BLOCK * found
    for number in range(found):
        if walk.parent[number] == NONE:
            leaf = tree.child[walk.branch[number]]
            size = tree.node[leaf * FIELDS + SIZE]
            if size == tree.node[leaf * FIELDS + CAPACITY]:
                largest += 1 << power_for(size + 1)
    return bool(
        (tree.counter[NODES] + found) * FIELDS <= len(tree.node)
        and tree.counter[SLOTS] + largest <= len(tree.alternative)
        and dirty + found * 2 + 64 <= len(walk.dirty)
    )


@kernel_inline
def queue_node(tree: ApTreeArrays, node: int, dirty: Int32, used: Int64) -> None:
    """Add *node* to those to be rebalanced when the batch is done."""
    if tree.node[node * FIELDS + FLAGS] & DIRTY == 0 and used[0] < len(dirty):
        tree.node[node * FIELDS + FLAGS] |= DIRTY
        dirty[used[0]] = node
        used[0] += 1


@kernel_inline
def add_to_counts(
    tree: ApTreeArrays,
    leaf: int,
    change: int,
    policy: ApKernelSettings,
    total: int,
    dirty: Int32,
    used: Int64,
) -> None:
    """Add *change* to the counts of *leaf* and of all above it, and to their divergences."""
    node = np.int32(leaf)
    while node != NONE:
        fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
        before = fields[COUNT]
        fields[COUNT] = before + change
        above = fields[PARENT]
        if above != NONE:
            moved = math.log(before + change + SMOOTHING) - math.log(before + SMOOTHING)
            tree.spread[2 * above + 1] += tree.share[fields[BRANCH]] * moved
        if fields[KIND] != LEAF and (
            (change < 0 and fields[COUNT] < policy.collapse * policy.leaf)
            or (policy.rebuilds != 0 and is_changed(tree, int(node), policy, total))
        ):
            queue_node(tree, int(node), dirty, used)
        node = above
