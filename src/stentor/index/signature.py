"""64 bits of what an alternative needs, and of what an event has.

An alternative can only hold where the event has all of its bits. It sets three bits for each term
that it needs, for the only string that an attribute may be, and for an attribute that must be
there; attributes that have a filter are left out, since the filter tests them.
"""

from __future__ import annotations

import numpy as np

from stentor._jit import inner_kernel, kernel_inline
from stentor.encoding.columns import LAST, EventColumns, Int32, SubscriptionColumns
from stentor.encoding.kinds import KEYWORDS, MEMBERSHIP, MISSING

_ONE = np.uint64(1)
_SIX = np.uint64(6)
_TWELVE = np.uint64(12)
_HALF = np.uint64(32)
_SIX_BITS = np.uint64(63)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: it spreads small codes


@kernel_inline
def bits_of(hashed: np.uint64) -> np.uint64:
    """Three bits chosen by *hashed*; some may coincide."""
    first = _ONE << (hashed & _SIX_BITS)
    second = _ONE << (hashed >> _SIX & _SIX_BITS)
    return first | second | _ONE << (hashed >> _TWELVE & _SIX_BITS)


@kernel_inline
def attribute_hash(attribute: int) -> np.uint64:
    """A hash of the code *attribute*."""
    spread = (np.uint64(attribute) + _ONE) * _GOLDEN
    return spread ^ (spread >> _HALF)


@kernel_inline
def is_filtered(first_of: Int32, attribute: int) -> bool:
    """Whether *attribute* has a filter."""
    return attribute < len(first_of) and first_of[attribute] >= 0


@inner_kernel
def alternative_signature(
    columns: SubscriptionColumns, alternative: int, first_of: Int32
) -> np.uint64:
    """The bits that *alternative* needs."""
    signature = np.uint64(0)
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        kind, attribute = columns.kind[predicate], columns.attribute[predicate]
        if kind in (MEMBERSHIP, KEYWORDS):
            start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
            if kind == MEMBERSHIP and stop - start == 1:
                signature |= bits_of(columns.string_hash[start] ^ attribute_hash(attribute))
                continue
            if kind == KEYWORDS and is_one_group(columns, start, stop):
                for string in range(start, stop):
                    signature |= bits_of(columns.string_hash[string])
                continue
        if kind != MISSING and not is_filtered(first_of, attribute):
            signature |= bits_of(attribute_hash(attribute))
    return signature


@kernel_inline
def is_one_group(columns: SubscriptionColumns, start: int, stop: int) -> bool:
    """Whether all terms of the slice are needed: only its last one ends a group."""
    for string in range(start, stop - 1):
        if columns.string_mark[string] == LAST:
            return False
    return True


@inner_kernel
def event_signature(events: EventColumns, event: int, first_of: Int32) -> np.uint64:
    """The bits that *event* has."""
    signature = np.uint64(0)
    for value in range(events.value_start[event], events.value_start[event + 1]):
        attribute, string = events.attribute[value], events.string[value]
        name = attribute_hash(attribute)
        if string >= 0:
            signature |= bits_of(events.string_hash[string] ^ name)
        if not is_filtered(first_of, attribute):
            signature |= bits_of(name)
    for term in range(events.term_start[event], events.term_start[event + 1]):
        signature |= bits_of(events.term_hash[term])
    return signature
