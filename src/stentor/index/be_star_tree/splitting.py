"""Overflowing leaves, split or partitioned one step at a time (Algorithms 4 and 5; V-A3).

A bucket is cut into left, overlapping and right, where the three are as even as can be.
"""

from __future__ import annotations

import math

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import Float64, Int64
from stentor.index.be_star_tree.bounds import sweep
from stentor.index.be_star_tree.buckets import (
    append,
    capacity_of,
    dead_in,
    depth_of,
    empty_leaf_bounds,
    new_bucket,
    new_partition,
    raise_capacity,
    reserve_leaf,
    reset_capacity,
)
from stentor.index.be_star_tree.layout import (
    BOXES,
    DIMENSION,
    HIGH,
    LEAF,
    LEAF_COUNT,
    LEAF_LOW,
    LEAF_WORDS,
    LEFT,
    LOW,
    NONE,
    OWN_LOW,
    PARTITION,
    PARTITIONS,
    PENDING,
    RIGHT,
    ROOT,
    SIZE,
    STAGED_CAPACITY,
    BEKernelSettings,
    BEStarTreeArrays,
    SplitScratch,
    free_run,
)
from stentor.index.be_star_tree.promises import write_promises
from stentor.index.be_star_tree.ranking import best_dimension
from stentor.index.be_star_tree.records import box_on, high_at, low_at, words_of

Cut = tuple[float, float]
#: Nothing goes left, nothing goes right.
NO_CUT: Cut = (-math.inf, math.inf)

# Where a record of an overflowing leaf goes.
KEPT, GOES_LEFT, GOES_RIGHT = 0, 1, 2


@inner_kernel
def sort_positions(values: Float64, positions: Int64, spare: Int64, count: int) -> None:
    """Fill *positions* with 0 … count − 1 by ascending *values*: a merge sort in scratch."""
    for position in range(count):
        positions[position] = position
    run = 1
    while run < count:
        start = 0
        while start < count:
            middle, stop = min(start + run, count), min(start + 2 * run, count)
            left, right = start, middle
            for target in range(start, stop):
                if left < middle and (
                    right >= stop or values[positions[left]] <= values[positions[right]]
                ):
                    spare[target] = positions[left]
                    left += 1
                else:
                    spare[target] = positions[right]
                    right += 1
            start = stop
        for position in range(count):
            positions[position] = spare[position]
        run *= 2


@kernel
def exhaustive_cut(scratch: SplitScratch, count: int, least: int, gap: float) -> Cut:
    """The cut with the shortest overlapping bucket, the least coverage, the evenest; or NO_CUT.

    Left and right hold at least *least* each and are more than *gap* apart. Cost: O(n log n).
    """
    low, high, by_low, by_high = scratch.low, scratch.high, scratch.by_low, scratch.by_high
    sort_positions(low, by_low, scratch.spare, count)
    sort_positions(high, by_high, scratch.spare, count)
    # By ends: the least beginning of the first so many, and of the others.
    first_low, rest_low = scratch.least_low, scratch.latest_high
    first_low[0] = rest_low[count] = math.inf
    for position in range(count):
        first_low[position + 1] = min(first_low[position], low[by_high[position]])
        other = count - 1 - position
        rest_low[other] = min(rest_low[other + 1], low[by_high[other]])
    # By beginnings: the last end of the first so many.
    first_high = scratch.most_high
    first_high[0] = -math.inf
    for position in range(count):
        first_high[position + 1] = max(first_high[position], high[by_low[position]])
    whole_high = first_high[count]
    best, best_overlap, best_coverage, best_smaller = NO_CUT, math.inf, math.inf, 0
    begun = 0  # how many begin at most `gap` after the end of the left bucket
    for ended in range(1, count):
        stop = high[by_high[ended - 1]]
        if high[by_high[ended]] == stop:
            continue
        while begun < count and low[by_low[begun]] <= stop + gap:
            begun += 1
        if ended < least or count - begun < least:
            continue
        start = low[by_low[begun]]
        overlap_low = overlap_high = start
        if begun > ended:  # otherwise nothing overlaps
            overlap_low, overlap_high = rest_low[ended], first_high[begun]
        overlap = overlap_high - overlap_low
        coverage = covered(first_low[ended], stop, overlap_low, overlap_high, start, whole_high)
        smaller = min(ended, count - begun)
        if overlap < best_overlap or (
            overlap == best_overlap
            and (coverage < best_coverage or (coverage == best_coverage and smaller > best_smaller))
        ):
            best, best_overlap, best_coverage = (stop, start), overlap, coverage
            best_smaller = smaller
    return best


@kernel_inline
def covered(
    left_low: float,
    left_high: float,
    low: float,
    high: float,
    right_low: float,
    right_high: float,
) -> float:
    """The length of the union: left … and right … are apart, low … high may touch both."""
    length = (left_high - left_low) + (right_high - right_low) + (high - low)
    length -= max(0.0, min(left_high, high) - max(left_low, low))
    return length - max(0.0, min(right_high, high) - max(right_low, low))


