"""Entries filed in the leaves and taken out of them; counts and divergences kept on the way.

An entry is filed in every leaf that its keywords and its box lead to, and found there again by the
same way: no list of leaves is kept for each (the paper's nodelist).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import Int32, Int64
from stentor.index.ap_tree.descending import cell_along, contains_region, cut_of, make_node
from stentor.index.ap_tree.layout import (
    COPIES,
    COUNT,
    DIRTY,
    FIELDS,
    FLAGS,
    KEYWORDS,
    KIND,
    LEAF,
    LIMIT,
    LINES,
    NODES,
    NOTHING,
    OFFSET,
    OUTSIDE,
    PARENT,
    PLACE,
    ROOT,
    SIZE,
    SLOTS,
    START,
    Entries,
    Float32,
    Policy,
    Tree,
    X,
    Y,
)
from stentor.index.ap_tree.pools import add_slot, drop_slot
from stentor.index.ap_tree.presence import add_presence

#: What is added to a weight so that its logarithm exists.
SMOOTHING = 0.5


class Way(NamedTuple):
    """Scratch: the leaves of an entry, and nodes that are to be looked after."""

    node: Int32  # still to be visited
    place: Int32  # where it is filed: places
    parent: Int32  # and the node above, where nothing hangs there yet
    dirty: Int32


def room_for_ways(tree: Tree) -> int:
    """As many nodes and places as *tree* has room for, and some."""
    return 1024 + len(tree.node) // FIELDS + len(tree.child)


def way_for(tree: Tree) -> Way:
    """Scratch for the ways through *tree*."""
    room = room_for_ways(tree)
    return Way(*(np.empty(room, np.int32) for _ in Way._fields))


@kernel_part
def places_of_entry(
    tree: Tree,
    entries: Entries,
    entry: int,
    box: Float32,
    start_node: int,
    marking: bool,
    way: Way,
) -> int:
    """How many places *entry* is filed at beneath *start_node*: those of way.place.

    way.parent is NOTHING where a leaf hangs there, else the node above. With *marking*, messages
    learn that its keywords are there. An entry that is nowhere is filed nowhere.
    """
    keys = entries.key[entries.key_start[entry] : entries.key_start[entry + 1]]
    way.node[0] = start_node
    top, found = 1 if box[0] <= box[2] else 0, 0
    while top > 0:
        top -= 1
        node = way.node[top]
        fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
        if fields[KIND] == LEAF:
            way.place[found], way.parent[found] = fields[PLACE], NOTHING
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
                    add_presence(tree.present, node, keys[offset])
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
        for row in range(south, north + 1):
            for column in range(west, east + 1):
                place = first + row * columns + column
                child = tree.child[place]
                if child == NOTHING:
                    way.place[found], way.parent[found] = place, node
                    found += 1
                else:
                    way.node[top] = child
                    top += 1
    return found


@kernel
def file_entries(
    tree: Tree, entries: Entries, first: int, policy: Policy, total: int, way: Way, used: Int64
) -> int:
    """File entries from *first* on; the first that there was no room for.

    *used* counts the nodes in way.dirty: leaves that are too large, nodes that have changed.
    *total* is how many entries there are in all.
    """
    for entry in range(first, len(entries.alternative)):
        box = entries.box[4 * entry : 4 * entry + 4]
        found = places_of_entry(tree, entries, entry, box, ROOT, True, way)
        if not has_room(tree, policy, found, used[0], way):
            return entry
        for number in range(found):
            place = way.place[number]
            if way.parent[number] != NOTHING:
                make_node(tree, place, way.parent[number])
            leaf = tree.child[place]
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
            if fields[SIZE] > max(policy.leaf, fields[LIMIT]):
                mark_dirty(tree, leaf, way.dirty, used)
            count_up(tree, leaf, 1, policy, total, way.dirty, used)
        tree.counter[OUTSIDE] += is_outside(tree, box)
    return len(entries.alternative)


@kernel_inline
def is_outside(tree: Tree, box: Float32) -> bool:
    """Whether *box* is somewhere, and all of it beyond the root's region."""
    region = tree.region[4 * ROOT : 4 * ROOT + 4]
    beside = box[0] > region[2] or box[2] < region[0]
    return bool(box[0] <= box[2] and (beside or box[1] > region[3] or box[3] < region[1]))


@kernel_inline
def has_room(tree: Tree, policy: Policy, found: int, dirty: int, way: Way) -> bool:
    """Whether *found* more leaves, and as many slots, surely fit."""
    largest = 4 * found
    for number in range(found):
        if way.parent[number] == NOTHING:
            largest += 2 * tree.node[tree.child[way.place[number]] * FIELDS + SIZE] + 4
    return bool(
        (tree.counter[NODES] + found) * FIELDS <= len(tree.node)
        and tree.counter[SLOTS] + largest <= len(tree.alternative)
        and dirty + found * 2 + 64 <= len(way.dirty)
    )


@kernel_inline
def mark_dirty(tree: Tree, node: int, dirty: Int32, used: Int64) -> None:
    """Let *node* be looked after when the batch is done."""
    if tree.node[node * FIELDS + FLAGS] & DIRTY == 0 and used[0] < len(dirty):
        tree.node[node * FIELDS + FLAGS] |= DIRTY
        dirty[used[0]] = node
        used[0] += 1


