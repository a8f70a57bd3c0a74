"""Intervals on many attributes and a square in a city: the workload of the MO-Tree.

Twenty attributes whose popularity follows Zipf's law. An event has fifteen to twenty of them, with
values drawn uniformly, and a place near a hotspot. A subscription asks for intervals on a few of
them, their ends drawn uniformly, and for a square that reaches 0.5 to 2 km around a place.

Paper: MO-Tree, section 6.1 (M = 20, K_e = 15–20, K_s = 4–10, r = 0.5–2 km, alpha = 0–1). Its taxi
traces are replaced by drawn places in a city of the same size, or by the pick-ups of another city
(`pickups.py`). Instead of a square, a subscription can ask for a circle around the subscriber.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import EventColumns, Float64, Int32, SubscriptionColumns
from stentor.encoding.events import encode_attribute_columns
from stentor.encoding.kinds import BOX, INTERVAL, OWN_CIRCLE
from stentor.errors import SettingsError
from stentor.model import Box, Schema
from stentor.model.geometry import EARTH_RADIUS
from stentor_lab.workloads.conjunctions import (
    DECIMALS,
    Boxes,
    Pairs,
    Predicates,
    at_once,
    conjunctions,
    numbers,
    points,
)
from stentor_lab.workloads.distributions import (
    Booleans,
    Hotspots,
    Random,
    random_of,
    rounded,
    weighted_choices,
)
from stentor_lab.workloads.pickups import Places

SPACE: Final = Box(121.2, 31.0, 121.7, 31.4)
ATTRIBUTES: Final = tuple(f"a{number:02}" for number in range(1, 21))
#: Values are whole numbers below this.
DOMAIN: Final = 10_000
FEWEST_VALUES: Final = 15
#: Metres from the middle of a square to its sides.
SHORTEST, LONGEST = 500.0, 2000.0
METRES_PER_DEGREE: Final = math.radians(EARTH_RADIUS)

_HOTSPOTS, _SUBSCRIPTIONS, _EVENTS = range(3)


@dataclass(frozen=True)
class Intervals:
    """The recipe; *alpha* is the exponent of the attributes' popularity, 0 where all are alike.

    Without *places*, they are drawn around *hotspots*. *reach* has the metres from the middle of a
    square to its sides, the least and the most.
    """

    seed: int = 1
    predicates: int = 10
    alpha: float = 1.0
    hotspots: int = 1000
    places: Places | None = None
    reach: tuple[float, float] = (SHORTEST, LONGEST)

    def __post_init__(self) -> None:
        if not 1 <= self.predicates <= len(ATTRIBUTES):
            raise SettingsError(
                f"{self.predicates} predicates on {len(ATTRIBUTES)} attributes; "
                f"take 1 to {len(ATTRIBUTES)}"
            )
        if not 0.0 <= self.alpha < math.inf:
            raise SettingsError(f"a popularity with the exponent {self.alpha}; take 0 to 1")

    @property
    def schema(self) -> Schema:
        """The schema of both; a fresh one each time."""
        return _schema()

    def subscriptions(self, count: int) -> IntervalSubscriptions:
        """*count* subscriptions. Cost: about two microseconds each."""
        random = random_of(self.seed, _SUBSCRIPTIONS)
        asked = weighted_choices(random, self._popularity, np.full(count, self.predicates))
        attribute = np.nonzero(asked)[1].astype(np.int32).reshape(count, self.predicates)
        ends = random.integers(0, DOMAIN, (2, count, self.predicates)).astype(np.float64)
        x, y = self._subscriber_places(random, count)
        reach = random.uniform(*self.reach, count)
        side = 2.0 * reach / METRES_PER_DEGREE
        boxes = Boxes.around(self.space, x, y, side / np.cos(np.radians(y)), side)
        return IntervalSubscriptions(
            attribute,
            ends.min(axis=0),
            ends.max(axis=0),
            boxes,
            rounded(x, DECIMALS),
            rounded(y, DECIMALS),
            rounded(reach, 0),
        )

    def events(self, count: int) -> IntervalEvents:
        """*count* events."""
        random = random_of(self.seed, _EVENTS)
        values = random.integers(FEWEST_VALUES, len(ATTRIBUTES) + 1, count)
        valid = weighted_choices(random, self._popularity, values)
        value = random.integers(0, DOMAIN, valid.shape).astype(np.float64)
        x, y = self._event_places(random, count)
        return IntervalEvents(valid, value, rounded(x, DECIMALS), rounded(y, DECIMALS))

    @property
    def space(self) -> Box:
        """What all places are in."""
        return SPACE if self.places is None else self.places.space

    def _subscriber_places(self, random: Random, count: int) -> tuple[Float64, Float64]:
        if self.places is None:
            return self._hotspots.places(random, count)
        chosen = random.integers(0, len(self.places.x), count)
        return self.places.x[chosen], self.places.y[chosen]

    def _event_places(self, random: Random, count: int) -> tuple[Float64, Float64]:
        if self.places is None:
            return self._hotspots.places(random, count)
        chosen = random.integers(0, len(self.places.busy_x), count)
        return self.places.busy_x[chosen], self.places.busy_y[chosen]

    @cached_property
    def _popularity(self) -> Float64:
        popularity: Float64 = np.arange(1.0, len(ATTRIBUTES) + 1.0) ** -self.alpha
        return popularity

    @cached_property
    def _hotspots(self) -> Hotspots:
        random = random_of(self.seed, _HOTSPOTS)
        return Hotspots.scattered(random, SPACE, self.hotspots, spread=0.02)


@dataclass(frozen=True)
class IntervalSubscriptions:
    """Drawn subscriptions: for squares, and for circles around moving subscribers.

    Either way in two forms that mean the same.
    """

    attribute: Int32  # (subscriptions, predicates) places in ATTRIBUTES, ascending
    low: Float64  # (subscriptions, predicates)
    high: Float64  # (subscriptions, predicates)
    boxes: Boxes
    x: Float64  # (subscriptions,) where the subscriber is
    y: Float64  # (subscriptions,)
    reach: Float64  # (subscriptions,) metres

    def __len__(self) -> int:
        return len(self.attribute)

    def columns(self) -> SubscriptionColumns:
        """What `encode_subscriptions` gives for `texts()`, at more than a million per second."""
        return conjunctions(self._predicates(BOX, pairs=2), Pairs.of_boxes(self.boxes))

    def moving_columns(self) -> SubscriptionColumns:
        """What `encode_subscriptions` gives for `moving_texts()`, each at its x and y."""
        return conjunctions(
            self._predicates(OWN_CIRCLE, pairs=5),
            Pairs.of_circles(self.x, self.y, self.reach),
            position=np.stack((self.x, self.y), axis=1),
        )

    def _predicates(self, location: int, pairs: int) -> Predicates:
        """The intervals, and a predicate of the kind *location* on so many *pairs*."""
        intervals = self.attribute.shape[1]
        predicates = Predicates.unbounded(len(self), intervals + 1)
        predicates.kind[:, :intervals] = INTERVAL
        predicates.attribute[:, :intervals] = self.attribute
        predicates.low[:, :intervals] = self.low
        predicates.high[:, :intervals] = self.high
        first_pair = np.arange(len(self)) * pairs
        predicates.kind[:, intervals] = location
        predicates.attribute[:, intervals] = _schema().code("loc")
        predicates.operand_start[:, intervals] = first_pair
        predicates.operand_stop[:, intervals] = first_pair + pairs
        return predicates

    def texts(self) -> Iterator[str]:
        """Each subscription as the text of its expression."""
        for asked, corners in zip(self._asked(), zip(*self.boxes, strict=True), strict=True):
            west, south, east, north = (float(corner) for corner in corners)
            location = f"ST_Within(loc, ST_MakeEnvelope({west}, {south}, {east}, {north}))"
            yield f"{asked} AND {location}"

    def moving_texts(self) -> Iterator[str]:
        """Each subscription as the text of its expression, around wherever the subscriber is."""
        for asked, reach in zip(self._asked(), self.reach.tolist(), strict=True):
            yield f"{asked} AND ST_DWithin(loc, here(), {reach})"

    def _asked(self) -> Iterator[str]:
        """The text of each subscription's intervals."""
        for attributes, lows, highs in zip(self.attribute, self.low, self.high, strict=True):
            yield " AND ".join(
                f"{ATTRIBUTES[attribute]} BETWEEN {low:.0f} AND {high:.0f}"
                for attribute, low, high in zip(attributes, lows, highs, strict=True)
            )