@kernel
def approximate_cut(scratch: SplitScratch, count: int, least: int, gap: float) -> Cut:
    """A cut found by filling left and right from their ends in turn; or NO_CUT.

    Cost: two sorts, as for the exhaustive one, and one pass.
    """
    low, high, by_low, by_high = scratch.low, scratch.high, scratch.by_low, scratch.by_high
    sort_positions(low, by_low, scratch.spare, count)
    sort_positions(high, by_high, scratch.spare, count)
    stop, start = -math.inf, math.inf
    lefts = rights = 0
    for position in range(count):
        leftmost, rightmost = by_high[position], by_low[count - 1 - position]
        if high[leftmost] + gap < start:
            stop = high[leftmost]
            lefts += 1
        if low[rightmost] > stop + gap:
            start = low[rightmost]
            rights += 1
    if lefts < least or rights < least:
        return NO_CUT
    return stop, start


@kernel
def space_cut(scratch: SplitScratch, count: int) -> Cut:
    """A cut in the middle of what the bucket spans, its finite ends taken (space clustering)."""
    least, most = math.inf, -math.inf
    for position in range(count):
        for end in (scratch.low[position], scratch.high[position]):
            if -math.inf < end < math.inf:
                least, most = min(least, end), max(most, end)
    if not least < most:
        return NO_CUT
    middle = least / 2.0 + most / 2.0
    stop, start = -math.inf, math.inf
    for position in range(count):
        if scratch.high[position] < middle:
            stop = max(stop, scratch.high[position])
        elif scratch.low[position] > middle:
            start = min(start, scratch.low[position])
    return stop, start


@inner_kernel
def push_if_full(tree: BEStarTreeArrays, node: int) -> None:
    """Push *node* to those pending where its leaf overflows."""
    if tree.word[node + LEAF_COUNT] > capacity_of(tree, node):
        tree.pending[tree.state[PENDING]] = node
        tree.state[PENDING] += 1


@inner_kernel
def split_or_partition(
    tree: BEStarTreeArrays, node: int, scratch: SplitScratch, settings: BEKernelSettings
) -> bool:
    """One step against the overflow of *node*: split its bucket, or else partition (Algorithm 5).

    A bucket is split before it is partitioned; one that has children on both sides, or p-nodes, is
    not split any more; one with a child on one side may get the other. False where the scratch is
    too small: then nothing was done.
    """
    word = tree.word
    if dead_in(tree, node) > 0:
        sweep(tree, node, scratch, settings.capacity)
    count = word[node + LEAF_COUNT]
    if count <= capacity_of(tree, node):
        return True
    fits = count < len(scratch.at)
    if word[node + PARTITION] != NONE and word[node + PARTITIONS] == 0 and is_separable(tree, node):
        if not fits:
            tree.state[STAGED_CAPACITY] = count
            return False
        if split(tree, node, scratch, settings):
            return True
    dimension = best_dimension(tree, node, scratch, settings)
    if dimension == NONE:
        raise_capacity(tree, node)
        return True
    if not fits:
        tree.state[STAGED_CAPACITY] = count
        return False
    partition_by(tree, node, dimension, scratch, settings)
    return True


@inner_kernel
def is_separable(tree: BEStarTreeArrays, node: int) -> bool:
    """Whether some cut leaves a side of the bucket of *node*; cheaper than looking for it."""
    word, number = tree.word, tree.number
    dimension = word[word[node + PARTITION] + DIMENSION]
    left, right = word[node + LEFT], word[node + RIGHT]
    if left != NONE and right != NONE:
        return False
    last_low, first_high = -math.inf, math.inf
    record = word[node + LEAF]
    for _ in range(word[node + LEAF_COUNT]):
        box = box_on(tree, record, dimension)
        last_low = max(last_low, low_at(tree, box))
        first_high = min(first_high, high_at(tree, record, box))
        record += words_of(tree, record)
    if left != NONE:
        return bool(last_low > number[left + BOXES + HIGH])
    if right != NONE:
        return bool(first_high < number[right + BOXES + LOW])
    return bool(first_high < last_low)


