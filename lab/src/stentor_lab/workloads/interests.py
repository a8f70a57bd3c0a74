"""What people ask a market place for: the whole language, mixed as people mix it.

Words, brands and places follow Zipf's law, prices and distances are round, so that many ask for
what others ask for already: some for the same, some for less of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from stentor.model import Box, Schema
from stentor_lab.workloads.distributions import Hotspots, Random, random_of, words, zipf_ranks

SPACE: Final = Box(150.6, -34.2, 151.4, -33.4)
BRANDS: Final = 300
COLOURS: Final = ("black", "white", "red", "blue", "green", "silver", "gold", "grey")
SIZES: Final = (16, 32, 64, 128, 256, 512)
RADII: Final = (500, 1000, 2000, 3000, 5000, 10000)
VOCABULARY: Final = 20_000
#: Expressions that are drawn at a time.
BATCH: Final = 10_000
_HOTSPOTS, _SUBSCRIPTIONS = range(2)

#: How often each form is asked for, of a hundred.
SHARES: Final = {
    "offer": 18,
    "words_near": 18,
    "words_priced": 14,
    "ranges": 14,
    "box": 10,
    "not_colour": 8,
    "either": 6,
    "model": 6,
    "known": 6,
}


@dataclass(frozen=True)
class Interests:
    """The recipe."""

    seed: int = 1

    @property
    def schema(self) -> Schema:
        """The schema of what is asked for; a fresh one each time."""
        return Schema.declare(
            {
                "brand": "string",
                "colour": "string",
                "loc": "point",
                "model": "string",
                "price": "number",
                "rating": "number",
                "sale": "boolean",
                "storage": "number",
                "text": "string",
            }
        )

    def texts(self, count: int) -> Iterator[str]:
        """*count* expressions. Cost: about ten microseconds each."""
        random = random_of(self.seed, _SUBSCRIPTIONS)
        spots = Hotspots.scattered(random_of(self.seed, _HOTSPOTS), SPACE, 400, spread=0.01)
        forms = [getattr(_Forms, name) for name in SHARES]
        shares = np.array(list(SHARES.values())) / sum(SHARES.values())
        for start in range(0, count, BATCH):
            size = min(BATCH, count - start)
            drawn = _Forms(random, spots, size)
            chosen = random.choice(len(forms), size, p=shares).tolist()
            for number, form in enumerate(chosen):
                yield forms[form](drawn, number)


class _Forms:
    """Constants for a batch of expressions, and the expressions made of them."""

    def __init__(self, random: Random, spots: Hotspots, size: int) -> None:
        self.brand = [f"brand{rank}" for rank in zipf_ranks(random, (size,), BRANDS).tolist()]
        self.other = [f"brand{rank}" for rank in zipf_ranks(random, (size,), BRANDS).tolist()]
        self.colour = random.choice(COLOURS, size).tolist()
        self.price = (10 * random.integers(1, 200, size)).tolist()
        self.width = (50 * random.integers(1, 20, size)).tolist()
        self.rating = random.integers(1, 6, size).tolist()
        self.size = random.integers(0, len(SIZES), size).tolist()
        self.radius = random.choice(RADII, size).tolist()
        ranks = zipf_ranks(random, (size * 3,), VOCABULARY, skipped=20)
        found = words(ranks)
        self.words = [found[position : position + 3] for position in range(0, 3 * size, 3)]
        self.asked = random.choice([1, 2, 3], size, p=[0.4, 0.4, 0.2]).tolist()
        x, y = spots.places(random, size)
        self.x, self.y = np.round(x, 2).tolist(), np.round(y, 2).tolist()

    def offer(self, n: int) -> str:
        return f"brand = '{self.brand[n]}' AND price < {self.price[n]}"

    def words_near(self, n: int) -> str:
        location = f"ST_DWithin(loc, ST_Point({self.x[n]}, {self.y[n]}), {self.radius[n]})"
        return f"{self._has('has_all', n)} AND {location}"

    def words_priced(self, n: int) -> str:
        return f"{self._has('has_all', n)} AND price <= {self.price[n]}"

    def ranges(self, n: int) -> str:
        low = self.price[n]
        return (
            f"price BETWEEN {low} AND {low + self.width[n]} AND rating >= {self.rating[n]} "
            f"AND brand IN ('{self.brand[n]}', '{self.other[n]}')"
        )

    def box(self, n: int) -> str:
        reach = self.radius[n] / 100_000
        west, south = round(self.x[n] - reach, 3), round(self.y[n] - reach, 3)
        east, north = round(self.x[n] + reach, 3), round(self.y[n] + reach, 3)
        location = f"ST_Within(loc, ST_MakeEnvelope({west}, {south}, {east}, {north}))"
        return f"{location} AND {self._has('has_any', n)}"

    def not_colour(self, n: int) -> str:
        sizes = ", ".join(str(size) for size in SIZES[self.size[n] :])
        return (
            f"brand = '{self.brand[n]}' AND NOT colour = '{self.colour[n]}' "
            f"AND storage IN ({sizes})"
        )

    def either(self, n: int) -> str:
        return f"brand = '{self.brand[n]}' AND (sale = TRUE OR price < {self.price[n]})"

    def model(self, n: int) -> str:
        return f"model LIKE '{self.words[n][0][: 3 + self.asked[n]]}%' AND price < {self.price[n]}"

    def known(self, n: int) -> str:
        return (
            f"brand = '{self.brand[n]}' AND colour IS NOT NULL AND price <= {self.price[n]} "
            f"AND rating >= {self.rating[n]}"
        )

    def _has(self, function: str, n: int) -> str:
        asked = ", ".join(f"'{word}'" for word in dict.fromkeys(self.words[n][: self.asked[n]]))
        return f"{function}(text, {asked})"
