"""Algorithms 6 and 7: a subscriber moves, and its matches change where its circle did.

Only live events that are in one of the old and the new circle and not in the other can change; they
are in the lists of the branches of both, but for leaves that both contain.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import (
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
    read_only,
)
from stentor.encoding.kinds import KIND_MASK, NEGATED, OWN_CIRCLE
from stentor.index.ap_tree.insert import (
    ApInsertScratch,
    add_slot,
    add_to_counts,
    branches_of_entry,
    has_capacity,
    is_outside,
    mark_branches,
    queue_node,
)
from stentor.index.ap_tree.layout import (
    COPIES,
    FIELDS,
    LIST_SIZE,
    LIST_START,
    MOVED,
    NONE,
    OUTSIDE,
    PARENT,
    ROOT,
    SIZE,
    SPLIT_ABOVE,
    ApEntries,
    ApKernelSettings,
    ApTreeArrays,
    Float32,
)
from stentor.index.ap_tree.live import FIRST_CAPACITY, LiveLists, unique_pairs
from stentor.index.ap_tree.match import _NO_BITS, make_node
from stentor.index.ap_tree.remove import drop_slot, slot_in
from stentor.index.ap_tree.state import ApTreeState
from stentor.index.table import EventTable
from stentor.index.verify.predicates import in_region


@kernel
def events_that_change(
    tree: ApTreeArrays,
    old: SubscriptionColumns,
    new: SubscriptionColumns,
    before: ApEntries,
    after: ApEntries,
    owner: Int64,
    attribute: int,
    hidden: UInt8,
    signature: UInt64,
    point: Float64,
    walk: ApInsertScratch,
    other: ApInsertScratch,
    found_owner: Int64,
    found_event: Int64,
) -> int:
    """Pairs of an entry's *owner* and an event that comes into or out of a circle; how many.

    Those that do not fit are only counted; a pair may come more than once.
    """
    found = 0
    for entry in range(len(owner)):
        alternative = before.alternative[entry]
        needed = before.signature[entry]
        was = before.box[4 * entry : 4 * entry + 4]
        now = after.box[4 * entry : 4 * entry + 4]
        left = branches_of_entry(tree, before, entry, was, ROOT, False, walk)
        reached = branches_of_entry(tree, after, entry, now, ROOT, False, other)
        mark_branches(walk, left, 1)
        for number in range(left + reached):
            position = walk.branch[number] if number < left else other.branch[number - left]
            if number >= left and walk.mark[position]:
                continue
            node = tree.child[position]
            if node == NONE:
                node = walk.parent[number] if number < left else other.parent[number - left]
            elif is_inside(old, new, alternative, attribute, tree, node):
                # Case 1; lists above have events from outside this leaf too.
                node = tree.node[node * FIELDS + PARENT]
            while node != NONE:
                start = tree.node[node * FIELDS + LIST_START]
                for event in tree.listed[start : start + tree.node[node * FIELDS + LIST_SIZE]]:
                    if (needed & ~signature[event] != _NO_BITS) | (hidden[event] != 0):
                        continue
                    x, y = point[2 * event], point[2 * event + 1]
                    if not (in_box(was, x, y) or in_box(now, x, y)):
                        continue
                    if changes_side(old, new, alternative, attribute, x, y):
                        if found < len(found_owner):
                            found_owner[found] = owner[entry]
                            found_event[found] = event
                        found += 1
                node = tree.node[node * FIELDS + PARENT]
        mark_branches(walk, left, 0)
    return found


@kernel_inline
def in_box(box: Float32, x: float, y: float) -> bool:
    """Whether (x, y) is in *box*."""
    return bool((box[0] <= x) & (box[1] <= y) & (box[2] >= x) & (box[3] >= y))


@inner_kernel
def is_inside(
    old: SubscriptionColumns,
    new: SubscriptionColumns,
    alternative: int,
    attribute: int,
    tree: ApTreeArrays,
    node: int,
) -> bool:
    """Whether the region of *node* is in all circles around the subscriber, before and after.

    A circle that holds the corners of a box holds all of it, if the box is on its centre's side of
    the globe. A region at the rim of the tree's has no bound there: events may be further out.
    """
    region = tree.region[4 * node : 4 * node + 4]
    for side in range(4):
        if region[side] == tree.region[4 * ROOT + side]:
            return False
    for predicate in range(old.predicate_start[alternative], old.predicate_start[alternative + 1]):
        kind = old.kind[predicate]
        if kind & KIND_MASK != OWN_CIRCLE:
            continue
        if old.attribute[predicate] != attribute or kind & NEGATED:
            return False
        if not (is_beside(old, predicate, region) and is_beside(new, predicate, region)):
            return False
        for corner in range(4):
            x, y = region[corner & 2], region[1 + 2 * (corner & 1)]
            if not in_region(old, predicate, x, y) or not in_region(new, predicate, x, y):
                return False
    return True


@kernel_inline
def is_beside(columns: SubscriptionColumns, predicate: int, region: Float64) -> bool:
    """Whether all of *region* is within 90 degrees of longitude from the centre of a circle.

    Beyond a pole, the point of a parallel that is farthest from the centre is not at its ends.
    """
    centre = columns.pair_low[columns.operand_start[predicate] + 2]
    return bool(abs(region[0] - centre) <= 90.0 and abs(region[2] - centre) <= 90.0)


@inner_kernel
def changes_side(
    old: SubscriptionColumns,
    new: SubscriptionColumns,
    alternative: int,
    attribute: int,
    x: float,
    y: float,
) -> bool:
    """Whether (x, y) came into or out of a circle around the subscriber.

    Where the location of the subscriber was unknown, everything is new: also being outside. A
    circle of another location than the tree's may have changed sides.
    """
    for predicate in range(old.predicate_start[alternative], old.predicate_start[alternative + 1]):
        if old.kind[predicate] & KIND_MASK == OWN_CIRCLE and (
            old.attribute[predicate] != attribute
            or math.isnan(old.pair_low[old.operand_start[predicate] + 2])
            or in_region(old, predicate, x, y) != in_region(new, predicate, x, y)
        ):
            return True
    return False


@kernel
def move_entries(
    tree: ApTreeArrays,
    before: ApEntries,
    after: ApEntries,
    first: int,
    alternative: Int32,
    policy: ApKernelSettings,
    total: int,
    walk: ApInsertScratch,
    other: ApInsertScratch,
    used: Int64,
) -> int:
    """Move entries from *first* on to the leaves of their new boxes; where it had to stop.

    *alternative* has their alternatives as numbered in the leaves.
    """
    for entry in range(first, len(alternative)):
        now = after.box[4 * entry : 4 * entry + 4]
        left = branches_of_entry(
            tree, before, entry, before.box[4 * entry : 4 * entry + 4], ROOT, False, other
        )
        reached = branches_of_entry(tree, after, entry, now, ROOT, True, walk)
        if not has_capacity(tree, policy, reached, used[0] + left, walk):
            return entry
        mark_branches(other, left, 1)
        mark_branches(walk, reached, 1)
        for number in range(left):
            position = other.branch[number]
            leaf = tree.child[position]
            if leaf == NONE:
                continue
            slot = slot_in(tree, leaf, alternative[entry], before.clause[entry])
            if slot == NONE:
                continue
            if walk.mark[position]:
                for side in range(4):
                    tree.box[4 * slot + side] = now[side]
                count_move(tree, leaf, policy, walk.dirty, used)
            else:
                drop_slot(tree, leaf, slot)
                tree.counter[COPIES] -= 1
                add_to_counts(tree, leaf, -1, policy, total, walk.dirty, used)
        for number in range(reached):
            position = walk.branch[number]
            stays = other.mark[position] and tree.child[position] != NONE
            if stays and holds(tree, tree.child[position], alternative[entry], after.clause[entry]):
                continue
            if tree.child[position] == NONE:
                make_node(tree, position, walk.parent[number])
            leaf = tree.child[position]
            add_slot(
                tree, leaf, after.signature[entry], now, alternative[entry], after.clause[entry]
            )
            tree.counter[COPIES] += 1
            fields = tree.node[leaf * FIELDS : (leaf + 1) * FIELDS]
            if fields[SIZE] > max(policy.leaf, fields[SPLIT_ABOVE]):
                queue_node(tree, leaf, walk.dirty, used)
            count_move(tree, leaf, policy, walk.dirty, used)
            add_to_counts(tree, leaf, 1, policy, total, walk.dirty, used)
        mark_branches(other, left, 0)
        mark_branches(walk, reached, 0)
        tree.counter[OUTSIDE] += is_outside(tree, now)
    return len(alternative)


@kernel_inline
def count_move(
    tree: ApTreeArrays, leaf: int, policy: ApKernelSettings, dirty: Int32, used: Int64
) -> None:
    """Count a move in *leaf*; too large, a split is tried again after as many as it has."""
    fields = tree.node[leaf * FIELDS : (leaf + 1) * FIELDS]
    fields[MOVED] += 1
    if fields[SIZE] > policy.leaf and fields[MOVED] > fields[SIZE]:
        queue_node(tree, leaf, dirty, used)


@kernel_inline
def holds(tree: ApTreeArrays, leaf: int, alternative: int, clause: int) -> bool:
    """Whether the entry is in *leaf*."""
    return slot_in(tree, leaf, alternative, clause) != NONE


def find_changes(
    lists: LiveLists,
    old: SubscriptionColumns,
    new: SubscriptionColumns,
    before: ApEntries,
    after: ApEntries,
    live: EventTable,
    signature: UInt64,
) -> tuple[Int64, Int64]:
    """Rows of *old* and *new* and events that came into or out of one of their circles.

    Each pair once, in the order of events.
    """
    owner = np.searchsorted(old.alternative_start, before.alternative, side="right") - 1
    walk, other = lists.walks
    capacity, found = 0, FIRST_CAPACITY
    while found > capacity:
        capacity = found
        rows, event_rows = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        found = events_that_change(
            lists.tree,
            old,
            new,
            before,
            after,
            read_only(owner),
            lists.attribute,
            live.hidden,
            signature,
            lists.points,
            walk,
            other,
            rows,
            event_rows,
        )
    return unique_pairs(rows[:found], event_rows[:found])


def move_entries_all(
    store: ApTreeState, before: ApEntries, after: ApEntries, alternative: Int32
) -> list[int]:
    """Move entries to the leaves of their new boxes; the nodes to be rebalanced."""

    def step(done: int, used: Int64) -> int:
        walk, other = store.walks
        return move_entries(
            store.tree,
            before,
            after,
            done,
            read_only(alternative),
            store.policy,
            store.entries,
            walk,
            other,
            used,
        )

    return store.run_to_end(len(alternative), step)
