"""The items of a run of buckets that a question leaves possible, without reading their predicates.

Steps have seven bits, so a subtraction from a byte whose top bit is set leaves that bit where the
comparison holds: eight comparisons in one word.
"""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel_inline, kernel_part
from stentor.encoding.columns import Int64, UInt64
from stentor.index.mo_tree.layout import (
    FREE,
    GRANULE,
    GRANULE_WORDS,
    LINE,
    SIGNATURE,
    Buckets,
)
from stentor.index.mo_tree.storing import member_at

#: The highest bit of each byte: what is left of a comparison.
TOP_BITS = np.uint64(0x8080_8080_8080_8080)
_ALL_BITS = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_ONE, _SEVEN, _NONE = np.uint64(1), np.uint64(7), np.uint64(0)
#: Times 2^(8 k) it has k in its top three bits.
_BYTE_NUMBERS = np.uint64(sum(k << (61 - 8 * k) for k in range(8)))
_TOP_THREE = np.uint64(61)


@kernel_part
def visit_run(
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
    """Look into the buckets *first* … *last*; those whose slots follow each other at once."""
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
    """The items in the slots *start* … *stop* whose steps meet those of the question.

    Eight at a time by the granules, then one at a time by the cards.
    """
    asked = word[GRANULE_WORDS:]
    first, last = start // GRANULE, (stop - 1) // GRANULE
    for number in range(first, last + 1):
        line = buckets.granule[number * GRANULE_WORDS : (number + 1) * GRANULE_WORDS]
        fits = four_fit(line, word)
        if number == first:
            fits &= _ALL_BITS << np.uint64(8 * (start % GRANULE))
        if number == last:
            fits &= _ALL_BITS >> np.uint64(8 * (GRANULE - 1 - (stop - 1) % GRANULE))
        if fits != _NONE:  # the other half of the dimensions is in the next cache line
            fits &= four_fit(line[LINE:], word[LINE:])
        while fits != _NONE:
            lowest = fits & (~fits + _ONE)
            fits ^= lowest
            slot = number * GRANULE + int((lowest >> _SEVEN) * _BYTE_NUMBERS >> _TOP_THREE)
            card = buckets.card[slot * LINE : (slot + 1) * LINE]
            if card_fits(card, asked):
                member = member_at(buckets.card, slot)
                if member != FREE:
                    if found < len(found_owner):
                        found_owner[found] = owner
                        found_member[found] = member
                    found += 1
    return found


@kernel_inline
def four_fit(line: UInt64, word: UInt64) -> np.uint64:
    """The top bit of the byte of each item whose steps meet those of *word* in four dimensions."""
    fits = (word[0] - line[0]) & ((line[1] | TOP_BITS) - word[1])
    fits &= (word[2] - line[2]) & ((line[3] | TOP_BITS) - word[3])
    fits &= (word[4] - line[4]) & ((line[5] | TOP_BITS) - word[5])
    fits &= (word[6] - line[6]) & ((line[7] | TOP_BITS) - word[7])
    return np.uint64(fits & TOP_BITS)


@kernel_inline
def card_fits(card: UInt64, asked: UInt64) -> bool:
    """Whether signatures do not meet, and steps do, in all dimensions that cards hold."""
    fits = (asked[2] - card[2]) & (asked[3] - card[3]) & (asked[4] - card[4])
    fits &= ((card[5] | TOP_BITS) - asked[5]) & ((card[6] | TOP_BITS) - asked[6])
    fits &= (card[7] | TOP_BITS) - asked[7]
    return bool((card[SIGNATURE] & asked[SIGNATURE]) == _NONE and fits & TOP_BITS == TOP_BITS)
