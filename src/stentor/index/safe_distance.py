"""How far subscribers may go before their answers among the live events can change.

The border of a circle around `here()` passes an event only after the subscriber has gone as far as
the event now is from that border. For each event, then:

- while no alternative holds, one must come to hold: each of its circles that fails must come
  to hold, so the farthest of their borders counts, of the alternative that is nearest to it;
- while some hold, all of these must cease to: each can by any one of its circles, so the nearest of
  its borders counts, of the alternative that lasts longest.

No other predicate of an alternative depends on the location. On the globe as on a plane this is
the triangle inequality; lengths are rounded to the safe side: bounds surely contain the true one.

Paper: AP-Tree, section 5.2.3, whose subscriptions have one circle each.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.choices import spread_choices, with_choices
from stentor.encoding.columns import (
    LAST,
    EventColumns,
    Float64,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
    event_count,
    read_only,
)
from stentor.encoding.kinds import KEYWORDS, KIND_MASK, MEMBERSHIP, NEGATED, OWN_CIRCLE
from stentor.encoding.ragged import events_between, take
from stentor.index.arena import GrowingArray
from stentor.index.circles import NO_KEYWORD
from stentor.index.live import SIGN_ALL_ATTRIBUTES, signatures_of
from stentor.index.signature import alternative_signature
from stentor.index.table import EventTable
from stentor.index.verify.predicates import predicate_holds
from stentor.index.verify.scratch import EventScratch, has_value, load_event, scratch_for
from stentor.model.geometry import EARTH_RADIUS

#: Relative error of a haversine far from the poles, twice over.
_ROUNDING = 4e-15
#: Squares of shorter lengths vanish, so that no circle can tell them from 0.
_SHORTEST = 1e-140
#: The circle of an alternative that has none outside of which it fails.
NO_CIRCLE = -1
_METRES_PER_DEGREE = math.radians(EARTH_RADIUS) * (1.0 - 1e-9)


class SafeDistances:
    """Safe distances by the live events of one table, whose signatures are kept between calls."""

    def __init__(self, live: EventTable) -> None:
        self._live = live
        self._signature = GrowingArray(np.uint64)
        self._columns: EventColumns | None = None
        self._several = np.zeros(0, np.int64)  # events that are one of several

    def of(self, columns: SubscriptionColumns, now: int) -> Float64:
        """How far each of *columns* may go before its answer can change but by expiry.

        Events that are over *now* are left out. ∞ where nothing can change, however far; so it is
        for a subscriber whose location is unknown.

        Cost: a signature compared per event and alternative, a few more comparisons for what fits,
        the verifier for what is near.
        """
        distance = np.full(len(columns.until), np.inf)
        if has_circles(columns) and self._live.current_count:
            self._catch_up()
            hidden, signature = self._live.hidden, self._signature.view
            if len(self._several):
                choices = take(self._live.columns, self._several[hidden[self._several] == 0])
                hidden = hidden.copy()
                hidden[self._several] = 1
                lowered = shrunk_distances(columns, choices, distance, now)
                distance = np.minimum(distance, lowered)
            shrink(
                columns,
                self._live.columns,
                read_only(hidden),
                signature,
                self._scratch,
                now,
                distance,
            )
        return distance

    def _catch_up(self) -> None:
        """Compute the signatures of events that came since the last call."""
        columns = self._live.columns
        if columns is self._columns:
            return
        fresh = events_between(columns, len(self._signature), None)
        self._signature.extend(signatures_of(fresh), event_count(fresh))
        self._scratch = scratch_for(columns)
        several = event_count(columns) - event_count(fresh) + with_choices(fresh)
        self._several = np.concatenate([self._several, several])
        self._columns = columns  # last: an exception may come in between


def shrunk_distances(
    columns: SubscriptionColumns,
    events: EventColumns,
    distance: Float64,
    now: int = np.iinfo(np.int64).min,
) -> Float64:
    """How far each of *columns*, which could go *distance*, may go when *events* are live too.

    Each choice of an event that is one of several counts by itself: that may be less than need be.
    """
    if len(with_choices(events)):
        events = spread_choices(events).events
    shrunk = distance.copy()
    hidden = read_only(np.zeros(event_count(events), np.uint8))
    signature, scratch = read_only(signatures_of(events)), scratch_for(events)
    shrink(columns, events, hidden, signature, scratch, now, shrunk)
    return shrunk


def prepared(columns: SubscriptionColumns) -> tuple[UInt64, Int64]:
    """Of each alternative its signature, and a circle outside of which it fails."""
    alternatives = len(columns.predicate_start) - 1
    needed, circle = np.empty(alternatives, np.uint64), np.empty(alternatives, np.int64)
    sign_alternatives(columns, needed, circle)
    return needed, circle


def common_signatures(columns: SubscriptionColumns) -> UInt64:
    """What an event must have to matter to any alternative of each row, which has some."""
    start = columns.alternative_start
    common: UInt64 = np.bitwise_and.reduceat(prepared(columns)[0], start[:-1])
    return common


def common_keywords(columns: SubscriptionColumns) -> UInt64:
    """The hash of a term or string that each row cannot do without, or NO_KEYWORD.

    An alternative has one where it wants all of a few terms, or one string.
    """
    start, stop = columns.operand_start, columns.operand_stop
    groups = np.concatenate([[0], np.cumsum(columns.string_mark == LAST)])
    is_string = (columns.kind == MEMBERSHIP) & (stop - start == 1)
    is_term = columns.kind == KEYWORDS
    is_term[is_term] = (groups[stop[is_term]] - groups[start[is_term]]) == 1
    found = np.flatnonzero(is_string | is_term)
    alternative = np.searchsorted(columns.predicate_start, found, side="right") - 1
    keyword = np.full(len(columns.predicate_start) - 1, NO_KEYWORD)
    keyword[alternative[::-1]] = columns.string_hash[start[found]][::-1]  # the first of several
    low = np.minimum.reduceat(keyword, columns.alternative_start[:-1])
    high = np.maximum.reduceat(keyword, columns.alternative_start[:-1])
    return np.where(low == high, low, NO_KEYWORD)


def has_circles(columns: SubscriptionColumns) -> bool:
    """Whether any of *columns* has a circle around its subscriber."""
    return bool(((columns.kind & KIND_MASK) == OWN_CIRCLE).any())


def largest_radii(columns: SubscriptionColumns) -> Float64:
    """The largest radius of a circle around each subscriber; −∞ where it has none."""
    radius = np.full(len(columns.until), -np.inf)
    circles = np.flatnonzero((columns.kind & KIND_MASK) == OWN_CIRCLE)
    alternative = np.searchsorted(columns.predicate_start, circles, side="right") - 1
    row = np.searchsorted(columns.alternative_start, alternative, side="right") - 1
    np.maximum.at(radius, row, columns.pair_low[columns.operand_start[circles] + 4])
    return radius


def shrink(
    columns: SubscriptionColumns,
    events: EventColumns,
    hidden: UInt8,
    signature: UInt64,
    scratch: EventScratch,
    now: int,
    distance: Float64,
) -> None:
    """Lower *distance* to what *events* leave of it."""
    needed, circle = prepared(columns)
    shrink_rows(
        columns,
        read_only(needed),
        read_only(circle),
        events,
        hidden,
        signature,
        scratch,
        now,
        distance,
    )


@kernel
def sign_alternatives(columns: SubscriptionColumns, needed: UInt64, circle: Int64) -> None:
    """Fill for each alternative its signature and a circle outside of which it fails."""
    for alternative in range(len(needed)):
        needed[alternative] = alternative_signature(columns, alternative, SIGN_ALL_ATTRIBUTES)
        circle[alternative] = NO_CIRCLE
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            if columns.kind[predicate] == OWN_CIRCLE:
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
    """Lower the *distance* of each row so that it changes its answer about no event on the way."""
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
                    load_event(events, event, scratch)
                    is_spread = True
                margin = alternative_margin(columns, alternative, scratch)
                if margin >= 0.0:
                    lasts = max(lasts, margin)
                else:
                    comes = min(comes, -margin)
            distance[row] = min(distance[row], max(0.0, lasts if lasts >= 0.0 else comes))


@kernel
def shrink_pairs(
    columns: SubscriptionColumns,
    events: EventColumns,
    scratch: EventScratch,
    pair_event: Int64,
    pair_row: Int64,
    pair_position: Int64,
    distance: Float64,
    shrinking: Int64,
    before: Float64,
    after: Float64,
) -> int:
    """The number of the pairs of an event and a row, by event, that shrink the row's region.

    They go to *shrinking*, the distance that the row could go to *before* and *after*. The row of a
    pair is at *pair_position* in *columns*. *distance*, by row, is the same afterwards.
    """
    found, spread = 0, -1
    for pair in range(len(pair_event)):
        event, row, position = pair_event[pair], pair_row[pair], pair_position[pair]
        known = distance[row]
        if known <= 0.0 or events.time[event] >= columns.until[position]:
            continue
        if spread != event:
            load_event(events, event, scratch)
            spread = event
        lasts, comes = -1.0, math.inf
        for alternative in range(
            columns.alternative_start[position], columns.alternative_start[position + 1]
        ):
            margin = alternative_margin(columns, alternative, scratch)
            if margin >= 0.0:
                lasts = max(lasts, margin)
            else:
                comes = min(comes, -margin)
        left = max(0.0, lasts if lasts >= 0.0 else comes)
        if left < known:
            shrinking[found], before[found], after[found] = pair, known, left
            distance[row] = left  # for the events that follow
            found += 1
    for one in range(found - 1, -1, -1):
        distance[pair_row[shrinking[one]]] = before[one]
    return found


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


@inner_kernel
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
        if kind & KIND_MASK == OWN_CIRCLE and has_value(scratch, attribute):
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


@inner_kernel
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


@kernel
def distance_bounds(x1: float, y1: float, x2: float, y2: float, plane: bool) -> tuple[float, float]:
    """Bounds of the distance of two locations: metres, or units of the plane."""
    if plane:
        return length_bounds(math.hypot(x1 - x2, y1 - y2))
    a = math.sin(math.radians(y1 - y2) / 2.0)
    b = math.sin(math.radians(x1 - x2) / 2.0)
    cosine1, cosine2 = math.cos(math.radians(y1)), math.cos(math.radians(y2))
    return arc_bounds(a * a + cosine1 * cosine2 * (b * b), min(cosine1, cosine2))


@kernel
def radius_bounds(y: float, radius: float, plane: bool) -> tuple[float, float]:
    """Distances of a centre from a location at height *y* at which `in_circle` is certain.

    Nearer than the first, it says that the location is inside; farther than the second, outside.
    """
    if plane:
        if radius * radius == math.inf:
            return math.inf, math.inf
        return length_bounds(radius)
    if radius >= math.pi * EARTH_RADIUS:
        return math.inf, math.inf
    half = math.sin(radius / (2.0 * EARTH_RADIUS))
    nearest_pole = min(90.0, abs(y) + math.degrees(radius / EARTH_RADIUS))
    return arc_bounds(half * half, math.cos(math.radians(nearest_pole)))


@inner_kernel
def length_bounds(length: float) -> tuple[float, float]:
    """Bounds of a length on the plane."""
    return length * (1.0 - _ROUNDING) - _SHORTEST, length * (1.0 + _ROUNDING) + _SHORTEST


@inner_kernel
def arc_bounds(haversine: float, cosine: float) -> tuple[float, float]:
    """Bounds of an arc, in metres; *cosine* is the least of the latitudes concerned.

    Cosines are off by some 5e-16, which counts the more the smaller they are; and across the globe
    an arc hardly changes its haversine. There the bounds are up to a metre apart, and elsewhere
    less than any instrument can tell.
    """
    share = min(1.0, haversine / cosine) if cosine > 1e-6 else 1.0
    error = _ROUNDING * share
    low = math.asin(math.sqrt(min(1.0, max(0.0, haversine - error))))
    high = math.asin(math.sqrt(min(1.0, haversine + error)))
    diameter = 2.0 * EARTH_RADIUS
    return (
        diameter * low * (1.0 - _ROUNDING) - _SHORTEST,
        diameter * high * (1.0 + _ROUNDING) + _SHORTEST,
    )
