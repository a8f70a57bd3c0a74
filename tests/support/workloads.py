"""Thousands of subscriptions and events, drawn with a seed: words and places, intervals, profiles.

The laboratory has the papers' own workloads; these are small ones of the same kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stentor.encoding.columns import EventColumns, Float64, SubscriptionColumns
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.template import SubscriptionHeads
from stentor.encoding.texts import TextEncoder
from stentor.model import Box, Schema
from stentor.model.values.time import NEVER
from stentor.wire.events import event_from_dict

EUROPE = Box(-10.0, 35.0, 40.0, 60.0)
CITY = Box(151.0, -34.0, 151.3, -33.75)
#: Combinations of attributes that subscriptions ask for: few, so that texts are of few shapes.
COMBINATIONS = 64


def encoded(texts: Iterable[str], schema: Schema, at: Float64 | None = None) -> SubscriptionColumns:
    """The columns of *texts*, of subscribers who are somewhere or *at* (n, 2)."""
    texts = list(texts)
    at = np.full((len(texts), 2), np.nan) if at is None else at
    ids = [str(row) for row in range(len(texts))]
    read = TextEncoder(schema).encode(texts, SubscriptionHeads(ids, at, np.full(len(texts), NEVER)))
    assert not read.errors
    return read.columns


def encoded_events(records: Iterable[dict], schema: Schema) -> EventColumns:
    """The columns of *records*."""
    events = [event_from_dict(record, schema) for record in records]
    return encode_events([TimedEvent(event) for event in events], schema)


def box(x: float, y: float, width: float, height: float) -> str:
    """The predicate of a box around a place, inside the world."""
    west, east = max(-180.0, x - width / 2), min(180.0, x + width / 2)
    return f"ST_Within(loc, ST_MakeEnvelope({west}, {y - height / 2}, {east}, {y + height / 2}))"


def places(random: np.random.Generator, space: Box, count: int, hotspots: int) -> Float64:
    """*count* places (n, 2) around some *hotspots* of *space*; the same ones for each count."""
    corner = np.array([space.west, space.south])
    sides = np.array([space.east - space.west, space.north - space.south])
    spots = np.random.default_rng(hotspots).uniform(0.05, 0.95, (hotspots, 2))
    chosen = spots[random.integers(0, hotspots, count)]
    return corner + sides * np.clip(chosen + random.normal(0.0, 0.02, (count, 2)), 0.0, 1.0)


@dataclass(frozen=True)
class WordsAndPlaces:
    """Messages of nine words at a place; subscriptions for one to five words in a box.

    Words follow Zipf's law without its first *stop_words*. With *drift* what comes last, that
    share of it, has other favourite words and places.
    """

    seed: int = 1
    vocabulary: int = 2000
    stop_words: int = 5
    hotspots: int = 200
    drift: float = 0.0
    space: Box = EUROPE

    @property
    def schema(self) -> Schema:
        """A fresh one each time."""
        return Schema.declare({"loc": "point", "text": "string"})

    def subscriptions(self, count: int) -> SubscriptionColumns:
        """*count* subscriptions, in the order in which they come."""
        random = np.random.default_rng([self.seed, 0])
        drawn = self._drawn(random, 5, np.linspace(0.0, 1.0, count))
        sides = np.sqrt(random.uniform(0.0001, 0.01, count))
        width, height = self.space.east - self.space.west, self.space.north - self.space.south
        texts = (
            f"{asked} AND {box(x, y, side * width, side * height)}"
            for asked, (_, x, y), side in zip(
                self._asked(random, drawn), drawn, sides.tolist(), strict=True
            )
        )
        return encoded(texts, self.schema)

    def around(self, at: Float64) -> SubscriptionColumns:
        """A subscription for each of the places *at*: for words within a kilometre or two."""
        random = np.random.default_rng([self.seed, 1])
        drawn = self._drawn(random, 5, np.zeros(len(at)))
        metres = random.integers(300, 2000, len(at)).tolist()
        texts = (
            f"{asked} AND ST_DWithin(loc, here(), {most})"
            for asked, most in zip(self._asked(random, drawn), metres, strict=True)
        )
        return encoded(texts, self.schema, at)

    def events(self, count: int, *, when: float = 0.0, part: int = 0) -> EventColumns:
        """*count* messages of the beginning (*when* is 0) or of the end (1)."""
        random = np.random.default_rng([self.seed, 2, part])
        drawn = self._drawn(random, 9, np.full(count, when))
        records = (
            {"id": f"e{row}", "text": " ".join(words), "loc": [x, y]}
            for row, (words, x, y) in enumerate(drawn)
        )
        return encoded_events(records, self.schema)

    def _asked(
        self, random: np.random.Generator, drawn: list[tuple[list[str], float, float]]
    ) -> Iterator[str]:
        for (words, _, _), count in zip(drawn, random.integers(1, 6, len(drawn)), strict=True):
            quoted = ", ".join(f"'{word}'" for word in words[:count])
            yield f"has_all(text, {quoted})"

    def _drawn(
        self, random: np.random.Generator, words: int, when: Float64
    ) -> list[tuple[list[str], float, float]]:
        """Different words and a place for each of *when*."""
        share = 1.0 / np.arange(self.stop_words + 1, self.stop_words + self.vocabulary + 1)
        # Gumbel's trick: the largest keys are a choice without replacement.
        late = random.random(len(when)) < self.drift * when
        x, y = places(random, self.space, len(when), self.hotspots).T
        other = places(random, self.space, len(when), self.hotspots + 1).T
        x, y = np.where(late, other[0], x), np.where(late, other[1], y)
        found = []
        for start in range(0, len(when), 1000):
            moved = late[start : start + 1000]
            keys = np.log(share) + random.gumbel(size=(len(moved), self.vocabulary))
            best = np.argpartition(-keys, words)[:, :words]
            best[moved] = (best[moved] + self.vocabulary // 2) % self.vocabulary
            found += [[f"w{word}" for word in row] for row in random.permuted(best, axis=1)]
        return list(zip(found, x.tolist(), y.tolist(), strict=True))


@dataclass(frozen=True)
class Intervals:
    """Intervals on some of twenty attributes, popular ones more often, in a square of a city.

    In a *hot* city seven in ten places are around one square.
    """

    seed: int = 1
    predicates: int = 10
    hotspots: int = 1000
    hot: bool = False
    reach: tuple[float, float] = (500.0, 2000.0)

    names = tuple(f"a{number:02}" for number in range(1, 21))
    space = Box(121.2, 31.0, 121.7, 31.4)

    @property
    def schema(self) -> Schema:
        """A fresh one each time."""
        return Schema.declare({**dict.fromkeys(self.names, "number"), "loc": "point"})

    def subscriptions(self, count: int) -> SubscriptionColumns:
        """*count* subscriptions for squares."""
        random = np.random.default_rng([self.seed, 0])
        at, reach = self._places(random, count), random.uniform(*self.reach, count) / 55_600
        texts = (
            f"{asked} AND {box(x, y, side / 0.855, side)}"
            for asked, (x, y), side in zip(
                self._asked(random, count), at.tolist(), reach.tolist(), strict=True
            )
        )
        return encoded(texts, self.schema)

    def moving(self, count: int) -> SubscriptionColumns:
        """*count* subscriptions for circles around subscribers."""
        random = np.random.default_rng([self.seed, 1])
        at, reach = self._places(random, count), random.integers(*self.reach, count)
        texts = (
            f"{asked} AND ST_DWithin(loc, here(), {metres})"
            for asked, metres in zip(self._asked(random, count), reach.tolist(), strict=True)
        )
        return encoded(texts, self.schema, at)

    def events(self, count: int) -> EventColumns:
        """*count* events with 15 to 20 of the attributes."""
        random = np.random.default_rng([self.seed, 2])
        values, at = random.integers(0, 10_000, (count, 20)).tolist(), self._places(random, count)
        records = []
        for row, (own, place) in enumerate(zip(values, at.tolist(), strict=True)):
            record = dict(zip(self.names, own, strict=True))
            for name in random.choice(self.names, random.integers(0, 6), replace=False):
                del record[name]
            records.append({"id": f"e{row}", **record, "loc": place})
        return encoded_events(records, self.schema)

    def _asked(self, random: np.random.Generator, count: int) -> Iterator[str]:
        popularity = 1.0 / np.arange(1.0, 21.0)
        combinations = [
            sorted(
                random.choice(20, self.predicates, replace=False, p=popularity / popularity.sum())
            )
            for _ in range(COMBINATIONS)
        ]
        ends = np.sort(random.integers(0, 10_000, (count, self.predicates, 2))).tolist()
        for own, chosen in zip(ends, random.integers(0, COMBINATIONS, count), strict=True):
            yield " AND ".join(
                f"{self.names[name]} BETWEEN {low} AND {high}"
                for name, (low, high) in zip(combinations[chosen], own, strict=True)
            )

    def _places(self, random: np.random.Generator, count: int) -> Float64:
        if not self.hot:
            return places(random, self.space, count, self.hotspots)
        square = random.normal((121.4, 31.2), (0.005, 0.004), (count, 2))
        corners = (self.space.west, self.space.south), (self.space.east, self.space.north)
        return np.where(
            random.random((count, 1)) < 0.7, square, random.uniform(*corners, (count, 2))
        )


@dataclass(frozen=True)
class Profiles:
    """Weighted intervals around some values of a profile; events are profiles.

    There are as many profiles as make *match_share* of all subscriptions want an event.
    """

    seed: int = 1
    dimensions: int = 50
    predicates: int = 8
    values: int = 15
    match_share: float = 0.02
    alpha: float = 0.0
    weighted_events: bool = False

    @cached_property
    def names(self) -> list[str]:
        """The attributes."""
        return [f"a{number:04}" for number in range(self.dimensions)]

    @property
    def schema(self) -> Schema:
        """A fresh one each time."""
        return Schema.declare(dict.fromkeys(self.names, "number"))

    def subscriptions(self, count: int) -> SubscriptionColumns:
        """*count* subscriptions; each profile has a few choices of what is asked for."""
        random = np.random.default_rng([self.seed, 0])
        choices = [
            [sorted(random.choice(self.values, self.predicates, replace=False)) for _ in range(8)]
            for _ in self._profiles
        ]
        texts = []
        for chosen in random.integers(0, len(choices), count):
            profile, asked = self._profiles[chosen], choices[chosen][random.integers(0, 8)]
            slack = random.integers(0, 6, (len(asked), 2)).tolist()
            texts.append(
                " AND ".join(
                    f"weight({self.names[name]} BETWEEN {value - low} AND {value + high}, {weight})"
                    for (name, value), weight, (low, high) in zip(
                        (profile[one] for one in asked),
                        self._weights(random, [profile[one][0] for one in asked]),
                        slack,
                        strict=True,
                    )
                )
            )
        return encoded(texts, self.schema)

    def events(self, count: int) -> EventColumns:
        """*count* events."""
        random = np.random.default_rng([self.seed, 1])
        records = []
        for row, chosen in enumerate(random.integers(0, len(self._profiles), count)):
            profile = [(self.names[name], value) for name, value in self._profiles[chosen]]
            record: dict[str, object] = {"id": f"e{row}", **dict(profile)}
            if self.weighted_events:
                weights = self._weights(random, [name for name, _ in self._profiles[chosen]])
                record["weights"] = dict(zip([name for name, _ in profile], weights, strict=True))
            records.append(record)
        return encoded_events(records, self.schema)

    @cached_property
    def _profiles(self) -> list[list[tuple[int, int]]]:
        random = np.random.default_rng([self.seed, 2])
        popularity = np.arange(1.0, self.dimensions + 1.0) ** -self.alpha
        share = popularity / popularity.sum()
        return [
            [
                (int(name), int(100_000 * random.integers(1, 5) + random.integers(0, 100)))
                for name in sorted(
                    random.choice(self.dimensions, self.values, replace=False, p=share)
                )
            ]
            for _ in range(round(1.0 / self.match_share))
        ]

    def _weights(self, random: np.random.Generator, names: list[int]) -> list[float]:
        """The rarer an attribute, the larger its weight, give or take."""
        own = (np.array(names) + 1.0) / self.dimensions
        return np.round(own * np.clip(random.normal(0.8, 0.05, len(names)), 0.1, 1.0), 6).tolist()


MARKET = {
    **dict.fromkeys(("brand", "colour", "model", "text"), "string"),
    **dict.fromkeys(("price", "rating", "storage"), "number"),
    "loc": "point",
    "sale": "boolean",
}


def market(seed: int, count: int) -> Iterator[str]:
    """*count* expressions over MARKET, the whole language as people mix it.

    Constants are few and round, so that many ask for what others ask for, or for less of it.
    """
    random = np.random.default_rng(seed)
    for _ in range(count):
        brand, other = (f"brand{rank}" for rank in np.minimum(random.zipf(1.3, 2), 300))
        words = [f"w{rank}" for rank in np.minimum(random.zipf(1.2, 3), 20_000)]
        asked = ", ".join(f"'{word}'" for word in dict.fromkeys(words[: random.integers(1, 4)]))
        price, rating = 10 * int(random.integers(1, 200)), int(random.integers(1, 6))
        metres = int(random.choice([500, 1000, 2000, 3000, 5000, 10000]))
        x, y = np.round(places(random, Box(150.6, -34.2, 151.4, -33.4), 1, 400)[0], 2).tolist()
        colour = random.choice(["black", "white", "red", "blue"])
        sizes = ", ".join(map(str, (16, 32, 64, 128, 256, 512)[random.integers(0, 6) :]))
        forms = {
            18: f"brand = '{brand}' AND price < {price}",
            19: f"has_all(text, {asked}) AND ST_DWithin(loc, ST_Point({x}, {y}), {metres})",
            14: f"has_all(text, {asked}) AND price <= {price}",
            15: f"price BETWEEN {price} AND {price + 500} AND rating >= {rating} "
            f"AND brand IN ('{brand}', '{other}')",
            10: f"{box(x, y, metres / 50_000, metres / 50_000)} AND has_any(text, {asked})",
            8: f"brand = '{brand}' AND NOT colour = '{colour}' AND storage IN ({sizes})",
            5: f"brand = '{brand}' AND (sale = TRUE OR price < {price})",
            6: f"model LIKE '{words[0][:3]}%' AND price < {price}",
            7: f"brand = '{brand}' AND colour IS NOT NULL AND price <= {price} "
            f"AND rating >= {rating}",
        }
        shares = np.array(list(forms)) / sum(forms)
        yield list(forms.values())[random.choice(len(forms), p=shares)]