@kernel_inline
def count_up(
    tree: Tree, leaf: int, change: int, policy: Policy, total: int, dirty: Int32, used: Int64
) -> None:
    """Add *change* to the counts of *leaf* and of all above it, and to their divergences."""
    node = np.int32(leaf)
    while node != NOTHING:
        fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
        before = fields[COUNT]
        fields[COUNT] = before + change
        above = fields[PARENT]
        if above != NOTHING:
            moved = math.log(before + change + SMOOTHING) - math.log(before + SMOOTHING)
            tree.spread[2 * above + 1] += tree.share[fields[PLACE]] * moved
        if fields[KIND] != LEAF and (
            (change < 0 and fields[COUNT] < policy.collapse * policy.leaf)
            or (policy.rebuilds != 0 and is_changed(tree, int(node), policy, total))
        ):
            mark_dirty(tree, int(node), dirty, used)
        node = above


@kernel_inline
def is_changed(tree: Tree, node: int, policy: Policy, total: int) -> bool:
    """Whether the entries of *node* are spread otherwise over its children than it was built for.

    Small nodes are not looked at (5.1.3), nor what chance alone would do.
    """
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    count = fields[COUNT]
    if count < max(policy.share * total, 2.0 * policy.leaf):
        return False
    limit = policy.divergence
    if policy.by_chance:
        limit += (fields[SIZE] + 1) / (2.0 * count)
    return divergence_at(tree, node) > limit


@kernel_inline
def divergence_at(tree: Tree, node: int) -> float:
    """D_KL(w_old | w) of *node*: with Σ p log p kept, and Σ p log w kept true, it is free."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    whole = fields[COUNT] + SMOOTHING * (fields[SIZE] + 1)
    return float(tree.spread[2 * node] - tree.spread[2 * node + 1] + math.log(whole))


@kernel
def count_subtree(tree: Tree, node: int, change: int) -> None:
    """Let all above *node* know that it holds *change* more copies than before."""
    now = tree.node[node * FIELDS + COUNT]
    before = now - change
    while tree.node[node * FIELDS + PARENT] != NOTHING:
        above = tree.node[node * FIELDS + PARENT]
        moved = math.log(now + SMOOTHING) - math.log(before + SMOOTHING)
        tree.spread[2 * above + 1] += tree.share[tree.node[node * FIELDS + PLACE]] * moved
        before = tree.node[above * FIELDS + COUNT]
        now = before + change
        tree.node[above * FIELDS + COUNT] = now
        node = above


@kernel
def weigh(tree: Tree, made: Int32, count: int) -> None:
    """Fill counts, shares and divergences of the nodes *made*, children after their parents."""
    for number in range(count - 1, -1, -1):
        node = made[number]
        fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
        if fields[KIND] == LEAF:
            fields[COUNT] = fields[SIZE]
            continue
        start, children = fields[START], fields[SIZE] + 1
        total = 0
        for place in range(start, start + children):
            child = tree.child[place]
            if child != NOTHING:
                total += tree.node[child * FIELDS + COUNT]
        fields[COUNT] = total
        settled = now = 0.0
        for place in range(start, start + children):
            child = tree.child[place]
            weight = SMOOTHING
            if child != NOTHING:
                weight += tree.node[child * FIELDS + COUNT]
            share = weight / (total + SMOOTHING * children)
            tree.share[place] = share
            settled += share * math.log(share)
            now += share * math.log(weight)
        tree.spread[2 * node], tree.spread[2 * node + 1] = settled, now


@kernel
def take_out_entries(
    tree: Tree, entries: Entries, first: int, policy: Policy, total: int, way: Way, used: Int64
) -> int:
    """Take entries out of their leaves from *first* on; where it had to stop."""
    for entry in range(first, len(entries.alternative)):
        box = entries.box[4 * entry : 4 * entry + 4]
        found = places_of_entry(tree, entries, entry, box, ROOT, False, way)
        if used[0] + 2 * found + 64 > len(way.dirty):
            return entry
        for number in range(found):
            if way.parent[number] != NOTHING:
                continue
            leaf = tree.child[way.place[number]]
            slot = slot_in(tree, leaf, entries.alternative[entry], entries.clause[entry])
            if slot != NOTHING:
                drop_slot(tree, leaf, slot)
                tree.counter[COPIES] -= 1
                count_up(tree, leaf, -1, policy, total, way.dirty, used)
    return len(entries.alternative)


@kernel
def nodes_of_entries(tree: Tree, entries: Entries, way: Way, starts: Int64, nodes: Int32) -> int:
    """The leaves that each entry leads to, from *starts*; where there is none, the node above.

    How many there are; those that do not fit are only counted.
    """
    used = 0
    for entry in range(len(entries.alternative)):
        starts[entry] = used
        box = entries.box[4 * entry : 4 * entry + 4]
        found = places_of_entry(tree, entries, entry, box, ROOT, False, way)
        for number in range(found):
            node = tree.child[way.place[number]]
            if used < len(nodes):
                nodes[used] = way.parent[number] if node == NOTHING else node
            used += 1
    starts[len(entries.alternative)] = used
    return used


@kernel_inline
def slot_in(tree: Tree, leaf: int, alternative: int, clause: int) -> int:
    """The slot of an entry in *leaf*, or NOTHING."""
    start = tree.node[leaf * FIELDS + START]
    for slot in range(start, start + tree.node[leaf * FIELDS + SIZE]):
        if tree.alternative[slot] == alternative and tree.clause[slot] == clause:
            return int(slot)
    return NOTHING
