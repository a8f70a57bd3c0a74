"""Memory for nodes, slots and lists in the tree's arrays: grown, allocated and freed.

Nodes have a free list; runs of slots come in powers of two with a free list each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel_inline
from stentor.encoding.columns import Int32, Int64, all_read_only
from stentor.index.ap_tree.layout import (
    BRANCHES,
    CAPACITY,
    COUNTERS,
    FIELDS,
    FREE,
    FREE_NODES,
    GRID_LINES,
    KIND,
    LEAF,
    LIST_CAPACITY,
    LIST_CLASSES,
    LIST_SIZE,
    LIST_START,
    LISTED,
    NODES,
    NONE,
    SLOT_CLASSES,
    SLOTS,
    START,
    ApTreeArrays,
)

#: Numbers per element of each array (1 where it is not named), and the counter of the elements.
_WIDTH = {"node": FIELDS, "region": 4, "spread": 2, "box": 4}

_COUNTER = {
    "node": NODES,
    "region": NODES,
    "spread": NODES,
    "child": BRANCHES,
    "bound": BRANCHES,
    "share": BRANCHES,
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
    "clause": np.uint16,
    "listed": np.int32,
}


#: Blocks are no smaller.
SMALLEST_BLOCK = 4


def new_tree_arrays() -> ApTreeArrays:
    """A tree without nodes and without capacity."""
    counter = np.zeros(COUNTERS, np.int64)
    counter[FREE_NODES] = NONE
    counter[SLOT_CLASSES:] = NONE
    arrays: dict[str, npt.NDArray[Any]] = {
        name: np.zeros(0, dtype) for name, dtype in _DTYPES.items()
    }
    return ApTreeArrays(counter, present=np.zeros(1, np.uint64), **arrays)


def grow(tree: ApTreeArrays, needed: dict[int, int]) -> ApTreeArrays:
    """*tree* with capacity for *needed* more of each counter; arrays grow by half at least."""
    grown = {}
    for name, counter in _COUNTER.items():
        array, width = getattr(tree, name), _WIDTH.get(name, 1)
        used, capacity = int(tree.counter[counter]), len(array) // width
        wanted = used + needed.get(counter, 0)
        if wanted > capacity:
            # All arrays of one counter have one length, since kernels check only one of them.
            larger = np.empty(max(wanted, capacity * 3 // 2, 64) * width, array.dtype)
            larger[: used * width] = array[: used * width]
            grown[name] = larger
    return tree._replace(**grown) if grown else tree


def trimmed(tree: ApTreeArrays) -> ApTreeArrays:
    """*tree* with little more capacity than it uses."""
    shrunk = {}
    for name, counter in _COUNTER.items():
        array, width = getattr(tree, name), _WIDTH.get(name, 1)
        used = int(tree.counter[counter])
        kept = (used + used // 32 + 64) * width
        if kept < len(array):
            shrunk[name] = array[:kept].copy()
    return tree._replace(**shrunk)


def used_part(tree: ApTreeArrays) -> ApTreeArrays:
    """The part of each array that is used, read-only."""
    parts = {
        name: getattr(tree, name)[: int(tree.counter[counter]) * _WIDTH.get(name, 1)]
        for name, counter in _COUNTER.items()
    }
    return all_read_only(ApTreeArrays(tree.counter, present=tree.present, **parts))


@kernel_inline
def new_node(tree: ApTreeArrays) -> int:
    """A node whose fields are not set; the caller has checked the capacity."""
    free = tree.counter[FREE_NODES]
    if free != NONE:
        tree.counter[FREE_NODES] = tree.node[free * FIELDS + START]
        return int(free)
    tree.counter[NODES] += 1
    return int(tree.counter[NODES] - 1)


@kernel_inline
def free_node(tree: ApTreeArrays, node: int) -> None:
    """Free *node* and its blocks."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    if fields[KIND] == LEAF:
        free_run(tree.counter, SLOT_CLASSES, tree.alternative, fields[START], fields[CAPACITY])
    free_run(tree.counter, LIST_CLASSES, tree.listed, fields[LIST_START], fields[LIST_CAPACITY])
    fields[KIND] = FREE
    fields[START] = tree.counter[FREE_NODES]
    tree.counter[FREE_NODES] = node


@kernel_inline
def class_of(capacity: int) -> int:
    """The largest power of two that fits into *capacity*."""
    power = 0
    while capacity >= 2 << power:
        power += 1
    return power


@kernel_inline
def free_run(counter: Int64, classes: int, link: Int32, start: int, capacity: int) -> None:
    """Free a block; *link* is the array in which free blocks name the next one."""
    if capacity >= SMALLEST_BLOCK:
        head = classes + class_of(capacity)
        link[start] = counter[head]
        counter[head] = start


@kernel_inline
def take_run(counter: Int64, classes: int, used: int, link: Int32, power: int) -> int:
    """The start of a block of 2^*power*; the caller has checked the capacity."""
    head = classes + power
    start = counter[head]
    if start != NONE:
        counter[head] = link[start]
        return int(start)
    start = counter[used]
    counter[used] += 1 << power
    return int(start)


@kernel_inline
def power_for(count: int) -> int:
    """The power of two of a block for *count*: less than twice as many, 4 at least."""
    power = 2
    while 1 << power < count:
        power += 1
    return power


@kernel_inline
def append_event(tree: ApTreeArrays, node: int, event: int) -> None:
    """Add *event* to the list of *node*, in a larger block where its own is full."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    size, start = fields[LIST_SIZE], fields[LIST_START]
    if size == fields[LIST_CAPACITY]:
        power = power_for(size + 1)
        larger = take_run(tree.counter, LIST_CLASSES, LISTED, tree.listed, power)
        for position in range(size):
            tree.listed[larger + position] = tree.listed[start + position]
        free_run(tree.counter, LIST_CLASSES, tree.listed, start, fields[LIST_CAPACITY])
        fields[LIST_START], fields[LIST_CAPACITY] = larger, 1 << power
        start = larger
    tree.listed[start + size] = event
    fields[LIST_SIZE] = size + 1
