"""Which keywords come next at which k-node: a Bloom filter for all of them.

A cut reaches over keywords that nobody has there. The filter tells them apart, so that a message
visits a cut only for a keyword that some entry has (as equation 3 has it). Bits stay when entries
go; a filter is made anew with the tree.
"""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel_inline
from stentor.encoding.columns import UInt64

#: Bits of the filter by entry, when it is made.
BITS = 16
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SIX_BITS = np.uint64(63)
_ONE = np.uint64(1)
_HALF = np.uint64(32)
_FAR = np.uint64(40)
_FARTHER = np.uint64(52)


def words_for(entries: int) -> int:
    """How many words a filter for *entries* has: a power of two."""
    return 1 << (BITS * max(entries, 1024) // 64 - 1).bit_length()


@kernel_inline
def mixed(node: int, rank: int) -> np.uint64:
    """64 bits of a pair."""
    pair = np.uint64(node) << _HALF ^ np.uint64(rank)
    spread = (pair ^ (pair >> _HALF)) * _GOLDEN
    return (spread ^ (spread >> _HALF)) * _GOLDEN


@kernel_inline
def bits_in_word(hashed: np.uint64) -> np.uint64:
    """The two bits of a pair in its word."""
    return _ONE << (hashed >> _FAR & _SIX_BITS) | _ONE << (hashed >> _FARTHER & _SIX_BITS)


@kernel_inline
def add_presence(present: UInt64, node: int, rank: int) -> None:
    """Let *rank* be next at *node*."""
    hashed = mixed(node, rank)
    present[np.int64(hashed & np.uint64(len(present) - 1))] |= bits_in_word(hashed)


@kernel_inline
def may_be_present(present: UInt64, node: int, rank: int) -> bool:
    """Whether some entry at *node* may have *rank* next."""
    hashed = mixed(node, rank)
    bits = bits_in_word(hashed)
    return bool(present[np.int64(hashed & np.uint64(len(present) - 1))] & bits == bits)
