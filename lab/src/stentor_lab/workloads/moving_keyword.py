"""Subscribers who travel through a city and ask for words around them; messages that live a while.

A timestamp is 30 seconds. At each, some subscribers tell where they are now, and new messages come;
a message lives for ten timestamps. The words are those of the spatial-keyword workload; the circle
around a subscriber has the area that its rectangles have.

Paper: AP-Tree, section 5.2.1 and Table 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from stentor.encoding.columns import EventColumns, Float64, Int64, SubscriptionColumns
from stentor.encoding.events import EventTimes
from stentor.encoding.kinds import OWN_CIRCLE
from stentor.model import Box, Point, Schema
from stentor.model.geometry import EARTH_RADIUS
from stentor_lab.workloads.conjunctions import Pairs
from stentor_lab.workloads.distributions import random_of, rounded, words
from stentor_lab.workloads.roads import RoadNetwork, Travellers
from stentor_lab.workloads.spatial_keyword import (
    KeywordSubscriptions,
    SpatialKeyword,
    keyword_columns,
)

#: About 28 × 28 km.
CITY: Final = Box(151.0, -34.0, 151.3, -33.75)
SECONDS_PER_STEP: Final = 30
LIFE: Final = 10  # timestamps

_STEP: Final = SECONDS_PER_STEP * 1_000_000  # microseconds
_RADII = 5  # a stream of random numbers that neither words nor roads use


@dataclass(frozen=True)
class MovingKeyword:
    """The recipe; subscribers, roads and messages of one recipe share a city."""

    words: SpatialKeyword = field(default_factory=lambda: SpatialKeyword(space=CITY))
    velocity: float = 1.0  # times medium
    roads: RoadNetwork | None = None  # a city's own where none are given

    @property
    def schema(self) -> Schema:
        """The schema of subscriptions and messages; a fresh one each time."""
        return self.words.schema

    @cached_property
    def network(self) -> RoadNetwork:
        """The roads that subscribers travel on."""
        return self.roads or RoadNetwork.city(self.words.space, seed=self.words.seed)

    def travellers(self, count: int) -> Travellers:
        """*count* subscribers on their way."""
        seed = self.words.seed
        return Travellers(self.network, count, velocity=self.velocity, seed=seed)

    def subscriptions(self, at: Float64) -> CircleSubscriptions:
        """A subscription for each of the places *at* (n, 2)."""
        return CircleSubscriptions(self.words.subscriptions(len(at)), at, self.radii(len(at)))

    def radii(self, count: int) -> Float64:
        """The radii of *count* subscriptions, in metres."""
        space = self.words.space
        height = math.radians(space.north - space.south) * EARTH_RADIUS
        middle = math.radians((space.north + space.south) / 2.0)
        width = math.radians(space.east - space.west) * EARTH_RADIUS * math.cos(middle)
        share = random_of(self.words.seed, _RADII).uniform(
            self.words.smallest, self.words.largest, count
        )
        return rounded(np.sqrt(share * width * height / math.pi), 1)

    def messages(self, count: int, step: int) -> EventColumns:
        """*count* messages that come at the timestamp *step*."""
        drawn = self.words.events(count, part=step)
        time = np.full(count, moment(step))
        return drawn.columns(living(time))

    def live_messages(self, count: int) -> EventColumns:
        """*count* messages of which a tenth comes, and later goes, with each of ten timestamps."""
        drawn = self.words.events(count)
        return drawn.columns(living(of_ten_timestamps(count)))


@dataclass(frozen=True)
class CircleSubscriptions:
    """Drawn subscriptions, in two forms that mean the same."""

    plain: KeywordSubscriptions  # the words; its rectangles do not count
    at: Float64  # (subscriptions, 2)
    radius: Float64  # (subscriptions,) metres

    def __len__(self) -> int:
        return len(self.radius)

    def columns(self) -> SubscriptionColumns:
        """What `encode_subscriptions` gives for `texts()` at `places()`."""
        x, y = np.ascontiguousarray(self.at.T)
        pairs = Pairs.of_circles(x, y, self.radius)
        return keyword_columns(
            OWN_CIRCLE, pairs, self.plain.keywords, self.plain.words_asked(), position=self.at
        )

    def texts(self) -> Iterator[str]:
        """Each subscription as the text of its expression."""
        rows = zip(self.plain.codes, self.plain.keywords, self.radius.tolist(), strict=True)
        for codes, keywords, radius in rows:
            asked = ", ".join(f"'{word}'" for word in words(codes[:keywords]))
            yield f"has_all(text, {asked}) AND ST_DWithin(loc, here(), {radius})"

    def places(self) -> Iterator[Point]:
        """Where each subscriber is."""
        for x, y in self.at.tolist():
            yield Point(x, y)


def moment(step: int) -> int:
    """When the timestamp *step* is, in microseconds."""
    return step * _STEP


def of_ten_timestamps(count: int) -> Int64:
    """When *count* live messages came: a tenth at each timestamp up to now."""
    return (np.arange(count) * LIFE // max(1, count) - LIFE + 1) * _STEP


def living(time: Int64) -> EventTimes:
    """The times of messages that come at *time*."""
    return EventTimes(time + LIFE * _STEP, time, np.zeros(len(time), np.int64))
