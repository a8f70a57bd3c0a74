"""The arrays of the AP-Tree.

branch   position of a child: 0 for the root, else one of its parent's cuts or cells; the last
         branch of each inner node is its dummy. A branch without entries or events has no child.
node     k-node: cuts by the bounds of its branches; s-node: an x × y grid by its lines;
         leaf: a slice of slots (s-list); any: a slice of the lists of live events (m-list)
slot     a copy of an entry: signature of what it needs, bounding box, alternative
entry    an alternative under one set of keywords: `entries.py`
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import Float64, Int32, Int64, UInt8, UInt64

Float32 = npt.NDArray[np.float32]
UInt16 = npt.NDArray[np.uint16]

# Fields of a node: one cache line.
KIND, START, SIZE, CAPACITY, X, Y, LINES, OFFSET = range(8)
PARENT, BRANCH, FLAGS, COUNT, DEPTH, LIST_START, LIST_SIZE, LIST_CAPACITY = range(8, 16)
FIELDS: Final = 16
#: Of a leaf: a split is tried beyond so many entries; how many moved since the last try.
SPLIT_ABOVE: Final = X
MOVED: Final = Y

FREE, LEAF, KEYWORDS, SPACE = -1, 0, 1, 2
NONE: Final = -1
ROOT: Final = 0

# Flags of a node.
MAY_CUT, MAY_GRID, DIRTY = 1, 2, 4

#: No path is longer: what is left then is a leaf.
MOST_DEPTH: Final = 40

# Counters.
NODES, FREE_NODES, BRANCHES, GRID_LINES, SLOTS, LISTED, COPIES, TERMS_KNOWN, WASTED = range(9)
OUTSIDE: Final = 9  # entries inserted outside the root's region since it was built
SLOT_CLASSES, LIST_CLASSES = 10, 42  # heads of the free blocks of 2^i slots or list slots
COUNTERS: Final = 74

#: The rank of a term that no subscription has used yet: above all others.
UNKNOWN_RANK: Final = np.int32(2**31 - 1)


class ApTreeArrays(NamedTuple):
    """All nodes, their branches, and the slots and lists in them."""

    counter: Int64  # (COUNTERS,) how much of each array is used
    node: Int32  # (nodes × FIELDS,)
    region: Float64  # (nodes × 4,) west, south, east, north
    spread: Float64  # (nodes × 2,) Σ p log p when it was built; Σ p log(w + ½) now
    child: Int32  # (branches,) the child, or NONE
    bound: Int32  # (branches,) of a cut: its lowest rank
    share: Float64  # (branches,) p: its share of the node's entries when that was built
    present: UInt64  # (words,) a Bloom filter of pairs: a k-node, a keyword that is next there
    line: Float64  # (lines,) x − 1 of the columns, then y − 1 of the rows of a grid
    signature: UInt64  # (slots,)
    box: Float32  # (slots × 4,) west, south, east, north, rounded outwards
    alternative: Int32  # (slots,)
    clause: UInt16  # (slots,)
    listed: Int32  # (list slots,) rows of live events


class Vocabulary(NamedTuple):
    """The rank of each keyword: a hash table."""

    hashed: UInt64  # (slots,) a power of two
    spread: UInt64  # where the look-up of a hash starts
    rank: Int32  # (slots,) or NONE
    likely: Float64  # (ranks,) how likely an event has it
    matched_strings: UInt8  # (attributes,) 1 where whole strings are keywords


class ApKernelSettings(NamedTuple):
    """The settings as kernels take them."""

    fanout: int
    leaf: int
    grain: float
    partition: int
    priority: int
    visit: float
    lookahead: int
    by_area: int
    copies: float
    collapse: float
    divergence: float
    share: float
    rebuilds: int
    by_chance: int
    duplicates: int


class ApEntries(NamedTuple):
    """Entries of alternatives: see `entries.py`."""

    alternative: Int32  # (entries,)
    clause: UInt16  # (entries,)
    key_start: Int64  # (entries + 1,)
    key: Int32  # (keys,) ranks, ascending within an entry
    box: Float32  # (entries × 4,)
    signature: UInt64  # (entries,)
