"""Algorithm 4: a node and all beneath it, built from its entries; trees without entries.

Construction is a loop over pending nodes, not a recursion, so that it can stop when capacity
is missing and go on after the tree has grown.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import Float64, Int32, Int64
from stentor.index.ap_tree.cost_model import keywords_then_space, moving_cost, space_then_keywords
from stentor.index.ap_tree.keywords import bloom_add, words_for
from stentor.index.ap_tree.layout import (
    BRANCH,
    BRANCHES,
    CAPACITY,
    COPIES,
    COUNT,
    DEPTH,
    FIELDS,
    FLAGS,
    GRID_LINES,
    KEYWORDS,
    KIND,
    LEAF,
    LINES,
    MAY_CUT,
    MAY_GRID,
    MOST_DEPTH,
    MOVED,
    NODES,
    NONE,
    OFFSET,
    PARENT,
    ROOT,
    SIZE,
    SLOTS,
    SPACE,
    SPLIT_ABOVE,
    START,
    TERMS_KNOWN,
    ApEntries,
    ApKernelSettings,
    ApTreeArrays,
    X,
    Y,
)
from stentor.index.ap_tree.match import contains_region, cut_of, is_wide, make_node
from stentor.index.ap_tree.nodes import grow, new_tree_arrays
from stentor.index.ap_tree.partitions import (
    STOOD_IN,
    ApBuildScratch,
    EventSample,
    columns_of,
    next_key,
    partition_keywords,
    partition_space,
    rows_of,
)

BY_COST, KEYWORDS_FIRST, SPACE_FIRST = 0, 1, 2


# Positions in `progress`: what is left to do, what was done, and the capacity that was missing.
PENDING, MADE, NEED_NODES, NEED_BRANCHES, NEED_LINES, NEED_SLOTS, NEED_SEGMENT = range(7)

STAND_INS = 7  # k-nodes that the heuristic cut, since optimal cuts would have taken too long

SHAPE = 8  # four numbers of scratch

PROGRESS = 12


@kernel
def construct(
    tree: ApTreeArrays,
    entries: ApEntries,
    known: Float64,
    sample: EventSample,
    policy: ApKernelSettings,
    work: ApBuildScratch,
    most_copies: float,
    progress: Int64,
) -> bool:
    """Whether all pending nodes are built; else *progress* says what capacity is missing."""
    shape = progress[SHAPE:PROGRESS]
    while progress[PENDING] > 0:
        number = progress[PENDING] - 1
        node, start, count = (
            work.pending[3 * number],
            work.pending[3 * number + 1],
            work.pending[3 * number + 2],
        )
        segment = work.segment[start : start + count]
        kind = cheapest_partition(
            tree, node, entries, segment, known, sample, policy, work, most_copies, shape
        )
        if kind == LEAF:
            if tree.counter[SLOTS] + count > len(tree.alternative):
                progress[NEED_SLOTS] = count
                return False
            progress[PENDING] = number
            fill_leaf(tree, node, entries, segment, policy.leaf)
            continue
        children = shape[0] + 2 if kind == KEYWORDS else shape[0] * shape[1] + 1
        total = distribute(tree, node, kind, entries, segment, work, shape)
        progress[NEED_NODES] = progress[NEED_BRANCHES] = children
        lines = shape[0] + shape[1] if kind == SPACE else 0
        progress[NEED_LINES] = lines
        progress[NEED_SLOTS] = total
        progress[NEED_SEGMENT] = start + count + total
        if (
            (tree.counter[NODES] + children) * FIELDS > len(tree.node)
            or tree.counter[BRANCHES] + children > len(tree.child)
            or tree.counter[GRID_LINES] + lines > len(tree.line)
            or tree.counter[SLOTS] + total > len(tree.alternative)
            or start + count + total > len(work.segment)
            or 3 * (number + 1 + min(children, total // (policy.leaf + 1))) > len(work.pending)
            or progress[MADE] + children > len(work.made)
        ):
            return False
        progress[PENDING] = number
        progress[STAND_INS] += shape[STOOD_IN] if kind == KEYWORDS else 0
        tree.counter[COPIES] += total - count
        open_node(tree, node, kind, work, shape)
        distribute_entries(
            tree, node, entries, segment, start, total, children, policy, work, progress
        )
    return True


@inner_kernel
def cheapest_partition(
    tree: ApTreeArrays,
    node: int,
    entries: ApEntries,
    segment: Int32,
    known: Float64,
    sample: EventSample,
    policy: ApKernelSettings,
    work: ApBuildScratch,
    most_copies: float,
    shape: Int64,
) -> int:
    """What *node* becomes: the kind of partition that costs least, a leaf where none gains.

    work.cut or work.line and *shape* are then as that partition needs them.
    """
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    count = len(segment)
    if count <= policy.leaf or fields[DEPTH] >= MOST_DEPTH:
        return LEAF
    region = tree.region[4 * node : 4 * node + 4]
    by_keywords = math.inf
    cuts = keywords = 0
    if fields[FLAGS] & MAY_CUT:
        by_keywords = partition_keywords(
            entries, segment, fields[OFFSET], known, policy, work, shape
        )
        cuts, keywords = shape[0], shape[1]
    by_space = math.inf
    columns = rows = 0
    if fields[FLAGS] & MAY_GRID:
        by_space = partition_space(entries, segment, region, sample, policy, work, shape)
        columns, rows = shape[0], shape[1]
        extra = count * (shape[2] / 1000.0 - 1.0)
        if by_space < math.inf and tree.counter[COPIES] + extra > most_copies:
            by_space = math.inf
    if policy.lookahead:
        without = count - int(work.weight[keywords]) if keywords > 0 else count
        cells = columns * rows if by_space < math.inf else 0
        if by_space < math.inf:
            by_space = space_then_keywords(work, keywords, count, policy)
        if by_keywords < math.inf:
            by_keywords = keywords_then_space(work, cuts, cells, count, without, policy)
    if by_space < math.inf:
        by_space += moving_cost(
            entries,
            segment,
            region,
            sample,
            columns,
            rows,
            fields[DEPTH],
            keywords,
            policy,
            work.tally,
        )
    is_by_keywords = by_keywords <= by_space
    if policy.priority == KEYWORDS_FIRST:
        is_by_keywords = by_keywords < count
    elif policy.priority == SPACE_FIRST:
        is_by_keywords = not by_space < count
    if is_by_keywords:
        shape[0], shape[1] = cuts, keywords
        return KEYWORDS if by_keywords < count else LEAF
    if not by_space < count:
        return LEAF
    shape[0], shape[1] = columns, rows
    return SPACE


@inner_kernel
def distribute(
    tree: ApTreeArrays,
    node: int,
    kind: int,
    entries: ApEntries,
    segment: Int32,
    work: ApBuildScratch,
    shape: Int64,
) -> int:
    """How many copies the children get in all; work.tally has each child's, the dummy's last.

    work.target has the cut of each entry; the cells of one are found again when it is distributed.
    """
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    total = 0
    if kind == KEYWORDS:
        cuts = shape[0]
        children = cuts + 1  # the cut for keywords that are unknown yet
        for child in range(children + 1):
            work.tally[child] = 0
        # From keyword numbers to the ranks at which cuts start; the first starts at rank 0.
        for cut in range(cuts):
            work.other[cut] = work.rank[work.cut[cut]] if cut > 0 else 0
        for position in range(len(segment)):
            key = next_key(entries, segment[position], fields[OFFSET])
            child = children if key < 0 else cut_of(work.other, 0, cuts, key)
            work.target[position] = child
            work.tally[child] += 1
        return len(segment)
    columns, rows = shape[0], shape[1]
    for child in range(columns * rows + 1):
        work.tally[child] = 0
    region = tree.region[4 * node : 4 * node + 4]
    for position in range(len(segment)):
        box = entries.box[4 * segment[position] : 4 * segment[position] + 4]
        if contains_region(box, region):
            work.tally[columns * rows] += 1
            total += 1
            continue
        west, east = columns_of(work.line, columns, box[0], box[2])
        south, north = rows_of(work.line, columns, rows, box[1], box[3])
        if is_wide(west, east, south, north):
            work.tally[columns * rows] += 1
            total += 1
            continue
        for row in range(south, north + 1):
            for column in range(west, east + 1):
                work.tally[row * columns + column] += 1
                total += 1
    return total


@inner_kernel
def open_node(tree: ApTreeArrays, node: int, kind: int, work: ApBuildScratch, shape: Int64) -> None:
    """Make *node* an inner one whose branches have no children yet."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    start = tree.counter[BRANCHES]
    # X and Y of a grid are the fields in which a leaf has SPLIT_ABOVE and MOVED.
    fields[KIND], fields[START], fields[X], fields[Y] = kind, start, 0, 0
    if kind == KEYWORDS:
        size = shape[0] + 1
        for cut in range(shape[0]):
            tree.bound[start + cut] = work.other[cut]
        tree.bound[start + shape[0]] = tree.counter[TERMS_KNOWN]
        for keyword in range(shape[1]):
            bloom_add(tree.present, node, work.rank[keyword])
    else:
        size = shape[0] * shape[1]
        lines = tree.counter[GRID_LINES]
        fields[X], fields[Y], fields[LINES] = shape[0], shape[1], lines
        for line in range(shape[0] + shape[1] - 2):
            tree.line[lines + line] = work.line[line]
        tree.counter[GRID_LINES] += shape[0] + shape[1] - 2
        for cell in range(size):
            tree.bound[start + cell] = 0
    tree.bound[start + size] = 0
    fields[SIZE] = size
    for position in range(start, start + size + 1):
        tree.child[position] = NONE
        tree.share[position] = 0.0
    tree.counter[BRANCHES] = start + size + 1


