"""Steps down the tree, the same for messages, subscriptions and checks."""

from __future__ import annotations

from stentor._jit import kernel_inline
from stentor.encoding.columns import Float64, Int32
from stentor.index.ap_tree.layout import (
    COUNT,
    DEPTH,
    DIRTY,
    FIELDS,
    FLAGS,
    KEYWORDS,
    KIND,
    LEAF,
    LIMIT,
    LINES,
    LIST_ROOM,
    LIST_SIZE,
    LIST_START,
    MAY_CUT,
    MAY_GRID,
    MOVED,
    OFFSET,
    PARENT,
    PLACE,
    ROOM,
    SIZE,
    START,
    Float32,
    Tree,
    X,
    Y,
)
from stentor.index.ap_tree.pools import new_node


@kernel_inline
def cut_of(bound: Int32, start: int, cuts: int, rank: int) -> int:
    """The place of the cut that *rank* is in: the last whose bound does not exceed it."""
    low, high = start, start + cuts
    while high - low > 1:
        middle = (low + high) >> 1
        if bound[middle] <= rank:
            low = middle
        else:
            high = middle
    return low


@kernel_inline
def cell_along(line: Float64, start: int, lines: int, value: float) -> int:
    """The number of lines that do not exceed *value*: its column or row."""
    low, high = start, start + lines
    while low < high:
        middle = (low + high) >> 1
        if line[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low - start


@kernel_inline
def contains_region(box: Float32, region: Float64) -> bool:
    """Whether *box* contains all of *region*."""
    return bool(
        box[0] <= region[0] and box[1] <= region[1] and box[2] >= region[2] and box[3] >= region[3]
    )


@kernel_inline
def make_node(tree: Tree, place: int, parent: int) -> int:
    """A leaf without entries at *place* of *parent*: region, offset and flags follow from it."""
    node = new_node(tree)
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    fields[KIND], fields[START], fields[SIZE], fields[ROOM] = LEAF, 0, 0, 0
    fields[LIMIT], fields[MOVED], fields[COUNT] = 0, 0, 0
    fields[LIST_START], fields[LIST_SIZE], fields[LIST_ROOM] = 0, 0, 0
    fields[PARENT], fields[PLACE] = parent, place
    tree.child[place] = node
    above = tree.node[parent * FIELDS : (parent + 1) * FIELDS]
    region = tree.region[4 * node : 4 * node + 4]
    around = tree.region[4 * parent : 4 * parent + 4]
    for side in range(4):
        region[side] = around[side]
    flags = above[FLAGS] & ~DIRTY
    offset = above[OFFSET]
    number = place - above[START]
    is_dummy = number == above[SIZE]
    if above[KIND] == KEYWORDS:
        if is_dummy:
            flags &= ~MAY_CUT
        else:
            offset += 1
    elif is_dummy:
        flags &= ~MAY_GRID
    else:
        cell_region(tree, parent, number, region)
    fields[OFFSET], fields[FLAGS], fields[DEPTH] = offset, flags, above[DEPTH] + 1
    return node


@kernel_inline
def cell_region(tree: Tree, node: int, number: int, region: Float64) -> None:
    """Narrow *region*, that of the s-node *node*, to its cell *number*."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    columns, rows, lines = fields[X], fields[Y], fields[LINES]
    column, row = number % columns, number // columns
    if column > 0:
        region[0] = tree.line[lines + column - 1]
    if column < columns - 1:
        region[2] = tree.line[lines + column]
    if row > 0:
        region[1] = tree.line[lines + columns - 1 + row - 1]
    if row < rows - 1:
        region[3] = tree.line[lines + columns - 1 + row]
