"""What hangs beneath a node, gathered and given back: for rebuilding just that (section 3.3.5)."""

from __future__ import annotations

from stentor._jit import kernel
from stentor.encoding.columns import Int32, Int64, UInt8
from stentor.index.ap_tree.layout import (
    COPIES,
    FIELDS,
    KIND,
    LEAF,
    LIST_CLASSES,
    LIST_ROOM,
    LIST_SIZE,
    LIST_START,
    NOTHING,
    ROOM,
    SIZE,
    SLOT_CLASSES,
    START,
    WASTED,
    Tree,
)
from stentor.index.ap_tree.pools import free_block, free_node


@kernel
def gather(
    tree: Tree,
    node: int,
    stack: Int32,
    alternative: Int32,
    clause: UInt8,
    message: Int32,
    found: Int64,
) -> None:
    """Fill *found* with how many slots and listed messages are at and beneath *node*.

    Those that fit are in the other arrays, each as often as it is filed.
    """
    slots = listed = 0
    stack[0] = node
    top = 1
    while top > 0:
        top -= 1
        node = stack[top]
        fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
        for place in range(fields[LIST_START], fields[LIST_START] + fields[LIST_SIZE]):
            if listed < len(message):
                message[listed] = tree.listed[place]
            listed += 1
        if fields[KIND] == LEAF:
            for slot in range(fields[START], fields[START] + fields[SIZE]):
                if slots < len(alternative):
                    alternative[slots] = tree.alternative[slot]
                    clause[slots] = tree.clause[slot]
                slots += 1
            continue
        for place in range(fields[START], fields[START] + fields[SIZE] + 1):
            child = tree.child[place]
            if child != NOTHING:
                stack[top] = child
                top += 1
    found[0], found[1] = slots, listed


@kernel
def clear(tree: Tree, node: int, stack: Int32) -> None:
    """Give back all beneath *node* and make it a leaf of nothing."""
    top = 0
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    if fields[KIND] == LEAF:
        tree.counter[COPIES] -= fields[SIZE]
        free_block(tree.counter, SLOT_CLASSES, tree.alternative, fields[START], fields[ROOM])
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
            for place in range(inner[START], inner[START] + inner[SIZE] + 1):
                child = tree.child[place]
                if child != NOTHING:
                    stack[top] = child
                    top += 1
        if one != node:
            free_node(tree, one)
    free_block(tree.counter, LIST_CLASSES, tree.listed, fields[LIST_START], fields[LIST_ROOM])
    fields[KIND], fields[START], fields[SIZE], fields[ROOM] = LEAF, 0, 0, 0
    fields[LIST_START] = fields[LIST_SIZE] = fields[LIST_ROOM] = 0
