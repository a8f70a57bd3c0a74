"""Algorithms 1 and 2: events → buckets of subscriptions, subscriptions → buckets of events.

The items of a run of buckets are compared by steps and signatures, a cache line at a time, without
reading their predicates; what is left is verified.
"""

from __future__ import annotations

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns, UInt64
from stentor.index.mo_tree.cells import domain_position, stabbed_cells, value_cell
from stentor.index.mo_tree.granules import member_at, pack, reverse_steps
from stentor.index.mo_tree.items import bound_alternative, bound_event
from stentor.index.mo_tree.layout import (
    ANYTHING,
    CARD_HIGH,
    CARD_LOW,
    FREE,
    GRANULE,
    GRANULE_DIMENSIONS,
    GRANULE_WORDS,
    LAST_STEP,
    LINE,
    NEEDED,
    SIGNATURE,
    Buckets,
    LevelCells,
    MoDimensions,
    MoMatchScratch,
)
from stentor.index.mo_tree.remove import remove_expired
from stentor.index.signature import alternative_signature, event_signature
from stentor.index.table import RowSpans
from stentor.index.verify.scratch import EventScratch
from stentor.index.verify.single import NOTHING_PROVED, SingleMatch, verify_one

#: The highest bit of each byte, which holds the result of a comparison.
TOP_BITS = np.uint64(0x8080_8080_8080_8080)
_ALL_BITS = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_ONE, _SEVEN, _NONE = np.uint64(1), np.uint64(7), np.uint64(0)
#: Times 2^(8 k) it has k in its top three bits.
_BYTE_NUMBERS = np.uint64(sum(k << (61 - 8 * k) for k in range(8)))
_TOP_THREE = np.uint64(61)
_EACH_BYTE = np.uint64(0x0101_0101_0101_0101)


@inner_kernel
def match_run(
    buckets: Buckets,
    word: UInt64,
    visits: Int64,
    first: int,
    last: int,
    owner: int,
    found_owner: Int64,
    found_member: Int64,
    found: int,
) -> int:
    """Match the buckets *first* … *last*; runs of slots that follow each other together."""
    bucket = first
    while bucket <= last:
        start = buckets.start[bucket]
        stop = start + buckets.used[bucket]
        end = start + buckets.room[bucket]
        bucket += 1
        while bucket <= last and buckets.start[bucket] == end:
            if buckets.used[bucket] > 0:
                stop = end + buckets.used[bucket]
            end += buckets.room[bucket]
            bucket += 1
        if stop > start:
            visits[1] += stop - start
            found = compare(buckets, word, start, stop, owner, found_owner, found_member, found)
    return found


@kernel_inline
def compare(
    buckets: Buckets,
    word: UInt64,
    start: int,
    stop: int,
    owner: int,
    found_owner: Int64,
    found_member: Int64,
    found: int,
) -> int:
    """The items in the slots *start* … *stop* whose steps meet those of the query.

    Eight at a time by the granules, then one at a time by the cards.
    """
    wanted = word[GRANULE_WORDS:]
    first, last = start // GRANULE, (stop - 1) // GRANULE
    for number in range(first, last + 1):
        line = buckets.granule[number * GRANULE_WORDS : (number + 1) * GRANULE_WORDS]
        fits = all_fit(line, word)
        if number == first:
            fits &= _ALL_BITS << np.uint64(8 * (start % GRANULE))
        if number == last:
            fits &= _ALL_BITS >> np.uint64(8 * (GRANULE - 1 - (stop - 1) % GRANULE))
        while fits != _NONE:
            lowest = fits & (~fits + _ONE)
            fits ^= lowest
            slot = number * GRANULE + int((lowest >> _SEVEN) * _BYTE_NUMBERS >> _TOP_THREE)
            card = buckets.card[slot * LINE : (slot + 1) * LINE]
            if card_fits(card, wanted):
                member = member_at(buckets.card, slot)
                if member != FREE:
                    if found < len(found_owner):
                        found_owner[found] = owner
                        found_member[found] = member
                    found += 1
    return found


@kernel_inline
def all_fit(line: UInt64, word: UInt64) -> np.uint64:
    """The top bit of the byte of each item of a granule whose steps meet those of *word*."""
    fits = TOP_BITS
    for position in range(GRANULE_WORDS):
        fits &= word[position] - line[position]
    return fits


@kernel_inline
def card_fits(card: UInt64, wanted: UInt64) -> bool:
    """Whether signatures share no bit, and steps meet, in all dimensions that cards hold."""
    fits = TOP_BITS
    for position in range(CARD_LOW, LINE):
        fits &= wanted[position] - card[position]
    return bool((card[SIGNATURE] & wanted[SIGNATURE]) == _NONE and fits == TOP_BITS)


@kernel
def match_events(
    buckets: Buckets,
    dimensions: MoDimensions,
    cells: LevelCells,
    events: EventColumns,
    order: Int64,
    query: MoMatchScratch,
    found_event: Int64,
    found_alternative: Int64,
) -> int:
    """The number of candidates of *events*; those that do not fit into *found_…* are only counted.

    In *order*, so that neighbours match the same buckets. Paper: Algorithm 2.
    """
    found = 0
    levels = len(cells.level_start) - 1
    each = cells.level_start[levels]
    for event in order:
        bound_event(events, event, dimensions, query, query.low, query.high)
        for layer in range(len(query.ranges)):
            first, last = query.first[layer * levels :], query.last[layer * levels :]
            if query.need[layer] == NEEDED:
                low = domain_position(dimensions, layer, query.bound_low[layer])
                high = domain_position(dimensions, layer, query.bound_high[layer])
                query.ranges[layer] = stabbed_cells(cells, layer, low, high, first, last)
            else:
                query.ranges[layer] = 1
                first[0] = last[0] = each - 1
        query.word[GRANULE_WORDS + SIGNATURE] = ~event_signature(events, event, dimensions.first_of)
        pack_query(query)
        paths = bucket_prefixes(query, each, levels)
        found = match_buckets(
            buckets, query, paths, each, levels, event, found_event, found_alternative, found
        )
    return found


