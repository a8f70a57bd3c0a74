"""Roads, and points that travel on them: a small generator of moving objects.

A city's roads are a grid whose crossings are moved a little and some of whose streets are missing;
every fourth road is a main road, every sixteenth a motorway. A traveller goes along its road at the
road's speed or at its own, whichever is less, and takes another road at random at each crossing; it
turns round only where the road ends.

Paper: AP-Tree, section 5.2.1, after Brinkhoff's network-based generator; whose travellers go the
fastest way to a place, where these wander.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from stentor.encoding.columns import Float64, Int64
from stentor.errors import SettingsError
from stentor.model import Box
from stentor.model.geometry import EARTH_RADIUS
from stentor_lab.workloads.distributions import Random, random_of

#: Metres per second on streets, main roads and motorways.
STREET, MAIN_ROAD, MOTORWAY = 10.0, 17.0, 30.0
#: What travellers can do, in metres per second, and how many can.
SPEEDS: Final = np.array([7.0, 15.0, 28.0])
SPEED_SHARES: Final = (0.2, 0.5, 0.3)
#: Of a city's streets, so many are missing; a crossing is moved by up to so much of a block.
MISSING, MOVED = 0.15, 0.3

_CITY, _TRAVELLERS = 100, 101


@dataclass(frozen=True)
class RoadNetwork:
    """Crossings and the roads between them, each in both directions.

    Invariant: roads are in the order of the crossings where they start.
    """

    x: Float64  # (crossings,) degrees
    y: Float64  # (crossings,)
    first: Int64  # (crossings + 1,) the roads that start at a crossing
    start: Int64  # (roads,) crossings
    stop: Int64  # (roads,) crossings
    back: Int64  # (roads,) the same road in the other direction
    metres: Float64  # (roads,)
    speed: Float64  # (roads,) metres per second

    @classmethod
    def of(cls, x: Float64, y: Float64, start: Int64, stop: Int64, speed: Float64) -> RoadNetwork:
        """The network of roads that can be used both ways; roads without length are left out."""
        roads = (x[start] != x[stop]) | (y[start] != y[stop])
        start, stop, speed = start[roads], stop[roads], speed[roads]
        if not len(start):
            raise SettingsError("a network without a road; it needs at least one")
        both_start, both_stop = np.concatenate((start, stop)), np.concatenate((stop, start))
        order = np.argsort(both_start, kind="stable")
        location = np.empty(len(order), np.int64)
        location[order] = np.arange(len(order))
        back = location[(order + len(start)) % len(order)]
        both_start, both_stop = both_start[order], both_stop[order]
        dx, dy = x[both_stop] - x[both_start], y[both_stop] - y[both_start]
        middle = np.radians((y[both_start] + y[both_stop]) / 2.0)
        metres = np.radians(np.hypot(dx * np.cos(middle), dy)) * EARTH_RADIUS
        first = np.searchsorted(both_start, np.arange(len(x) + 1))
        both_speed = np.concatenate((speed, speed))[order]
        return cls(x, y, first, both_start, both_stop, back, metres, both_speed)

    @classmethod
    def onto(cls, space: Box, x: Float64, y: Float64, start: Int64, stop: Int64) -> RoadNetwork:
        """Roads of a map in any unit, stretched over *space*; the longest are the fastest."""
        wide, high = max(np.ptp(x), 1e-9), max(np.ptp(y), 1e-9)
        x = space.west + (x - x.min()) / wide * (space.east - space.west)
        y = space.south + (y - y.min()) / high * (space.north - space.south)
        length = np.hypot(x[stop] - x[start], y[stop] - y[start])
        main, motorway = np.quantile(length, (0.75, 0.95))
        speed = np.where(length > motorway, MOTORWAY, np.where(length > main, MAIN_ROAD, STREET))
        return cls.of(x, y, start, stop, speed)

    @classmethod
    def city(cls, space: Box, blocks: int = 64, seed: int = 1) -> RoadNetwork:
        """A city of *blocks* × *blocks* that fills *space*."""
        if blocks < 2:
            raise SettingsError(f"a city of {blocks} × {blocks} blocks; take at least 2")
        random = random_of(seed, _CITY)
        lines = np.arange(blocks + 1)
        column, row = (grid.reshape(-1) for grid in np.meshgrid(lines, lines))
        moved = random.uniform(-MOVED, MOVED, (2, len(column)))
        inner = (column % blocks > 0) & (row % blocks > 0)  # the border of the city is straight
        x, y = np.stack((column, row)) + np.where(inner, moved, 0.0)
        crossing = row * (blocks + 1) + column
        east, north = crossing[column < blocks], crossing[row < blocks]
        start = np.concatenate((east, north))
        stop = np.concatenate((east + 1, north + blocks + 1))
        line = np.concatenate((row[column < blocks], column[row < blocks]))
        speed = np.where(line % 16 == 0, MOTORWAY, np.where(line % 4 == 0, MAIN_ROAD, STREET))
        kept = (line % 4 == 0) | (random.random(len(line)) >= MISSING)
        return cls.of(
            space.west + x / blocks * (space.east - space.west),
            space.south + y / blocks * (space.north - space.south),
            start[kept],
            stop[kept],
            speed[kept],
        )


class Travellers:
    """Points on the roads of a network; `step` lets time pass.

    *velocity* is a factor on all speeds: the paper's multiples of medium.
    """

    def __init__(
        self, network: RoadNetwork, count: int, *, velocity: float = 1.0, seed: int = 1
    ) -> None:
        self._network = network
        self._random: Random = random_of(seed, _TRAVELLERS)
        length = np.cumsum(network.metres)
        along = self._random.uniform(0.0, length[-1], count)
        self._road = np.minimum(np.searchsorted(length, along, side="right"), len(length) - 1)
        self._gone = self._random.random(count) * network.metres[self._road]
        self._speed = velocity * self._random.choice(SPEEDS, count, p=SPEED_SHARES)
        self._road_speed = velocity * network.speed

    def __len__(self) -> int:
        return len(self._road)

    def places(self) -> Float64:
        """Where everybody is: (travellers, 2)."""
        network, road = self._network, self._road
        share = self._gone / network.metres[road]
        start, stop = network.start[road], network.stop[road]
        return np.stack(
            (
                network.x[start] + share * (network.x[stop] - network.x[start]),
                network.y[start] + share * (network.y[stop] - network.y[start]),
            ),
            axis=1,
        )

    def step(self, seconds: float = 30.0) -> None:
        """Let *seconds* pass. Cost: about half a microsecond for each traveller."""
        metres, road, gone = self._network.metres, self._road, self._gone
        who = np.arange(len(road))
        left = np.full(len(road), seconds)
        while len(who):
            here = road[who]
            speed = np.minimum(self._speed[who], self._road_speed[here])
            needed = (metres[here] - gone[who]) / speed
            stays = needed > left
            gone[who[stays]] += left[stays] * speed[stays]
            who, left = who[~stays], (left - needed)[~stays]
            road[who] = self._turned(here[~stays])
            gone[who] = 0.0

    def _turned(self, road: Int64) -> Int64:
        """A road that starts where each of *road* ends, and not back unless there is no other."""
        network = self._network
        first = network.first[network.stop[road]]
        choices = network.first[network.stop[road] + 1] - first
        back = network.back[road]
        others = np.maximum(choices - 1, 1)
        chosen = first + (self._random.random(len(road)) * others).astype(np.int64)
        return np.where(choices == 1, back, chosen + (chosen >= back))
