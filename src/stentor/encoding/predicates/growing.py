"""Columns of subscriptions that grow by one predicate at a time."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import SubscriptionColumns, dtypes, read_only
from stentor.encoding.hashing import hash_bytes
from stentor.language.normal_predicates import Interval

UNBOUNDED_HULL: Interval = (-math.inf, math.inf)


#: The arrays of subscriptions: names, dtypes, and what holds nothing.
_FIELDS = [
    (name, np.dtype(dtype), read_only(np.zeros(0, dtype)))
    for name, dtype in dtypes(SubscriptionColumns).items()
]


class Appended(NamedTuple):
    """What a predicate's columns say of it, once its operands are there."""

    kind: int
    hull: Interval = UNBOUNDED_HULL
    start: int = 0  # of its pairs or strings
    stop: int = 0


class AppendedColumns:
    """The arrays of `SubscriptionColumns`; Python's `array` appends in a few nanoseconds."""

    def __init__(self) -> None:
        self.alternative_start = array("q", [0])
        self.predicate_start = array("q", [0])
        self.kind = array("B")
        self.attribute = array("i")
        self.low = array("d")
        self.high = array("d")
        self.weight = array("d")
        self.operand_start = array("i")
        self.operand_stop = array("i")
        self.pair_low = array("d")
        self.pair_high = array("d")
        self.string_hash = array("Q")
        self.string_mark = array("B")
        self.string_start = array("q", [0])
        self.string_bytes = bytearray()
        self.position = array("d")
        self.until = array("q")

    def columns(self) -> SubscriptionColumns:
        """What has been appended, read-only."""
        arrays = []
        for name, dtype, nothing in _FIELDS:
            written = getattr(self, name)
            if written:
                one = np.frombuffer(written, dtype)
                one.flags.writeable = False
            else:
                one = nothing
            arrays.append(one)
        return SubscriptionColumns._make(arrays)

    def add_pairs(self, pairs: Iterable[Interval]) -> None:
        """Append operands that are pairs."""
        for low, high in pairs:
            self.pair_low.append(low)
            self.pair_high.append(high)

    def add_string(self, data: bytes, mark: int, hashed: int | None = None) -> None:
        """Append an operand that is a string, hashed by itself where it is not yet."""
        self.string_hash.append(hash_bytes(data) if hashed is None else hashed)
        self.string_mark.append(mark)
        self.string_bytes += data
        self.string_start.append(len(self.string_bytes))

    def with_pairs(self, kind: int, start: int, hull: Interval = UNBOUNDED_HULL) -> Appended:
        """A predicate whose pairs are those from *start* on."""
        return Appended(kind, hull, start, len(self.pair_low))

    def with_strings(self, kind: int, start: int, hull: Interval = UNBOUNDED_HULL) -> Appended:
        """A predicate whose strings are those from *start* on."""
        return Appended(kind, hull, start, len(self.string_hash))
