"""The arrays of the scan: filters, blocks, and what an event asks of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import (
    BOX,
    KIND_MASK,
    NEGATED,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
)

#: Alternatives in a block: one bit each fills one cache line.
BLOCK = 512
WORDS = BLOCK // 64

# What of an attribute's value a filter looks at.
VALUE, X, Y = 0, 1, 2

MOST_FILTERS = 32
MOST_CELLS = 16
#: A filter that fewer alternatives use would cost more than it saves.
LEAST_USE = 1 / 32
#: Alternatives that are looked at to choose filters.
SAMPLE = 1 << 16

#: The first line of a block: the slots that are taken by a live alternative.
LIVE_LINE = 0
NO_FILTER = -1


class Filters(NamedTuple):
    """Attributes by which alternatives are told apart, ascending, each cut into cells.

    A value's cell is the number of the filter's edges that do not exceed it. In each block a
    filter has a line of bits for events that lack the attribute, then one line per cell.
    """

    attribute: Int32  # (filters,)
    axis: UInt8  # (filters,) VALUE, or X and Y for a place
    edge_start: Int64  # (filters + 1,)
    edge: Float64  # (edges,) ascending within a filter
    line_start: Int64  # (filters + 1,) the last is the number of lines in a block
    first_of: Int32  # (attributes,) the attribute's first filter, or NO_FILTER


class Blocks(NamedTuple):
    """Alternatives in blocks of 512, in the order of their rows.

    Bit s of a block's line is set where the alternative in slot s may match an event that falls
    into the line's cell; a 64-bit signature says which terms, strings and attributes it needs.
    """

    member: Int64  # (slots,) the alternative in the slot, ascending
    signature: UInt64  # (slots,)
    line: UInt64  # (blocks × lines × WORDS,)


class Plan(NamedTuple):
    """For each event the lines to intersect, the most selective first."""

    signature: UInt64  # (events,)
    used: Int64  # (events,) how many lines of its row are used
    first: Int32  # (events × filters,) a line …
    last: Int32  # (events × filters,) … to this one: a range that spans cells joins their lines


def choose_filters(columns: SubscriptionColumns, members: Int64) -> Filters:
    """The filters that tell the alternatives *members* apart best, judged by a sample."""
    step = max(1, len(members) // SAMPLE)
    sample = members[::step]
    predicates = _predicates_of(columns, sample)
    attribute, kind = columns.attribute[predicates], columns.kind[predicates]
    plain = (kind & NEGATED) == 0
    is_place = (kind & KIND_MASK) >= BOX
    found: list[tuple[int, int, int, Float64]] = []
    global MOST_CELLS
    nf=min(32,len(np.unique(attribute[plain & ~is_place]))+2*len(np.unique(attribute[plain & is_place])))
    import os
    MOST_CELLS=min(int(os.environ.get('MC','64')),384//max(1,nf)-1)
    hull = predicates[plain & ~is_place]
    found += _filters_of(columns.attribute[hull], VALUE, columns.low[hull], columns.high[hull])
    place = predicates[plain & is_place]
    pair = columns.operand_start[place]
    for axis, offset in ((X, 0), (Y, 1)):
        low, high = columns.pair_low[pair + offset], columns.pair_high[pair + offset]
        found += _filters_of(columns.attribute[place], axis, low, high)
    found = [one for one in found if one[0] >= LEAST_USE * len(sample)]
    found = sorted(sorted(found, key=lambda one: -one[0])[:MOST_FILTERS], key=lambda one: one[1:3])
    edges = [edge for *_, edge in found]
    cells = [len(edge) + 1 for edge in edges]
    first_of = np.full(attribute.max(initial=-1) + 1, NO_FILTER, np.int32)
    for filter, one in reversed(list(enumerate(found))):
        first_of[one[1]] = filter
    return Filters(
        attribute=np.array([one[1] for one in found], np.int32),
        axis=np.array([one[2] for one in found], np.uint8),
        edge_start=np.cumsum([0, *(len(edge) for edge in edges)]),
        edge=np.concatenate([np.zeros(0), *edges]),
        line_start=np.cumsum([LIVE_LINE + 1, *(1 + count for count in cells)]),
        first_of=first_of,
    )


def _predicates_of(columns: SubscriptionColumns, alternatives: Int64) -> Int64:
    starts = columns.predicate_start[alternatives]
    counts = columns.predicate_start[alternatives + 1] - starts
    offsets = np.cumsum(counts) - counts
    return np.arange(counts.sum()) + np.repeat(starts - offsets, counts)


def _filters_of(
    attribute: Int32, axis: int, low: Float64, high: Float64
) -> list[tuple[int, int, int, Float64]]:
    """For each attribute: how often it is narrowed, its code, the axis and its edges."""
    found = []
    narrows = np.isfinite(low) | np.isfinite(high)
    for code in np.unique(attribute[narrows]):
        its = narrows & (attribute == code)
        ends = np.concatenate([low[its], high[its]])
        ends = ends[np.isfinite(ends)]
        shares = np.arange(1, MOST_CELLS) / MOST_CELLS
        edges = np.unique(np.quantile(ends, shares, method="inverted_cdf"))
        found.append((int(np.count_nonzero(its)), int(code), axis, edges))
    return found