@inner_kernel
def distribute_entries(
    tree: ApTreeArrays,
    node: int,
    entries: ApEntries,
    segment: Int32,
    start: int,
    total: int,
    children: int,
    policy: ApKernelSettings,
    work: ApBuildScratch,
    progress: Int64,
) -> None:
    """Give each child its entries: small ones become leaves at once, others are pending.

    In the segment, the entries of the children follow those of *node*; when the children are built,
    that part is used again.
    """
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    first = start + len(segment)
    size = fields[SIZE]
    position = first
    for child in range(size + 1):
        count = work.tally[child]
        work.tally[child] = position
        position += count
    region = tree.region[4 * node : 4 * node + 4]
    for number in range(len(segment)):
        entry = segment[number]
        if fields[KIND] == KEYWORDS:
            append_entry(work, work.target[number], entry)
            continue
        box = entries.box[4 * entry : 4 * entry + 4]
        if contains_region(box, region):
            append_entry(work, size, entry)
            continue
        columns, rows = fields[X], fields[Y]
        west, east = columns_of(work.line, columns, box[0], box[2])
        south, north = rows_of(work.line, columns, rows, box[1], box[3])
        if is_wide(west, east, south, north):
            append_entry(work, size, entry)
            continue
        for row in range(south, north + 1):
            for column in range(west, east + 1):
                append_entry(work, row * columns + column, entry)
    begun = first
    for child in range(size + 1):
        stop = work.tally[child]
        if stop > begun:
            made = make_node(tree, fields[START] + child, node)
            work.made[progress[MADE]] = made
            progress[MADE] += 1
            if stop - begun <= policy.leaf:
                fill_leaf(tree, made, entries, work.segment[begun:stop], policy.leaf)
            else:
                number = progress[PENDING]
                work.pending[3 * number] = made
                work.pending[3 * number + 1] = begun
                work.pending[3 * number + 2] = stop - begun
                progress[PENDING] = number + 1
        begun = stop


