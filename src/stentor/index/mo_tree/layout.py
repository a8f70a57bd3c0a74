"""The arrays of the MO-Tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import Float64, Int32, Int64, UInt8, UInt64

#: Ends the list of an attribute's dimensions.
NO_DIMENSION = -1

#: Dimensions that are compared for eight items at a time, and then for one item at a time.
GRANULE_DIMENSIONS, CARD_DIMENSIONS = 8, 24
MOST_DIMENSIONS = GRANULE_DIMENSIONS + CARD_DIMENSIONS
#: Items of a granule: a byte each in a word.
GRANULE = 8
#: Words of a granule: for each dimension one of lows and one of highs.
GRANULE_WORDS = 2 * GRANULE_DIMENSIONS
#: Words of a card: a cache line.
LINE = 8

# A domain is cut into steps that fit into seven bits: the eighth catches the comparison.
NULL_STEP, FIRST_STEP, LAST_STEP = 0, 1, 127

# Words of a card.
SIGNATURE, MEMBER, CARD_LOW, CARD_HIGH = 0, 1, 2, 5
#: The member of a free slot, in the lower half of its word; the bucket is in the upper half.
FREE = 0xFFFF_FFFF
#: The slot of what is in no bucket.
NO_SLOT = -1


#: Pieces of a domain, each as long as any other in positions; a power of two.
PIECES = 64


class MoDimensions(NamedTuple):
    """The dimensions that items are compared in, the best first; the first ones have layers.

    A location has two: its x and its y. Knots cut a domain into pieces; piece i is at the positions
    i / PIECES … (i + 1) / PIECES, and what lies outside is at 0 or 1.
    """

    attribute: Int32  # (dimensions,)
    axis: UInt8  # (dimensions,) VALUE, X or Y
    knot: Float64  # (dimensions × (PIECES + 1),) ascending
    rate: Float64  # (dimensions × PIECES,) one over the length of a piece, 0 where it has none
    first_of: Int32  # (attributes,) an attribute's first dimension, or NO_DIMENSION
    next_of: Int32  # (dimensions,) the same attribute's next one, or NO_DIMENSION


class LevelCells(NamedTuple):
    """How each layer is cut: levels of overlapping cells for intervals, disjoint ones for values.

    Cell j of a level holds low[j] ≤ u < high[j]; the last of a level also holds u = 1. The cells
    of a layer are numbered level by level, those of the bottom first; the last is the whole domain.
    """

    level_start: Int64  # (levels + 1,) the same in all layers
    width: Float64  # (layers × levels,)
    rate: Float64  # (layers × levels,) one over the step from cell to cell, 0 where there is none
    low: Float64  # (layers × cells,)
    high: Float64  # (layers × cells,) beyond 1 where the cell is a level's last
    event_cells: Int64  # (1,) of each layer, for values; the last is for events without one


class MoItems(NamedTuple):
    """Items to be inserted into buckets: alternatives, or live events.

    Steps of dimension d that item i accepts, or has: low[d] … high[d] of its row.
    """

    bucket: Int64  # (items,)
    signature: UInt64  # (items,) bits that it must not share with what it is compared with
    until: Int64  # (items,) or (0,): they do not end
    low: UInt8  # (items × MOST_DIMENSIONS,)
    high: UInt8  # (items × MOST_DIMENSIONS,)


class Buckets(NamedTuple):
    """Buckets of items, each a run of slots; free slots are at the end of a run.

    A granule is eight slots: for each of the first dimensions a word of lows and a word of highs.
    High ends are kept reversed, as LAST_STEP − high, so that both ends are compared by ≤.
    """

    start: Int64  # (buckets,)
    used: Int32  # (buckets,)
    room: Int32  # (buckets,) capacity
    soonest: Int64  # (buckets,) no item ends before; or (0,): they do not end
    granule: UInt64  # (slots / GRANULE × GRANULE_WORDS,)
    card: UInt64  # (slots × LINE,) signature, member and bucket, lows, highs
    tally: Int64  # (TALLIES,)


# Positions in `Buckets.tally`.
END, ITEMS, LOST, TALLIES = 0, 1, 2, 3  # slots given out, items, slots that no bucket has any more


class MoMatchScratch(NamedTuple):
    """Scratch: the query of one event, or alternative, against the buckets of the other kind."""

    ranges: Int64  # (layers,) how many ranges of cells it meets in each layer
    first: Int64  # (layers × levels,) cells
    last: Int64  # (layers × levels,)
    low: UInt8  # (MOST_DIMENSIONS,) steps
    high: UInt8  # (MOST_DIMENSIONS,)
    word: (
        UInt64  # (GRANULE_WORDS + LINE,) the same as words, to be compared with granules and cards
    )
    prefix: Int64  # (2 × …,) paths through the layers but the last
    bound_low: Float64  # (layers,) bounds, or values
    bound_high: Float64  # (layers,)
    need: UInt8  # (layers,) ANYTHING, NEEDED or UNWANTED
    visits: Int64  # (2,) buckets and slots looked at, added up


# What an alternative wants of an attribute beyond its bounds.
ANYTHING, NEEDED, UNWANTED = 0, 1, 2


def match_scratch(layers: int, cells: int, levels: int) -> MoMatchScratch:
    """Scratch for queries against a tree of that shape; each thread has its own."""
    paths = max(1, cells ** max(0, layers - 1))
    return MoMatchScratch(
        ranges=np.zeros(layers, np.int64),
        first=np.zeros(layers * levels, np.int64),
        last=np.zeros(layers * levels, np.int64),
        low=np.zeros(MOST_DIMENSIONS, np.uint8),
        high=np.zeros(MOST_DIMENSIONS, np.uint8),
        word=np.zeros(GRANULE_WORDS + LINE, np.uint64),
        prefix=np.empty(2 * paths, np.int64),
        bound_low=np.empty(layers),
        bound_high=np.empty(layers),
        need=np.zeros(layers, np.uint8),
        visits=np.zeros(2, np.int64),
    )
