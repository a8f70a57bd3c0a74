"""The set bits of a word, one after the other."""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel_inline

NO_BITS = np.uint64(0)

_ONE = np.uint64(1)
_TOP_SIX = np.uint64(58)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
#: The place of a single bit, by the top six bits of its product with the de Bruijn number.
_PLACE_OF = np.array(
    sorted(range(64), key=lambda place: (int(_DE_BRUIJN) << place & (1 << 64) - 1) >> 58)
)


@kernel_inline
def bit_at(place: int) -> np.uint64:
    """A word with the bit at *place*, 0 … 63, alone."""
    return _ONE << np.uint64(place)


@kernel_inline
def lowest_bit(bits: np.uint64) -> np.uint64:
    """The lowest set bit of *bits*, by itself."""
    return bits & (~bits + _ONE)


@kernel_inline
def place_of(bit: np.uint64) -> int:
    """The place, 0 … 63, of a single *bit*."""
    return int(_PLACE_OF[np.int64((bit * _DE_BRUIJN) >> _TOP_SIX)])
