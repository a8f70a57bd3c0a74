"""Buckets of items of one kind: alternatives, or live events."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import Int64, all_read_only, read_only
from stentor.errors import CapacityError
from stentor.index.arena import GrowingArray, spacious, touched
from stentor.index.mo_tree.granules import free_slots
from stentor.index.mo_tree.insert import insert_items
from stentor.index.mo_tree.layout import (
    END,
    GRANULE,
    GRANULE_WORDS,
    ITEMS,
    LINE,
    LOST,
    NO_SLOT,
    TALLIES,
    Buckets,
    MoItems,
)
from stentor.index.mo_tree.remove import remove, remove_expired
from stentor.model.values.time import NEVER

#: A bucket that is built has one spare slot for so many items.
SLACK = 4
MOST_SLOTS = (1 << 31) - 1
#: Fewer lost slots than this never call for a new build.
FEW_LOST = 1024


class BucketTable:
    """Buckets, and where each member is.

    Invariant: each member is in one bucket at most, and `slot_of` says where.
    Invariant: after a build the slots of each bucket follow those of the bucket before.
    """

    def __init__(self, counts: Int64, *, ending: bool) -> None:
        """Empty buckets, each with a capacity of its *counts* and some more."""
        capacity = counts + counts // SLACK
        end = int(capacity.sum())
        self._buckets = Buckets(
            start=np.cumsum(capacity) - capacity,
            used=np.zeros(len(counts), np.int32),
            room=capacity.astype(np.int32),
            soonest=np.full(len(counts) if ending else 0, NEVER, np.int64),
            granule=np.zeros(0, np.uint64),
            card=np.zeros(0, np.uint64),
            tally=np.zeros(TALLIES, np.int64),
        )
        self._buckets.tally[END] = end
        self._view: tuple[Buckets, Buckets] | None = None
        self._slot_of = GrowingArray(np.int32)
        self._mapped_slots: npt.NDArray[np.int32] | None = None
        self._reserve(end)
        free_slots(self._buckets, 0, end)

    @property
    def buckets(self) -> Buckets:
        """All buckets, read-only; made anew when they have grown."""
        if self._view is None or self._view[0] is not self._buckets:
            self._view = self._buckets, all_read_only(self._buckets)
        return self._view[1]

    @property
    def writable(self) -> Buckets:
        """All buckets, to be changed in place."""
        return self._buckets

    @property
    def slot_of(self) -> npt.NDArray[np.int32]:
        """The slot of each member, or NO_SLOT; to be changed in place."""
        if self._mapped_slots is not None:
            return self._mapped_slots
        view: npt.NDArray[np.int32] = self._slot_of.writable
        return view

    @property
    def items(self) -> int:
        return int(self._buckets.tally[ITEMS])

    @property
    def empty_nbytes(self) -> int:
        """Bytes that the buckets take while nothing is in them."""
        return sum(array.nbytes for array in self._buckets[:4])

    @property
    def nbytes(self) -> int:
        slots = int(self._buckets.tally[END])
        granule = touched(self._buckets.granule, slots // GRANULE * GRANULE_WORDS)
        card = touched(self._buckets.card, slots * LINE)
        return self.empty_nbytes + granule + card + self._slot_of.nbytes

    @property
    def needs_rebuild(self) -> bool:
        """Whether so many buckets have grown that a rebuild would pay."""
        return bool(self._buckets.tally[LOST] > max(FEW_LOST, self.items))

    def expect(self, members: int) -> None:
        """Grow `slot_of` to so many *members*, the new ones in no bucket yet."""
        self._slot_of.extend(NO_SLOT, members - len(self._slot_of))

    def insert(self, items: MoItems, members: Int64) -> None:
        """Insert *members* into the buckets of their *items*, wherever they were before."""
        done = 0
        while True:
            done = insert_items(
                self._buckets, all_read_only(items), read_only(members), self.slot_of, done
            )
            if done == len(members):
                return
            slots = len(self._buckets.card) // LINE
            needed = 2 * (int(self._buckets.used.max(initial=0)) + GRANULE)
            self._reserve(slots + max(slots // 2, needed))

    def remove(self, members: Int64) -> None:
        """Remove *members* that are in a bucket, unless the buckets are mapped from files."""
        if self._buckets.card.flags.writeable:
            remove(self._buckets, read_only(self.contained(members)), self.slot_of)

    def members(self) -> Int64:
        """All members that are in a bucket."""
        return np.flatnonzero(self.slot_of != NO_SLOT)

    def contained(self, members: Int64) -> Int64:
        """Those of *members* that are in a bucket."""
        known = members[members < len(self.slot_of)]
        return np.asarray(known[self.slot_of[known] != NO_SLOT])

    def remove_expired(self, first: int, count: int, until: Int64, now: int) -> int:
        """Remove what has ended from *count* buckets from *first* on; how many were removed."""
        last = min(first + count, len(self._buckets.used)) - 1
        return remove_expired(self._buckets, first, last, until, now, self.slot_of)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, to be written to files; `over` takes it back."""
        slots = -(-int(self._buckets.tally[END]) // GRANULE) * GRANULE
        trimmed = self._buckets._replace(
            granule=self._buckets.granule[: slots // GRANULE * GRANULE_WORDS],
            card=self._buckets.card[: slots * LINE],
        )
        return {**trimmed._asdict(), "slot_of": read_only(self.slot_of)}

    @classmethod
    def over(cls, arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """Read-only buckets over *arrays*, of which nothing is copied."""
        table = cls(np.zeros(0, np.int64), ending=False)
        table._buckets = Buckets(*(np.asarray(arrays[name]) for name in Buckets._fields))
        table._mapped_slots = np.asarray(arrays["slot_of"])
        return table

    def _reserve(self, slots: int) -> None:
        """Grow to *slots* in all."""
        if slots > MOST_SLOTS:
            raise CapacityError(
                f"{slots:,} slots in the buckets of one MO-Tree, of at most {MOST_SLOTS:,}; "
                "split the subscriptions over several indexes"
            )
        granules = -(-slots // GRANULE)
        granule = aligned(granules * GRANULE_WORDS)
        granules = min(len(granule) // GRANULE_WORDS, MOST_SLOTS // GRANULE)
        card = aligned(granules * GRANULE * LINE)[: granules * GRANULE * LINE]
        granule = granule[: granules * GRANULE_WORDS]
        granule[: len(self._buckets.granule)] = self._buckets.granule
        card[: len(self._buckets.card)] = self._buckets.card
        self._buckets = self._buckets._replace(granule=granule, card=card)


def aligned(words: int) -> npt.NDArray[np.uint64]:
    """At least so many zeros, a whole number of granules, aligned to a pair of cache lines."""
    capacity = spacious(words + 2 * LINE, np.uint64)
    start = -(capacity.ctypes.data // capacity.itemsize) % (2 * LINE)
    return capacity[start : start + (len(capacity) - 2 * LINE) // GRANULE_WORDS * GRANULE_WORDS]
