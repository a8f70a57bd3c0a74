"""Points that come and go in a tree of buckets: insertion, splits, removal, merges."""

from __future__ import annotations

from stentor._jit import kernel, kernel_part
from stentor.covering.dominance.forest import (
    CHUNK,
    COORDINATES,
    DEEPEST,
    FREE,
    LARGEST_ROOM,
    LEAF,
    NO_NODE,
    NODES,
    SLOTS,
    WASTED,
    Forest,
    Limits,
)
from stentor.encoding.columns import Float64

#: Values among which a median is looked for.
MOST_TRIED = 64
#: Places of a new bucket.
SMALLEST_ROOM = 2


@kernel
def plant(forest: Forest, dims: int) -> int:
    """The root of a new tree: a leaf without entries."""
    return new_leaf(forest, dims, SMALLEST_ROOM, NO_NODE)


@kernel_part
def fits_one_more(forest: Forest, dims: int, limits: Limits) -> bool:
    """Whether an insertion into any tree of *dims* dimensions surely finds room."""
    used = forest.used
    largest = max(used[LARGEST_ROOM], min(limits.overflow + 1, CHUNK))
    return bool(
        used[NODES] + 3 <= len(forest.split)
        and used[COORDINATES] + 5 * largest * max(dims, 1) <= len(forest.coordinates)
        and used[SLOTS] + 5 * largest <= len(forest.entries)
    )


@kernel_part
def new_leaf(forest: Forest, dims: int, room: int, parent: int) -> int:
    """A leaf without entries."""
    node = forest.free[dims]
    if node != NO_NODE:
        forest.free[dims] = forest.left[node]
    else:
        node = forest.used[NODES]
        forest.used[NODES] += 1
        forest.room[node] = 0
    forest.split_dim[node] = LEAF
    forest.left[node] = NO_NODE
    forest.right[node] = NO_NODE
    forest.parent[node] = parent
    forest.filled[node] = 0
    if forest.room[node] < room:
        give_room(forest, node, dims, room)
    return int(node)


@kernel_part
def give_room(forest: Forest, node: int, dims: int, room: int) -> None:
    """A larger bucket for the leaf *node*; what it holds moves along."""
    used = forest.used
    start, slot, old = forest.start[node], forest.slot[node], forest.room[node]
    new_start, new_slot = used[COORDINATES], used[SLOTS]
    used[COORDINATES] += room * dims
    used[SLOTS] += room
    used[WASTED] += old
    used[LARGEST_ROOM] = max(used[LARGEST_ROOM], room)
    for place in range(forest.filled[node]):
        forest.entries[new_slot + place] = forest.entries[slot + place]
        for dim in range(dims):
            forest.coordinates[new_start + dim * room + place] = forest.coordinates[
                start + dim * old + place
            ]
    forest.start[node], forest.slot[node], forest.room[node] = new_start, new_slot, room


@kernel_part
def insert_point(
    forest: Forest, root: int, dims: int, entry: int, point: Float64, limits: Limits
) -> None:
    """File *entry* under *root*; cost: the depth of its leaf, and now and then a split."""
    node = leaf_for(forest, root, point)
    if forest.filled[node] == forest.room[node]:
        give_room(forest, node, dims, 2 * forest.room[node])
    put(forest, node, dims, entry, point)
    count = forest.filled[node]
    # Beyond the limit all points were equal, so another split needs a point that differs.
    if count > limits.overflow and (
        count == limits.overflow + 1 or differs(forest, node, dims, point)
    ):
        split_leaf(forest, node, dims)


@kernel_part
def leaf_for(forest: Forest, root: int, point: Float64) -> int:
    """The leaf under *root* that *point* belongs to."""
    node = root
    depth = 0
    while forest.split_dim[node] != LEAF:
        depth += 1
        if point[forest.split_dim[node]] > forest.split[node]:
            node = forest.right[node]
        else:
            node = forest.left[node]
    forest.used[DEEPEST] = max(forest.used[DEEPEST], depth)
    return node


@kernel_part
def differs(forest: Forest, node: int, dims: int, point: Float64) -> bool:
    """Whether *point* is not the first point of the leaf *node*."""
    for dim in range(dims):
        if forest.coordinates[forest.start[node] + dim * forest.room[node]] != point[dim]:
            return True
    return False


@kernel_part
def put(forest: Forest, node: int, dims: int, entry: int, point: Float64) -> None:
    """Add *entry* to the leaf *node*, which has room."""
    place = forest.filled[node]
    forest.filled[node] = place + 1
    forest.entries[forest.slot[node] + place] = entry
    forest.node_of[entry] = node
    forest.place_of[entry] = place
    start, room = forest.start[node], forest.room[node]
    for dim in range(dims):
        forest.coordinates[start + dim * room + place] = point[dim]


