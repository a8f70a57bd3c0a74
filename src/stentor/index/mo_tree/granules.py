"""Granules of items: cells and signatures of eight in one cache line, written and copied."""

from __future__ import annotations

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import UInt64
from stentor.index.mo_tree.layout import (
    CARD_DIMENSIONS,
    CARD_HIGH,
    CARD_LOW,
    FREE,
    GRANULE,
    GRANULE_DIMENSIONS,
    GRANULE_WORDS,
    LAST_STEP,
    LINE,
    MEMBER,
    MOST_DIMENSIONS,
    NULL_STEP,
    SIGNATURE,
    Buckets,
    MoItems,
)

_HALF = np.uint64(32)

_FREE = np.uint64(FREE)

_BYTE = np.uint64(0xFF)


#: Reverses every step: seven bits of each byte.
_REVERSE = np.uint64(0x7F7F_7F7F_7F7F_7F7F)


@kernel_inline
def copy_granules(granule: UInt64, start: int, count: int, to: int) -> None:
    """Copy the bytes of *count* slots from *start* on to *to*, where a granule begins."""
    right = np.uint64(8 * (start % GRANULE))
    left = np.uint64(64) - right
    first, last = start // GRANULE, (start + count - 1) // GRANULE
    for number in range((count + GRANULE - 1) // GRANULE):
        target = (to // GRANULE + number) * GRANULE_WORDS
        source = (first + number) * GRANULE_WORDS
        for word in range(GRANULE_WORDS):
            value = granule[source + word] >> right
            if right > 0 and first + number < last:
                value |= granule[source + GRANULE_WORDS + word] << left
            granule[target + word] = value


@kernel_inline
def member_at(card: UInt64, slot: int) -> int:
    """The item in *slot*, or FREE."""
    return int(np.int64(card[slot * LINE + MEMBER] & _FREE))  # else unsigned, when compiled


@kernel_inline
def bucket_at(card: UInt64, slot: int) -> int:
    """The bucket of the item in *slot*."""
    return int(np.int64(card[slot * LINE + MEMBER] >> _HALF))


@inner_kernel
def write(
    buckets: Buckets, slot: int, member: int, bucket: int, items: MoItems, position: int
) -> None:
    """Write the item at *position* of *items* to *slot*."""
    low = items.low[position * MOST_DIMENSIONS : (position + 1) * MOST_DIMENSIONS]
    high = items.high[position * MOST_DIMENSIONS : (position + 1) * MOST_DIMENSIONS]
    for dimension in range(GRANULE_DIMENSIONS):
        set_byte(buckets.granule, slot, 2 * dimension, np.uint64(low[dimension]))
        reversed_high = np.uint64(LAST_STEP - high[dimension])
        set_byte(buckets.granule, slot, 2 * dimension + 1, reversed_high)
    card = buckets.card[slot * LINE : (slot + 1) * LINE]
    card[SIGNATURE] = items.signature[position]
    card[MEMBER] = np.uint64(bucket) << _HALF | np.uint64(member)
    pack(low, card[CARD_LOW : CARD_LOW + 3])
    pack(high, card[CARD_HIGH : CARD_HIGH + 3])
    reverse_steps(card[CARD_HIGH : CARD_HIGH + 3])


@kernel_inline
def pack(steps: np.ndarray, words: UInt64) -> None:
    """The steps of the dimensions that cards hold, eight in a word."""
    for word in range(CARD_DIMENSIONS // 8):
        packed = np.uint64(0)
        for position in range(7, -1, -1):
            step = steps[GRANULE_DIMENSIONS + 8 * word + position]
            packed = packed << np.uint64(8) | np.uint64(step)
        words[word] = packed


@kernel_inline
def reverse_steps(words: UInt64) -> None:
    """Replace each step s of *words* by LAST_STEP − s, so that high ends compare as low ones."""
    for word in range(len(words)):
        words[word] ^= _REVERSE


@kernel_inline
def set_byte(granule: UInt64, slot: int, word: int, value: np.uint64) -> None:
    """Set the byte of *slot* in one word of its granule."""
    at = slot // GRANULE * GRANULE_WORDS + word
    shift = np.uint64(8 * (slot % GRANULE))
    granule[at] = granule[at] & ~(_BYTE << shift) | value << shift


@kernel_inline
def copy_bytes(granule: UInt64, slot: int, to: int) -> None:
    """Copy what granules hold of *slot* over what they hold of *to*."""
    shift = np.uint64(8 * (slot % GRANULE))
    for word in range(GRANULE_WORDS):
        value = granule[slot // GRANULE * GRANULE_WORDS + word] >> shift & _BYTE
        set_byte(granule, to, word, value)


@kernel
def free_slots(buckets: Buckets, start: int, stop: int) -> None:
    """Free the slots *start* … *stop*."""
    for slot in range(start, stop):
        clear(buckets, slot)


@kernel_inline
def clear(buckets: Buckets, slot: int) -> None:
    """Free *slot*: hardly any query fits its steps, and one that does finds no member."""
    set_byte(buckets.granule, slot, 0, np.uint64(LAST_STEP))
    set_byte(buckets.granule, slot, 1, np.uint64(LAST_STEP - NULL_STEP))
    buckets.card[slot * LINE + MEMBER] = _FREE
