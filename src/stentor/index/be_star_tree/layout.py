"""The arrays of the BE*-Tree: one pool of words that holds nodes, directories and records.

A node is known by the place of its first word. What is in a word is said by the offset constants:
an integer (`word`), a double (`number`), or two halves (`code`: int32, `half`: float32). All four
are views of the same memory.

    c-node     ABOVE OWNER LEFT RIGHT DEPTH │ LEAF … CAPACITY │ DIRECTORY PARTITIONS │ own box │
               summaries of the leaf and of all beneath │ for each attribute from its own one up to
               the root's: hull of the leaf, hull of all beneath
    p-node     DIMENSION ROOT PARENT SIZE LOSS
    directory  p-nodes by dimension: (dimension, p-node) in a word each
    leaf       records one after the other: (alternative, boxes and flags), (total, other weight),
               then for each box (dimension, weight), low, high
               or, in a NARROW record, (dimension and weight in 16 bits each, high − low), low
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import Float64, Int32, Int64, UInt8

Float32 = npt.NDArray[np.float32]

#: Stands for a node, a slab or a dimension where there is none.
NONE = -1

# Words of a c-node: a bucket of the clustering directory.
ABOVE = 0  # the c-node whose left or right bucket this is
OWNER = 1  # the p-node in whose directory of clusters it stands; NONE: the root of the tree
LEFT = 2
RIGHT = 3
DEPTH = 4  # how many attributes lead here, and how many boxes it has
LEAF = 5  # its l-node: a slab of records
LEAF_WORDS = 6
LEAF_COUNT = 7
CAPACITY = 8  # records above which the leaf overflows
DIRECTORY = 9  # its p-directory: a slab
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
PARENT = 2  # the c-node in whose directory it stands
SIZE = 3  # records beneath
LOSS = 4  # predicates tested in vain beneath, for an event of the last window
PARTITION_WORDS = 5

# Words of a record, and of each of its boxes.
RECORD_WORDS = 2
WIDE_BOX = 3
NARROW_BOX = 2
# Beside the number of boxes.
COUNT_MASK = (1 << 16) - 1
COVERED = 1 << 16  # these boxes are all that the alternative asks
NARROW = 1 << 17  # every box's length is a float32 to the last bit, its dimension below 2^16

# Halves of a summary: upper bounds of weights, by a hash of the dimension, of what is not among the
# boxes, and of all together.
SLOTS = 6
OTHER = 6
TOTAL = 7
SUMMARY = 8

# Places that never change.
ROOT_NODE = 1
DESK = 25  # the record that is being filed

# Axes of an attribute; each that is asked for is a dimension.
VALUE, X, Y = 0, 1, 2
AXES = 3

# Entries of `Tree.state`.
USED = 0  # words of the pool
DIMENSIONS = 1
PENDING = 2  # c-nodes that overflow
TOP_CLASS = 3  # the largest class of slabs that was ever released
LARGEST_LEAF = 4  # words
RECORDS = 5
BUCKETS = 6  # c-nodes
UNCOVERED = 7  # 1 where a record that is not COVERED was ever filed
STATES = 8

#: Classes of slabs: four to a doubling.
CLASSES = 160


class Tree(NamedTuple):
    """What changes take: everything, to be written to."""

    word: Int64  # (words,)
    number: Float64  # (words,) the same memory
    half: Float32  # (2 × words,) the same memory
    code: Int32  # (2 × words,) the same memory
    free: Int64  # (CLASSES,) the first free slab of each class
    state: Int64  # (STATES,)
    pending: Int64  # (any,) a stack
    home: Int32  # (alternatives,) the c-node that each one's record is in, or NONE
    proved: UInt8  # (alternatives,) 1 where its record is COVERED
    dimension_of: Int32  # (AXES × attributes,) or NONE
    key_of: Int32  # (AXES × attributes,) the other way round
    waste: Float64  # (AXES × attributes,) measured loss of a record filed under a dimension
    extension: Float64  # (AXES × attributes,) the average width of an event's range


class Reading(NamedTuple):
    """What questions take: the pool and the dimensions, read-only.

    Few arrays: handing each over takes 0.1 µs.
    """

    word: Int64
    number: Float64
    half: Float32
    code: Int32
    dimension_of: Int32


#: Whatever only reads takes either.
Readable = Tree | Reading


class Knobs(NamedTuple):
    """The settings that kernels take."""

    capacity: int
    least_share: float  # alpha
    most_growth: float  # beta
    exhaustive: bool
    histogram: bool
    by_sum: bool
    width: int
    recycle: float  # waste above which a p-node is recycled


class Desk(NamedTuple):
    """Room for the records of one leaf while it is split, and for counting its dimensions."""

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
