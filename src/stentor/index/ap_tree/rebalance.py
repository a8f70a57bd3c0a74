"""Which nodes have changed too much since they were built, and their subtrees (3.3.5).

The subtree of a node whose distribution diverges is gathered, cleared and rebuilt.
"""

from __future__ import annotations

import math

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Int32, Int64
from stentor.index.ap_tree.layout import (
    BRANCH,
    CAPACITY,
    COPIES,
    COUNT,
    FIELDS,
    KIND,
    LEAF,
    LIST_CAPACITY,
    LIST_CLASSES,
    LIST_SIZE,
    LIST_START,
    NONE,
    PARENT,
    SIZE,
    SLOT_CLASSES,
    START,
    WASTED,
    ApKernelSettings,
    ApTreeArrays,
    UInt16,
)
from stentor.index.ap_tree.nodes import free_node, free_run

#: What is added to a weight so that its logarithm exists.
SMOOTHING = 0.5


@kernel
def gather(
    tree: ApTreeArrays,
    node: int,
    stack: Int32,
    alternative: Int32,
    clause: UInt16,
    event: Int32,
    found: Int64,
) -> None:
    """Fill *found* with how many slots and listed events are at and beneath *node*.

    Those that fit are in the other arrays, copies included.
    """
    slots = listed = 0
    stack[0] = node
    top = 1
    while top > 0:
        top -= 1
        node = stack[top]
        fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
        for position in range(fields[LIST_START], fields[LIST_START] + fields[LIST_SIZE]):
            if listed < len(event):
                event[listed] = tree.listed[position]
            listed += 1
        if fields[KIND] == LEAF:
            for slot in range(fields[START], fields[START] + fields[SIZE]):
                if slots < len(alternative):
                    alternative[slots] = tree.alternative[slot]
                    clause[slots] = tree.clause[slot]
                slots += 1
            continue
        for position in range(fields[START], fields[START] + fields[SIZE] + 1):
            child = tree.child[position]
            if child != NONE:
                stack[top] = child
                top += 1
    found[0], found[1] = slots, listed


@kernel
def clear(tree: ApTreeArrays, node: int, stack: Int32) -> None:
    """Free all beneath *node* and make it an empty leaf."""
    top = 0
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    if fields[KIND] == LEAF:
        tree.counter[COPIES] -= fields[SIZE]
        free_run(tree.counter, SLOT_CLASSES, tree.alternative, fields[START], fields[CAPACITY])
    else:
        stack[0] = node
        top = 1
    while top > 0:
        top -= 1
        one = stack[top]
        inner = tree.node[one * FIELDS : (one + 1) * FIELDS]
        if inner[KIND] == LEAF:
            tree.counter[COPIES] -= inner[SIZE]
        else:
            tree.counter[WASTED] += inner[SIZE] + 1
            for position in range(inner[START], inner[START] + inner[SIZE] + 1):
                child = tree.child[position]
                if child != NONE:
                    stack[top] = child
                    top += 1
        if one != node:
            free_node(tree, one)
    free_run(tree.counter, LIST_CLASSES, tree.listed, fields[LIST_START], fields[LIST_CAPACITY])
    fields[KIND], fields[START], fields[SIZE], fields[CAPACITY] = LEAF, 0, 0, 0
    fields[LIST_START] = fields[LIST_SIZE] = fields[LIST_CAPACITY] = 0


@kernel_inline
def is_changed(tree: ApTreeArrays, node: int, policy: ApKernelSettings, total: int) -> bool:
    """Whether the entries of *node* are distributed otherwise than when it was built.

    Small nodes do not count (5.1.3), nor what chance alone would do.
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
def divergence_at(tree: ApTreeArrays, node: int) -> float:
    """D_KL(w_old | w) of *node*: O(1), since Σ p log p is kept and Σ p log w is updated."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    whole = fields[COUNT] + SMOOTHING * (fields[SIZE] + 1)
    return float(tree.spread[2 * node] - tree.spread[2 * node + 1] + math.log(whole))


@kernel
def count_subtree(tree: ApTreeArrays, node: int, change: int) -> None:
    """Add *change* more copies at *node* to the counts and divergences of all above it."""
    now = tree.node[node * FIELDS + COUNT]
    before = now - change
    while tree.node[node * FIELDS + PARENT] != NONE:
        above = tree.node[node * FIELDS + PARENT]
        moved = math.log(now + SMOOTHING) - math.log(before + SMOOTHING)
        tree.spread[2 * above + 1] += tree.share[tree.node[node * FIELDS + BRANCH]] * moved
        before = tree.node[above * FIELDS + COUNT]
        now = before + change
        tree.node[above * FIELDS + COUNT] = now
        node = above


@kernel
def measure_shares(tree: ApTreeArrays, made: Int32, count: int) -> None:
    """Fill counts, shares and divergences of the nodes *made*, children after their parents."""
    for number in range(count - 1, -1, -1):
        node = made[number]
        fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
        if fields[KIND] == LEAF:
            fields[COUNT] = fields[SIZE]
            continue
        start, children = fields[START], fields[SIZE] + 1
        total = 0
        for position in range(start, start + children):
            child = tree.child[position]
            if child != NONE:
                total += tree.node[child * FIELDS + COUNT]
        fields[COUNT] = total
        built = now = 0.0
        for position in range(start, start + children):
            child = tree.child[position]
            weight = SMOOTHING
            if child != NONE:
                weight += tree.node[child * FIELDS + COUNT]
            share = weight / (total + SMOOTHING * children)
            tree.share[position] = share
            built += share * math.log(share)
            now += share * math.log(weight)
        tree.spread[2 * node], tree.spread[2 * node + 1] = built, now
