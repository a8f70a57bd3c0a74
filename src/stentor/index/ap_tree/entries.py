"""Entries: an alternative under each set of keywords that it may be found by.

An alternative needs all of some keywords. Where one of its predicates needs one of several groups
of terms, or one of several strings, there is an entry for each of them (section 3.4: a disjunction
is several subscriptions that share one delivery), up to MOST_CLAUSES of its subscription; of
several such predicates only the one with the fewest groups counts. The box of an entry bounds the
alternative's regions of the tree's location attribute; everywhere, where it has none.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import (
    LAST,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
    all_read_only,
    read_only,
)
from stentor.encoding.kinds import (
    KEYWORDS,
    MEMBERSHIP,
    OWN_CIRCLE,
    is_negated,
    is_region,
)
from stentor.index.ap_tree.keywords import (
    KeywordTable,
    find_rank,
    is_matched_string,
    rank_or_new,
    string_keyword,
)
from stentor.index.ap_tree.layout import (
    MOST_DEPTH,
    NONE,
    TERMS_KNOWN,
    UNKNOWN_RANK,
    ApEntries,
    Float32,
    UInt16,
)
from stentor.index.live import SIGN_ALL_ATTRIBUTES
from stentor.index.signature import alternative_signature, bits_of, is_one_group
from stentor.index.sort import sort_slice
from stentor.index.verify.candidates import row_of

#: Entries of the alternatives of one subscription, all together: more than a text
#: within the default limits can list. Only a product of lists and alternatives has more; then each
#: alternative has its share, at least the second number, and a longer list does not prune.
MOST_CLAUSES, LEAST_CLAUSES = 1 << 14, 16
#: Keywords of a conjunction that count for an entry: no path is longer.
MOST_KEYS = MOST_DEPTH + 1


def entries_of(
    columns: SubscriptionColumns,
    alternatives: Int32,
    clauses: UInt16,
    keywords: KeywordTable,
    location: int,
    *,
    learn: bool,
) -> ApEntries:
    """The entries of *alternatives*: all clauses, or of each the one in *clauses*.

    With *learn*, keywords that are new get a rank; else UNKNOWN_RANK. *location* is the attribute
    whose regions count.
    """
    sizes = np.zeros(2, np.int64)
    measure(columns, alternatives, clauses, keywords.matched_strings, sizes)
    entries, keys = sizes.tolist()
    out = ApEntries(
        alternative=np.empty(entries, np.int32),
        clause=np.empty(entries, np.uint16),
        key_start=np.zeros(entries + 1, np.int64),
        key=np.empty(keys, np.int32),
        box=np.empty(4 * entries, np.float32),
        signature=np.empty(entries, np.uint64),
    )
    done = np.zeros(3, np.int64)  # alternatives, entries, keys
    while done[0] < len(alternatives):
        most = keywords.most if learn else -1
        write_entries(
            columns,
            alternatives,
            clauses,
            keywords.hashed,
            read_only(keywords.spread),
            keywords.rank,
            keywords.known,
            keywords.matched_strings,
            most,
            location,
            out,
            done,
        )
        if done[0] < len(alternatives):
            keywords.grow(len(keywords.rank))
    return all_read_only(out)


@kernel_inline
def is_conjunctive(columns: SubscriptionColumns, predicate: int, matched: UInt8) -> bool:
    """Whether all keywords of *predicate* are needed."""
    kind = columns.kind[predicate]
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    if kind == KEYWORDS:
        return is_one_group(columns, start, stop)
    return bool(
        kind == MEMBERSHIP
        and stop - start == 1
        and is_matched_string(matched, columns.attribute[predicate])
    )


@kernel_inline
def clauses_of(columns: SubscriptionColumns, predicate: int, matched: UInt8) -> int:
    """How many groups of keywords *predicate* chooses from; 0 where it does not choose."""
    kind = columns.kind[predicate]
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    if kind == MEMBERSHIP and is_matched_string(matched, columns.attribute[predicate]):
        return int(stop - start) if stop - start > 1 else 0
    if kind != KEYWORDS or is_one_group(columns, start, stop):
        return 0
    groups = 0
    for string in range(start, stop):
        groups += columns.string_mark[string] == LAST
    return int(groups)


@inner_kernel
def disjunction_of(columns: SubscriptionColumns, alternative: int, matched: UInt8) -> int:
    """The predicate whose groups are the clauses of *alternative*, or NONE."""
    row = row_of(columns.alternative_start, alternative)
    others = columns.alternative_start[row + 1] - columns.alternative_start[row]
    chosen, fewest = NONE, max(LEAST_CLAUSES, MOST_CLAUSES // others) + 1
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
    clauses: UInt16,
    matched: UInt8,
    sizes: Int64,
) -> None:
    """Fill *sizes* with how many entries and, at most, how many keys there are."""
    for position in range(len(alternatives)):
        alternative = alternatives[position]
        keys = 0
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            if is_conjunctive(columns, predicate, matched):
                keys += columns.operand_stop[predicate] - columns.operand_start[predicate]
        keys = min(keys, MOST_KEYS)
        choosing = disjunction_of(columns, alternative, matched)
        groups, chosen = 1, 0
        if choosing != NONE:
            groups = clauses_of(columns, choosing, matched)
            chosen = columns.operand_stop[choosing] - columns.operand_start[choosing]
        if len(clauses) > 0:
            groups = 1
        sizes[0] += groups
        sizes[1] += groups * keys + chosen


@kernel
def write_entries(
    columns: SubscriptionColumns,
    alternatives: Int32,
    clauses: UInt16,
    table: UInt64,
    spread: UInt64,
    rank: Int32,
    counter: Int64,
    matched: UInt8,
    most: int,
    location: int,
    out: ApEntries,
    done: Int64,
) -> None:
    """Fill *out* from where *done* says, until all are done or the table is full.

    *most* is the capacity of the table in keywords; −1: none is added.
    """
    entry, key = done[1], done[2]
    for number in range(done[0], len(alternatives)):
        alternative = alternatives[number]
        choosing = disjunction_of(columns, alternative, matched)
        first, last = 0, 1
        if choosing != NONE:
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
        signature = alternative_signature(columns, alternative, SIGN_ALL_ATTRIBUTES)
        box = out.box[4 * entry : 4 * entry + 4]
        box_of(columns, alternative, location, box)
        string = NONE if choosing == NONE else start_of_group(columns, choosing, first)
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
                    for needed in range(
                        columns.operand_start[predicate], columns.operand_stop[predicate]
                    ):
                        if key - start < MOST_KEYS:
                            hashed = keyword_of(columns, predicate, needed)
                            out.key[key] = ranked(table, spread, rank, counter, hashed, most)
                            key += 1
            own = signature
            is_group = choosing != NONE
            while is_group:
                hashed = keyword_of(columns, choosing, string)
                own |= bits_of(hashed)
                out.key[key] = ranked(table, spread, rank, counter, hashed, most)
                key += 1
                is_group = not ends_group(columns, choosing, string)
                string += 1
            out.signature[entry] = own
            sort_slice(out.key, start, key)
            key = without_repeats(out.key, start, key)
            entry += 1
            out.key_start[entry] = key
    done[0], done[1], done[2] = len(alternatives), entry, key


@kernel_inline
def ends_group(columns: SubscriptionColumns, predicate: int, string: int) -> bool:
    """Whether *string* is the last of its group: each string is one, but for terms."""
    return bool(columns.kind[predicate] != KEYWORDS or columns.string_mark[string] == LAST)


@kernel_inline
def start_of_group(columns: SubscriptionColumns, predicate: int, group: int) -> int:
    """The first string of *group* among those that *predicate* chooses from."""
    string = columns.operand_start[predicate]
    if columns.kind[predicate] != KEYWORDS:
        return int(string + group)
    while group > 0:
        group -= ends_group(columns, predicate, string)
        string += 1
    return int(string)


@kernel
def sort_keys(key_start: Int64, key: Int32) -> None:
    """Sort the keys of each entry."""
    for entry in range(len(key_start) - 1):
        sort_slice(key, key_start[entry], key_start[entry + 1])


@kernel_inline
def keyword_of(columns: SubscriptionColumns, predicate: int, string: int) -> np.uint64:
    """The keyword that a string of *predicate* is."""
    if columns.kind[predicate] == KEYWORDS:
        return np.uint64(columns.string_hash[string])
    return string_keyword(columns.string_hash[string], columns.attribute[predicate])


@kernel_inline
def ranked(
    table: UInt64, spread: UInt64, rank: Int32, counter: Int64, hashed: np.uint64, most: int
) -> int:
    """The rank of a keyword; of a new one the next, or UNKNOWN_RANK where none is added."""
    if most >= 0:
        return rank_or_new(table, spread, rank, counter, hashed)
    found = find_rank(table, spread, rank, hashed)
    return int(UNKNOWN_RANK) if found == NONE else found


@kernel_inline
def without_repeats(keys: Int32, start: int, stop: int) -> int:
    """Drop repeats from a sorted slice; where it stops now.

    Of unknown keywords one is left, however many they are: with fewer keywords an entry leads to
    leaves of dummies, which every event visits.
    """
    kept = start
    for position in range(start, stop):
        if kept == start or keys[position] != keys[kept - 1]:
            keys[kept] = keys[position]
            kept += 1
    return kept


@inner_kernel
def box_of(columns: SubscriptionColumns, alternative: int, location: int, box: Float32) -> None:
    """Fill *box* with the bounds of the alternative's regions of *location*, rounded outwards.

    Empty (west above east) where the location of the subscriber is unknown.
    """
    west = south = -math.inf
    east = north = math.inf
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        kind = columns.kind[predicate]
        if columns.attribute[predicate] != location or is_negated(kind) or not is_region(kind):
            continue
        pair = columns.operand_start[predicate]
        if kind == OWN_CIRCLE and math.isnan(columns.pair_low[pair + 2]):
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
