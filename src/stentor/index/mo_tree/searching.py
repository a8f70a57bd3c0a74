"""Events → buckets of subscriptions, subscriptions → buckets of events (Algorithms 1 and 2).

Both ways are one search: ranges of cells in each layer, the product of these as runs of buckets,
and in each run the items whose steps meet those of the question.
"""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns
from stentor.index.mo_tree.cells import position, stabbed_cells, value_cell
from stentor.index.mo_tree.comparing import TOP_BITS, visit_run
from stentor.index.mo_tree.drafting import bound_alternative, bound_event
from stentor.index.mo_tree.layout import (
    ANYTHING,
    CARD_HIGH,
    CARD_LOW,
    GRANULE_DIMENSIONS,
    GRANULE_WORDS,
    NEEDED,
    SIGNATURE,
    Buckets,
    Cells,
    Dimensions,
    Query,
)
from stentor.index.mo_tree.storing import pack, remove_expired
from stentor.index.signature import alternative_signature, event_signature

_EACH_BYTE = np.uint64(0x0101_0101_0101_0101)


@kernel
def search_subscriptions(
    buckets: Buckets,
    dimensions: Dimensions,
    cells: Cells,
    events: EventColumns,
    order: Int64,
    query: Query,
    found_event: Int64,
    found_alternative: Int64,
) -> int:
    """The number of candidates of *events*; those that do not fit into *found_…* are only counted.

    In *order*: neighbours look into the same buckets. Paper: Algorithm 2.
    """
    found = 0
    levels = len(cells.level_start) - 1
    each = cells.level_start[levels]
    for event in order:
        bound_event(events, event, dimensions, query, query.low, query.high)
        for layer in range(len(query.ranges)):
            first, last = query.first[layer * levels :], query.last[layer * levels :]
            if query.need[layer] == NEEDED:
                low = position(dimensions, layer, query.bound_low[layer])
                high = position(dimensions, layer, query.bound_high[layer])
                query.ranges[layer] = stabbed_cells(cells, layer, low, high, first, last)
            else:
                query.ranges[layer] = 1
                first[0] = last[0] = each - 1
        query.word[GRANULE_WORDS + SIGNATURE] = ~event_signature(events, event, dimensions.first_of)
        ask(query)
        paths = walk(query, each, levels)
        found = visit(
            buckets, query, paths, each, levels, event, found_event, found_alternative, found
        )
    return found


@kernel
def search_events(
    buckets: Buckets,
    dimensions: Dimensions,
    cells: Cells,
    columns: SubscriptionColumns,
    until: Int64,
    now: int,
    slot_of: np.ndarray,
    query: Query,
    found_alternative: Int64,
    found_event: Int64,
) -> int:
    """The number of candidates among live events; those that do not fit are only counted.

    What ends at *now* or before is taken out of the buckets on the way. Paper: Algorithm 1.
    """
    found = 0
    levels = len(cells.level_start) - 1
    each = cells.event_cells[0]
    for alternative in range(len(columns.predicate_start) - 1):
        bound_alternative(columns, alternative, dimensions, query, query.low, query.high)
        for layer in range(len(query.ranges)):
            query.ranges[layer] = 1
            first, last = 0, each - 1  # all cells, that of no value too
            if query.need[layer] == NEEDED:
                low = position(dimensions, layer, query.bound_low[layer])
                high = position(dimensions, layer, query.bound_high[layer])
                last -= 1
                if low <= high:
                    first, last = value_cell(cells, low), value_cell(cells, high)
            elif query.need[layer] != ANYTHING:
                first = each - 1
            query.first[layer * levels], query.last[layer * levels] = first, last
        query.word[GRANULE_WORDS + SIGNATURE] = alternative_signature(
            columns, alternative, dimensions.first_of
        )
        ask(query)
        paths = walk(query, each, levels)
        wide = len(buckets.used) - 1  # events with ranges across cells
        if len(slot_of) > 0:
            expire_paths(buckets, query, paths, each, levels, until, now, slot_of)
            remove_expired(buckets, wide, wide, until, now, slot_of)
        found = visit(
            buckets, query, paths, each, levels, alternative, found_alternative, found_event, found
        )
        found = visit_run(
            buckets,
            query.word,
            query.visits,
            wide,
            wide,
            alternative,
            found_alternative,
            found_event,
            found,
        )
    return found


@kernel_inline
def ask(query: Query) -> None:
    """Put the steps of *query* into words: those of a granule repeated, then those of a card."""
    word = query.word
    for dimension in range(GRANULE_DIMENSIONS):
        word[2 * dimension] = np.uint64(query.high[dimension]) * _EACH_BYTE | TOP_BITS
        word[2 * dimension + 1] = np.uint64(query.low[dimension]) * _EACH_BYTE
    card = word[GRANULE_WORDS:]
    pack(query.high, card[CARD_LOW : CARD_LOW + 3])
    pack(query.low, card[CARD_HIGH : CARD_HIGH + 3])
    for place in range(CARD_LOW, CARD_LOW + 3):
        card[place] |= TOP_BITS


@kernel_part
def walk(query: Query, each: int, levels: int) -> tuple[int, int]:
    """Where in `query.prefix` the paths through all layers but the last are, and how many."""
    half = len(query.prefix) // 2
    here, there = 0, half
    query.prefix[here] = 0
    paths = 1
    for layer in range(len(query.ranges) - 1):
        grown = 0
        for path in query.prefix[here : here + paths]:
            for place in range(layer * levels, layer * levels + query.ranges[layer]):
                for cell in range(query.first[place], query.last[place] + 1):
                    query.prefix[there + grown] = path * each + cell
                    grown += 1
        here, there, paths = there, here, grown
    return here, paths


@kernel_part
def visit(
    buckets: Buckets,
    query: Query,
    paths: tuple[int, int],
    each: int,
    levels: int,
    owner: int,
    found_owner: Int64,
    found_member: Int64,
    found: int,
) -> int:
    """Look into the buckets at the ends of all *paths*; *found* and how many more there are."""
    start, count = paths
    layer = len(query.ranges) - 1
    if layer < 0:
        return visit_run(
            buckets, query.word, query.visits, 0, 0, owner, found_owner, found_member, found
        )
    for path in query.prefix[start : start + count]:
        for place in range(layer * levels, layer * levels + query.ranges[layer]):
            first, last = query.first[place], query.last[place]
            query.visits[0] += last - first + 1
            found = visit_run(
                buckets,
                query.word,
                query.visits,
                path * each + first,
                path * each + last,
                owner,
                found_owner,
                found_member,
                found,
            )
    return found


@kernel_part
def expire_paths(
    buckets: Buckets,
    query: Query,
    paths: tuple[int, int],
    each: int,
    levels: int,
    until: Int64,
    now: int,
    slot_of: np.ndarray,
) -> None:
    """Take what has ended out of the buckets at the ends of all *paths*."""
    start, count = paths
    layer = len(query.ranges) - 1
    if layer < 0:
        remove_expired(buckets, 0, 0, until, now, slot_of)
        return
    first, last = query.first[layer * levels], query.last[layer * levels]
    for path in query.prefix[start : start + count]:
        remove_expired(buckets, path * each + first, path * each + last, until, now, slot_of)