@kernel_inline
def append_entry(work: ApBuildScratch, child: int, entry: int) -> None:
    """Append *entry* to the entries of *child*."""
    work.segment[work.tally[child]] = entry
    work.tally[child] += 1


@inner_kernel
def fill_leaf(tree: ApTreeArrays, node: int, entries: ApEntries, segment: Int32, most: int) -> None:
    """Make *node* a leaf of the entries in *segment*, in a block without spare slots.

    A leaf of more than *most* could not be split; that is tried again when it has doubled.
    """
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    start = tree.counter[SLOTS]
    tree.counter[SLOTS] += len(segment)
    fields[KIND], fields[START] = LEAF, start
    fields[SIZE] = fields[CAPACITY] = fields[COUNT] = len(segment)
    fields[SPLIT_ABOVE] = 2 * len(segment) if len(segment) > most else 0
    fields[MOVED] = 0
    for number in range(len(segment)):
        entry, slot = segment[number], start + number
        tree.signature[slot] = entries.signature[entry]
        tree.alternative[slot] = entries.alternative[entry]
        tree.clause[slot] = entries.clause[entry]
        for side in range(4):
            tree.box[4 * slot + side] = entries.box[4 * entry + side]


#: Columns and rows of the grid of AP+s (5.2.1: 40 for each dimension).
GRID = 40


