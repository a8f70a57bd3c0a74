"""Algorithm 4: a node and all beneath it, built from its entries.

The kernel goes on until everything is built or an array is full; it changes nothing of a node
before it has seen to the room, so it can be called again.
"""

from __future__ import annotations

import math

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import Float64, Int32, Int64
from stentor.index.ap_tree.descending import contains_region, cut_of, make_node
from stentor.index.ap_tree.layout import (
    COPIES,
    COUNT,
    DEPTH,
    FIELDS,
    FLAGS,
    GRID_LINES,
    KEYWORDS,
    KIND,
    LEAF,
    LIMIT,
    LINES,
    MAY_CUT,
    MAY_GRID,
    MOST_DEPTH,
    MOVED,
    NODES,
    NOTHING,
    OFFSET,
    PLACES,
    ROOM,
    SIZE,
    SLOTS,
    SPACE,
    START,
    TERMS_KNOWN,
    Entries,
    Policy,
    Tree,
    X,
    Y,
)
from stentor.index.ap_tree.lookahead import keywords_then_space, space_then_keywords
from stentor.index.ap_tree.moving_costs import moving_cost
from stentor.index.ap_tree.partitions import (
    Messages,
    Work,
    columns_of,
    next_key,
    partition_keywords,
    partition_space,
    rows_of,
)
from stentor.index.ap_tree.presence import add_presence

BY_COST, KEYWORDS_FIRST, SPACE_FIRST = 0, 1, 2

# Places of `progress`: what is left to do, what was done, and the room that was missing.
PENDING, MADE, NEED_NODES, NEED_PLACES, NEED_LINES, NEED_SLOTS, NEED_SEGMENT = range(7)
SHAPE = 8  # three numbers of scratch
PROGRESS = 12


