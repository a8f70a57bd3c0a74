"""Borders of circles around subscribers: how far each is from an event. See `safe_distance.py`."""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import (
    HERE,
    KIND_MASK,
    NEGATED,
    EventColumns,
    Float64,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
)
from stentor.index.backwards import NO_FILTERS
from stentor.index.distance_bounds import distance_bounds, radius_bounds
from stentor.index.signature import alternative_signature
from stentor.index.verify.alternatives import predicate_holds
from stentor.index.verify.scratch import EventScratch, has_value, scatter
from stentor.model.geometry import EARTH_RADIUS

#: The circle of an alternative that has none outside of which it fails.
NO_CIRCLE = -1

_METRES_PER_DEGREE = math.radians(EARTH_RADIUS) * (1.0 - 1e-9)


@kernel
def prepare(columns: SubscriptionColumns, needed: UInt64, circle: Int64) -> None:
    """Fill for each alternative its signature and a circle outside of which it fails."""
    for alternative in range(len(needed)):
        needed[alternative] = alternative_signature(columns, alternative, NO_FILTERS)
        circle[alternative] = NO_CIRCLE
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            if columns.kind[predicate] == HERE:
                circle[alternative] = predicate
                break


@kernel
def shrink_rows(
    columns: SubscriptionColumns,
    needed: UInt64,
    circle: Int64,
    events: EventColumns,
    hidden: UInt8,
    signature: UInt64,
    scratch: EventScratch,
    now: int,
    distance: Float64,
) -> None:
    """Lower the *distance* of each row to what its answer about each event bears."""
    for event in range(len(hidden)):
        if hidden[event] != 0 or events.until[event] <= now:
            continue
        lacking = ~signature[event]
        is_spread = False
        for row in range(len(distance)):
            if distance[row] <= 0.0:
                continue
            lasts, comes = -1.0, math.inf
            for alternative in range(
                columns.alternative_start[row], columns.alternative_start[row + 1]
            ):
                if needed[alternative] & lacking != np.uint64(0):
                    continue
                # One that fails and is farther than what is known already changes nothing.
                if is_far(columns, circle[alternative], events, event, distance[row]):
                    continue
                if not is_spread:
                    scatter(events, event, scratch)
                    is_spread = True
                margin = alternative_margin(columns, alternative, scratch)
                if margin >= 0.0:
                    lasts = max(lasts, margin)
                else:
                    comes = min(comes, -margin)
            distance[row] = min(distance[row], max(0.0, lasts if lasts >= 0.0 else comes))


@kernel_inline
def is_far(
    columns: SubscriptionColumns, predicate: int, events: EventColumns, event: int, known: float
) -> bool:
    """Whether *event* is outside the circle *predicate* by more than *known*, seen at a glance."""
    if predicate == NO_CIRCLE:
        return False
    for value in range(events.value_start[event], events.value_start[event + 1]):
        if events.attribute[value] == columns.attribute[predicate]:
            pair = columns.operand_start[predicate]
            radius, is_plane = columns.pair_low[pair + 4], columns.pair_high[pair + 4] != 0.0
            away = abs(events.high[value] - columns.pair_high[pair + 2])
            if is_plane:
                away = max(away, abs(events.low[value] - columns.pair_low[pair + 2]))
            else:
                away *= _METRES_PER_DEGREE
            return bool(away > (known + radius) * (1.0 + 1e-9))
    return False


@kernel_part
def alternative_margin(
    columns: SubscriptionColumns, alternative: int, scratch: EventScratch
) -> float:
    """How far one may go with *alternative* true of the event, or with it false: then negative.

    −∞ where it stays false wherever the subscriber goes.
    """
    lasts, comes = math.inf, -1.0
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        attribute = columns.attribute[predicate]
        kind = columns.kind[predicate]
        holds = predicate_holds(columns, predicate, scratch)
        if kind & KIND_MASK == HERE and has_value(scratch, attribute):
            is_inside = holds != ((kind & NEGATED) != 0)
            x, y = scratch.low[attribute], scratch.high[attribute]
            margin = circle_margin(columns, columns.operand_start[predicate], x, y, is_inside)
            if holds:
                lasts = min(lasts, margin)
            else:
                comes = max(comes, margin)
        elif not holds:
            return -math.inf
    return lasts if comes < 0.0 else -comes


@kernel_part
def circle_margin(
    columns: SubscriptionColumns, pair: int, x: float, y: float, is_inside: bool
) -> float:
    """How far a circle may move before it can lose or catch (x, y); at least 0."""
    centre_x, centre_y = columns.pair_low[pair + 2], columns.pair_high[pair + 2]
    if math.isnan(centre_x):
        return math.inf
    is_plane = columns.pair_high[pair + 4] != 0.0
    inner, outer = radius_bounds(y, columns.pair_low[pair + 4], is_plane)
    if inner == math.inf:
        return math.inf
    nearest, farthest = distance_bounds(centre_x, centre_y, x, y, is_plane)
    margin = inner - farthest if is_inside else nearest - outer
    return max(0.0, margin * (1.0 - 1e-15))