@inner_kernel
def split(
    tree: BEStarTreeArrays, node: int, scratch: SplitScratch, settings: BEKernelSettings
) -> bool:
    """Cut the bucket of *node* in three where that separates anything; whether it did."""
    word, number = tree.word, tree.number
    count = word[node + LEAF_COUNT]
    dimension = word[word[node + PARTITION] + DIMENSION]
    gap = tree.extension[dimension]
    left, right = word[node + LEFT], word[node + RIGHT]
    load_leaf(tree, node, dimension, scratch)
    if left != NONE:  # this bucket was put above it: records to its right may go right
        stop, start = -math.inf, number[left + BOXES + HIGH] + gap
    elif right != NONE:
        stop, start = number[right + BOXES + LOW] - gap, math.inf
    else:
        least = max(1, math.ceil(settings.least_share * count))
        if settings.exhaustive:
            stop, start = exhaustive_cut(scratch, count, least, gap)
        else:
            stop, start = approximate_cut(scratch, count, least, gap)
        if stop == NO_CUT[0]:
            stop, start = space_cut(scratch, count)
            if not stop + gap < start:
                stop, start = NO_CUT
    lefts = rights = 0
    for position in range(count):
        scratch.mark[position] = KEPT
        record = scratch.at[position]
        box = box_on(tree, record, dimension)
        low, high = low_at(tree, box), high_at(tree, record, box)
        if high <= stop and (right == NONE or high < stop):
            scratch.mark[position] = GOES_LEFT
            lefts += 1
        elif low >= start and (left == NONE or low > start):
            scratch.mark[position] = GOES_RIGHT
            rights += 1
    if lefts + rights == 0:
        return False
    owner, depth = word[node + PARTITION], depth_of(tree, node)
    if lefts > 0:
        left = word[node + LEFT] = new_bucket(tree, owner, node, depth, settings.capacity)
    if rights > 0:
        right = word[node + RIGHT] = new_bucket(tree, owner, node, depth, settings.capacity)
    distribute(tree, node, left, right, scratch)
    reset_capacity(tree, node, settings.capacity)
    for position in range(2):
        number[node + OWN_LOW + position] = number[node + BOXES + LEAF_LOW + position]
    push_if_full(tree, node)
    if lefts > 0:
        push_if_full(tree, left)
    if rights > 0:
        push_if_full(tree, right)
    return True


@inner_kernel
def load_leaf(tree: BEStarTreeArrays, node: int, dimension: int, scratch: SplitScratch) -> None:
    """Fill the scratch with the positions of the records in the leaf of *node*, and their boxes.

    Unbounded boxes are cut off at the last finite bound: they have a length then.
    """
    least, most = math.inf, -math.inf
    count, record = tree.word[node + LEAF_COUNT], tree.word[node + LEAF]
    for position in range(count):
        box = box_on(tree, record, dimension)
        low, high = low_at(tree, box), high_at(tree, record, box)
        scratch.at[position], scratch.low[position], scratch.high[position] = record, low, high
        if low > -math.inf:
            least, most = min(least, low), max(most, low)
        if high < math.inf:
            least, most = min(least, high), max(most, high)
        record += words_of(tree, record)
    for position in range(count):
        scratch.low[position] = max(scratch.low[position], least)
        scratch.high[position] = min(scratch.high[position], most)


@inner_kernel
def partition_by(
    tree: BEStarTreeArrays,
    node: int,
    dimension: int,
    scratch: SplitScratch,
    settings: BEKernelSettings,
) -> None:
    """Move the records of *node* that have *dimension* to a new p-node (Algorithm 4)."""
    word = tree.word
    partition = new_partition(tree, node, dimension, settings.capacity)
    root = word[partition + ROOT]
    record = word[node + LEAF]
    for position in range(word[node + LEAF_COUNT]):
        scratch.at[position] = record
        has_box = box_on(tree, record, dimension) != NONE
        scratch.mark[position] = GOES_LEFT if has_box else KEPT
        record += words_of(tree, record)
    distribute(tree, node, root, NONE, scratch)
    reset_capacity(tree, node, settings.capacity)
    word[partition + SIZE] = word[root + LEAF_COUNT]
    push_if_full(tree, node)
    push_if_full(tree, root)


@inner_kernel
def distribute(
    tree: BEStarTreeArrays, node: int, left: int, right: int, scratch: SplitScratch
) -> None:
    """Move the records of *node* to where `scratch.mark` says; what is KEPT stays."""
    word = tree.word
    count, leaf = word[node + LEAF_COUNT], word[node + LEAF]
    kept = to_left = to_right = 0
    for position in range(count):
        words = words_of(tree, scratch.at[position])
        if scratch.mark[position] == KEPT:
            kept += words
        elif scratch.mark[position] == GOES_LEFT:
            to_left += words
        else:
            to_right += words
    word[node + LEAF] = NONE
    word[node + LEAF_WORDS] = word[node + LEAF_COUNT] = 0
    empty_leaf_bounds(tree, node)
    if kept > 0:
        reserve_leaf(tree, node, kept)
    if to_left > 0:
        reserve_leaf(tree, left, to_left)
    if to_right > 0:
        reserve_leaf(tree, right, to_right)
    for position in range(count):
        mark = scratch.mark[position]
        target = node if mark == KEPT else left if mark == GOES_LEFT else right
        append(tree, target, scratch.at[position], scratch)
    free_run(tree, leaf)
    write_promises(tree, node, scratch)
    if to_left > 0:
        write_promises(tree, left, scratch)
    if to_right > 0:
        write_promises(tree, right, scratch)
