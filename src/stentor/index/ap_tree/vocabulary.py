"""Keywords and their ranks.

A keyword is a term of an attribute, or the whole string that an attribute must be: 64 bits, hashed
with the attribute. Ranks order all keywords; the order is frozen when the tree is built, keywords
that come later stand last. A collision of hashes does no harm: the verifier looks at the bytes.
"""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import EventColumns, Float64, Int32, Int64, UInt8, UInt64
from stentor.encoding.readonly import all_read_only
from stentor.index.ap_tree.layout import BEYOND, NOTHING, TERMS_KNOWN, Vocabulary
from stentor.index.signature import attribute_hash
from stentor.index.sorting import sort_slice

_HALF = np.uint64(32)
#: A table is made larger beyond this part of it.
_FULL = 0.5
_SMALLEST = 64


class Keywords:
    """The vocabulary while it grows.

    Invariant: ranks are 0 … known − 1, each of one keyword.
    """

    def __init__(self, known: Int64) -> None:
        self.known = known  # the tree's counters
        self.hashed = np.zeros(_SMALLEST, np.uint64)
        self.rank = np.full(_SMALLEST, NOTHING, np.int32)
        self.likely: Float64 = np.zeros(0)
        self.matched_strings = np.zeros(0, np.uint8)

    @classmethod
    def over(cls, known: Int64, vocabulary: Vocabulary) -> Keywords:
        """What was saved, read-only."""
        keywords = cls(known)
        keywords.hashed, keywords.rank, keywords.likely, keywords.matched_strings = vocabulary
        return keywords

    def copy(self) -> Keywords:
        """The same, of which all can be written."""
        copied = Vocabulary(self.hashed, self.rank, self.likely, self.matched_strings)
        return Keywords.over(self.known.copy(), Vocabulary(*map(np.array, copied)))

    def rebase(self, known: Int64) -> None:
        """Count on in *known*, the counters of another tree."""
        self.known = known

    @property
    def count(self) -> int:
        return int(self.known[TERMS_KNOWN])

    @property
    def view(self) -> Vocabulary:
        """What kernels that only read take."""
        bundle = Vocabulary(self.hashed, self.rank, self.likely, self.matched_strings)
        return all_read_only(bundle)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.view)

    def make_room(self, more: int) -> None:
        """Let *more* keywords fit into the table."""
        slots = len(self.rank)
        while self.count + more > _FULL * slots:
            slots *= 2
        if slots > len(self.rank):
            hashed, rank = np.zeros(slots, np.uint64), np.full(slots, NOTHING, np.int32)
            rehash(self.hashed, self.rank, hashed, rank)
            self.hashed, self.rank = hashed, rank

    @property
    def most(self) -> int:
        """How many keywords the table takes before it needs more room."""
        return int(_FULL * len(self.rank))

    def reorder(self, rank_of: Int32) -> None:
        """Let what has rank i have rank_of[i]."""
        taken = self.rank != NOTHING
        self.rank[taken] = rank_of[self.rank[taken]]

    def learn(self, asked: Int64, history: EventColumns | None, terms: float) -> None:
        """Work out how likely each keyword is in a message.

        From *history*: in how many of its messages it is. Without one, as often as it is *asked*
        for, for a message of so many *terms*.
        """
        if history is not None and len(history.until):
            seen = np.zeros(self.count, np.int64)
            count_terms(history, self.view, seen)
            # One more of each: what was not seen is rare, not impossible.
            self.likely = np.divide(seen + 0.5, len(history.until) + 1.0)
        else:
            self.likely = np.minimum(1.0, terms * asked / max(1, asked.sum()))

    def expect_new(self) -> None:
        """Keywords that came after the order was frozen are as likely as the rarest."""
        missing = self.count - len(self.likely)
        if missing > 0:
            rarest = self.likely.min(initial=1.0)
            self.likely = np.concatenate([self.likely, np.full(missing, rarest)])