@kernel
def construct(
    tree: Tree,
    entries: Entries,
    known: Float64,
    messages: Messages,
    policy: Policy,
    work: Work,
    most_copies: float,
    progress: Int64,
) -> bool:
    """Whether all pending nodes are built; else *progress* says what there was no room for."""
    shape = progress[SHAPE : SHAPE + 3]
    while progress[PENDING] > 0:
        number = progress[PENDING] - 1
        node, start, count = (
            work.pending[3 * number],
            work.pending[3 * number + 1],
            work.pending[3 * number + 2],
        )
        segment = work.segment[start : start + count]
        kind = choose(
            tree, node, entries, segment, known, messages, policy, work, most_copies, shape
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
        progress[NEED_NODES] = progress[NEED_PLACES] = children
        lines = shape[0] + shape[1] if kind == SPACE else 0
        progress[NEED_LINES] = lines
        progress[NEED_SLOTS] = total
        progress[NEED_SEGMENT] = start + count + total
        if (
            (tree.counter[NODES] + children) * FIELDS > len(tree.node)
            or tree.counter[PLACES] + children > len(tree.child)
            or tree.counter[GRID_LINES] + lines > len(tree.line)
            or tree.counter[SLOTS] + total > len(tree.alternative)
            or start + count + total > len(work.segment)
            or 3 * (number + 1 + min(children, total // (policy.leaf + 1))) > len(work.pending)
            or progress[MADE] + children > len(work.made)
        ):
            return False
        progress[PENDING] = number
        tree.counter[COPIES] += total - count
        open_node(tree, node, kind, work, shape)
        hand_down(tree, node, entries, segment, start, total, children, policy, work, progress)
    return True


@kernel_part
def choose(
    tree: Tree,
    node: int,
    entries: Entries,
    segment: Int32,
    known: Float64,
    messages: Messages,
    policy: Policy,
    work: Work,
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
        by_space = partition_space(entries, segment, region, messages, policy, work, shape)
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
            messages,
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


@kernel_part
def distribute(
    tree: Tree,
    node: int,
    kind: int,
    entries: Entries,
    segment: Int32,
    work: Work,
    shape: Int64,
) -> int:
    """How many copies the children get in all; work.tally has each child's, the dummy's last.

    work.target has the cut of each entry; the cells of one are found again when it is filed.
    """
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    total = 0
    if kind == KEYWORDS:
        cuts = shape[0]
        children = cuts + 1  # the cut for keywords that nobody asks for yet
        for child in range(children + 1):
            work.tally[child] = 0
        # From keyword numbers to the ranks at which cuts start; the first starts at rank 0.
        for cut in range(cuts):
            work.other[cut] = work.rank[work.cut[cut]] if cut > 0 else 0
        for place in range(len(segment)):
            key = next_key(entries, segment[place], fields[OFFSET])
            child = children if key < 0 else cut_of(work.other, 0, cuts, key)
            work.target[place] = child
            work.tally[child] += 1
        return len(segment)
    columns, rows = shape[0], shape[1]
    for child in range(columns * rows + 1):
        work.tally[child] = 0
    region = tree.region[4 * node : 4 * node + 4]
    for place in range(len(segment)):
        box = entries.box[4 * segment[place] : 4 * segment[place] + 4]
        if contains_region(box, region):
            work.tally[columns * rows] += 1
            total += 1
            continue
        west, east = columns_of(work.line, columns, box[0], box[2])
        south, north = rows_of(work.line, columns, rows, box[1], box[3])
        for row in range(south, north + 1):
            for column in range(west, east + 1):
                work.tally[row * columns + column] += 1
                total += 1
    return total


@kernel_part
def open_node(tree: Tree, node: int, kind: int, work: Work, shape: Int64) -> None:
    """Make *node* an inner one with places for its children, and nothing there yet."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    start = tree.counter[PLACES]
    # X and Y of a grid stand where a leaf has its limit and what moved.
    fields[KIND], fields[START], fields[X], fields[Y] = kind, start, 0, 0
    if kind == KEYWORDS:
        size = shape[0] + 1
        for cut in range(shape[0]):
            tree.bound[start + cut] = work.other[cut]
        tree.bound[start + shape[0]] = tree.counter[TERMS_KNOWN]
        for keyword in range(shape[1]):
            add_presence(tree.present, node, work.rank[keyword])
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
    for place in range(start, start + size + 1):
        tree.child[place] = NOTHING
        tree.share[place] = 0.0
    tree.counter[PLACES] = start + size + 1


@kernel_part
def hand_down(
    tree: Tree,
    node: int,
    entries: Entries,
    segment: Int32,
    start: int,
    total: int,
    children: int,
    policy: Policy,
    work: Work,
    progress: Int64,
) -> None:
    """Give each child its entries: small ones become leaves at once, others are pending.

    The entries of the children stand behind those of *node*; when they are done, the place is
    used again.
    """
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    first = start + len(segment)
    size = fields[SIZE]
    place = first
    for child in range(size + 1):
        count = work.tally[child]
        work.tally[child] = place
        place += count
    region = tree.region[4 * node : 4 * node + 4]
    for number in range(len(segment)):
        entry = segment[number]
        if fields[KIND] == KEYWORDS:
            put(work, work.target[number], entry)
            continue
        box = entries.box[4 * entry : 4 * entry + 4]
        if contains_region(box, region):
            put(work, size, entry)
            continue
        columns, rows = fields[X], fields[Y]
        west, east = columns_of(work.line, columns, box[0], box[2])
        south, north = rows_of(work.line, columns, rows, box[1], box[3])
        for row in range(south, north + 1):
            for column in range(west, east + 1):
                put(work, row * columns + column, entry)
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
def put(work: Work, child: int, entry: int) -> None:
    """Write *entry* where the entries of *child* go on."""
    work.segment[work.tally[child]] = entry
    work.tally[child] += 1


@kernel_part
def fill_leaf(tree: Tree, node: int, entries: Entries, segment: Int32, most: int) -> None:
    """Make *node* a leaf of the entries in *segment*, in a block that is just large enough.

    One of more than *most* could not be split; it is tried again when it has doubled.
    """
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    start = tree.counter[SLOTS]
    tree.counter[SLOTS] += len(segment)
    fields[KIND], fields[START] = LEAF, start
    fields[SIZE] = fields[ROOM] = fields[COUNT] = len(segment)
    fields[LIMIT] = 2 * len(segment) if len(segment) > most else 0
    fields[MOVED] = 0
    for number in range(len(segment)):
        entry, slot = segment[number], start + number
        tree.signature[slot] = entries.signature[entry]
        tree.alternative[slot] = entries.alternative[entry]
        tree.clause[slot] = entries.clause[entry]
        for side in range(4):
            tree.box[4 * slot + side] = entries.box[4 * entry + side]
