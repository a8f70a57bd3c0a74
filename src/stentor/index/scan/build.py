"""Blocks of alternatives, which are built, appended to, changed and removed from."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from stentor._jit import direct
from stentor.encoding.columns import (
    Float64,
    Int64,
    SubscriptionColumns,
    UInt64,
    all_read_only,
    read_only,
)
from stentor.index.scan.filters import choose_filters
from stentor.index.scan.insert import insert_slots
from stentor.index.scan.layout import BLOCK, LIVE, WORDS, ScanBlockArrays, ScanFilters

#: Fewer changes than this never call for a new choice of filters.
FEW = 64
_enter = direct(insert_slots)


class ScanBlocks:
    """Blocks and their filters, which are chosen anew when the alternatives have doubled.

    Invariant: members ascend; a slot is never given to another alternative.
    Invariant: no line excludes a cell in which a live member could hold.
    """

    filters: ScanFilters
    left: Float64  # (lines,) the share of alternatives that each line leaves, when last chosen

    def __init__(self, filters: ScanFilters) -> None:
        self.filters = all_read_only(filters)
        self.lines = int(filters.line_start[-1])  # of each block
        self.left = read_only(np.ones(self.lines))
        self._view: tuple[int, ScanBlockArrays, ScanBlockArrays] | None = None
        self._blocks = ScanBlockArrays(
            np.zeros(0, np.int64), np.zeros(0, np.uint64), aligned_zeros(0)
        )
        self._count = self._chosen_for = self._retired = 0

    @classmethod
    def build(cls, columns: SubscriptionColumns, alternatives: Int64) -> Self:
        """Blocks of *alternatives* under the filters that suit them best."""
        store = cls(choose_filters(columns, alternatives))
        store.append(columns, alternatives)
        store._chosen_for = store._count
        bits = np.bitwise_count(store._blocks.line.reshape(-1, store.lines, WORDS))
        store.left = read_only(bits.sum((0, 2)) / max(1, store._count))
        return store

    @property
    def count(self) -> int:
        """Slots that are taken, those of removed alternatives too."""
        return self._count

    @property
    def reach(self) -> int:
        """The number of alternatives that there must be, at least."""
        return int(self._blocks.member[self._count - 1]) + 1 if self._count else 0

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self._blocks, *self.filters, self.left))

    @property
    def blocks(self) -> ScanBlockArrays:
        """The blocks that are in use, read-only; made anew when there are more of them."""
        used = -(-self._count // BLOCK)
        if self._view is None or self._view[0] != used or self._view[1] is not self._blocks:
            member, signature, line = self._blocks
            view = all_read_only(
                ScanBlockArrays(
                    member[: used * BLOCK],
                    signature[: used * BLOCK],
                    line[: used * self.lines * WORDS],
                )
            )
            self._view = used, self._blocks, view
        return self._view[2]

    def is_stale(self, added: int = 0) -> bool:
        """Whether *added* more would double what the filters were chosen for, or half is gone."""
        doubled = self._count + added > 2 * max(FEW, self._chosen_for)
        return doubled or self._retired > max(FEW, self._count // 2)

    def append(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """Give *alternatives*, which follow all earlier ones, the next slots.

        Cost: about 0.3 µs each.
        """
        slots = np.arange(self._count, self._count + len(alternatives))
        self._reserve(self._count + len(alternatives))
        self._blocks.member[slots] = alternatives
        self._count += len(alternatives)
        _enter(columns, self.filters, self._blocks, read_only(slots))

    def refresh(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """Set the bits of *alternatives* anew, after their subscribers have moved."""
        _enter(columns, self.filters, self._blocks, read_only(self._slots_of(alternatives)))

    def retire(self, alternatives: Int64) -> None:
        """Clear the live bits of *alternatives*, where they are not mapped from a file."""
        line = self._blocks.line
        if not line.flags.writeable:
            return
        slots = self._slots_of(alternatives)
        word = slots // BLOCK * (self.lines * WORDS) + LIVE * WORDS + slots % BLOCK // 64
        bit = np.uint64(1) << (slots % 64).astype(np.uint64)
        self._retired += int(np.count_nonzero(line[word] & bit))
        np.bitwise_and.at(line, word, ~bit)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, to be written to files; `over` takes it back."""
        named = {**self.blocks._asdict(), **self.filters._asdict(), "left": self.left}
        return {**named, "count": np.array([self._count])}

    @classmethod
    def over(cls, arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """Read-only blocks over *arrays*, of which nothing is copied."""
        store = cls(ScanFilters(*(arrays[name] for name in ScanFilters._fields)))
        store.left = arrays["left"]
        store._blocks = ScanBlockArrays(*(arrays[name] for name in ScanBlockArrays._fields))
        store._count = store._chosen_for = int(arrays["count"][0])
        return store

    def _slots_of(self, alternatives: Int64) -> Int64:
        """The slots of those of *alternatives* that have one, ascending, each once."""
        members = self._blocks.member[: self._count]
        if len(alternatives) == 1:
            slot = int(np.searchsorted(members, alternatives[0]))
            is_there = slot < self._count and members[slot] == alternatives[0]
            return np.array([slot] if is_there else [], np.int64)
        slots = np.searchsorted(members, np.unique(alternatives))
        slots = slots[slots < self._count]
        return slots[np.isin(members[slots], alternatives)]

    def _reserve(self, slots: int) -> None:
        """Grow to *slots* in all."""
        blocks, capacity = -(-slots // BLOCK), len(self._blocks.member) // BLOCK
        if blocks <= capacity:
            return
        blocks = max(blocks, capacity + capacity // 2)
        grown = ScanBlockArrays(
            np.zeros(blocks * BLOCK, np.int64),
            np.zeros(blocks * BLOCK, np.uint64),
            aligned_zeros(blocks * self.lines * WORDS),
        )
        for new, old in zip(grown, self._blocks, strict=True):
            new[: len(old)] = old
        self._blocks = grown


def aligned_zeros(words: int) -> UInt64:
    """Zeros that begin where a cache line does, so that no line of bits touches two."""
    capacity = np.zeros(words + WORDS - 1, np.uint64)
    start = -(capacity.ctypes.data // capacity.itemsize) % WORDS
    return capacity[start : start + words]
