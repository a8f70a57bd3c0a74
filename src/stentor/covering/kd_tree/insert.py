"""Insertion of points (the bucket of each, splits of full ones), and their removal."""

from __future__ import annotations

from stentor._jit import inner_kernel, kernel
from stentor.covering.kd_tree.layout import (
    CHUNK,
    COORDINATES,
    DEEPEST,
    FREE,
    LARGEST_CAPACITY,
    LEAF,
    NO_NODE,
    NODES,
    SLOTS,
    WASTED,
    BucketLimits,
    KdTrees,
)
from stentor.encoding.columns import Float64

#: Values among which a median is looked for.
MOST_TRIED = 64
#: Slots of a new bucket.
SMALLEST_CAPACITY = 2


@kernel
def new_tree(forest: KdTrees, dims: int) -> int:
    """The root of a new tree: a leaf without entries."""
    return new_leaf(forest, dims, SMALLEST_CAPACITY, NO_NODE)


@inner_kernel
def has_capacity(forest: KdTrees, dims: int, limits: BucketLimits) -> bool:
    """Whether an insertion into any tree of *dims* dimensions fits into the arrays."""
    used = forest.used
    largest = max(used[LARGEST_CAPACITY], min(limits.overflow + 1, CHUNK))
    return bool(
        used[NODES] + 3 <= len(forest.split)
        and used[COORDINATES] + 5 * largest * max(dims, 1) <= len(forest.coordinates)
        and used[SLOTS] + 5 * largest <= len(forest.entries)
    )


@inner_kernel
def new_leaf(forest: KdTrees, dims: int, capacity: int, parent: int) -> int:
    """A leaf without entries."""
    node = forest.free[dims]
    if node != NO_NODE:
        forest.free[dims] = forest.left[node]
    else:
        node = forest.used[NODES]
        forest.used[NODES] += 1
        forest.capacity[node] = 0
    forest.split_dim[node] = LEAF
    forest.left[node] = NO_NODE
    forest.right[node] = NO_NODE
    forest.parent[node] = parent
    forest.filled[node] = 0
    if forest.capacity[node] < capacity:
        grow_bucket(forest, node, dims, capacity)
    return int(node)


@inner_kernel
def grow_bucket(forest: KdTrees, node: int, dims: int, capacity: int) -> None:
    """A larger bucket for the leaf *node*; what it holds moves along."""
    used = forest.used
    start, slot, old = forest.start[node], forest.slot[node], forest.capacity[node]
    new_start, new_slot = used[COORDINATES], used[SLOTS]
    used[COORDINATES] += capacity * dims
    used[SLOTS] += capacity
    used[WASTED] += old
    used[LARGEST_CAPACITY] = max(used[LARGEST_CAPACITY], capacity)
    for position in range(forest.filled[node]):
        forest.entries[new_slot + position] = forest.entries[slot + position]
        for dim in range(dims):
            forest.coordinates[new_start + dim * capacity + position] = forest.coordinates[
                start + dim * old + position
            ]
    forest.start[node], forest.slot[node], forest.capacity[node] = new_start, new_slot, capacity


@inner_kernel
def insert_point(
    forest: KdTrees, root: int, dims: int, entry: int, point: Float64, limits: BucketLimits
) -> None:
    """Insert *entry* under *root*; cost: the depth of its leaf, and now and then a split."""
    node = leaf_for(forest, root, point)
    if forest.filled[node] == forest.capacity[node]:
        grow_bucket(forest, node, dims, 2 * forest.capacity[node])
    put(forest, node, dims, entry, point)
    count = forest.filled[node]
    # Beyond the limit all points were equal, so another split needs a point that differs.
    if count > limits.overflow and (
        count == limits.overflow + 1 or differs(forest, node, dims, point)
    ):
        split_leaf(forest, node, dims)


@inner_kernel
def leaf_for(forest: KdTrees, root: int, point: Float64) -> int:
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


@inner_kernel
def differs(forest: KdTrees, node: int, dims: int, point: Float64) -> bool:
    """Whether *point* is not the first point of the leaf *node*."""
    for dim in range(dims):
        if forest.coordinates[forest.start[node] + dim * forest.capacity[node]] != point[dim]:
            return True
    return False


@inner_kernel
def put(forest: KdTrees, node: int, dims: int, entry: int, point: Float64) -> None:
    """Add *entry* to the leaf *node*, which has a free slot."""
    position = forest.filled[node]
    forest.filled[node] = position + 1
    forest.entries[forest.slot[node] + position] = entry
    forest.node_of[entry] = node
    forest.position_of[entry] = position
    start, capacity = forest.start[node], forest.capacity[node]
    for dim in range(dims):
        forest.coordinates[start + dim * capacity + position] = point[dim]


