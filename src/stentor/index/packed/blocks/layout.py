"""The arrays of blocks, the fields of a record, and the codes of bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import Float64, Int32, Int64, UInt8, UInt64

#: Numbers of 64 bits, and of single precision, as kernels make them.
_WHOLE: Any = np.int64
_REAL: Any = np.float64
_SHORT: Any = np.float32
whole: Callable[[Any], int] = _WHOLE
real: Callable[[Any], float] = _REAL
short: Callable[[Any], float] = _SHORT

UInt16 = npt.NDArray[np.uint16]
Float32 = npt.NDArray[np.float32]

#: Alternatives in a block: one bit each fills one cache line.
BLOCK: Final = 512
#: 64-bit words of such a line.
WORDS: Final = BLOCK // 64
#: Children of a node.
FANOUT: Final = 8
#: Attributes whose bounds fit into a record; the rest is left to the verifier.
MOST_DIMENSIONS: Final = 20
#: Levels of the tree at most: 8^12 blocks.
MOST_LEVELS: Final = 12

# What an attribute is to the blocks, if it is no dimension: dimensions are 0 … 19.
LOCATION: Final = 20  # the one whose regions are bounded by boxes
NO_DIMENSION: Final = -1

# What the values of a dimension are.
BY_VALUE, BY_HASH = 0, 1  # numbers and prefixes of strings; hashes of strings

# Codes of bounds and values. A value lies in one of 250 cells that are cut at quantiles.
NOT_ASKED_LOW: Final = 0
ABSENT: Final = 1  # the event has no value, or must have none
OPEN_LOW: Final = 2
FIRST_CELL, LAST_CELL = 3, 252
OPEN_HIGH: Final = 253
NOT_ASKED_HIGH: Final = 255
MOST_CUTS: Final = LAST_CELL - FIRST_CELL
#: Of the cuts of one dimension: 16 × 16, of which NaN is unused.
CUTS: Final = 256

# Fields of a record of 64 bytes.
RECORD: Final = 64
HIGH: Final = 24  # codes; the low ones come first
FLAGS: Final = 44
BOX: Final = 48  # x1, y1, −x2, −y2 as single precision, rounded outwards
MEMBER_INT: Final = 5  # the alternative, in units of four bytes
FLAGS_INT: Final = 11
BOX_FLOAT: Final = 12
#: A flag: some predicate is not decided by the record. The other bits are a signature.
UNDECIDED: Final = 1

# Fields of an event, or of an alternative that looks for live ones, of 192 bytes; its lowest codes
# come first. Of an alternative POINT is x2, y2, −x1, −y1.
EVENT: Final = 192
VALUE_HIGH: Final = 32
ABOVE: Final = 64  # a low code must be less for its bound to hold surely
BELOW: Final = 96  # a high code must be more
POINT: Final = 128  # x, y, −x, −y, rounded down
STRICT_POINT: Final = 144  # x, y and the next numbers above them, negated
LACKING: Final = 160  # the bits of signatures that the event has not
POINT_FLOAT: Final = POINT // 4
LACKING_INT: Final = LACKING // 4

# A head of 64 bytes: the lowest low codes, then the highest high ones.
HEAD: Final = 64
HEAD_HIGH: Final = 32

# What a record says of an event.
MAY_MATCH, SURELY = 1, 2

# Lines of a block: who is there; those of cells of x and of y, if there are locations; then those
# of each dimension. Which cells a line is about is in `BlockDimensions`.
LIVE: Final = 0
LOCATION_CELLS: Final = 16
#: Cuts of a block's own x and y.
LOCATION_CUTS: Final = 2 * LOCATION_CELLS
#: Lines of locations: of alternatives one for each cell, of live events those up to it and from it.
ALTERNATIVE_LOCATIONS, LIVE_LOCATIONS = 2 * LOCATION_CELLS, 4 * LOCATION_CELLS
#: Lines that an event, or an alternative that looks for live events, selects at most, but for
#: those of its location; a multiple of four.
EVENT_LINES, QUERY_LINES = 24, 44

#: The largest number of single precision: a box of a region reaches no farther.
FARTHEST: Final = float(np.finfo(np.float32).max)


class BlockDimensions(NamedTuple):
    """What records hold, and where values are cut into cells; the most selective come first."""

    attribute: Int32  # (dimensions,)
    axis: UInt8  # (dimensions,) BY_VALUE or BY_HASH
    dimension_of: Int32  # (attributes,) a dimension, LOCATION or NO_DIMENSION
    cut: Float64  # (dimensions × CUTS,) ascending, then NaN
    coarse: Float64  # (dimensions × 16,) each sixteenth
    is_point: UInt8  # (dimensions × 256,) by code: whether the cell has only one number
    line_start: Int64  # (dimensions + 1,) first lines; the last is the number of lines
    shift: Int64  # (1,) of a code, to get the cell of its line
    first_code: Int64  # (lines of a dimension,) a line has who meets first_code … last_code
    last_code: Int64  # (lines of a dimension,)
    first_location: Int64  # (lines of x, or of y,) the same for cells of a coordinate
    last_location: Int64  # (lines of x, or of y,)


class BlockArrays(NamedTuple):
    """Alternatives in blocks of 512 under a tree of boxes.

    Bit s of a line is set where the alternative in slot s may want an event of the line's cell.
    Nodes are those of all levels, the root first; the blocks come last and have a head, too.
    """

    level_start: Int64  # (levels + 2,) the first node of each level, of the blocks, and the end
    box: Float32  # (nodes × 32,) of eight children: eight x1, y1, x2, y2
    head: UInt8  # (nodes and blocks × HEAD,) the codes that are spanned
    is_selective: UInt8  # (nodes and blocks,) whether the head excludes anything
    location_cut: Float32  # (blocks × LOCATION_CUTS,) sixteen of x, of y; the last of each is NaN
    line: UInt64  # (blocks × lines × WORDS,)
    record: UInt8  # (slots × RECORD,)
    record_int: Int32  # the same memory
    record_float: Float32  # the same memory
    left: Float64  # (lines,) the share of alternatives that each line leaves
    signed: Int64  # (1,) how many records have a signature


class BlockEvents(NamedTuple):
    """Events as blocks of alternatives see them, or alternatives as blocks of live events do."""

    code: UInt8  # (events × EVENT,)
    code_int: Int32  # the same memory
    code_float: Float32  # the same memory
    line: UInt16  # (events × width,) lines to be intersected, then LIVE
    last_line: UInt16  # (events × width,) a range joins the lines up to this one
    used: Int64  # (events,) how many lines, rounded up to fours
    has_range: UInt8  # (events,) whether some line is to be joined with others


class BlockScratch(NamedTuple):
    """Memory of one call of a kernel."""

    words: UInt64  # (WORDS,)
    events: Int32  # ((1 + levels × FANOUT) × events,) which events go down to which child
    node: Int64  # (levels × NODE_FIELDS,)
    slot: Int64  # (PENDING + BLOCK + 2,) candidates that wait for their records
    event: Int64  # (PENDING + BLOCK + 2,)


# Of each level on the way down: its node, the next child, then how many events each child has.
NODE_FIELDS: Final = 2 + FANOUT
#: Candidates that are compared together, when their records have come from memory.
PENDING: Final = 64
