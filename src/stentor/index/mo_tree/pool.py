"""Buckets that items are put into and taken from, of one kind: alternatives, or live events."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import Int64
from stentor.encoding.readonly import all_read_only, read_only
from stentor.errors import CapacityError
from stentor.index.growing import GrowingArray
from stentor.index.mo_tree.layout import (
    END,
    FREE,
    GRANULE,
    GRANULE_WORDS,
    ITEMS,
    LAST_STEP,
    LINE,
    LOST,
    MEMBER,
    NO_SLOT,
    TALLIES,
    Buckets,
    Drafts,
)
from stentor.index.mo_tree.storing import remove, remove_expired, store
from stentor.model.time import NEVER

#: Room for one more in so many, where a bucket is built.
SLACK = 4
MOST_SLOTS = (1 << 31) - 1
#: Fewer lost slots than this never call for a new build.
FEW_LOST = 1024


class Pool:
    """Buckets, and where each member is.

    Invariant: each member is in one bucket at most, and `slot_of` says where.
    Invariant: after a build the slots of each bucket follow those of the bucket before.
    """

    def __init__(self, counts: Int64, *, ending: bool) -> None:
        """Empty buckets, each with room for its *counts* and some more."""
        room = counts + counts // SLACK
        end = int(room.sum())
        self._buckets = Buckets(
            start=np.cumsum(room) - room,
            used=np.zeros(len(counts), np.int32),
            room=room.astype(np.int32),
            soonest=np.full(len(counts) if ending else 0, NEVER, np.int64),
            granule=np.zeros(0, np.uint64),
            card=np.zeros(0, np.uint64),
            tally=np.zeros(TALLIES, np.int64),
        )
        self._buckets.tally[END] = end
        self._slot_of = GrowingArray(np.int32)
        self._mapped_slots: npt.NDArray[np.int32] | None = None
        self._reserve(end)

    @property
    def buckets(self) -> Buckets:
        """All buckets, read-only."""
        return all_read_only(self._buckets)

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
        return sum(array.nbytes for array in self._buckets) + self._slot_of.nbytes

    @property
    def is_scattered(self) -> bool:
        """Whether so many buckets have moved that a build would pay."""
        return bool(self._buckets.tally[LOST] > max(FEW_LOST, self.items))

    def expect(self, members: int) -> None:
        """Know of so many *members* in all, the new ones in no bucket yet."""
        self._slot_of.extend(NO_SLOT, members - len(self._slot_of))

    def store(self, drafts: Drafts, members: Int64) -> None:
        """Put *members* into the buckets that *drafts* say, wherever they were before."""
        done = 0
        while True:
            done = store(
                self._buckets, all_read_only(drafts), read_only(members), self.slot_of, done
            )
            if done == len(members):
                return
            slots = len(self._buckets.card) // LINE
            needed = 2 * (int(self._buckets.used.max(initial=0)) + GRANULE)
            self._reserve(slots + max(slots // 2, needed))

    def remove(self, members: Int64) -> None:
        """Take *members* out, where they are in a bucket, and the buckets not mapped from files."""
        if self._buckets.card.flags.writeable:
            remove(self._buckets, read_only(members), self.slot_of)

    def remove_expired(self, first: int, count: int, until: Int64, now: int) -> int:
        """Look for what has ended in *count* buckets from *first* on, and take it out.

        How many went.
        """
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
        pool = cls(np.zeros(0, np.int64), ending=False)
        pool._buckets = Buckets(*(np.asarray(arrays[name]) for name in Buckets._fields))
        pool._mapped_slots = np.asarray(arrays["slot_of"])
        return pool

    def _reserve(self, slots: int) -> None:
        """Make room for *slots* in all."""
        if slots > MOST_SLOTS:
            raise CapacityError(
                f"{slots:,} slots in the buckets of one MO-Tree, of at most {MOST_SLOTS:,}; "
                "split the subscriptions over several indexes"
            )
        granules = -(-slots // GRANULE)
        granule = aligned(granules * GRANULE_WORDS)
        card = aligned(granules * GRANULE * LINE)
        had = len(self._buckets.granule)
        granule[:had] = self._buckets.granule
        card[: len(self._buckets.card)] = self._buckets.card
        granule[had::GRANULE_WORDS] = LAST_STEP * 0x0101_0101_0101_0101
        card[len(self._buckets.card) + MEMBER :: LINE] = FREE
        self._buckets = self._buckets._replace(granule=granule, card=card)


def aligned(words: int) -> npt.NDArray[np.uint64]:
    """Zeros that begin where a pair of cache lines does, so that nothing touches one too many."""
    room = np.zeros(words + 2 * LINE, np.uint64)
    start = -(room.ctypes.data // room.itemsize) % (2 * LINE)
    return room[start : start + words]