@kernel_part
def split_leaf(forest: Forest, node: int, dims: int) -> None:
    """Split the leaf *node* at the median of its widest dimension; not if all points are equal."""
    dim, value = split_at(forest, node, dims)
    if dim == LEAF:
        return
    left = new_leaf(forest, dims, 0, node)
    right = new_leaf(forest, dims, forest.room[node], node)
    hand_over(forest, node, left)
    start, room = forest.start[left], forest.room[left]
    kept = 0
    count = forest.filled[left]
    for place in range(count):
        if forest.coordinates[start + dim * room + place] > value:
            move_entry(forest, left, place, right, forest.filled[right], dims)
            forest.filled[right] += 1
        else:
            move_entry(forest, left, place, left, kept, dims)
            kept += 1
    forest.filled[left] = kept
    forest.split_dim[node] = dim
    forest.split[node] = value
    forest.left[node], forest.right[node] = left, right


@kernel_part
def hand_over(forest: Forest, giver: int, taker: int) -> None:
    """Give *taker* the bucket of *giver* with all that is in it, and take its own for it."""
    start, slot, room = forest.start[taker], forest.slot[taker], forest.room[taker]
    forest.start[taker], forest.slot[taker] = forest.start[giver], forest.slot[giver]
    forest.room[taker], forest.filled[taker] = forest.room[giver], forest.filled[giver]
    forest.start[giver], forest.slot[giver], forest.room[giver] = start, slot, room
    forest.filled[giver] = 0
    for place in range(forest.slot[taker], forest.slot[taker] + forest.filled[taker]):
        forest.node_of[forest.entries[place]] = taker


@kernel_part
def move_entry(
    forest: Forest, giver: int, place: int, taker: int, new_place: int, dims: int
) -> None:
    """Copy an entry from one place to another."""
    entry = forest.entries[forest.slot[giver] + place]
    forest.entries[forest.slot[taker] + new_place] = entry
    forest.node_of[entry] = taker
    forest.place_of[entry] = new_place
    start, room = forest.start[giver], forest.room[giver]
    new_start, new_room = forest.start[taker], forest.room[taker]
    for dim in range(dims):
        forest.coordinates[new_start + dim * new_room + new_place] = forest.coordinates[
            start + dim * room + place
        ]


@kernel_part
def split_at(forest: Forest, node: int, dims: int) -> tuple[int, float]:
    """The widest dimension of the leaf *node* and a value with points on both of its sides.

    Infinite ends are as wide as any: such a dimension is split where some are finite. LEAF where
    all points are equal.
    """
    best, widest = LEAF, 0.0
    count = forest.filled[node]
    for dim in range(dims):
        start = forest.start[node] + dim * forest.room[node]
        values = forest.coordinates[start : start + count]
        low, high = values[0], values[0]
        for place in range(count):
            low, high = min(low, values[place]), max(high, values[place])
        if low < high and high - low > widest:
            best, widest = dim, high - low
    if best == LEAF:
        return LEAF, 0.0
    start = forest.start[node] + best * forest.room[node]
    values = forest.coordinates[start : start + count]
    return best, balanced(values)


@kernel_part
def balanced(values: Float64) -> float:
    """Of *values*, not all equal, one with about as many above it as not above it.

    The best of some values and the least: cost: O(values).
    """
    count = len(values)
    least = values[0]
    for place in range(count):
        least = min(least, values[place])
    best, best_gap = least, count + 1
    step = max(1, count // MOST_TRIED)
    for place in range(0, count, step):
        above = 0
        for other in range(count):
            above += values[other] > values[place]
        gap = abs(2 * above - count)
        if above > 0 and gap < best_gap:
            best, best_gap = values[place], gap
    return float(best)


@kernel_part
def remove_entry(forest: Forest, entry: int, dims: int, limits: Limits) -> None:
    """Take *entry* out; a leaf below the underflow limit is merged with a sibling that fits."""
    node = forest.node_of[entry]
    place = forest.place_of[entry]
    last = forest.filled[node] - 1
    if place != last:
        move_entry(forest, node, last, node, place, dims)
    forest.filled[node] = last
    forest.node_of[entry] = NO_NODE
    parent = forest.parent[node]
    while parent != NO_NODE:
        left, right = forest.left[parent], forest.right[parent]
        if forest.split_dim[left] != LEAF or forest.split_dim[right] != LEAF:
            return
        fewer = min(forest.filled[left], forest.filled[right])
        both = forest.filled[left] + forest.filled[right]
        if fewer >= limits.underflow or both > limits.overflow:
            return
        merge(forest, parent, left, right, dims)
        parent = forest.parent[parent]


@kernel_part
def merge(forest: Forest, parent: int, left: int, right: int, dims: int) -> None:
    """Make *parent* a leaf of what its two leaves hold; both become free."""
    if forest.room[left] < forest.room[right]:
        left, right = right, left
    wanted = forest.filled[left] + forest.filled[right]
    if forest.room[left] < wanted:
        give_room(forest, left, dims, wanted)
    for place in range(forest.filled[right]):
        move_entry(forest, right, place, left, forest.filled[left], dims)
        forest.filled[left] += 1
    hand_over(forest, left, parent)
    forest.split_dim[parent] = LEAF
    forest.left[parent] = NO_NODE
    forest.right[parent] = NO_NODE
    for node in (left, right):
        forest.split_dim[node] = FREE
        forest.filled[node] = 0
        forest.left[node] = forest.free[dims]
        forest.free[dims] = node
