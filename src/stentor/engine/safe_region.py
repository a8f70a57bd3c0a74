"""Safe regions: how far a subscriber may go unreported, and which new events change that.

A subscriber whose client knows its safe region need not report each step: while it stays inside,
no answer changes but by events that end and by events that come. Of the latter the server knows
whose region they shrink (`shrunk`), and tells only those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stentor.encoding.columns import EventColumns
from stentor.engine.names import NO_ROW
from stentor.engine.state import State
from stentor.errors import SettingsError
from stentor.index.distance_bounds import distance_bounds
from stentor.index.safe_distance import largest_radii, shrunk_distances
from stentor.model import Point
from stentor.wire.fields import position_of

#: Lengths on the globe may be off by so much, near the poles and far across it.
METRE = 1.0


@dataclass(frozen=True, slots=True)
class SafeRegion:
    """Around *at*, everything up to *distance* away: metres, or units of the plane.

    An event whose places are all farther than *impact* from *at* cannot shrink it. Both are ∞ where
    nothing can change, and *impact* is −∞ where the place does not matter at all.
    """

    id: str
    at: Point | None
    distance: float
    impact: float
    plane: bool = field(default=False, repr=False)

    def contains(self, place: Any) -> bool:
        """Whether a subscriber at *place*, (longitude, latitude), is surely inside."""
        there = position_of(place, plane=self.plane)
        if there is None:
            raise SettingsError("a place is needed: (longitude, latitude)")
        if self.at is None or self.at == there:
            return True
        return distance_bounds(*self.at, *there, self.plane)[1] <= self.distance


def safe_region(state: State, id: str, row: int, now: int, plane: bool) -> SafeRegion:
    """The safe region of the subscription *id* in *row* among the events that are live *now*."""
    columns = state.index.columns_of(np.array([row], np.int64))
    distance = float(state.safe_distances.of(columns, now)[0])
    impact = _impact(distance, float(largest_radii(columns)[0]), plane)
    return SafeRegion(id, state.index.position(row), distance, impact, plane)


def shrunk(
    state: State, event: EventColumns, regions: Iterable[SafeRegion], now: int
) -> list[SafeRegion]:
    """Those of *regions* that *event* shrinks, as they are then.

    Regions of subscribers that are gone or elsewhere by now are left out: they mean nothing.

    Cost: O(regions).
    """
    known = [(region, state.subscribers.row(region.id)) for region in regions]
    known = [(region, row) for region, row in known if row != NO_ROW and region.at is not None]
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
    for place in np.flatnonzero(stays & (after < before)).tolist():
        region, distance = known[place][0], float(after[place])
        impact = _impact(distance, float(radii[place]), region.plane)
        found.append(replace(region, distance=distance, impact=impact))
    return found


def _impact(distance: float, radius: float, plane: bool) -> float:
    """Beyond which no event comes near enough, rounded up; −∞ where *radius* is: no circle."""
    if np.isneginf(radius):
        return radius
    return (distance + radius) * (1.0 + 1e-9) + (0.0 if plane else METRE)
