"""Two subscriptions as one, where that matches what they match together and nothing else.

Perfect merging: both ask the same of all attributes but one, and there, intervals that overlap or
touch make one interval, boxes of which one side is the same make one box.

Paper: MICS, section 3.6.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stentor.covering.meaning.asked import Asked, Numbers, Places
from stentor.covering.meaning.covers import Alternative, Interest
from stentor.covering.meaning.numbers import BOOLEANS
from stentor.covering.subtraction import plain_box
from stentor.encoding.columns import BOX, SPAN, SubscriptionColumns, sealed
from stentor.language.conditions import Interval
from stentor.model import Box, Kind, Schema


class Merged(NamedTuple):
    """What two subscriptions are as one: the *attribute* in which they differed, joined."""

    attribute: str
    asked: Asked


def merged(one: Interest, other: Interest, schema: Schema) -> Merged | None:
    """What *one* and *other* are together; None where that is not known to be one conjunction."""
    if len(one) != 1 or len(other) != 1 or one[0].keys() != other[0].keys():
        return None
    return _merged(one[0], other[0], schema)


def _merged(one: Alternative, other: Alternative, schema: Schema) -> Merged | None:
    differing = [name for name, asked in one.items() if asked != other[name]]
    if len(differing) != 1:
        return None
    name = differing[0]
    joined = _joined(one[name], other[name], schema.kind(name))
    return None if joined is None else Merged(name, joined)


def _joined(one: Asked, other: Asked, kind: Kind | None) -> Asked | None:
    match one, other:
        case Numbers((mine,)), Numbers((yours,)):
            if kind is Kind.BOOLEAN:
                return Numbers(BOOLEANS)
            both = _one_interval(mine, yours)
            return both and Numbers((both,))
        case Places((Box(),), ()), Places((Box(),), ()):
            box, beside = plain_box(one), plain_box(other)
            both_boxes = box and beside and _one_box(box, beside)
            return Places((both_boxes,), ()) if both_boxes else None
        case _:
            return None


def _one_interval(one: Interval, other: Interval) -> Interval | None:
    """The interval of both, where no double lies between them."""
    first, last = sorted((one, other))
    if math.nextafter(first[1], math.inf) < last[0]:
        return None
    return first[0], max(first[1], last[1])


def _one_box(one: Box, other: Box) -> Box | None:
    x, beside_x = (one.west, one.east), (other.west, other.east)
    y, beside_y = (one.south, one.north), (other.south, other.north)
    if x == beside_x:
        both = _one_interval(y, beside_y)
        return both and Box(one.west, both[0], one.east, both[1])
    if y == beside_y:
        both = _one_interval(x, beside_x)
        return both and Box(both[0], one.south, both[1], one.north)
    return None


def as_columns(row: SubscriptionColumns, attribute: int, asked: Asked) -> SubscriptionColumns:
    """The one *row*, with *asked* of the attribute with the code *attribute*; one test asks it."""
    predicate = int(np.flatnonzero(row.attribute == attribute)[0])
    pair = int(row.operand_start[predicate])
    columns = row._replace(
        kind=row.kind.copy(),
        low=row.low.copy(),
        high=row.high.copy(),
        operand_stop=row.operand_stop.copy(),
        pair_low=row.pair_low.copy(),
        pair_high=row.pair_high.copy(),
    )
    if isinstance(asked, Numbers):
        columns.kind[predicate] = SPAN
        columns.low[predicate], columns.high[predicate] = (
            asked.intervals[0][0],
            asked.intervals[-1][1],
        )
        columns.operand_stop[predicate] = pair
    else:
        assert isinstance(asked, Places)
        assert columns.kind[predicate] == BOX
        box = plain_box(asked)
        assert box is not None
        columns.pair_low[pair : pair + 2] = box.west, box.south
        columns.pair_high[pair : pair + 2] = box.east, box.north
    return sealed(columns)