def empty_tree(
    region: Float64, keywords: int, entries: int = 0, *, has_location: bool
) -> ApTreeArrays:
    """A tree whose root is an empty leaf, for *region*, so many known keywords and entries."""
    tree = grow(new_tree_arrays(), {NODES: 1, BRANCHES: 1})
    tree = tree._replace(present=np.zeros(words_for(entries), np.uint64))
    tree.counter[TERMS_KNOWN] = keywords
    tree.counter[NODES] = tree.counter[BRANCHES] = 1
    fields = tree.node[:FIELDS]
    fields[:] = 0
    fields[KIND], fields[PARENT], fields[BRANCH] = LEAF, NONE, 0
    fields[FLAGS] = MAY_CUT | (MAY_GRID if has_location else 0)
    tree.region[:4] = region
    tree.spread[:2] = 0.0
    tree.child[0], tree.bound[0], tree.share[0] = ROOT, 0, 0.0
    return tree


def keyword_root(region: Float64, keywords: int) -> ApTreeArrays:
    """A tree whose root has a cut for each keyword (AP+k)."""
    tree = empty_tree(region, keywords, has_location=True)
    tree = grow(tree, {BRANCHES: keywords + 2})
    _open(tree, KEYWORDS, keywords + 1)
    tree.bound[1 : keywords + 2] = np.arange(keywords + 1)
    return tree


def space_root(region: Float64, keywords: int) -> ApTreeArrays:
    """A tree whose root is an even grid (AP+s)."""
    tree = empty_tree(region, keywords, has_location=True)
    tree = grow(tree, {BRANCHES: GRID * GRID + 1, GRID_LINES: 2 * GRID})
    _open(tree, SPACE, GRID * GRID)
    tree.node[X], tree.node[Y], tree.node[LINES] = GRID, GRID, 0
    for axis in range(2):
        lines = np.linspace(region[axis], region[axis + 2], GRID + 1)[1:-1]
        tree.line[axis * (GRID - 1) : (axis + 1) * (GRID - 1)] = lines
    tree.counter[GRID_LINES] = 2 * (GRID - 1)
    return tree


def _open(tree: ApTreeArrays, kind: int, size: int) -> None:
    """Make the root an inner node of *size* branches and a dummy, without children."""
    tree.node[KIND], tree.node[START], tree.node[SIZE] = kind, 1, size
    tree.child[1 : size + 2] = NONE
    tree.bound[1 : size + 2] = 0
    tree.share[1 : size + 2] = 0.0
    tree.counter[BRANCHES] = size + 2
