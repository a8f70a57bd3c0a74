"""Blocks of the tree's arrays, given out and taken back.

Slots and list places come in blocks. One that is given back goes to the others of its class, the
power of two that fits into it, and is the first to be given out again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel_inline
from stentor.encoding.columns import Int32, Int64
from stentor.encoding.readonly import all_read_only
from stentor.index.ap_tree.layout import (
    COUNTERS,
    FIELDS,
    FREE,
    FREE_NODES,
    GRID_LINES,
    KIND,
    LEAF,
    LIST_CLASSES,
    LIST_ROOM,
    LIST_SIZE,
    LIST_START,
    LISTED,
    NODES,
    NOTHING,
    PLACES,
    ROOM,
    SIZE,
    SLOT_CLASSES,
    SLOTS,
    START,
    Tree,
)

#: How many numbers of each array belong to one thing, and the counter of these things.
_WIDTH = {"node": FIELDS, "region": 4, "spread": 2, "box": 4}
_COUNTER = {
    "node": NODES,
    "region": NODES,
    "spread": NODES,
    "child": PLACES,
    "bound": PLACES,
    "share": PLACES,
    "line": GRID_LINES,
    "signature": SLOTS,
    "box": SLOTS,
    "alternative": SLOTS,
    "clause": SLOTS,
    "listed": LISTED,
}
_DTYPES: dict[str, npt.DTypeLike] = {
    "node": np.int32,
    "region": np.float64,
    "spread": np.float64,
    "child": np.int32,
    "bound": np.int32,
    "share": np.float64,
    "line": np.float64,
    "signature": np.uint64,
    "box": np.float32,
    "alternative": np.int32,
    "clause": np.uint8,
    "listed": np.int32,
}
#: Blocks are no smaller.
SMALLEST_BLOCK = 4


def empty_tree() -> Tree:
    """A tree without nodes or room for any."""
    counter = np.zeros(COUNTERS, np.int64)
    counter[FREE_NODES] = NOTHING
    counter[SLOT_CLASSES:] = NOTHING
    arrays: dict[str, npt.NDArray[Any]] = {
        name: np.zeros(0, dtype) for name, dtype in _DTYPES.items()
    }
    return Tree(counter, present=np.zeros(1, np.uint64), **arrays)


def with_room(tree: Tree, needed: dict[int, int]) -> Tree:
    """*tree* with room for *needed* more things of each counter; grown arrays by half at least."""
    grown = {}
    for name, counter in _COUNTER.items():
        array, width = getattr(tree, name), _WIDTH.get(name, 1)
        used, room = int(tree.counter[counter]), len(array) // width
        wanted = used + needed.get(counter, 0)
        if wanted > room:
            # All arrays of one counter are of one length, since a kernel looks at one of them.
            larger = np.empty(max(wanted, room * 3 // 2, 64) * width, array.dtype)
            larger[: used * width] = array[: used * width]
            grown[name] = larger
    return tree._replace(**grown) if grown else tree


def trimmed(tree: Tree) -> Tree:
    """*tree* without the room that it does not use, but for a little."""
    shrunk = {}
    for name, counter in _COUNTER.items():
        array, width = getattr(tree, name), _WIDTH.get(name, 1)
        used = int(tree.counter[counter])
        kept = (used + used // 32 + 64) * width
        if kept < len(array):
            shrunk[name] = array[:kept].copy()
    return tree._replace(**shrunk)


def used_part(tree: Tree) -> Tree:
    """The part of each array that is used, read-only."""
    parts = {
        name: getattr(tree, name)[: int(tree.counter[counter]) * _WIDTH.get(name, 1)]
        for name, counter in _COUNTER.items()
    }
    return all_read_only(Tree(tree.counter, present=tree.present, **parts))


@kernel_inline
def new_node(tree: Tree) -> int:
    """A node of which nothing is set; the caller has seen to the room."""
    free = tree.counter[FREE_NODES]
    if free != NOTHING:
        tree.counter[FREE_NODES] = tree.node[free * FIELDS + START]
        return int(free)
    tree.counter[NODES] += 1
    return int(tree.counter[NODES] - 1)


@kernel_inline
def free_node(tree: Tree, node: int) -> None:
    """Give *node* and its blocks back."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    if fields[KIND] == LEAF:
        free_block(tree.counter, SLOT_CLASSES, tree.alternative, fields[START], fields[ROOM])
    free_block(tree.counter, LIST_CLASSES, tree.listed, fields[LIST_START], fields[LIST_ROOM])
    fields[KIND] = FREE
    fields[START] = tree.counter[FREE_NODES]
    tree.counter[FREE_NODES] = node


