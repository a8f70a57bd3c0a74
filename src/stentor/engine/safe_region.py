"""Safe regions: how far a subscriber may go unreported, and which new events change that.

A subscriber whose client knows its safe region need not report each step: while it stays inside,
no answer changes but by events that end and by events that come. The engine keeps the regions that
it gave, and reports which of them a new event shrinks; `shrunk` finds it out for any regions.

An event farther from a subscriber than its region's *impact* cannot shrink the region, so those
that are kept are circles of that radius, in blocks (`index/circles.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stentor.encoding.choices import spread_choices, with_choices
from stentor.encoding.columns import EventColumns, Float64, Int64, SubscriptionColumns, read_only
from stentor.encoding.kinds import KIND_MASK, OWN_CIRCLE
from stentor.encoding.ragged import take
from stentor.engine.ids import NO_ROW
from stentor.errors import SettingsError
from stentor.index.arena import GrowingArray
from stentor.index.circles import Circles, chords, on_sphere
from stentor.index.safe_distance import (
    common_keywords,
    common_signatures,
    distance_bounds,
    largest_radii,
    shrink_pairs,
    shrunk_distances,
)
from stentor.index.verify.scratch import EventScratch, ScratchSize, reused, scratch_for
from stentor.model import Point
from stentor.model.values import read_location
from stentor.model.values.time import NEVER

if TYPE_CHECKING:
    from stentor.engine.state import State

#: Up to so many terms of events the scratch memory is kept.
_FEW_TERMS = 64
#: Lengths on the globe may be off by so much, near the poles and far across it.
METRE = 1.0
#: Near nothing.
_NOWHERE = (math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class SafeRegion:
    """Around *at*, everything up to *distance* away: metres, or units of the plane.

    An event whose locations are all farther than *impact* from *at* cannot shrink it. Both are ∞
    where nothing can change, and *impact* is −∞ where the location does not matter at all.
    """

    id: str
    at: Point | None
    distance: float
    impact: float
    plane: bool = field(default=False, repr=False)

    def contains(self, place: Any) -> bool:
        """Whether a subscriber at *place*, (longitude, latitude), is surely inside."""
        there = read_location(place, plane=self.plane)
        if there is None:
            raise SettingsError("a place is needed: (longitude, latitude)")
        if self.at is None or self.at == there:
            return True
        return distance_bounds(*self.at, *there, self.plane)[1] <= self.distance


def safe_regions(
    state: State, ids: Sequence[str], rows: Int64, now: int, plane: bool
) -> list[SafeRegion]:
    """The safe regions of the subscriptions *ids* in *rows* among the events that are live *now*.

    The state keeps them, and finds those that a new event shrinks.
    """
    columns = state.index.columns_of(rows)
    distance = state.safe_distances.of(columns, now)
    impact = impact_of(distance, largest_radii(columns), plane)
    state.regions.put(rows, columns, distance, plane=plane)
    return regions_of(ids, columns.position.reshape(-1, 2), distance, impact, plane)


def regions_of(
    ids: Sequence[str], positions: Float64, distance: Float64, impact: Float64, plane: bool
) -> list[SafeRegion]:
    """Regions as users see them."""
    return [
        SafeRegion(id, None if math.isnan(x) else Point(x, y), far, away, plane)
        for id, (x, y), far, away in zip(
            ids, positions.tolist(), distance.tolist(), impact.tolist(), strict=True
        )
    ]


def shrunk(
    state: State, event: EventColumns, points: Sequence[Point], regions: list[SafeRegion], now: int
) -> list[SafeRegion]:
    """Those of *regions* that *event* at *points* shrinks, as they are then.

    Regions of subscribers that are gone or elsewhere by now are left out: they mean nothing.

    Cost: O(regions), 0.3 µs each; 2 to 4 µs for those whose impact the event is in.
    """
    known = [(region, state.subscribers.row(region.id)) for region in _near(regions, points)]
    known = [(region, row) for region, row in known if row != NO_ROW]
    if not known:
        return []
    rows = np.array([row for _, row in known], np.int64)
    columns = state.index.columns_of(rows)
    before = np.array([region.distance for region, _ in known])
    at = np.array([region.at for region, _ in known]).reshape(-1)
    stays = (columns.position == at).reshape(-1, 2).all(axis=1) & (columns.until > now)
    after = shrunk_distances(columns, event, np.where(stays, before, 0.0))
    radii = largest_radii(columns)
    found = []
    for position in np.flatnonzero(stays & (after < before)).tolist():
        region, distance = known[position][0], after[position]
        impact = impact_of(distance, radii[position], region.plane)
        found.append(replace(region, distance=float(distance), impact=float(impact)))
    return found


def _near(regions: list[SafeRegion], points: Sequence[Point]) -> Iterable[SafeRegion]:
    """Those of *regions* whose impact one of *points* is in."""
    if not regions or not points:
        return ()
    count, plane = len(regions), regions[0].plane
    impact = np.fromiter(map(attrgetter("impact"), regions), np.float64, count)
    centres = chain.from_iterable(region.at or _NOWHERE for region in regions)
    centre = on_sphere(np.fromiter(centres, np.float64, 2 * count).reshape(-1, 2), plane)
    reach = chords(np.maximum(impact, 0.0), plane)
    is_near = np.zeros(count, np.bool_)
    for there in on_sphere(np.array(points), plane):
        is_near |= np.square(centre - there).sum(axis=1) <= reach
    return compress(regions, (is_near & (impact >= 0.0)).tolist())


def remembered_regions(state: State, shrunk: Shrunk | None) -> list[SafeRegion]:
    """The regions that events shrink, as users see them."""
    if shrunk is None:
        return []
    ids = state.subscribers.ids.of(shrunk.row.tolist())
    return regions_of(ids, shrunk.position, shrunk.distance, shrunk.impact, state.regions.plane)


class Shrunk(NamedTuple):
    """Regions that events shrink, by event: what is left of each after that event."""

    event: Int64
    row: Int64
    position: Float64  # (n × 2)
    distance: Float64
    impact: Float64


def _last_of_each(shrunk: Shrunk, event: Int64) -> Shrunk:
    """*shrunk*, of choices, as of the *event* of each; what its last choice leaves of a region."""
    order = np.lexsort((np.arange(len(event)), shrunk.row, event))
    rows, events = shrunk.row[order], event[order]
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = (events[1:] != events[:-1]) | (rows[1:] != rows[:-1])
    kept = order[is_last]
    return Shrunk(
        event[kept],
        shrunk.row[kept],
        shrunk.position[kept],
        shrunk.distance[kept],
        shrunk.impact[kept],
    )


class Regions:
    """How far subscribers may go, by row: the regions that were reported.

    Invariant: each that an event could shrink has its circle, also where an exception came between.
    """

    def __init__(self) -> None:
        self.plane = False
        self._distance = GrowingArray(np.float64)  # by row; 0 where there is none
        self._radius = GrowingArray(np.float64)  # by row: the largest of its circles
        self._circles: Circles | None = None
        self._is_wanted = np.zeros(0, np.bool_)  # by attribute: in circles around subscribers
        self._attributes = 0  # no subscription wants one from this code on
        self._scratch: EventScratch | None = None  # for few terms

    @property
    def is_empty(self) -> bool:
        """Whether none was reported."""
        return self._circles is None

    def reported(self) -> tuple[list[int], list[float]]:
        """The rows that have regions, and how far each may go."""
        distance = self._distance.view
        rows = np.flatnonzero(distance)
        return rows.tolist(), distance[rows].tolist()

    def among(self, rows: Int64) -> tuple[Int64, Float64]:
        """Those of *rows* that have regions, and how far each may go."""
        if self._circles is None:
            return rows[:0], np.zeros(0)
        rows = rows[rows < len(self._distance)]
        distance = self._distance.view[rows]
        return rows[distance > 0.0], distance[distance > 0.0]

    def put(
        self, rows: Int64, columns: SubscriptionColumns, distance: Float64, *, plane: bool
    ) -> None:
        """Keep *distance* as reported to the subscribers *rows*, instead of what was before.

        Regions that no event can shrink are not kept.
        """
        radius = largest_radii(columns)
        positions = columns.position.reshape(-1, 2)
        may = (distance > 0.0) & (radius >= 0.0) & ~np.isnan(positions[:, 0])
        if may.any():
            self.plane = plane
            self._circles = self._circles or Circles(plane=plane)
            here = columns.attribute[columns.kind & KIND_MASK == OWN_CIRCLE]
            is_wanted = np.zeros(max(len(self._is_wanted), 1 + int(here.max())), np.bool_)
            is_wanted[: len(self._is_wanted)] = self._is_wanted
            is_wanted[here] = True
            self._is_wanted = is_wanted
            attributes = 1 + int(columns.attribute.max())
            if attributes > self._attributes:
                self._attributes, self._scratch = attributes, None
            impact = impact_of(distance, radius, plane)
            kept = take(columns, np.flatnonzero(may))
            wants = common_signatures(kept), common_keywords(kept)
            self._circles.put(rows[may], positions[may], impact[may], *wants)
            for array in (self._distance, self._radius):
                array.extend(0, max(0, 1 + int(rows.max()) - len(array)))
            self._radius.writable[rows[may]] = radius[may]
            self._distance.writable[rows[may]] = distance[may]
        self.forget(rows[~may])

    def forget(self, rows: Int64) -> None:
        """Let *rows* have no regions."""
        known, _ = self.among(rows)
        if len(known):
            assert self._circles is not None
            self._distance.writable[known] = 0.0
            self._circles.remove(known)

    def shrink(self, shrunk: Shrunk) -> None:
        """Let regions be what new events left of them; where that is nothing, none is kept."""
        assert self._circles is not None
        self._distance.writable[shrunk.row] = shrunk.distance  # of a row that comes twice the last
        self._circles.shrink(shrunk.row, shrunk.impact)
        self._circles.remove(shrunk.row[shrunk.distance == 0.0])

    def shrunk(
        self,
        events: EventColumns,
        columns_with: Callable[[Int64], tuple[SubscriptionColumns, Int64]],
        ending: Mapping[int, int],
    ) -> Shrunk | None:
        """What new live *events*, in their order, leave of the regions; changes nothing yet.

        From the record that *ending* says on, a row has no region any more.

        Cost: two kernels and some twenty calls of NumPy, 50 µs; besides, what is near to an event
        and has its keywords.
        """
        if self._circles is None or not len(events.until):
            return None
        if len(with_choices(events)):
            choices, of = spread_choices(events)
            found_of = self.shrunk(choices, columns_with, ending)
            return None if found_of is None else _last_of_each(found_of, of[found_of.event])
        event, row = self._circles.around(events, self._is_wanted)
        if not len(row):
            return None
        columns, position = columns_with(row)
        shrinking, before, after = np.empty(len(row), np.int64), *np.empty((2, len(row)))
        found = shrink_pairs(
            columns,
            events,
            self._scratch_for(events),
            read_only(event),
            read_only(row),
            read_only(position),
            self._distance.writable,
            shrinking,
            before,
            after,
        )
        if not found:
            return None
        chosen, left = shrinking[:found], after[:found]
        order = np.argsort(event[chosen] * len(self._distance) + row[chosen])
        if ending:
            ends = np.array([ending.get(one, NEVER) for one in row[chosen[order]].tolist()])
            order = order[events.seq[event[chosen[order]]] < ends]
        chosen, left = chosen[order], left[order]
        rows = row[chosen]
        return Shrunk(
            event[chosen],
            rows,
            columns.position.reshape(-1, 2)[position[chosen]],
            left,
            _reach(left, self._radius.view[rows], self.plane),
        )

    def _scratch_for(self, events: EventColumns) -> EventScratch:
        """Scratch memory for the terms of *events* and the attributes that regions depend on."""
        if len(events.term_hash) > _FEW_TERMS:
            return scratch_for(events)
        if self._scratch is None:
            self._scratch = scratch_for(events, ScratchSize(self._attributes, _FEW_TERMS))
        return reused(self._scratch, events)


def impact_of(distance: Float64, radius: Float64, plane: bool) -> Float64:
    """Beyond which no event comes near enough, rounded up; −∞ where *radius* is: no circle."""
    nowhere = np.isneginf(radius)
    return np.where(nowhere, radius, _reach(distance, np.where(nowhere, 0.0, radius), plane))


def _reach(distance: Float64, radius: Float64, plane: bool) -> Float64:
    return (distance + radius) * (1.0 + 1e-9) + (0.0 if plane else METRE)
