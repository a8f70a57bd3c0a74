"""Verdicts of the compiled comparison, kinds of attributes, operands that are equal to the byte."""

from __future__ import annotations

import math
from typing import Final

from stentor._jit import inner_kernel, kernel_inline
from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.kinds import KIND_MASK, has_pairs
from stentor.index.verify.scratch import same_bytes

# Kinds of attributes, by code.
UNKNOWN, NUMBER, BOOLEAN, STRING, POINT = range(5)

#: Both agree with the definition; UNDECIDED leaves it to the definition.
NOT_COVERED: Final = 0
COVERED: Final = 1
UNDECIDED: Final = 2


@inner_kernel
def same_operands(columns: SubscriptionColumns, one: int, other: int) -> bool:
    """Whether two predicates are the same region, or the same test of strings."""
    kind = columns.kind[one] & KIND_MASK
    if columns.kind[one] != columns.kind[other]:
        return False
    start, stop = columns.operand_start[one], columns.operand_stop[one]
    shift = columns.operand_start[other] - start
    if columns.operand_stop[other] - stop != shift:
        return False
    if has_pairs(kind):
        for pair in range(start, stop):
            low, high = columns.pair_low[pair], columns.pair_high[pair]
            other_low, other_high = columns.pair_low[pair + shift], columns.pair_high[pair + shift]
            ends_ring = math.isnan(low) and math.isnan(other_low) and pair > start + 1
            if not ends_ring and (low != other_low or high != other_high):
                return False
        return True
    for string in range(start, stop):
        if columns.string_mark[string] != columns.string_mark[string + shift]:
            return False
        if not same_string(columns, string, string + shift):
            return False
    return True


@kernel_inline
def same_string(columns: SubscriptionColumns, one: int, other: int) -> bool:
    """Whether two strings are the same: their hashes say not, their bytes decide."""
    return columns.string_hash[one] == columns.string_hash[other] and same_bytes(
        columns.string_bytes[columns.string_start[one] : columns.string_start[one + 1]],
        columns.string_bytes[columns.string_start[other] : columns.string_start[other + 1]],
    )
