"""A string is one of several: found by its hash, confirmed on its bytes."""

from __future__ import annotations

import numpy as np

from stentor._jit import inner_kernel
from stentor.encoding.columns import SubscriptionColumns, UInt8
from stentor.index.verify.scratch import same_bytes


@inner_kernel
def is_one_of(columns: SubscriptionColumns, predicate: int, hashed: np.uint64, text: UInt8) -> bool:
    """Whether *text* is one of the predicate's strings; cost: O(log n) for n of them."""
    start, stop = columns.operand_start[predicate], columns.operand_stop[predicate]
    last = stop
    while start < stop:
        middle = (start + stop) >> 1
        if columns.string_hash[middle] < hashed:
            start = middle + 1
        else:
            stop = middle
    while start < last and columns.string_hash[start] == hashed:
        if same_bytes(
            text,
            columns.string_bytes[columns.string_start[start] : columns.string_start[start + 1]],
        ):
            return True
        start += 1
    return False
