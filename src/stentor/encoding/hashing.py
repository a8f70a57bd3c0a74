"""Stable 64-bit hashes of terms and strings, the same in every process; ordered prefixes."""

from __future__ import annotations

from typing import Final

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import Int64, UInt8, UInt64

BASIS: Final = 0xCBF29CE484222325
"""FNV-1a's offset basis: the seed of whatever belongs to no attribute."""

_MASK: Final = (1 << 64) - 1


# Typed, because Numba turns a uint64 combined with a plain integer into a double.
_PRIME: Final = np.uint64(0x100000001B3)

_MIX_1: Final = np.uint64(0xFF51AFD7ED558CCD)

_MIX_2: Final = np.uint64(0xC4CEB9FE1A85EC53)

_SHIFT: Final = np.uint64(33)

_PLAIN_PRIME, _PLAIN_MIX_1, _PLAIN_MIX_2 = int(_PRIME), int(_MIX_1), int(_MIX_2)


def hash_bytes(data: bytes, seed: int = BASIS) -> int:
    """The hash of *data*, in plain Python: the definition that the kernels follow.

    >>> hex(hash_bytes(b"ipad"))
    '0xcc54bd5f6765fdcb'
    """
    value = seed
    for byte in data:
        value = (value ^ byte) * _PLAIN_PRIME & _MASK
    value ^= value >> 33
    value = value * _PLAIN_MIX_1 & _MASK
    value ^= value >> 33
    value = value * _PLAIN_MIX_2 & _MASK
    return value ^ value >> 33


def attribute_seed(name: str) -> int:
    """The seed under which terms of the attribute *name* are hashed.

    >>> hash_bytes(b"ipad", attribute_seed("text")) == hash_bytes(b"ipad", attribute_seed("title"))
    False
    """
    return hash_bytes(name.encode())


@kernel
def absorb(value: np.uint64, byte: np.uint8) -> np.uint64:
    """The running hash *value* after one more *byte*."""
    return (value ^ np.uint64(byte)) * _PRIME


@kernel
def finish(value: np.uint64) -> np.uint64:
    """The hash, once every byte is absorbed: each input bit reaches each output bit."""
    value = (value ^ (value >> _SHIFT)) * _MIX_1
    value = (value ^ (value >> _SHIFT)) * _MIX_2
    return value ^ (value >> _SHIFT)


@kernel
def hash_slice(data: UInt8, start: int, stop: int, seed: np.uint64) -> np.uint64:
    """The hash of ``data[start:stop]``."""
    value = np.uint64(seed)
    for byte in data[start:stop]:
        value = absorb(value, byte)
    return finish(value)


@kernel
def hash_slices(
    data: UInt8,
    offsets: Int64,  # (slices + 1,)
    seed: np.uint64,
    out: UInt64,  # (slices,)
) -> int:
    """Fill *out* with the hash of each slice between two *offsets*; returns how many there are.

    Slices beyond the end of *out* are only counted.
    """
    slices = len(offsets) - 1
    for row in range(min(slices, len(out))):
        out[row] = hash_slice(data, offsets[row], offsets[row + 1], seed)
    return slices


#: Six bytes are what a double holds exactly.
PREFIX_BYTES = 6


def prefix(data: bytes, fill: bytes = b"\0") -> float:
    """The first six bytes of *data* as a number, a shorter string filled up with *fill*.

    >>> prefix(b"a") < prefix(b"ab") < prefix(b"b")
    True
    """
    return float(int.from_bytes(data[:PREFIX_BYTES].ljust(PREFIX_BYTES, fill), "big"))
