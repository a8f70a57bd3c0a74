"""Where an open-addressing table looks for a hash: spread by multipliers that nobody can guess.

The hashes themselves are known to everybody and stay in saved folders; whoever knew the slots too
could send words that all want one of them. Kernels get the multipliers as data: constants would be
compiled into what the cache keeps.
"""

from __future__ import annotations

import secrets
from typing import Final

import numpy as np

from stentor._jit import kernel_inline
from stentor.encoding.columns import UInt8, UInt64, read_only

FIRST, SECOND, BASE, SHIFT = range(4)  # the fields of a spread
_HALF: Final = np.uint64(32)
_LESS: Final = np.uint64(29)
#: Mersenne's prime: bytes are a number to an unknown base, modulo this.
_PRIME: Final = np.uint64(2**31 - 1)

# Of this process, and of what it saves.
_MULTIPLIERS = secrets.randbits(64) | 1, secrets.randbits(64) | 1
_BASE = 256 + secrets.randbelow(2**31 - 512)


def spread_over(slots: int) -> UInt64:
    """What spreads hashes over *slots*, a power of two from 2 on."""
    bits = slots.bit_length() - 1
    if slots < 2 or slots != 1 << bits:
        raise ValueError(f"a table has a power of two of slots, got {slots}")
    return read_only(np.array([*_MULTIPLIERS, _BASE, 64 - bits], np.uint64))


@kernel_inline
def first_slot(spread: UInt64, hashed: np.uint64) -> int:
    """Where the look-up of *hashed* starts.

    Multiplied once, hashes in even steps would stay in even steps: full slots beside full slots.
    """
    mixed = hashed * spread[FIRST]
    mixed = (mixed ^ mixed >> _HALF) * spread[SECOND]
    mixed = (mixed ^ mixed >> _LESS) * spread[FIRST]
    return int(np.int64(mixed >> spread[SHIFT]))


@kernel_inline
def slot_of_bytes(spread: UInt64, data: UInt8) -> int:
    """Where the look-up of *data* goes on if another word has the same hash."""
    value = np.uint64(1)
    for byte in data:
        value = (value * spread[BASE] + np.uint64(byte)) % _PRIME
    return first_slot(spread, value)
