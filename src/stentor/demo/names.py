"""Saltmere, a harbour city that does not exist: districts, trades, jobs, people, locations."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import accumulate
from random import Random
from typing import Final, NamedTuple

from stentor.model.geometry import EARTH_RADIUS

#: Longitude and latitude of the Old Harbour's quay.
QUAY: Final = (11.6, 58.2)


class District(NamedTuple):
    """A neighbourhood: metres east and north of the quay, its spread, how many go there."""

    name: str
    east: float
    north: float
    spread: float
    visitors: float


DISTRICTS: Final = (
    District("Old Harbour", 0, 0, 250, 5),
    District("Fish Market", 450, -250, 150, 3),
    District("Lantern Quarter", 700, 350, 300, 5),
    District("Ropewalk", -500, 500, 250, 2),
    District("University Hill", 1600, 900, 400, 4),
    District("Glassworks", 1900, -700, 350, 2),
    District("Northgate", 600, 1900, 450, 3),
    District("Orchard Side", 3100, 300, 600, 3),
    District("Shipyard", -900, -900, 400, 1),
    District("Lighthouse Point", -1500, 200, 200, 1),
)

#: The promenade from the Shipyard past the quay to the Fish Market, in metres from the quay.
PROMENADE: Final = ((-900, -900), (0, -200), (600, -450), (700, -200), (50, 150), (-1000, -700))


class Good(NamedTuple):
    """Something that is sold, and between which prices."""

    name: str
    low: float
    high: float


class Trade(NamedTuple):
    """A kind of shop: what its sign says and what it sells."""

    category: str
    sign: str
    goods: tuple[Good, ...]


TRADES: Final = (
    Trade("bakery", "Bakery", (
        Good("cardamom buns", 2, 4),
        Good("rye bread", 3, 7),
        Good("apple cake", 4, 9),
        Good("almond croissants", 2, 5),
    )),
    Trade("books", "Books", (
        Good("detective novels", 5, 14),
        Good("sea charts", 12, 60),
        Good("picture books", 7, 18),
        Good("second-hand poetry", 2, 9),
    )),
    Trade("bicycles", "Cycles", (
        Good("city bicycles", 180, 650),
        Good("bicycle lamps", 9, 35),
        Good("cargo bicycles", 900, 2600),
        Good("puncture repairs", 8, 20),
    )),
    Trade("fish", "Fishmongers", (
        Good("smoked mackerel", 4, 11),
        Good("fresh mussels", 5, 12),
        Good("pickled herring", 3, 8),
        Good("crab claws", 9, 28),
    )),
    Trade("coffee", "Coffee House", (
        Good("flat whites", 2, 5),
        Good("roasted coffee beans", 7, 19),
        Good("cinnamon coffee", 3, 6),
    )),
    Trade("electronics", "Electronics", (
        Good("used tablets", 90, 320),
        Good("wireless headphones", 25, 180),
        Good("phone repairs", 30, 140),
        Good("weather radios", 20, 75),
    )),
    Trade("flowers", "Flowers", (
        Good("tulips", 4, 12),
        Good("potted herbs", 2, 7),
        Good("sea lavender", 5, 13),
    )),
    Trade("music", "Records", (
        Good("jazz records", 6, 30),
        Good("accordion lessons", 18, 45),
        Good("concert tickets", 12, 70),
    )),
    Trade("clothing", "Outfitters", (
        Good("woollen jumpers", 35, 120),
        Good("rain coats", 45, 190),
        Good("sailing gloves", 9, 32),
    )),
)  # fmt: skip

#: What comes before a shop's sign.
SHOP_NAMES: Final = (
    "Heron", "Anchor", "Lantern", "Copper Kettle", "Juniper", "Tidewater", "Magpie", "Saffron",
    "Bellweather", "Northwind", "Little Owl", "Marigold", "Driftwood", "Compass", "Seven Steps",
    "Old Ferry", "Blue Door", "Sandpiper", "Gull & Daughters", "Thistle",
)  # fmt: skip

COUPON_TEXTS: Final = (
    "{discount} % off {good} at {shop} this afternoon",
    "{good}: {discount} percent less until the shelf is empty",
    "Come to {district} for {good}, now {price} euros",
    "Rainy day discount on {good}: only {price} euros",
    "Closing time at {shop}: last {good} reduced by {discount} %",
    "Students save {discount} % on {good}",
)


class Job(NamedTuple):
    """Work on offer: what it is called, who offers it, how, and what an hour pays."""

    role: str
    employer: str
    text: str
    low: float
    high: float


JOBS: Final = (
    Job("barista", "Quayside Coffee", "Friendly barista wanted for a busy coffee bar", 13, 19),
    Job("baker", "Four O'Clock Bread", "Early riser for our bakery, ovens on at four", 15, 22),
    Job("deckhand", "Island Ferries", "Deckhand for the ferry, sea legs required", 16, 24),
    Job("mechanic", "Harbour Wheels", "Bicycle mechanic, own tools preferred", 17, 26),
    Job("bookseller", "The Reading Room", "Bookseller who reads, some lifting", 13, 18),
    Job("waiter", "The Brass Lobster", "Waiter for our terrace, tips shared", 12, 21),
    Job("glassblower", "Saltmere Glass", "Assistant at the furnace, training given", 16, 27),
    Job("translator", "North Sea Shipping", "Translator for ships' papers, from home", 20, 38),
    Job("porter", "Lighthouse Hotel", "Night porter for a small hotel", 14, 20),
)

FIRST_NAMES: Final = (
    "ana", "bo", "carla", "dag", "edith", "farid", "greta", "hugo", "ines", "jonas", "karin",
    "liam", "mei", "noor", "olaf", "petra", "quentin", "rosa", "samir", "tilda", "ulla", "viktor",
    "wanda", "yusuf", "zoe",
)  # fmt: skip

LAST_NAMES: Final = (
    "almgren", "berg", "castell", "dahl", "ekman", "ferreira", "gran", "holm", "ivers", "janssen",
    "kowal", "lind", "moreau", "nyberg", "okafor", "palm", "quist", "rask", "strand", "tamm",
    "ulven", "vinter", "wester", "young", "zander",
)  # fmt: skip


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
