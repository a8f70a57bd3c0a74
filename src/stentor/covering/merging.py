"""Two subscriptions as one, where that matches what they match together and nothing else.

Perfect merging: both want the same of all attributes but one, and there, intervals that overlap or
touch make one interval, boxes that agree in one axis make one box.

Paper: MICS, section 3.6.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stentor.covering.covers import Alternative, Alternatives
from stentor.covering.implies.comparison import BOOLEANS
from stentor.covering.implies.predicates import LocationSet, NumberSet, ValueSet
from stentor.covering.subsumption import plain_box
from stentor.encoding.columns import SubscriptionColumns, read_only_columns
from stentor.encoding.kinds import BOX, INTERVAL
from stentor.language.normal_predicates import Interval
from stentor.model import Box, Kind, Schema


class Merged(NamedTuple):
    """What two subscriptions are as one: the *attribute* in which they differed, joined."""

    attribute: str
    wanted: ValueSet


def merged(one: Alternatives, other: Alternatives, schema: Schema) -> Merged | None:
    """What *one* and *other* are together; None where that is not known to be one conjunction."""
    if len(one) != 1 or len(other) != 1 or one[0].keys() != other[0].keys():
        return None
    return _merged(one[0], other[0], schema)


def _merged(one: Alternative, other: Alternative, schema: Schema) -> Merged | None:
    differing = [name for name, wanted in one.items() if wanted != other[name]]
    if len(differing) != 1:
        return None
    name = differing[0]
    joined = _joined(one[name], other[name], schema.kind(name))
    return None if joined is None else Merged(name, joined)


def _joined(one: ValueSet, other: ValueSet, kind: Kind | None) -> ValueSet | None:
    match one, other:
        case NumberSet((mine,)), NumberSet((yours,)):
            if kind is Kind.BOOLEAN:
                return NumberSet(BOOLEANS)
            both = _one_interval(mine, yours)
            return both and NumberSet((both,))
        case LocationSet((Box(),), ()), LocationSet((Box(),), ()):
            box, beside = plain_box(one), plain_box(other)
            both_boxes = box and beside and _one_box(box, beside)
            return LocationSet((both_boxes,), ()) if both_boxes else None
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


def as_columns(row: SubscriptionColumns, attribute: int, wanted: ValueSet) -> SubscriptionColumns:
    """The one *row*, whose one predicate of the attribute of that code becomes *wanted*."""
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
    if isinstance(wanted, NumberSet):
        columns.kind[predicate] = INTERVAL
        columns.low[predicate], columns.high[predicate] = (
            wanted.intervals[0][0],
            wanted.intervals[-1][1],
        )
        columns.operand_stop[predicate] = pair
    else:
        assert isinstance(wanted, LocationSet)
        assert columns.kind[predicate] == BOX
        box = plain_box(wanted)
        assert box is not None
        columns.pair_low[pair : pair + 2] = box.west, box.south
        columns.pair_high[pair : pair + 2] = box.east, box.north
    return read_only_columns(columns)