@kernel
def match_event(
    buckets: Buckets,
    dimensions: MoDimensions,
    cells: LevelCells,
    query: MoMatchScratch,
    order: Int64,
    columns: SubscriptionColumns,
    validity: RowSpans,
    event: EventColumns,
    scratch: EventScratch,
    scoring: int,
    found: SingleMatch,
) -> int:
    """The rows that want the first event: see `verify_one`. *order* is that of one event."""
    count = match_events(
        buckets, dimensions, cells, event, order, query, found.event, found.alternative
    )
    return verify_one(columns, validity, event, scratch, NOTHING_PROVED, scoring, count, found)


@kernel
def match_subscriptions(
    buckets: Buckets,
    dimensions: MoDimensions,
    cells: LevelCells,
    columns: SubscriptionColumns,
    until: Int64,
    now: int,
    slot_of: np.ndarray,
    query: MoMatchScratch,
    found_alternative: Int64,
    found_event: Int64,
) -> int:
    """The number of candidates among live events; those that do not fit are only counted.

    Events that end at *now* or before are removed from the buckets that are visited. Paper:
    Algorithm 1.
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
                low = domain_position(dimensions, layer, query.bound_low[layer])
                high = domain_position(dimensions, layer, query.bound_high[layer])
                last -= 1
                if low <= high:
                    first, last = value_cell(cells, low), value_cell(cells, high)
            elif query.need[layer] != ANYTHING:
                first = each - 1
            query.first[layer * levels], query.last[layer * levels] = first, last
        query.word[GRANULE_WORDS + SIGNATURE] = alternative_signature(
            columns, alternative, dimensions.first_of
        )
        pack_query(query)
        paths = bucket_prefixes(query, each, levels)
        wide = len(buckets.used) - 1  # events with ranges across cells
        if len(slot_of) > 0:
            expire_paths(buckets, query, paths, each, levels, until, now, slot_of)
            remove_expired(buckets, wide, wide, until, now, slot_of)
        found = match_buckets(
            buckets, query, paths, each, levels, alternative, found_alternative, found_event, found
        )
        found = match_run(
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
def pack_query(query: MoMatchScratch) -> None:
    """Pack the steps of *query* into words: those of a granule repeated, then those of a card."""
    word = query.word
    for dimension in range(GRANULE_DIMENSIONS):
        word[2 * dimension] = np.uint64(query.high[dimension]) * _EACH_BYTE | TOP_BITS
        reversed_low = np.uint64(LAST_STEP - query.low[dimension])
        word[2 * dimension + 1] = reversed_low * _EACH_BYTE | TOP_BITS
    card = word[GRANULE_WORDS:]
    pack(query.high, card[CARD_LOW : CARD_LOW + 3])
    pack(query.low, card[CARD_HIGH : CARD_HIGH + 3])
    reverse_steps(card[CARD_HIGH : CARD_HIGH + 3])
    for position in range(CARD_LOW, LINE):
        card[position] |= TOP_BITS


@inner_kernel
def bucket_prefixes(query: MoMatchScratch, each: int, levels: int) -> tuple[int, int]:
    """Where in `query.prefix` the paths through all layers but the last are, and how many."""
    half = len(query.prefix) // 2
    here, there = 0, half
    query.prefix[here] = 0
    paths = 1
    for layer in range(len(query.ranges) - 1):
        grown = 0
        for path in query.prefix[here : here + paths]:
            for position in range(layer * levels, layer * levels + query.ranges[layer]):
                for cell in range(query.first[position], query.last[position] + 1):
                    query.prefix[there + grown] = path * each + cell
                    grown += 1
        here, there, paths = there, here, grown
    return here, paths


@inner_kernel
def match_buckets(
    buckets: Buckets,
    query: MoMatchScratch,
    paths: tuple[int, int],
    each: int,
    levels: int,
    owner: int,
    found_owner: Int64,
    found_member: Int64,
    found: int,
) -> int:
    """Match the buckets at the ends of all *paths*; *found*, and how many more candidates."""
    start, count = paths
    layer = len(query.ranges) - 1
    if layer < 0:
        return match_run(
            buckets, query.word, query.visits, 0, 0, owner, found_owner, found_member, found
        )
    for path in query.prefix[start : start + count]:
        for position in range(layer * levels, layer * levels + query.ranges[layer]):
            first, last = query.first[position], query.last[position]
            query.visits[0] += last - first + 1
            found = match_run(
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


@inner_kernel
def expire_paths(
    buckets: Buckets,
    query: MoMatchScratch,
    paths: tuple[int, int],
    each: int,
    levels: int,
    until: Int64,
    now: int,
    slot_of: np.ndarray,
) -> None:
    """Remove events that have ended from the buckets at the ends of all *paths*."""
    start, count = paths
    layer = len(query.ranges) - 1
    if layer < 0:
        remove_expired(buckets, 0, 0, until, now, slot_of)
        return
    first, last = query.first[layer * levels], query.last[layer * levels]
    for path in query.prefix[start : start + count]:
        remove_expired(buckets, path * each + first, path * each + last, until, now, slot_of)
