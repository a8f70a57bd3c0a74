"""Keywords and their ranks, and which keywords come next at which k-node.

A keyword's rank is its order by frequency, the most frequent first. Next keywords of all k-nodes
are in one Bloom filter, so that most steps that lead to no entry touch no node.
"""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int32,
    Int64,
    UInt8,
    UInt64,
    all_read_only,
    read_only,
)
from stentor.encoding.spread import first_slot, spread_over
from stentor.index.ap_tree.layout import NONE, TERMS_KNOWN, UNKNOWN_RANK, Vocabulary
from stentor.index.signature import attribute_hash
from stentor.index.sort import sort_slice

#: A table grows beyond this part of it.
_FULL = 0.5
_SMALLEST = 64

#: Bits of the Bloom filter per entry, when it is made.
BITS = 16

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SIX_BITS = np.uint64(63)
_ONE = np.uint64(1)
_HALF = np.uint64(32)
_FAR = np.uint64(40)
_FARTHER = np.uint64(52)


class KeywordTable:
    """The vocabulary while it grows.

    Invariant: ranks are 0 … known − 1, each of one keyword.
    """

    def __init__(self, known: Int64) -> None:
        self.known = known  # the tree's counters
        self.hashed = np.zeros(_SMALLEST, np.uint64)
        self.spread = spread_over(_SMALLEST)
        self.rank = np.full(_SMALLEST, NONE, np.int32)
        self.likely: Float64 = np.zeros(0)
        self.matched_strings = np.zeros(0, np.uint8)

    @classmethod
    def over(cls, known: Int64, vocabulary: Vocabulary) -> KeywordTable:
        """The table of a saved *vocabulary*, read-only."""
        keywords = cls(known)
        keywords.hashed, keywords.spread, keywords.rank = vocabulary[:3]
        keywords.likely, keywords.matched_strings = vocabulary[3:]
        return keywords

    def copy(self) -> KeywordTable:
        """A copy that can be written."""
        return KeywordTable.over(self.known.copy(), Vocabulary(*map(np.array, self.view)))

    def rebase(self, known: Int64) -> None:
        """Continue with *known*, the counters of another tree."""
        self.known = known

    @property
    def count(self) -> int:
        return int(self.known[TERMS_KNOWN])

    @property
    def view(self) -> Vocabulary:
        """The arrays for kernels that only read."""
        return all_read_only(
            Vocabulary(self.hashed, self.spread, self.rank, self.likely, self.matched_strings)
        )

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.view)

    def grow(self, more: int) -> None:
        """Make capacity for *more* keywords."""
        slots = len(self.rank)
        while self.count + more > _FULL * slots:
            slots *= 2
        if slots > len(self.rank):
            self.rehash(slots)

    def rehash(self, slots: int) -> None:
        """Insert all keywords into a new table of so many *slots*."""
        hashed, rank = np.zeros(slots, np.uint64), np.full(slots, NONE, np.int32)
        spread = spread_over(slots)
        rehash(read_only(self.hashed), read_only(self.rank), spread, hashed, rank)
        self.hashed, self.spread, self.rank = hashed, spread, rank

    @property
    def most(self) -> int:
        """The capacity in keywords, before the table grows."""
        return int(_FULL * len(self.rank))

    def reorder(self, rank_of: Int32) -> None:
        """Give the keyword of rank i the rank rank_of[i]."""
        taken = self.rank != NONE
        self.rank[taken] = rank_of[self.rank[taken]]

    def learn(self, wanted: Int64, history: EventColumns | None, terms: float) -> None:
        """Work out how likely each keyword is in an event.

        From *history*: in how many of its events it is. Without one, in proportion to how many
        entries it is *wanted* by, for an event of so many *terms*.
        """
        if history is not None and len(history.until):
            seen = np.zeros(self.count, np.int64)
            count_terms(history, self.view, seen)
            # Half a one more of each: what was not seen is rare, not impossible.
            self.likely = np.divide(seen + 0.5, len(history.until) + 1.0)
        else:
            self.likely = np.minimum(1.0, terms * wanted / max(1, wanted.sum()))

    def expect_new(self) -> None:
        """Keywords that came after the order was frozen are as likely as the rarest."""
        missing = self.count - len(self.likely)
        if missing > 0:
            rarest = self.likely.min(initial=1.0)
            self.likely = np.concatenate([self.likely, np.full(missing, rarest)])


@kernel_inline
def find_rank(table: UInt64, spread: UInt64, rank: Int32, hashed: np.uint64) -> int:
    """The rank of the keyword *hashed*; NONE where no entry has it."""
    slots = len(table)
    slot = first_slot(spread, hashed)
    while rank[slot] != NONE:
        if table[slot] == hashed:
            return int(rank[slot])
        slot = (slot + 1) & (slots - 1)
    return NONE


@kernel_inline
def rank_of(vocabulary: Vocabulary, hashed: np.uint64) -> int:
    """The same in a *vocabulary*."""
    return find_rank(vocabulary.hashed, vocabulary.spread, vocabulary.rank, hashed)


