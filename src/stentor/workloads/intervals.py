"""Intervals on many attributes and a square in a city: the workload of the MO-Tree.

Twenty attributes whose popularity follows Zipf's law. An event has fifteen to twenty of them, with
values drawn uniformly, and a place near a hotspot. A subscription asks for intervals on a few of
them, their ends drawn uniformly, and for a square that reaches 0.5 to 2 km around a place.

Paper: MO-Tree, section 6.1 (M = 20, K_e = 15–20, K_s = 4–10, r = 0.5–2 km, alpha = 0–1). Its taxi
traces are replaced by drawn places in a city of the same size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import (
    BOX,
    SPAN,
    EventColumns,
    Float64,
    Int32,
    SubscriptionColumns,
)
from stentor.encoding.event_batches import assemble
from stentor.errors import SettingsError
from stentor.model import Box, Schema
from stentor.model.geometry import EARTH_RADIUS
from stentor.workloads.conjunctions import (
    DECIMALS,
    Boxes,
    Pairs,
    Predicates,
    at_once,
    conjunctions,
    numbers,
    points,
)
from stentor.workloads.distributions import (
    Booleans,
    Hotspots,
    random_of,
    rounded,
    weighted_choices,
)

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
    """The recipe; *alpha* is the exponent of the attributes' popularity, 0 where all are alike."""

    seed: int = 1
    predicates: int = 10
    alpha: float = 1.0
    hotspots: int = 1000

    def __post_init__(self) -> None:
        if not 1 <= self.predicates <= len(ATTRIBUTES):
            raise SettingsError(
                f"{self.predicates} predicates on {len(ATTRIBUTES)} attributes; "
                f"take 1 to {len(ATTRIBUTES)}"
            )

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
        x, y = self._hotspots.places(random, count)
        side = 2.0 * random.uniform(SHORTEST, LONGEST, count) / METRES_PER_DEGREE
        boxes = Boxes.around(SPACE, x, y, side / np.cos(np.radians(y)), side)
        return IntervalSubscriptions(attribute, ends.min(axis=0), ends.max(axis=0), boxes)

    def events(self, count: int) -> IntervalEvents:
        """*count* events."""
        random = random_of(self.seed, _EVENTS)
        values = random.integers(FEWEST_VALUES, len(ATTRIBUTES) + 1, count)
        valid = weighted_choices(random, self._popularity, values)
        value = random.integers(0, DOMAIN, valid.shape).astype(np.float64)
        x, y = self._hotspots.places(random, count)
        return IntervalEvents(valid, value, rounded(x, DECIMALS), rounded(y, DECIMALS))

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
    """Drawn subscriptions, in two forms that mean the same."""

    attribute: Int32  # (subscriptions, predicates) places in ATTRIBUTES, ascending
    low: Float64  # (subscriptions, predicates)
    high: Float64  # (subscriptions, predicates)
    boxes: Boxes

    def __len__(self) -> int:
        return len(self.attribute)

    def columns(self) -> SubscriptionColumns:
        """What `encode_subscriptions` gives for `texts()`, at more than a million per second."""
        intervals = self.attribute.shape[1]
        predicates = Predicates.unbounded(len(self), intervals + 1)
        predicates.kind[:, :intervals] = SPAN
        predicates.attribute[:, :intervals] = self.attribute
        predicates.low[:, :intervals] = self.low
        predicates.high[:, :intervals] = self.high
        pairs = np.arange(len(self)) * 2
        predicates.kind[:, intervals] = BOX
        predicates.attribute[:, intervals] = _schema().code("loc")
        predicates.operand_start[:, intervals] = pairs
        predicates.operand_stop[:, intervals] = pairs + 2
        return conjunctions(predicates, Pairs.of_boxes(self.boxes))

    def texts(self) -> Iterator[str]:
        """Each subscription as the text of its expression."""
        corners = zip(*(side.tolist() for side in self.boxes), strict=True)
        rows = zip(self.attribute, self.low, self.high, corners, strict=True)
        for attributes, lows, highs, (west, south, east, north) in rows:
            asked = [
                f"{ATTRIBUTES[attribute]} BETWEEN {low:.0f} AND {high:.0f}"
                for attribute, low, high in zip(attributes, lows, highs, strict=True)
            ]
            place = f"ST_Within(loc, ST_MakeEnvelope({west}, {south}, {east}, {north}))"
            yield " AND ".join([*asked, place])


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
        return assemble(attributes, at_once(len(self)), _schema())

    def records(self) -> Iterator[dict[str, Any]]:
        """Each event as a dict, as JSON would have it."""
        rows = zip(self.valid, self.value, self.x.tolist(), self.y.tolist(), strict=True)
        for row, (valid, value, x, y) in enumerate(rows):
            given = {ATTRIBUTES[place]: int(value[place]) for place in np.flatnonzero(valid)}
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
