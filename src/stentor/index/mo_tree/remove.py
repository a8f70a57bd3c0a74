"""Remove items from buckets: by their slot, or because they have ended."""

from __future__ import annotations

from stentor._jit import inner_kernel, kernel
from stentor.encoding.columns import Int32, Int64
from stentor.index.mo_tree.granules import bucket_at, clear, copy_bytes, member_at
from stentor.index.mo_tree.layout import (
    ITEMS,
    LINE,
    NO_SLOT,
    Buckets,
)
from stentor.model.values.time import NEVER


@kernel
def remove(buckets: Buckets, members: Int64, slot_of: Int32) -> None:
    """Remove *members* from their buckets; those that are in none are passed over."""
    for member in members:
        if slot_of[member] != NO_SLOT:
            remove_item(buckets, member, slot_of)


@kernel
def remove_expired(
    buckets: Buckets, first: int, last: int, until: Int64, now: int, slot_of: Int32
) -> int:
    """Remove from the buckets *first* … *last* what ends at *now* or before; how many.

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
                remove_item(buckets, member, slot_of)  # its slot may hold another item now
                gone += 1
            else:
                soonest = min(soonest, until[member])
                slot += 1
        buckets.soonest[bucket] = soonest
    return gone


@inner_kernel
def remove_item(buckets: Buckets, member: int, slot_of: Int32) -> None:
    """Remove *member*: the last item of the bucket takes its slot."""
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
