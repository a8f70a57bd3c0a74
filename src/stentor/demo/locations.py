"""Where things are in Saltmere: metres around the quay as longitude and latitude."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import accumulate
from random import Random
from typing import Final

from stentor.demo.names import DISTRICTS, QUAY, District
from stentor.model.geometry import EARTH_RADIUS

#: About ten centimetres.
DECIMALS: Final = 6
_DEGREE_NORTH: Final = math.radians(EARTH_RADIUS)
_DEGREE_EAST: Final = _DEGREE_NORTH * math.cos(math.radians(QUAY[1]))
_CUMULATED_VISITORS: Final = tuple(accumulate(district.visitors for district in DISTRICTS))

Metres = tuple[float, float]  # east and north of the quay


def degrees(location: Metres) -> list[float]:
    """*location* as JSON has it: longitude, latitude."""
    east, north = location
    return [
        round(QUAY[0] + east / _DEGREE_EAST, DECIMALS),
        round(QUAY[1] + north / _DEGREE_NORTH, DECIMALS),
    ]


def a_district(random: Random) -> District:
    """A district, as often as it is visited."""
    return random.choices(DISTRICTS, cum_weights=_CUMULATED_VISITORS)[0]


def a_location(random: Random, district: District) -> Metres:
    """Somewhere in *district*, more often in its middle."""
    return (
        random.gauss(district.east, district.spread),
        random.gauss(district.north, district.spread),
    )


def corners(district: District) -> list[float]:
    """West, south, east, north of the box that holds nearly all of *district*."""
    reach = 2 * district.spread
    south_west = degrees((district.east - reach, district.north - reach))
    return south_west + degrees((district.east + reach, district.north + reach))


def outline(locations: Iterable[Metres]) -> list[list[float]]:
    """The closed ring through *locations*."""
    ring = [degrees(location) for location in locations]
    return [*ring, ring[0]]
