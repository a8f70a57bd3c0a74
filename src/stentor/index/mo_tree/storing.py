"""Items into buckets, out of them, and from one to another: O(1) each, once the bucket is known.

A bucket that is full moves to the end of all slots, with twice the room; its old slots are lost
until the next build. Nothing is split or merged. Paper: section 4.6.
"""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor._prefetch import prefetch
from stentor.encoding.columns import Int32, Int64, UInt64
from stentor.index.mo_tree.layout import (
    CARD_DIMENSIONS,
    CARD_HIGH,
    CARD_LOW,
    END,
    FREE,
    GRANULE,
    GRANULE_DIMENSIONS,
    GRANULE_WORDS,
    ITEMS,
    LAST_STEP,
    LINE,
    LOST,
    MEMBER,
    MOST_DIMENSIONS,
    NO_SLOT,
    NULL_STEP,
    SIGNATURE,
    Buckets,
    Drafts,
)
from stentor.model.time import NEVER

#: Slots that a bucket has at least, once it has moved.
LEAST_ROOM = 4
#: How many items ahead memory is asked for.
AHEAD = 8

_HALF = np.uint64(32)
_FREE = np.uint64(FREE)
_BYTE = np.uint64(0xFF)


@kernel
def store(buckets: Buckets, drafts: Drafts, members: Int64, slot_of: Int32, start: int) -> int:
    """Put *members*, from the one at *start* on, where *drafts* say.

    Returns how many were done: fewer than there are where the slots have run out. A member that is
    stored already changes its place, or in the same bucket only its card.
    """
    for place in range(start, len(members)):
        if place + 2 * AHEAD < len(members):
            prefetch(buckets.start, drafts.bucket[place + 2 * AHEAD])
            prefetch(buckets.used, drafts.bucket[place + 2 * AHEAD])
            prefetch(buckets.room, drafts.bucket[place + 2 * AHEAD])
            prefetch(slot_of, members[place + 2 * AHEAD])
            call_for(buckets, drafts.bucket[place + AHEAD], slot_of[members[place + AHEAD]])
        member, bucket = members[place], drafts.bucket[place]
        slot = slot_of[member]
        if slot == NO_SLOT or bucket_at(buckets.card, slot) != bucket:
            if buckets.used[bucket] == buckets.room[bucket] and not make_room(
                buckets, bucket, slot_of
            ):
                return place
            if slot != NO_SLOT:
                take_out(buckets, member, slot_of)
            slot = np.int32(buckets.start[bucket] + buckets.used[bucket])
            buckets.used[bucket] += 1
            buckets.tally[ITEMS] += 1
            slot_of[member] = slot
        write(buckets, slot, member, bucket, drafts, place)
        if len(buckets.soonest) > 0 and drafts.until[place] < buckets.soonest[bucket]:
            buckets.soonest[bucket] = drafts.until[place]
    return len(members)