@kernel_inline
def class_of(room: int) -> int:
    """The largest power of two that fits into *room*."""
    power = 0
    while room >= 2 << power:
        power += 1
    return power


@kernel_inline
def free_block(counter: Int64, classes: int, link: Int32, start: int, room: int) -> None:
    """Give a block back; *link* is the array in which free blocks name the next one."""
    if room >= SMALLEST_BLOCK:
        head = classes + class_of(room)
        link[start] = counter[head]
        counter[head] = start


@kernel_inline
def new_block(counter: Int64, classes: int, used: int, link: Int32, power: int) -> int:
    """The start of a block of 2^*power*; the caller has seen to the room."""
    head = classes + power
    start = counter[head]
    if start != NOTHING:
        counter[head] = link[start]
        return int(start)
    start = counter[used]
    counter[used] += 1 << power
    return int(start)


@kernel_inline
def power_for(count: int) -> int:
    """The power of two of a block for *count*, with room for as many again at most."""
    power = 2
    while 1 << power < count:
        power += 1
    return power


@kernel_inline
def add_slot(
    tree: Tree,
    node: int,
    signature: np.uint64,
    box: np.ndarray[Any, np.dtype[np.float32]],
    alternative: int,
    clause: int,
) -> None:
    """File an entry in the leaf *node*, in a larger block where its own is full."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    size, start = fields[SIZE], fields[START]
    if size == fields[ROOM]:
        power = power_for(size + 1)
        larger = new_block(tree.counter, SLOT_CLASSES, SLOTS, tree.alternative, power)
        for place in range(size):
            tree.signature[larger + place] = tree.signature[start + place]
            tree.alternative[larger + place] = tree.alternative[start + place]
            tree.clause[larger + place] = tree.clause[start + place]
        for place in range(4 * size):
            tree.box[4 * larger + place] = tree.box[4 * start + place]
        free_block(tree.counter, SLOT_CLASSES, tree.alternative, start, fields[ROOM])
        fields[START], fields[ROOM] = larger, 1 << power
        start = larger
    slot = start + size
    tree.signature[slot] = signature
    for side in range(4):
        tree.box[4 * slot + side] = box[side]
    tree.alternative[slot] = alternative
    tree.clause[slot] = clause
    fields[SIZE] = size + 1


@kernel_inline
def drop_slot(tree: Tree, node: int, slot: int) -> None:
    """Take the entry in *slot* out of the leaf *node*: the last takes its place."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    last = fields[START] + fields[SIZE] - 1
    tree.signature[slot] = tree.signature[last]
    for side in range(4):
        tree.box[4 * slot + side] = tree.box[4 * last + side]
    tree.alternative[slot] = tree.alternative[last]
    tree.clause[slot] = tree.clause[last]
    fields[SIZE] -= 1


@kernel_inline
def add_listed(tree: Tree, node: int, message: int) -> None:
    """Add *message* to the list of *node*, in a larger block where its own is full."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    size, start = fields[LIST_SIZE], fields[LIST_START]
    if size == fields[LIST_ROOM]:
        power = power_for(size + 1)
        larger = new_block(tree.counter, LIST_CLASSES, LISTED, tree.listed, power)
        for place in range(size):
            tree.listed[larger + place] = tree.listed[start + place]
        free_block(tree.counter, LIST_CLASSES, tree.listed, start, fields[LIST_ROOM])
        fields[LIST_START], fields[LIST_ROOM] = larger, 1 << power
        start = larger
    tree.listed[start + size] = message
    fields[LIST_SIZE] = size + 1
