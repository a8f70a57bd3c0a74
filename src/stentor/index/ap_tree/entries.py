"""What is filed: an alternative under each set of keywords that it may be found by.

An alternative asks for all of some keywords. Where one of its predicates asks for one of several
groups of terms, or for one of several strings, it is filed under each of them (section 3.4: a
disjunction is several subscriptions that share one delivery); of more than one such predicate only
the smallest counts, and none of more than MOST_CLAUSES. Its box is that of all its regions of the
tree's place; everywhere, where it has none.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import (
    BOX,
    HERE,
    LAST,
    NEGATED,
    ONE_OF,
    TERMS,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
)
from stentor.encoding.readonly import all_read_only
from stentor.index.ap_tree.layout import BEYOND, NOTHING, TERMS_KNOWN, Entries, Float32
from stentor.index.ap_tree.vocabulary import (
    Keywords,
    find_rank,
    is_matched_string,
    rank_or_new,
    sort_ranks,
    string_keyword,
)
from stentor.index.backwards import NO_FILTERS
from stentor.index.signature import alternative_signature, bits_of, is_one_group

MOST_CLAUSES = 16


def entries_of(
    columns: SubscriptionColumns,
    alternatives: Int32,
    clauses: UInt8,
    keywords: Keywords,
    place: int,
    *,
    learn: bool,
) -> Entries:
    """The entries of *alternatives*: all clauses, or of each the one in *clauses*.

    With *learn*, keywords that are new get a rank; else they are BEYOND. *place* is the attribute
    whose regions count.
    """
    sizes = np.zeros(2, np.int64)
    measure(columns, alternatives, clauses, keywords.matched_strings, sizes)
    entries, keys = sizes.tolist()
    out = Entries(
        alternative=np.empty(entries, np.int32),
        clause=np.empty(entries, np.uint8),
        key_start=np.zeros(entries + 1, np.int64),
        key=np.empty(keys, np.int32),
        box=np.empty(4 * entries, np.float32),
        signature=np.empty(entries, np.uint64),
    )
    done = np.zeros(3, np.int64)  # alternatives, entries, keys
    while done[0] < len(alternatives):
        most = keywords.most if learn else -1
        describe(
            columns,
            alternatives,
            clauses,
            keywords.hashed,
            keywords.rank,
            keywords.known,
            keywords.matched_strings,
            most,
            place,
            out,
            done,
        )
        if done[0] < len(alternatives):
            keywords.make_room(len(keywords.rank))
    return all_read_only(out)


@kernel_inline
def is_conjunctive(columns: SubscriptionColumns, predicate: int, matched: UInt8) -> bool:
    """Whether all keywords of *predicate* are needed."""
    kind = columns.kind[predicate]
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    if kind == TERMS:
        return is_one_group(columns, start, stop)
    return bool(
        kind == ONE_OF
        and stop - start == 1
        and is_matched_string(matched, columns.attribute[predicate])
    )


@kernel_inline
def clauses_of(columns: SubscriptionColumns, predicate: int, matched: UInt8) -> int:
    """How many groups of keywords *predicate* chooses from; 0 where it does not choose."""
    kind = columns.kind[predicate]
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    if kind == ONE_OF and is_matched_string(matched, columns.attribute[predicate]):
        return int(stop - start) if stop - start > 1 else 0
    if kind != TERMS or is_one_group(columns, start, stop):
        return 0
    groups = 0
    for string in range(start, stop):
        groups += columns.string_mark[string] == LAST
    return int(groups)


@kernel_part
def choosing_predicate(columns: SubscriptionColumns, alternative: int, matched: UInt8) -> int:
    """The predicate whose groups are the clauses of *alternative*, or NOTHING."""
    chosen, fewest = NOTHING, MOST_CLAUSES + 1
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        groups = clauses_of(columns, predicate, matched)
        if 0 < groups < fewest:
            chosen, fewest = predicate, groups
    return chosen


@kernel
def measure(
    columns: SubscriptionColumns,
    alternatives: Int32,
    clauses: UInt8,
    matched: UInt8,
    sizes: Int64,
) -> None:
    """Fill *sizes* with how many entries and, at most, how many keys there are."""
    for place in range(len(alternatives)):
        alternative = alternatives[place]
        keys = 0
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            if is_conjunctive(columns, predicate, matched):
                keys += columns.operand_stop[predicate] - columns.operand_start[predicate]
        choosing = choosing_predicate(columns, alternative, matched)
        groups, chosen = 1, 0
        if choosing != NOTHING:
            groups = clauses_of(columns, choosing, matched)
            chosen = columns.operand_stop[choosing] - columns.operand_start[choosing]
        if len(clauses) > 0:
            groups = 1
        sizes[0] += groups
        sizes[1] += groups * (keys + chosen)


@kernel
def describe(
    columns: SubscriptionColumns,
    alternatives: Int32,
    clauses: UInt8,
    table: UInt64,
    rank: Int32,
    counter: Int64,
    matched: UInt8,
    most: int,
    place: int,
    out: Entries,
    done: Int64,
) -> None:
    """Fill *out* from where *done* says, until all are done or the table is full.

    *most* is how many keywords the table takes; −1: none is added.
    """
    entry, key = done[1], done[2]
    for number in range(done[0], len(alternatives)):
        alternative = alternatives[number]
        choosing = choosing_predicate(columns, alternative, matched)
        first, last = 0, 1
        if choosing != NOTHING:
            last = clauses_of(columns, choosing, matched)
        if len(clauses) > 0:
            first = clauses[number]
            last = first + 1
        strings = 0
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            strings += max(0, columns.operand_stop[predicate] - columns.operand_start[predicate])
        if most >= 0 and counter[TERMS_KNOWN] + strings > most:
            done[0], done[1], done[2] = number, entry, key
            return
        signature = alternative_signature(columns, alternative, NO_FILTERS)
        box = out.box[4 * entry : 4 * entry + 4]
        box_of(columns, alternative, place, box)
        for clause in range(first, last):
            out.alternative[entry] = alternative
            out.clause[entry] = clause
            for side in range(4):
                out.box[4 * entry + side] = box[side]
            start = key
            for predicate in range(
                columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
            ):
                if is_conjunctive(columns, predicate, matched):
                    for string in range(
                        columns.operand_start[predicate], columns.operand_stop[predicate]
                    ):
                        hashed = keyword_of(columns, predicate, string)
                        out.key[key] = ranked(table, rank, counter, hashed, most)
                        key += 1
            own = signature
            if choosing != NOTHING:
                group = 0
                is_terms = columns.kind[choosing] == TERMS
                for string in range(
                    columns.operand_start[choosing], columns.operand_stop[choosing]
                ):
                    if group == clause:
                        hashed = keyword_of(columns, choosing, string)
                        own |= bits_of(hashed)
                        out.key[key] = ranked(table, rank, counter, hashed, most)
                        key += 1
                    group += 1 if not is_terms or columns.string_mark[string] == LAST else 0
            out.signature[entry] = own
            sort_ranks(out.key, start, key)
            key = without_repeats(out.key, start, key)
            entry += 1
            out.key_start[entry] = key
    done[0], done[1], done[2] = len(alternatives), entry, key


@kernel
def sort_keys(key_start: Int64, key: Int32) -> None:
    """Sort the keys of each entry."""
    for entry in range(len(key_start) - 1):
        sort_ranks(key, key_start[entry], key_start[entry + 1])


@kernel_inline
def keyword_of(columns: SubscriptionColumns, predicate: int, string: int) -> np.uint64:
    """The keyword that a string of *predicate* is."""
    if columns.kind[predicate] == TERMS:
        return np.uint64(columns.string_hash[string])
    return string_keyword(columns.string_hash[string], columns.attribute[predicate])


@kernel_inline
def ranked(table: UInt64, rank: Int32, counter: Int64, hashed: np.uint64, most: int) -> int:
    """The rank of a keyword; of a new one the next, or BEYOND where none is added."""
    if most >= 0:
        return rank_or_new(table, rank, counter, hashed)
    found = find_rank(table, rank, hashed)
    return int(BEYOND) if found == NOTHING else found


@kernel_inline
def without_repeats(keys: Int32, start: int, stop: int) -> int:
    """Drop repeats from a sorted slice; where it ends now.

    Of keywords that nobody asks for yet one is left, however many they are: with fewer keywords
    an entry leads to leaves of dummies, which every message visits.
    """
    kept = start
    for place in range(start, stop):
        if kept == start or keys[place] != keys[kept - 1]:
            keys[kept] = keys[place]
            kept += 1
    return kept


@kernel_part
def box_of(columns: SubscriptionColumns, alternative: int, place: int, box: Float32) -> None:
    """Fill *box* with what surrounds the alternative's regions of *place*, rounded outwards.

    Empty (west above east) where nobody knows where the subscriber is.
    """
    west = south = -math.inf
    east = north = math.inf
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        kind = columns.kind[predicate]
        if columns.attribute[predicate] != place or not BOX <= kind < NEGATED:
            continue
        pair = columns.operand_start[predicate]
        if kind == HERE and math.isnan(columns.pair_low[pair + 2]):
            west = south = math.inf
            east = north = -math.inf
            break
        if columns.pair_low[pair] <= columns.pair_high[pair]:  # else it crosses 180°
            west = max(west, columns.pair_low[pair])
            east = min(east, columns.pair_high[pair])
        south = max(south, columns.pair_low[pair + 1])
        north = min(north, columns.pair_high[pair + 1])
    if west > east or south > north:
        west = south = math.inf
        east = north = -math.inf
    box[0], box[1] = rounded_down(west), rounded_down(south)
    box[2], box[3] = rounded_up(east), rounded_up(north)


@kernel_inline
def rounded_down(value: float) -> np.float32:
    """The largest single-precision number that is not above *value*."""
    single = np.float32(value)
    if np.float64(single) > value:
        return np.float32(np.nextafter(single, np.float32(-math.inf)))
    return single


@kernel_inline
def rounded_up(value: float) -> np.float32:
    """The smallest single-precision number that is not below *value*."""
    single = np.float32(value)
    if np.float64(single) < value:
        return np.float32(np.nextafter(single, np.float32(math.inf)))
    return single