@kernel_inline
def slot_of(hashed: np.uint64, slots: int) -> int:
    """Where the look-up of *hashed* starts."""
    return int(np.int64((hashed ^ (hashed >> _HALF)) & np.uint64(slots - 1)))


@kernel_inline
def find_rank(table: UInt64, rank: Int32, hashed: np.uint64) -> int:
    """The rank of the keyword *hashed*; NOTHING where nobody asks for it."""
    slots = len(table)
    slot = slot_of(hashed, slots)
    while rank[slot] != NOTHING:
        if table[slot] == hashed:
            return int(rank[slot])
        slot = (slot + 1) & (slots - 1)
    return NOTHING


@kernel_inline
def rank_or_new(table: UInt64, rank: Int32, counter: Int64, hashed: np.uint64) -> int:
    """The rank of the keyword *hashed*, the next one where it is new."""
    slots = len(table)
    slot = slot_of(hashed, slots)
    while rank[slot] != NOTHING:
        if table[slot] == hashed:
            return int(rank[slot])
        slot = (slot + 1) & (slots - 1)
    table[slot] = hashed
    rank[slot] = counter[TERMS_KNOWN]
    counter[TERMS_KNOWN] += 1
    return int(rank[slot])


@kernel
def rehash(table: UInt64, rank: Int32, larger: UInt64, larger_rank: Int32) -> None:
    """File all keywords of *table* in a larger one."""
    for place in range(len(table)):
        if rank[place] != NOTHING:
            slot = slot_of(table[place], len(larger))
            while larger_rank[slot] != NOTHING:
                slot = (slot + 1) & (len(larger) - 1)
            larger[slot] = table[place]
            larger_rank[slot] = rank[place]


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

    A keyword that nobody asks for is BEYOND, where such are wanted; each of them counts.
    """
    count = 0
    for term in range(events.term_start[event], events.term_start[event + 1]):
        found = find_rank(vocabulary.hashed, vocabulary.rank, events.term_hash[term])
        if found != NOTHING or with_unknown:
            ranks[count] = BEYOND if found == NOTHING else found
            count += 1
    for value in range(events.value_start[event], events.value_start[event + 1]):
        attribute, string = events.attribute[value], events.string[value]
        if string >= 0 and is_matched_string(vocabulary.matched_strings, attribute):
            keyword = string_keyword(events.string_hash[string], attribute)
            found = find_rank(vocabulary.hashed, vocabulary.rank, keyword)
            if found != NOTHING or with_unknown:
                ranks[count] = BEYOND if found == NOTHING else found
                count += 1
    sort_slice(ranks, 0, count)
    return count


@kernel
def count_terms(events: EventColumns, vocabulary: Vocabulary, seen: Int64) -> None:
    """Add to *seen*, by rank, in how many of *events* each keyword is."""
    for event in range(len(events.until)):
        for term in range(events.term_start[event], events.term_start[event + 1]):
            found = find_rank(vocabulary.hashed, vocabulary.rank, events.term_hash[term])
            if found != NOTHING:
                seen[found] += 1
        for value in range(events.value_start[event], events.value_start[event + 1]):
            attribute, string = events.attribute[value], events.string[value]
            if string >= 0 and is_matched_string(vocabulary.matched_strings, attribute):
                keyword = string_keyword(events.string_hash[string], attribute)
                found = find_rank(vocabulary.hashed, vocabulary.rank, keyword)
                if found != NOTHING:
                    seen[found] += 1


def most_keywords(events: EventColumns) -> int:
    """The most keywords that one of *events* can have."""
    return int((np.diff(events.term_start) + np.diff(events.value_start)).max(initial=0))


def order_of(asked: Int64, order: str) -> Int32:
    """For each rank in the order of coming the rank by how often it is *asked* for."""
    key = asked if order == "rare" else -asked
    rank_of = np.empty(len(asked), np.int32)
    rank_of[np.argsort(key, kind="stable")] = np.arange(len(asked), dtype=np.int32)
    return rank_of
