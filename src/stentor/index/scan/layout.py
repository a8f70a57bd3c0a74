"""The arrays of the scan."""

from __future__ import annotations

from typing import NamedTuple

from stentor.encoding.columns import Float64, Int32, Int64, UInt8, UInt64

#: Alternatives in a block: one bit each fills one cache line.
BLOCK = 512
#: 64-bit words of such a line.
WORDS = BLOCK // 64

# Lines of a block that belong to no attribute.
LIVE = 0  # the slots that are taken by an alternative that was not removed
NO_TERM = 1  # and that needs no term; then a line for each bucket of terms, if terms are a filter
BUCKETS = 64
BUCKET_SHIFT = 58  # a term's bucket is the highest six bits of its hash

#: The filter of an attribute that has none.
NO_FILTER = -1


class ScanFilters(NamedTuple):
    """Attributes that alternatives are filtered by, ascending, each cut into cells; and terms.

    A value's cell is the number of edges that do not exceed it. In each block a filter has one
    line for events that lack its attribute, then one per cell. An alternative that needs terms
    is in the line of one of them, that of the least used bucket.
    """

    attribute: Int32  # (filters,)
    axis: UInt8  # (filters,) VALUE, or X and Y of a location
    edge_start: Int64  # (filters + 1,)
    edge: Float64  # (edges,) ascending within a filter
    line_start: Int64  # (filters + 1,) the last is the number of lines in a block
    first_of: Int32  # (attributes,) an attribute's first filter, or NO_FILTER
    bucket_use: Int64  # (BUCKETS,) how often terms are wanted, or (0,): terms are no filter


class ScanBlockArrays(NamedTuple):
    """Alternatives, 512 to a block.

    Bit s of a line is set where the alternative in slot s may want an event of the line's cell.
    """

    member: Int64  # (slots,) the alternative in each slot, ascending
    signature: UInt64  # (slots,) what it needs: see `signature.py`
    line: UInt64  # (blocks × lines × WORDS,)


class EventLines(NamedTuple):
    """The lines of each block that events intersect, the most selective first."""

    signature: UInt64  # (events,)
    survival: Float64  # (events,) the share of alternatives that the lines leave, about
    used: Int64  # (events,) how many of its slots in `first` and `last` are used
    first: Int32  # (events × filters,) a line
    last: Int32  # (events × filters,) a range that spans cells joins the lines up to this one
    term_lines: Int64  # (events,) how many of its slots in `term_line` are used
    term_line: Int32  # (events × (1 + BUCKETS),) lines that are joined; none: all are possible