@kernel_inline
def rank_or_new(
    table: UInt64, spread: UInt64, rank: Int32, counter: Int64, hashed: np.uint64
) -> int:
    """The rank of the keyword *hashed*, the next one where it is new."""
    slots = len(table)
    slot = first_slot(spread, hashed)
    while rank[slot] != NONE:
        if table[slot] == hashed:
            return int(rank[slot])
        slot = (slot + 1) & (slots - 1)
    table[slot] = hashed
    rank[slot] = counter[TERMS_KNOWN]
    counter[TERMS_KNOWN] += 1
    return int(rank[slot])


@kernel
def rehash(table: UInt64, rank: Int32, spread: UInt64, larger: UInt64, larger_rank: Int32) -> None:
    """Insert all keywords of *table* into a larger one, over which *spread* spreads them."""
    for position in range(len(table)):
        if rank[position] != NONE:
            slot = first_slot(spread, table[position])
            while larger_rank[slot] != NONE:
                slot = (slot + 1) & (len(larger) - 1)
            larger[slot] = table[position]
            larger_rank[slot] = rank[position]


@kernel_inline
def string_keyword(hashed: np.uint64, attribute: int) -> np.uint64:
    """The keyword for an attribute that is the whole string *hashed*."""
    return hashed ^ attribute_hash(attribute)


@kernel_inline
def is_matched_string(matched: UInt8, attribute: int) -> bool:
    """Whether whole strings of *attribute* are keywords."""
    return 0 <= attribute < len(matched) and matched[attribute] != 0


@kernel_inline
def ranks_of_event(
    events: EventColumns, event: int, vocabulary: Vocabulary, with_unknown: bool, ranks: Int32
) -> int:
    """How many of *ranks* are filled with those of the event's keywords, ascending, each once.

    With *with_unknown*, a keyword that no entry has is UNKNOWN_RANK; each of them counts.
    """
    count = 0
    for term in range(events.term_start[event], events.term_start[event + 1]):
        found = rank_of(vocabulary, events.term_hash[term])
        if found != NONE or with_unknown:
            ranks[count] = UNKNOWN_RANK if found == NONE else found
            count += 1
    for value in range(events.value_start[event], events.value_start[event + 1]):
        attribute, string = events.attribute[value], events.string[value]
        if string >= 0 and is_matched_string(vocabulary.matched_strings, attribute):
            keyword = string_keyword(events.string_hash[string], attribute)
            found = rank_of(vocabulary, keyword)
            if found != NONE or with_unknown:
                ranks[count] = UNKNOWN_RANK if found == NONE else found
                count += 1
    sort_slice(ranks, 0, count)
    kept = 0
    for position in range(count):
        if kept == 0 or ranks[position] == UNKNOWN_RANK or ranks[position] != ranks[kept - 1]:
            ranks[kept] = ranks[position]
            kept += 1
    return kept


@kernel
def count_terms(events: EventColumns, vocabulary: Vocabulary, seen: Int64) -> None:
    """Add to *seen*, by rank, in how many of *events* each keyword is."""
    for event in range(len(events.until)):
        for term in range(events.term_start[event], events.term_start[event + 1]):
            found = rank_of(vocabulary, events.term_hash[term])
            if found != NONE:
                seen[found] += 1
        for value in range(events.value_start[event], events.value_start[event + 1]):
            attribute, string = events.attribute[value], events.string[value]
            if string >= 0 and is_matched_string(vocabulary.matched_strings, attribute):
                keyword = string_keyword(events.string_hash[string], attribute)
                found = rank_of(vocabulary, keyword)
                if found != NONE:
                    seen[found] += 1


def most_keywords(events: EventColumns) -> int:
    """The most keywords that one of *events* can have."""
    return int((np.diff(events.term_start) + np.diff(events.value_start)).max(initial=0))


def order_of(wanted: Int64, order: str) -> Int32:
    """For each rank in the order of insertion the rank by how many entries it is *wanted* by."""
    key = wanted if order == "rare" else -wanted
    rank_of = np.empty(len(wanted), np.int32)
    rank_of[np.argsort(key, kind="stable")] = np.arange(len(wanted), dtype=np.int32)
    return rank_of


def words_for(entries: int) -> int:
    """How many words a filter for *entries* has: a power of two."""
    return 1 << (BITS * max(entries, 1024) // 64 - 1).bit_length()


@kernel_inline
def mixed(node: int, rank: int) -> np.uint64:
    """64 bits of a pair."""
    pair = np.uint64(node) << _HALF ^ np.uint64(rank)
    spread = (pair ^ (pair >> _HALF)) * _GOLDEN
    return (spread ^ (spread >> _HALF)) * _GOLDEN


@kernel_inline
def bits_in_word(hashed: np.uint64) -> np.uint64:
    """The two bits of a pair in its word."""
    return _ONE << (hashed >> _FAR & _SIX_BITS) | _ONE << (hashed >> _FARTHER & _SIX_BITS)


@kernel_inline
def bloom_add(present: UInt64, node: int, rank: int) -> None:
    """Add that some entry at *node* has *rank* next."""
    hashed = mixed(node, rank)
    present[np.int64(hashed & np.uint64(len(present) - 1))] |= bits_in_word(hashed)


@kernel_inline
def bloom_has(present: UInt64, node: int, rank: int) -> bool:
    """Whether some entry at *node* may have *rank* next."""
    hashed = mixed(node, rank)
    bits = bits_in_word(hashed)
    return bool(present[np.int64(hashed & np.uint64(len(present) - 1))] & bits == bits)
