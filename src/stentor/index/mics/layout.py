"""The arrays of MICS: ranges with their owners and filters, sorted; a query against them.

Eight ranges and their filters lie together, so that one comparison of words says which meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel
from stentor.encoding.columns import Int32, Int64, UInt8, UInt64, all_read_only, read_only

#: Ranges that are compared at a time, in so many words: a line of the cache, a vector register.
GRANULE, WORDS = 64, 8


#: The kind of ranges in no order: those of the tail.
UNSORTED: Final = 64


class SortedRanges(NamedTuple):
    """Ranges of about one length after those of another, each sorted by low ends."""

    kind: UInt8  # (kinds,) the bits of a range's length, or UNSORTED
    kind_start: Int64  # (kinds + 1,)
    low: UInt64  # (ranges,)
    high: UInt64  # (ranges,)
    owner: Int32  # (ranges,)
    stamp: Int32  # (ranges,) which of the owner's ranges these are: earlier ones hold no longer
    word: UInt64  # (granules × rows × WORDS,)

    @property
    def size(self) -> int:
        """How many ranges there are."""
        return len(self.owner)


class OwnedRanges(NamedTuple):
    """Ranges in any order, each with the bytes of its owner."""

    low: UInt64  # (ranges,)
    high: UInt64  # (ranges,)
    owner: Int32  # (ranges,)
    stamp: Int32  # (ranges,)
    byte: UInt8  # (ranges, rows)

    def at(self, positions: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> OwnedRanges:
        """Those at *positions*."""
        arrays: Any = (array[positions] for array in self)
        return OwnedRanges(*arrays)


def joined(parts: Sequence[OwnedRanges]) -> OwnedRanges:
    """The ranges of all *parts*."""
    arrays: Any = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return OwnedRanges(*arrays)


def sorted_leaves(pieces: OwnedRanges) -> SortedRanges:
    """*pieces* in the order in which they are matched. Cost: a sort."""
    kind = _bits_of(pieces.high - pieces.low)
    order = np.lexsort((pieces.low, kind))
    kinds, counts = np.unique(kind, return_counts=True)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return _packed(kinds, starts, pieces, order)


def unsorted_leaves(pieces: OwnedRanges) -> SortedRanges:
    """*pieces* as they are: each is looked at every time."""
    count = len(pieces.owner)
    kinds, starts = np.full(1, UNSORTED, np.uint8), np.array([0, count])
    return _packed(kinds, starts, pieces, np.arange(count))


def pieces_of(leaves: SortedRanges, rows: int) -> OwnedRanges:
    """The ranges of *leaves* with their bytes."""
    granules = -(-leaves.size // GRANULE)
    by_granule = leaves.word.view(np.uint8).reshape(granules, rows, GRANULE)
    byte = by_granule.transpose(0, 2, 1).reshape(granules * GRANULE, rows)[: leaves.size]
    return OwnedRanges(leaves.low, leaves.high, leaves.owner, leaves.stamp, byte)


def _packed(kinds: UInt8, starts: Int64, pieces: OwnedRanges, order: Int64) -> SortedRanges:
    rows = pieces.byte.shape[1]
    word = np.zeros(-(-len(order) // GRANULE) * rows * WORDS, np.uint64)
    byte = read_only(np.ascontiguousarray(pieces.byte).reshape(-1))
    _pack(byte, read_only(order), rows, word.view(np.uint8))
    low, high, owner, stamp, _ = pieces.at(order)
    return all_read_only(
        SortedRanges(kinds.astype(np.uint8), starts, low, high, owner, stamp, word)
    )


def _bits_of(lengths: UInt64) -> UInt8:
    """How many bits each of *lengths* has."""
    bits = np.zeros(len(lengths), np.uint8)
    left = lengths.copy()
    for step in (32, 16, 8, 4, 2, 1):
        is_long = left >= np.uint64(1 << step)
        bits[is_long] += step
        left[is_long] >>= np.uint64(step)
    return bits + (left > 0).astype(np.uint8)


@kernel
def _pack(given: UInt8, order: Int64, rows: int, byte: UInt8) -> None:
    """Write the bytes of each range to its position in the words."""
    for position in range(len(order)):
        start = position // GRANULE * rows * GRANULE + position % GRANULE
        source = order[position] * rows
        for row in range(rows):
            byte[start + row * GRANULE] = given[source + row]


class RangeQuery(NamedTuple):
    """Queries: ranges, first and last cells, and signatures."""

    start: Int64  # (queries + 1,)
    low: UInt64  # (ranges,)
    high: UInt64  # (ranges,)
    first: UInt8  # (queries × filters,)
    last: UInt8  # (queries × filters,)
    signature: UInt64  # (queries,)
