"""Algorithms 6 and 7: a subscriber moves, and what it wants changes where its circle did.

Each leaf that an entry is filed in falls into one of four cases:

    1  inside the circle before and after   nothing is done there
    2  only where it was                    the entry is taken out, messages are lost
    3  where it was and is                  the entry stays, messages are lost and won
    4  only where it is now                 the entry is filed, messages are won

A message is looked at only if one of the entry's circles around `here()` holds it before and not
after, or the other way round: the partial regions of the paper, exact for circles too. Whether the
subscription as a whole wanted it, and wants it now, says the verifier; so what one alternative
loses and another wins cancels.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import (
    HERE,
    KIND_MASK,
    NEGATED,
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
)
from stentor.index.ap_tree.descending import make_node
from stentor.index.ap_tree.filing import (
    Way,
    count_up,
    has_room,
    is_outside,
    mark_dirty,
    places_of_entry,
    slot_in,
)
from stentor.index.ap_tree.layout import (
    COPIES,
    FIELDS,
    LIMIT,
    LIST_SIZE,
    LIST_START,
    MOVED,
    NOTHING,
    OUTSIDE,
    PARENT,
    ROOT,
    SIZE,
    Entries,
    Float32,
    Policy,
    Tree,
)
from stentor.index.ap_tree.pools import add_slot, drop_slot
from stentor.index.verify.alternatives import subscription_matches
from stentor.index.verify.place import in_region
from stentor.index.verify.scratch import EventScratch, scatter

_NO_BITS = np.uint64(0)


@kernel
def messages_around(
    tree: Tree,
    old: SubscriptionColumns,
    new: SubscriptionColumns,
    before: Entries,
    after: Entries,
    owner: Int64,
    attribute: int,
    hidden: UInt8,
    signature: UInt64,
    point: Float64,
    way: Way,
    other: Way,
    found_owner: Int64,
    found_message: Int64,
) -> int:
    """Pairs of an entry's *owner* and a message whose place in a circle changes; how many.

    Those that do not fit are only counted; a pair may come more than once.
    """
    found = 0
    for entry in range(len(owner)):
        alternative = before.alternative[entry]
        needed = before.signature[entry]
        was = before.box[4 * entry : 4 * entry + 4]
        now = after.box[4 * entry : 4 * entry + 4]
        left = places_of_entry(tree, before, entry, was, ROOT, False, way)
        reached = places_of_entry(tree, after, entry, now, ROOT, False, other)
        for number in range(left + reached):
            place = way.place[number] if number < left else other.place[number - left]
            if number >= left and is_among(way.place, left, place):
                continue
            node = tree.child[place]
            if node == NOTHING:
                node = way.parent[number] if number < left else other.parent[number - left]
            elif is_inside(old, new, alternative, attribute, tree, node):
                # Case 1; lists above reach beyond this leaf.
                node = tree.node[node * FIELDS + PARENT]
            while node != NOTHING:
                start = tree.node[node * FIELDS + LIST_START]
                for message in tree.listed[start : start + tree.node[node * FIELDS + LIST_SIZE]]:
                    if (needed & ~signature[message] != _NO_BITS) | (hidden[message] != 0):
                        continue
                    x, y = point[2 * message], point[2 * message + 1]
                    if not (in_box(was, x, y) or in_box(now, x, y)):
                        continue
                    if is_flipped(old, new, alternative, attribute, x, y):
                        if found < len(found_owner):
                            found_owner[found] = owner[entry]
                            found_message[found] = message
                        found += 1
                node = tree.node[node * FIELDS + PARENT]
    return found


@kernel_inline
def is_among(places: Int32, count: int, place: int) -> bool:
    """Whether *place* is one of the first *count*."""
    for number in range(count):
        if places[number] == place:
            return True
    return False


@kernel_inline
def in_box(box: Float32, x: float, y: float) -> bool:
    """Whether (x, y) is in *box*."""
    return bool((box[0] <= x) & (box[1] <= y) & (box[2] >= x) & (box[3] >= y))


@kernel_part
def is_inside(
    old: SubscriptionColumns,
    new: SubscriptionColumns,
    alternative: int,
    attribute: int,
    tree: Tree,
    node: int,
) -> bool:
    """Whether the region of *node* is in all circles around the subscriber, before and after.

    A circle that holds the corners of a box holds all of it, if the box is on its centre's side of
    the globe. A region at the rim of the tree's has no end there: messages may be further out.
    """
    region = tree.region[4 * node : 4 * node + 4]
    for side in range(4):
        if region[side] == tree.region[4 * ROOT + side]:
            return False
    for predicate in range(old.predicate_start[alternative], old.predicate_start[alternative + 1]):
        kind = old.kind[predicate]
        if kind & KIND_MASK != HERE:
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


@kernel_part
def is_flipped(
    old: SubscriptionColumns,
    new: SubscriptionColumns,
    alternative: int,
    attribute: int,
    x: float,
    y: float,
) -> bool:
    """Whether (x, y) came into or out of a circle around the subscriber.

    Where nobody knew where the subscriber was, everything is new: also being outside. A circle of
    another place than the tree's may have.
    """
    for predicate in range(old.predicate_start[alternative], old.predicate_start[alternative + 1]):
        if old.kind[predicate] & KIND_MASK == HERE and (
            old.attribute[predicate] != attribute
            or math.isnan(old.pair_low[old.operand_start[predicate] + 2])
            or in_region(old, predicate, x, y) != in_region(new, predicate, x, y)
        ):
            return True
    return False


@kernel
def file_moved(
    tree: Tree,
    before: Entries,
    after: Entries,
    first: int,
    filed: Int32,
    policy: Policy,
    total: int,
    way: Way,
    other: Way,
    used: Int64,
) -> int:
    """Bring entries from *first* on to the leaves of their new boxes; where it had to stop.

    *filed* are the alternatives as the leaves know them.
    """
    for entry in range(first, len(filed)):
        now = after.box[4 * entry : 4 * entry + 4]
        left = places_of_entry(
            tree, before, entry, before.box[4 * entry : 4 * entry + 4], ROOT, False, other
        )
        reached = places_of_entry(tree, after, entry, now, ROOT, True, way)
        if not has_room(tree, policy, reached, used[0] + left, way):
            return entry
        for number in range(left):
            place = other.place[number]
            leaf = tree.child[place]
            if leaf == NOTHING:
                continue
            slot = slot_in(tree, leaf, filed[entry], before.clause[entry])
            if slot == NOTHING:
                continue
            if is_among(way.place, reached, place):
                for side in range(4):
                    tree.box[4 * slot + side] = now[side]
                try_again(tree, leaf, policy, way.dirty, used)
            else:
                drop_slot(tree, leaf, slot)
                tree.counter[COPIES] -= 1
                count_up(tree, leaf, -1, policy, total, way.dirty, used)
        for number in range(reached):
            place = way.place[number]
            stays = is_among(other.place, left, place) and tree.child[place] != NOTHING
            if stays and holds(tree, tree.child[place], filed[entry], after.clause[entry]):
                continue
            if tree.child[place] == NOTHING:
                make_node(tree, place, way.parent[number])
            leaf = tree.child[place]
            add_slot(tree, leaf, after.signature[entry], now, filed[entry], after.clause[entry])
            tree.counter[COPIES] += 1
            fields = tree.node[leaf * FIELDS : (leaf + 1) * FIELDS]
            if fields[SIZE] > max(policy.leaf, fields[LIMIT]):
                mark_dirty(tree, leaf, way.dirty, used)
            try_again(tree, leaf, policy, way.dirty, used)
            count_up(tree, leaf, 1, policy, total, way.dirty, used)
        tree.counter[OUTSIDE] += is_outside(tree, now)
    return len(filed)


@kernel_inline
def try_again(tree: Tree, leaf: int, policy: Policy, dirty: Int32, used: Int64) -> None:
    """Let a leaf that could not be split be tried again when as many entries as it has moved."""
    fields = tree.node[leaf * FIELDS : (leaf + 1) * FIELDS]
    fields[MOVED] += 1
    if fields[SIZE] > policy.leaf and fields[MOVED] > fields[SIZE]:
        mark_dirty(tree, leaf, dirty, used)


@kernel_inline
def holds(tree: Tree, leaf: int, alternative: int, clause: int) -> bool:
    """Whether the entry is filed in *leaf*."""
    return slot_in(tree, leaf, alternative, clause) != NOTHING


@kernel
def wanted(
    columns: SubscriptionColumns,
    rows: Int64,
    events: EventColumns,
    messages: Int64,
    scratch: EventScratch,
    answer: UInt8,
) -> None:
    """Fill *answer* with whether each of *rows* wants its message; pairs in order of messages."""
    spread = -1
    for pair in range(len(rows)):
        if messages[pair] != spread:
            spread = messages[pair]
            scatter(events, spread, scratch)
        answer[pair] = subscription_matches(columns, rows[pair], scratch)
