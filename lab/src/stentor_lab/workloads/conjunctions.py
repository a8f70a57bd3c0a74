"""Columns of a million subscriptions of one form, without a Python object for any of them.

They equal what the encoders give for the same expressions; the tests hold them to it. What events
of workloads need for `assemble` and for Arrow stands here too.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import (
    LAST,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
    empty,
    read_only_columns,
)
from stentor.encoding.events import AttributeColumn, EventTimes, StringColumn
from stentor.encoding.hashing import attribute_seed, hash_slices
from stentor.encoding.predicates.circle import write_circles
from stentor.model import Box
from stentor.model.values.time import BEGINNING, NEVER
from stentor_lab.workloads.distributions import Booleans, rounded

Array = TypeVar("Array", Float64, Int64, UInt8, Booleans)

#: Of coordinates in degrees: steps of about ten metres.
DECIMALS = 4


class Boxes(NamedTuple):
    """One box for each subscription."""

    west: Float64  # (subscriptions,)
    south: Float64  # (subscriptions,)
    east: Float64  # (subscriptions,)
    north: Float64  # (subscriptions,)

    @classmethod
    def around(cls, space: Box, x: Float64, y: Float64, width: Float64, height: Float64) -> Boxes:
        """Boxes with the given centres and sides, cut off at the borders of *space*."""
        corners = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        lows = space.west, space.south, space.west, space.south
        highs = space.east, space.north, space.east, space.north
        return cls(
            *(
                rounded(np.clip(corner, low, high), DECIMALS)
                for corner, low, high in zip(corners, lows, highs, strict=True)
            )
        )


class Pairs(NamedTuple):
    """As many pairs of numbers for each subscription: what its region is made of."""

    low: Float64  # (subscriptions, pairs)
    high: Float64  # (subscriptions, pairs)

    @property
    def each(self) -> int:
        return int(self.low.shape[1])

    @classmethod
    def of_boxes(cls, boxes: Boxes) -> Pairs:
        """One box each."""
        low = np.stack((boxes.west, boxes.south), axis=1)
        return cls(low, np.stack((boxes.east, boxes.north), axis=1))

    @classmethod
    def of_circles(cls, x: Float64, y: Float64, radius: Float64) -> Pairs:
        """One circle around the subscriber each, who is at (x, y) on the globe."""
        low, high = np.empty((len(x), 5)), np.empty((len(x), 5))
        write_circles(low, high, x, y, radius, False)
        low[:, 4], high[:, 4] = radius, 0.0
        return cls(low, high)


class Words(NamedTuple):
    """Terms that subscriptions ask for: strings one after the other."""

    hash: UInt64  # (words,)
    mark: UInt8  # (words,)
    start: Int64  # (words + 1,)
    bytes: UInt8  # (bytes,)

    @classmethod
    def of(cls, letters: UInt8, ends: Int64, attribute: str) -> Words:
        """The rows of *letters* as terms of *attribute*; *ends* are those that end a group."""
        count, width = letters.shape
        start = np.arange(count + 1) * width
        hashes = np.empty(count, np.uint64)
        hash_slices(letters.reshape(-1), start, np.uint64(attribute_seed(attribute)), hashes)
        mark = np.zeros(count, np.uint8)
        mark[ends] = LAST
        return cls(hashes, mark, start, letters.reshape(-1))


class Predicates(NamedTuple):
    """As many predicates for each subscription, in the order of the attributes' names."""

    kind: UInt8  # (subscriptions, predicates)
    attribute: Int32  # (subscriptions, predicates)
    low: Float64  # (subscriptions, predicates)
    high: Float64  # (subscriptions, predicates)
    operand_start: Int32  # (subscriptions, predicates)
    operand_stop: Int32  # (subscriptions, predicates)

    @classmethod
    def unbounded(cls, subscriptions: int, predicates: int) -> Predicates:
        """Room for predicates; none has a hull or an operand yet."""
        shape = subscriptions, predicates
        return cls(
            np.empty(shape, np.uint8),
            np.empty(shape, np.int32),
            np.full(shape, -np.inf),
            np.full(shape, np.inf),
            np.zeros(shape, np.int32),
            np.zeros(shape, np.int32),
        )


def conjunctions(
    predicates: Predicates,
    pairs: Pairs,
    words: Words | None = None,
    position: Float64 | None = None,
) -> SubscriptionColumns:
    """The columns of subscriptions that ask for all of their *predicates*.

    *position* says where the subscribers are (n × 2), for those who are somewhere.
    """
    count, each = predicates.kind.shape
    columns = empty(SubscriptionColumns)._replace(
        alternative_start=np.arange(count + 1),
        predicate_start=np.arange(count + 1) * each,
        weight=np.ones(count * each),
        pair_low=pairs.low.reshape(-1),
        pair_high=pairs.high.reshape(-1),
        position=np.full(2 * count, np.nan) if position is None else position.reshape(-1),
        until=np.full(count, NEVER),
        **{name: array.reshape(-1) for name, array in predicates._asdict().items()},
    )
    if words is not None:
        columns = columns._replace(
            string_hash=words.hash,
            string_mark=words.mark,
            string_start=words.start,
            string_bytes=words.bytes,
        )
    return read_only_columns(columns)


def numbers(
    name: str, low: Float64, high: Float64, valid: Booleans | None = None
) -> AttributeColumn:
    """An attribute of numbers, or of points with *low* as x and *high* as y."""
    valid = np.ones(len(low), np.bool_) if valid is None else valid
    return AttributeColumn(name, read_only(valid), read_only(low), read_only(high), None)


def texts(name: str, letters: UInt8) -> AttributeColumn:
    """An attribute of strings, all as long as a row of *letters*."""
    count, width = letters.shape
    strings = StringColumn(read_only(np.arange(count + 1) * width), read_only(letters.reshape(-1)))
    nothing = read_only(np.zeros(0))
    return AttributeColumn(name, read_only(np.ones(count, np.bool_)), nothing, nothing, strings)


def at_once(events: int) -> EventTimes:
    """The times of *events* that all come at the beginning and are not kept."""
    zeros = np.zeros(events, np.int64)
    return EventTimes(zeros + NEVER, zeros + BEGINNING, zeros)


def points(x: Float64, y: Float64) -> pa.Array:
    """Places as an Arrow column of pairs."""
    return pa.FixedSizeListArray.from_arrays(np.stack((x, y), axis=1).reshape(-1), 2)


def read_only(array: Array) -> Array:
    """*array* as kernels take columns: contiguous, and not to be written to."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
