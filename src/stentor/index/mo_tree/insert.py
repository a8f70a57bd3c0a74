"""Insert items into buckets, O(1) each once the bucket is known; buckets grow."""

from __future__ import annotations

import numpy as np

from stentor._intrinsics import prefetch
from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import Int32, Int64
from stentor.index.mo_tree.granules import (
    bucket_at,
    copy_bytes,
    copy_granules,
    free_slots,
    member_at,
    write,
)
from stentor.index.mo_tree.layout import (
    END,
    GRANULE,
    GRANULE_WORDS,
    ITEMS,
    LINE,
    LOST,
    NO_SLOT,
    Buckets,
    MoItems,
)
from stentor.index.mo_tree.remove import remove_item

#: The least capacity of a bucket that has grown.
LEAST_CAPACITY = 4


#: How many items ahead memory is prefetched.
AHEAD = 8


@kernel
def insert_items(
    buckets: Buckets, items: MoItems, members: Int64, slot_of: Int32, start: int
) -> int:
    """Insert *members*, from the one at *start* on, into the buckets of their *items*.

    Returns how many were done: fewer than there are where the slots have run out. A member that is
    in a bucket already is moved, or in the same bucket gets a new card.
    """
    for position in range(start, len(members)):
        if position + 2 * AHEAD < len(members):
            prefetch(buckets.start, items.bucket[position + 2 * AHEAD])
            prefetch(buckets.used, items.bucket[position + 2 * AHEAD])
            prefetch(buckets.room, items.bucket[position + 2 * AHEAD])
            prefetch(slot_of, members[position + 2 * AHEAD])
            prefetch_buckets(
                buckets, items.bucket[position + AHEAD], slot_of[members[position + AHEAD]]
            )
        member, bucket = members[position], items.bucket[position]
        slot = slot_of[member]
        if slot == NO_SLOT or bucket_at(buckets.card, slot) != bucket:
            if buckets.used[bucket] == buckets.room[bucket] and not grow_bucket(
                buckets, bucket, slot_of
            ):
                return position
            if slot != NO_SLOT:
                remove_item(buckets, member, slot_of)
            slot = np.int32(buckets.start[bucket] + buckets.used[bucket])
            buckets.used[bucket] += 1
            buckets.tally[ITEMS] += 1
            slot_of[member] = slot
        write(buckets, slot, member, bucket, items, position)
        if len(buckets.soonest) > 0 and items.until[position] < buckets.soonest[bucket]:
            buckets.soonest[bucket] = items.until[position]
    return len(members)


@kernel_inline
def prefetch_buckets(buckets: Buckets, bucket: int, slot: int) -> None:
    """Prefetch the next free slot of *bucket*, and *slot* where it is one."""
    last = len(buckets.card) // LINE - 1
    free = min(last, buckets.start[bucket] + buckets.used[bucket])
    prefetch(buckets.card, free * LINE)
    prefetch(buckets.granule, free // GRANULE * GRANULE_WORDS)
    prefetch(buckets.granule, free // GRANULE * GRANULE_WORDS + LINE)
    if slot != NO_SLOT:
        prefetch(buckets.card, slot * LINE)


@inner_kernel
def grow_bucket(buckets: Buckets, bucket: int, slot_of: Int32) -> bool:
    """Move *bucket* to the end of the slots with twice the capacity; False if too few are left."""
    used, start, end = buckets.used[bucket], buckets.start[bucket], buckets.tally[END]
    capacity = max(LEAST_CAPACITY, 2 * used)
    to = end
    if used >= GRANULE:  # then it pays to move granules as a whole
        to = (end + GRANULE - 1) // GRANULE * GRANULE
    if (to + capacity) * LINE > len(buckets.card):
        return False
    card, copy = buckets.card[start * LINE :], buckets.card[to * LINE :]
    for word in range(used * LINE):
        copy[word] = card[word]
    if used >= GRANULE:
        copy_granules(buckets.granule, start, used, to)
    else:
        for position in range(used):
            copy_bytes(buckets.granule, start + position, to + position)
    for slot in range(to, to + used):
        slot_of[member_at(buckets.card, slot)] = np.int32(slot)
    free_slots(buckets, to + used, to + capacity)
    buckets.tally[LOST] += buckets.room[bucket] + to - end
    buckets.tally[END] = to + capacity
    buckets.start[bucket], buckets.room[bucket] = to, capacity
    return True