@inner_kernel
def split_leaf(forest: KdTrees, node: int, dims: int) -> None:
    """Split the leaf *node* at the median of its widest dimension; not if all points are equal."""
    dim, value = split_at(forest, node, dims)
    if dim == LEAF:
        return
    left = new_leaf(forest, dims, 0, node)
    right = new_leaf(forest, dims, forest.capacity[node], node)
    swap_buckets(forest, node, left)
    start, capacity = forest.start[left], forest.capacity[left]
    kept = 0
    count = forest.filled[left]
    for position in range(count):
        if forest.coordinates[start + dim * capacity + position] > value:
            move_entry(forest, left, position, right, forest.filled[right], dims)
            forest.filled[right] += 1
        else:
            move_entry(forest, left, position, left, kept, dims)
            kept += 1
    forest.filled[left] = kept
    forest.split_dim[node] = dim
    forest.split[node] = value
    forest.left[node], forest.right[node] = left, right


@inner_kernel
def swap_buckets(forest: KdTrees, giver: int, taker: int) -> None:
    """Exchange the buckets of *giver* and *taker*; *giver* has no entries then."""
    start, slot, capacity = forest.start[taker], forest.slot[taker], forest.capacity[taker]
    forest.start[taker], forest.slot[taker] = forest.start[giver], forest.slot[giver]
    forest.capacity[taker], forest.filled[taker] = forest.capacity[giver], forest.filled[giver]
    forest.start[giver], forest.slot[giver], forest.capacity[giver] = start, slot, capacity
    forest.filled[giver] = 0
    for position in range(forest.slot[taker], forest.slot[taker] + forest.filled[taker]):
        forest.node_of[forest.entries[position]] = taker


@inner_kernel
def move_entry(
    forest: KdTrees, giver: int, position: int, taker: int, new_position: int, dims: int
) -> None:
    """Copy an entry from one slot to another."""
    entry = forest.entries[forest.slot[giver] + position]
    forest.entries[forest.slot[taker] + new_position] = entry
    forest.node_of[entry] = taker
    forest.position_of[entry] = new_position
    start, capacity = forest.start[giver], forest.capacity[giver]
    new_start, new_capacity = forest.start[taker], forest.capacity[taker]
    for dim in range(dims):
        forest.coordinates[new_start + dim * new_capacity + new_position] = forest.coordinates[
            start + dim * capacity + position
        ]


@inner_kernel
def split_at(forest: KdTrees, node: int, dims: int) -> tuple[int, float]:
    """The widest dimension of the leaf *node* and a value with points on both of its sides.

    Infinite ends are as wide as any: such a dimension is split where some are finite. LEAF where
    all points are equal.
    """
    best, widest = LEAF, 0.0
    count = forest.filled[node]
    for dim in range(dims):
        start = forest.start[node] + dim * forest.capacity[node]
        values = forest.coordinates[start : start + count]
        low, high = values[0], values[0]
        for position in range(count):
            low, high = min(low, values[position]), max(high, values[position])
        if low < high and high - low > widest:
            best, widest = dim, high - low
    if best == LEAF:
        return LEAF, 0.0
    start = forest.start[node] + best * forest.capacity[node]
    values = forest.coordinates[start : start + count]
    return best, balanced(values)


@inner_kernel
def balanced(values: Float64) -> float:
    """Of *values*, not all equal, one with about as many above it as not above it.

    The best of some values and the least. Cost: O(values).
    """
    count = len(values)
    least = values[0]
    for position in range(count):
        least = min(least, values[position])
    best, best_gap = least, count + 1
    step = max(1, count // MOST_TRIED)
    for position in range(0, count, step):
        above = 0
        for other in range(count):
            above += values[other] > values[position]
        gap = abs(2 * above - count)
        if above > 0 and gap < best_gap:
            best, best_gap = values[position], gap
    return float(best)


@inner_kernel
def remove_entry(forest: KdTrees, entry: int, dims: int, limits: BucketLimits) -> None:
    """Remove *entry*; a leaf below the underflow limit is merged with a sibling that fits."""
    node = forest.node_of[entry]
    position = forest.position_of[entry]
    last = forest.filled[node] - 1
    if position != last:
        move_entry(forest, node, last, node, position, dims)
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


@inner_kernel
def merge(forest: KdTrees, parent: int, left: int, right: int, dims: int) -> None:
    """Make *parent* a leaf of what its two leaves hold; both become free."""
    if forest.capacity[left] < forest.capacity[right]:
        left, right = right, left
    wanted = forest.filled[left] + forest.filled[right]
    if forest.capacity[left] < wanted:
        grow_bucket(forest, left, dims, wanted)
    for position in range(forest.filled[right]):
        move_entry(forest, right, position, left, forest.filled[left], dims)
        forest.filled[left] += 1
    swap_buckets(forest, left, parent)
    forest.split_dim[parent] = LEAF
    forest.left[parent] = NO_NODE
    forest.right[parent] = NO_NODE
    for node in (left, right):
        forest.split_dim[node] = FREE
        forest.filled[node] = 0
        forest.left[node] = forest.free[dims]
        forest.free[dims] = node