@kernel_inline
def call_for(buckets: Buckets, bucket: int, slot: int) -> None:
    """Have the next free slot of *bucket*, and *slot* where it is one, brought near."""
    last = len(buckets.card) // LINE - 1
    free = min(last, buckets.start[bucket] + buckets.used[bucket])
    prefetch(buckets.card, free * LINE)
    prefetch(buckets.granule, free // GRANULE * GRANULE_WORDS)
    prefetch(buckets.granule, free // GRANULE * GRANULE_WORDS + LINE)
    if slot != NO_SLOT:
        prefetch(buckets.card, slot * LINE)


@kernel
def remove(buckets: Buckets, members: Int64, slot_of: Int32) -> None:
    """Take *members* out of their buckets; those that are in none stay there."""
    for member in members:
        if slot_of[member] != NO_SLOT:
            take_out(buckets, member, slot_of)


@kernel
def remove_expired(
    buckets: Buckets, first: int, last: int, until: Int64, now: int, slot_of: Int32
) -> int:
    """Take out of the buckets *first* … *last* what ends at *now* or before; how many went.

    Cost: one comparison for each bucket in which nothing has ended.
    """
    gone = 0
    for bucket in range(first, last + 1):
        if buckets.soonest[bucket] > now:
            continue
        soonest = NEVER
        slot = buckets.start[bucket]
        while slot < buckets.start[bucket] + buckets.used[bucket]:
            member = member_at(buckets.card, slot)
            if until[member] <= now:
                take_out(buckets, member, slot_of)  # another one may stand here now
                gone += 1
            else:
                soonest = min(soonest, until[member])
                slot += 1
        buckets.soonest[bucket] = soonest
    return gone


@kernel_part
def take_out(buckets: Buckets, member: int, slot_of: Int32) -> None:
    """Let the last item of the bucket take the place of *member*."""
    slot = slot_of[member]
    bucket = bucket_at(buckets.card, slot)
    buckets.used[bucket] -= 1
    buckets.tally[ITEMS] -= 1
    last = buckets.start[bucket] + buckets.used[bucket]
    slot_of[member] = NO_SLOT
    if last != slot:
        copy_bytes(buckets.granule, last, slot)
        for word in range(LINE):
            buckets.card[slot * LINE + word] = buckets.card[last * LINE + word]
        slot_of[member_at(buckets.card, slot)] = slot
    clear(buckets, last)


@kernel_part
def make_room(buckets: Buckets, bucket: int, slot_of: Int32) -> bool:
    """Double the room of *bucket* at the end of the slots; False where there are too few."""
    used, start, end = buckets.used[bucket], buckets.start[bucket], buckets.tally[END]
    room = max(LEAST_ROOM, 2 * used)
    to = end
    if used >= GRANULE:  # then it pays to move granules as a whole
        to = (end + GRANULE - 1) // GRANULE * GRANULE
    if (to + room) * LINE > len(buckets.card):
        return False
    card, copy = buckets.card[start * LINE :], buckets.card[to * LINE :]
    for word in range(used * LINE):
        copy[word] = card[word]
    if used >= GRANULE:
        copy_granules(buckets.granule, start, used, to)
    else:
        for place in range(used):
            copy_bytes(buckets.granule, start + place, to + place)
    for slot in range(to, to + used):
        slot_of[member_at(buckets.card, slot)] = np.int32(slot)
    for slot in range(to + used, to + room):
        clear(buckets, slot)
    buckets.tally[LOST] += buckets.room[bucket] + to - end
    buckets.tally[END] = to + room
    buckets.start[bucket], buckets.room[bucket] = to, room
    return True


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
    return int(card[slot * LINE + MEMBER] & _FREE)


@kernel_inline
def bucket_at(card: UInt64, slot: int) -> int:
    """The bucket of the item in *slot*."""
    return int(card[slot * LINE + MEMBER] >> _HALF)


@kernel_part
def write(
    buckets: Buckets, slot: int, member: int, bucket: int, drafts: Drafts, place: int
) -> None:
    """Put the draft at *place* into *slot*."""
    low = drafts.low[place * MOST_DIMENSIONS : (place + 1) * MOST_DIMENSIONS]
    high = drafts.high[place * MOST_DIMENSIONS : (place + 1) * MOST_DIMENSIONS]
    for dimension in range(GRANULE_DIMENSIONS):
        put_byte(buckets.granule, slot, 2 * dimension, low[dimension])
        put_byte(buckets.granule, slot, 2 * dimension + 1, high[dimension])
    card = buckets.card[slot * LINE : (slot + 1) * LINE]
    card[SIGNATURE] = drafts.signature[place]
    card[MEMBER] = np.uint64(bucket) << _HALF | np.uint64(member)
    pack(low, card[CARD_LOW : CARD_LOW + 3])
    pack(high, card[CARD_HIGH : CARD_HIGH + 3])


@kernel_inline
def pack(steps: np.ndarray, words: UInt64) -> None:
    """The steps of the dimensions that cards hold, eight in a word."""
    for word in range(CARD_DIMENSIONS // 8):
        packed = np.uint64(0)
        for place in range(7, -1, -1):
            step = steps[GRANULE_DIMENSIONS + 8 * word + place]
            packed = packed << np.uint64(8) | np.uint64(step)
        words[word] = packed


@kernel_inline
def put_byte(granule: UInt64, slot: int, word: int, value: int) -> None:
    """Set the byte of *slot* in one word of its granule."""
    at = slot // GRANULE * GRANULE_WORDS + word
    shift = np.uint64(8 * (slot % GRANULE))
    granule[at] = granule[at] & ~(_BYTE << shift) | np.uint64(value) << shift


@kernel_inline
def copy_bytes(granule: UInt64, slot: int, to: int) -> None:
    """Copy what granules hold of *slot* over what they hold of *to*."""
    shift = np.uint64(8 * (slot % GRANULE))
    for word in range(GRANULE_WORDS):
        value = granule[slot // GRANULE * GRANULE_WORDS + word] >> shift & _BYTE
        put_byte(granule, to, word, value)


@kernel_inline
def clear(buckets: Buckets, slot: int) -> None:
    """Free *slot*: next to nothing fits into it, and what does finds no member."""
    put_byte(buckets.granule, slot, 0, LAST_STEP)
    put_byte(buckets.granule, slot, 1, NULL_STEP)
    buckets.card[slot * LINE + MEMBER] = _FREE