@dataclass(frozen=True)
class IntervalEvents:
    """Drawn events, in three forms that mean the same."""

    valid: Booleans  # (events, attributes)
    value: Float64  # (events, attributes)
    x: Float64  # (events,)
    y: Float64  # (events,)

    def __len__(self) -> int:
        return len(self.x)

    def columns(self) -> EventColumns:
        """What `encode_events` gives for `records()`."""
        attributes = [
            numbers(name, value, value, valid)
            for name, value, valid in zip(ATTRIBUTES, self.value.T, self.valid.T, strict=True)
        ]
        attributes.append(numbers("loc", self.x, self.y))
        return encode_attribute_columns(attributes, at_once(len(self)), _schema())

    def records(self) -> Iterator[dict[str, Any]]:
        """Each event as a dict, as JSON would have it."""
        rows = zip(self.valid, self.value, self.x.tolist(), self.y.tolist(), strict=True)
        for row, (valid, value, x, y) in enumerate(rows):
            given = {
                ATTRIBUTES[position]: int(value[position]) for position in np.flatnonzero(valid)
            }
            yield {"id": f"e{row}", **given, "loc": [x, y]}

    def table(self) -> pa.Table:
        """The events as an Arrow table: a column for each attribute, null where it is missing."""
        columns = {
            name: pa.array(value, mask=~valid)
            for name, value, valid in zip(ATTRIBUTES, self.value.T, self.valid.T, strict=True)
        }
        ids = [f"e{row}" for row in range(len(self))]
        return pa.table({"id": ids, **columns, "loc": points(self.x, self.y)})


def _schema() -> Schema:
    return Schema.declare({**dict.fromkeys(ATTRIBUTES, "number"), "loc": "point"})
