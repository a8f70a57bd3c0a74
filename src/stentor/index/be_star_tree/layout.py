"""The arrays of the BE*-Tree: one arena of words with nodes, directories and records.

A node is known by the position of its first word; the constants below are offsets from there. A
word is an integer (`word`), a double (`number`), or two halves (`code`: int32, `half`: float32).
All are views of the same memory.

    c-node     ABOVE OWNER LEFT RIGHT DEPTH │ LEAF … CAPACITY │ DIRECTORY PARTITIONS │ own box │
               summaries of the leaf and of all beneath │ for each attribute from its own one up to
               the root's: hull of the leaf, hull of all beneath
    p-node     DIMENSION ROOT PARENT SIZE LOSS CLUSTERS DEEPEST
    directory  p-nodes by dimension: (dimension, p-node) in a word each
    leaf       records one after the other: (alternative, boxes and flags), (total, other weight),
               then for each box (dimension, weight), low, high
               or, in a NARROW record, (dimension and weight in 16 bits each, high − low), low

Runs of words in the arena, by classes of sizes with a free list each.

A run's class is in the word before it. Sizes grow by a quarter or less from class to class, so that
a run is filled to nine tenths on average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stentor._jit import inner_kernel, kernel_inline
from stentor.encoding.columns import Float64, Int32, Int64, UInt8

Float32 = npt.NDArray[np.float32]

#: Of saved trees; those of another layout are rebuilt when they are opened.
LAYOUT = 3
#: Stands for a node, a run or a dimension where there is none.
NONE = -1
#: Stands for a sketch where there is none.
NO_PROMISES = 0

# Words of a c-node: a bucket of the clustering directory.
ABOVE = 0  # the c-node whose left or right bucket this is
PARTITION = 1  # the p-node in whose directory of clusters it is; NONE: the root of the tree
LEFT = 2
RIGHT = 3
DEPTH = 4  # two halves: how many attributes lead here, and so its boxes; the leaf's sketch
LEAF = 5  # its l-node: a run of records
LEAF_WORDS = 6
LEAF_COUNT = 7  # records in it, DEAD ones too
CAPACITY = 8  # two halves: records above which the leaf overflows, how many of it are DEAD
DIRECTORY = 9  # its p-directory: a run
PARTITIONS = 10  # p-nodes in it
OWN_LOW = 11  # hull, on its own attribute, of leaf and p-directory: the overlapping bucket
OWN_HIGH = 12
LEAF_SUMMARY = 13  # SUMMARY halves
ALL_SUMMARY = 17
BOXES = 21  # LEAF_LOW, LEAF_HIGH, LOW, HIGH for each of DEPTH attributes, its own one first
BOX_WORDS = 4
LEAF_LOW, LEAF_HIGH, LOW, HIGH = 0, 1, 2, 3

# Words of a p-node.
DIMENSION = 0
ROOT = 1  # of its directory of clusters
PARENT = 2  # the c-node in whose p-directory it is
SIZE = 3  # records beneath
LOSS = 4  # predicates tested in vain beneath, for an event of the last window
CLUSTERS = 5  # c-nodes of its directory of clusters
DEEPEST = 6  # they are not rebalanced until one is deeper
PARTITION_WORDS = 7

# Words of a record, and of each of its boxes.
RECORD_WORDS = 2
WIDE_BOX = 3
NARROW_BOX = 2
# Beside the number of boxes.
COUNT_MASK = (1 << 16) - 1
COVERED = 1 << 16  # these boxes are all that the alternative tests
NARROW = 1 << 17  # every box's length is a float32 to the last bit, its dimension below 2^16
DEAD = 1 << 18  # removed from a large leaf, to be swept with others

# Halves of a summary: upper bounds of weights, by a hash of the dimension, of the promise (see
# `promises.py`), of what is not among the boxes, and of all together.
SLOTS = 5
PROMISE = 5
OTHER = 6
TOTAL = 7
SUMMARY = 8

# Positions that never change.
ROOT_NODE = 1
STAGED = 25  # the record that is being inserted

# Axes of an attribute; each that some alternative tests is a dimension.
VALUE, X, Y, HASH = 0, 1, 2, 3
AXES = 4

# Positions in `BEStarTreeArrays.state`.
USED = 0  # words of the arena
DIMENSIONS = 1
PENDING = 2  # c-nodes that overflow
TOP_CLASS = 3  # the largest class of runs that was ever released
LARGEST_LEAF = 4  # words
RECORDS = 5
BUCKETS = 6  # c-nodes
UNCOVERED = 7  # 1 where a record that is not COVERED was ever inserted
UNBALANCED = 8  # a c-node that is too deep, or NONE
STAGED_CAPACITY = 9  # records that the scratch of the next step must hold
NODE_CAPACITY = 10  # c-nodes that the scratch of the next step must hold
STATES = 11

#: Of `SplitScratch.nodes`, by c-node: four lists, and a stack of frames of seven.
NODE_FIELDS = 11

#: Classes of runs: four to a doubling.
CLASSES = 160


class BEStarTreeArrays(NamedTuple):
    """All arrays, writable: what changes take."""

    word: Int64  # (words,)
    number: Float64  # (words,) the same memory
    half: Float32  # (2 × words,) the same memory
    code: Int32  # (2 × words,) the same memory
    free: Int64  # (CLASSES,) the first free run of each class
    state: Int64  # (STATES,)
    pending: Int64  # (any,) a stack
    home: Int32  # (alternatives,) the c-node that each one's record is in, or NONE
    offset: Int32  # (alternatives,) where in its leaf that record starts
    proved: UInt8  # (alternatives,) 1 where its record is COVERED
    dimension_of: Int32  # (AXES × attributes,) or NONE
    key_of: Int32  # (AXES × attributes,) the inverse of dimension_of
    waste: Float64  # (AXES × attributes,) measured loss of a record under a dimension
    extension: Float64  # (AXES × attributes,) the average width of an event's range
    usual: Float64  # (AXES × attributes,) a weight as records have it on a dimension, or 0
    heaviest: Float64  # (AXES × attributes,) no record has a greater weight on a dimension


class BEReadArrays(NamedTuple):
    """What matching takes: the arena and the dimensions, read-only.

    Few arrays: passing each takes 0.1 µs.
    """

    word: Int64
    number: Float64
    half: Float32
    code: Int32
    dimension_of: Int32


#: Kernels that only read take either.
Readable = BEStarTreeArrays | BEReadArrays


class BEKernelSettings(NamedTuple):
    """The settings that kernels take."""

    capacity: int
    least_share: float  # alpha
    most_growth: float  # beta
    exhaustive: bool
    histogram: bool
    by_sum: bool
    width: int
    recycle: float  # waste above which a p-node is recycled


class SplitScratch(NamedTuple):
    """Scratch for the records of one leaf while it is split, and for counting its dimensions."""

    at: Int64  # (records,)
    mark: Int64  # (records,)
    low: Float64  # (records,)
    high: Float64  # (records,)
    by_low: Int64  # (records,)
    by_high: Int64  # (records,)
    spare: Int64  # (records,)
    least_low: Float64  # (records + 1,)
    most_high: Float64  # (records + 1,)
    latest_high: Float64  # (records + 1,)
    tally: Int64  # (dimensions,) zeros between uses
    seen: Int64  # (dimensions,)
    slot: Float64  # (SUMMARY,)
    bins: Float64  # (BINS,) of `ranking.py`
    nodes: Int64  # (NODE_FIELDS × c-nodes of a directory,) of `rebalance.py`


#: Words that any one step may take beside the records that it copies.
SPARE_WORDS = 4096
#: Buckets that one step may add to the stack.
MOST_PENDING = 4
#: A free run so many classes larger (four times as large) is cut rather than left free.
MUCH_LARGER = 8


@kernel_inline
def size_of(run_class: int) -> int:
    """The words of a run of *run_class*, with the one before it."""
    return (4 + (run_class & 3)) << ((run_class >> 2) + 1)


@inner_kernel
def class_of(words: int) -> int:
    """The smallest class with *words* words and the one before them."""
    octave = 0
    while size_of(4 * octave + 4) <= words + 1:
        octave += 1
    found = 4 * octave
    while size_of(found) < words + 1:
        found += 1
    return found


@kernel_inline
def capacity_of_class(tree: BEStarTreeArrays, run: int) -> int:
    """The capacity of *run* in words."""
    return int(size_of(tree.word[run - 1]) - 1)


@inner_kernel
def has_capacity(tree: BEStarTreeArrays) -> bool:
    """Whether there is capacity for any one step in the arena and on the stack."""
    state = tree.state
    words = 3 * state[LARGEST_LEAF] + SPARE_WORDS
    return bool(
        state[USED] + words <= len(tree.word) and state[PENDING] + MOST_PENDING <= len(tree.pending)
    )


@inner_kernel
def take_run(tree: BEStarTreeArrays, words: int) -> int:
    """A run of *words* words; the caller has checked the capacity."""
    wanted = class_of(words)
    run = int(tree.free[wanted])
    if run != NONE:
        tree.free[wanted] = tree.word[run]
        return run
    for larger in range(wanted + MUCH_LARGER, tree.state[TOP_CLASS] + 1):
        if tree.free[larger] != NONE:
            return cut(tree, larger, wanted)
    start = int(tree.state[USED])
    tree.state[USED] = start + size_of(wanted)
    tree.word[start] = wanted
    return start + 1


@inner_kernel
def cut(tree: BEStarTreeArrays, larger: int, wanted: int) -> int:
    """A run of class *wanted* from the front of a free one; the rest becomes free runs."""
    run = int(tree.free[larger])
    tree.free[larger] = tree.word[run]
    tree.word[run - 1] = wanted
    start = run - 1 + size_of(wanted)
    left = size_of(larger) - size_of(wanted)
    piece = larger - 1
    while left >= size_of(0):
        while size_of(piece) > left:
            piece -= 1
        tree.word[start] = piece
        free_run(tree, start + 1)
        start += size_of(piece)
        left -= size_of(piece)
    return run


@inner_kernel
def free_run(tree: BEStarTreeArrays, run: int) -> None:
    """Add *run* to the free list of its class."""
    run_class = tree.word[run - 1]
    tree.word[run] = tree.free[run_class]
    tree.free[run_class] = run
    tree.state[TOP_CLASS] = max(tree.state[TOP_CLASS], run_class)


@kernel_inline
def copy_words(tree: BEStarTreeArrays, source: int, target: int, words: int) -> None:
    """Copy *words* words; the two do not overlap, or *target* comes first."""
    taken, given = tree.word[source : source + words], tree.word[target : target + words]
    for word in range(words):
        given[word] = taken[word]
