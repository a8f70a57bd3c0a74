"""Lines of 512 bits as eight words, which a compiler keeps in registers."""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel_inline
from stentor.encoding.columns import UInt64
from stentor.index.bit_places import NO_BITS
from stentor.index.scan.layout import WORDS

Words = tuple[
    np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64
]


@kernel_inline
def words_of(line: UInt64, number: int) -> Words:
    """The words of the line *number* of a block."""
    w = line[number * WORDS : (number + 1) * WORDS]
    return w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]


@kernel_inline
def both(a: Words, b: Words) -> Words:
    """The bits that are in both."""
    return (
        a[0] & b[0],
        a[1] & b[1],
        a[2] & b[2],
        a[3] & b[3],
        a[4] & b[4],
        a[5] & b[5],
        a[6] & b[6],
        a[7] & b[7],
    )


@kernel_inline
def either(a: Words, b: Words) -> Words:
    """The bits that are in either."""
    return (
        a[0] | b[0],
        a[1] | b[1],
        a[2] | b[2],
        a[3] | b[3],
        a[4] | b[4],
        a[5] | b[5],
        a[6] | b[6],
        a[7] | b[7],
    )


@kernel_inline
def is_empty(a: Words) -> bool:
    """Whether no bit is set."""
    return bool((a[0] | a[1] | a[2] | a[3] | a[4] | a[5] | a[6] | a[7]) == NO_BITS)


@kernel_inline
def store(a: Words, words: UInt64) -> None:
    """Write *a* where words can be reached by number."""
    words[0], words[1], words[2], words[3] = a[0], a[1], a[2], a[3]
    words[4], words[5], words[6], words[7] = a[4], a[5], a[6], a[7]


@kernel_inline
def keep_signed(words: UInt64, signature: UInt64, lacking: np.uint64) -> None:
    """Keep the slots whose signature has no *lacking* bit, without a branch for each."""
    for word in range(WORDS):
        signed = NO_BITS
        for place in range(64):
            fits = signature[64 * word + place] & lacking == NO_BITS
            signed |= np.uint64(fits) << np.uint64(place)
        words[word] &= signed
