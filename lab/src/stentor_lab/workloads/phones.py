"""A market of used phones: expressions of six predicates, in few shapes or in ever new ones.

Subscriptions come from forms with a few fields, so they have few shapes and other constants each;
the same constants are a table with a column for each field. An offer has ten attributes and a text
of nine terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import Int64
from stentor.model import Schema
from stentor_lab.workloads.conjunctions import points
from stentor_lab.workloads.distributions import (
    distinct_zipf_ranks,
    random_of,
    rounded,
    word_codes,
    words,
    zipf_ranks,
)

KINDS: Final = {
    "brand": "string",
    "model": "string",
    "colour": "string",
    "price": "number",
    "storage": "number",
    "rating": "number",
    "grams": "number",
    "stock": "number",
    "boxed": "boolean",
    "loc": "point",
    "text": "string",
}

BRANDS: Final = ("Huawei", "Apple", "Samsung", "Nokia", "Fairphone", "Sony", "Motorola", "Xiaomi")
COLOURS: Final = ("black", "white", "red", "blue", "green", "silver", "gold", "violet")
MODELS: Final = tuple(f"{letter}{number}" for letter in "APXZ" for number in range(1, 41))
STORAGES: Final = (32.0, 64.0, 128.0, 256.0, 512.0)
WORDS: Final = 20_000
TEXT_TERMS: Final = 9

#: The forms, as expressions with a parameter for each field.
SHAPES: Final = (
    """brand = :brand AND price < :most AND storage IN (:storage, :more) AND NOT colour = :colour
    AND has_all(text, :word, :other) AND ST_DWithin(loc, ST_Point(:x, :y), :metres)""",
    """brand IN (:brand, :rival) AND price BETWEEN :least AND :most AND storage >= :storage
    AND rating >= :rating AND boxed
    AND ST_Within(loc, ST_MakeEnvelope(:west, :south, :east, :north))""",
    """model = :model AND price <= :most AND grams < :grams AND stock > :stock
    AND has_any(text, :word, :other) AND ST_DWithin(loc, ST_Point(:x, :y), :metres)""",
    """brand = :brand AND model = :model AND price > :least AND price < :most AND rating > :rating
    AND colour IN (:colour, :paint)""",
)

_OFFERS, _CONSTANTS = range(2)  # streams; each shape has one of its own after these
_PARAMETER: Final = re.compile(r":(\w+)")


@dataclass(frozen=True)
class Phones:
    """The recipe of subscriptions and offers."""

    seed: int = 1

    @property
    def schema(self) -> Schema:
        """The schema of both; a fresh one each time."""
        return Schema.declare(KINDS)

    def constants(self, shape: int, count: int) -> pa.Table:
        """Values for the parameters of ``SHAPES[shape]``: *count* rows."""
        random = random_of(self.seed, _CONSTANTS + shape)
        names = dict.fromkeys(_PARAMETER.findall(SHAPES[shape]))
        return pa.table({name: _FIELDS[name](random, count) for name in names})

    def texts(self, shape: int, count: int) -> list[str]:
        """``SHAPES[shape]`` with each row of `constants` written into it."""
        form = _PARAMETER.sub(r"{\1}", SHAPES[shape])
        rows = self.constants(shape, count).to_pylist()
        return [form.format_map(_literals(row)) for row in rows]

    def mixed_texts(self, count: int) -> list[str]:
        """*count* expressions, the shapes taking turns."""
        each = -(-count // len(SHAPES))
        columns = [self.texts(shape, each) for shape in range(len(SHAPES))]
        return [text for row in zip(*columns, strict=True) for text in row][:count]

    def new_shapes(self, count: int) -> Iterator[str]:
        """*count* expressions of six predicates, hardly two of them of one shape."""
        random = Random(self.seed)
        for _ in range(count):
            first, second, *others = (make(random) for make in random.sample(_PREDICATES, 6))
            either = f"({first} OR {second})" if random.random() < 0.3 else f"{first} AND {second}"
            yield " AND ".join([either, *others])

    def offers(self, count: int) -> pa.Table:
        """*count* events."""
        random = random_of(self.seed, _OFFERS)
        plain = ("brand", "model", "colour", "storage", "rating", "grams", "stock")
        codes = word_codes(distinct_zipf_ranks(random, count, TEXT_TERMS, WORDS))
        terms = words(codes.reshape(-1))
        starts = range(0, len(terms), TEXT_TERMS)
        return pa.table(
            {
                "id": [f"offer-{row}" for row in range(count)],
                **{name: _FIELDS[name](random, count) for name in plain},
                "price": _FIELDS["most"](random, count),
                "boxed": pa.array(random.random(count) < 0.5),
                "loc": points(
                    rounded(random.uniform(120.8, 122.0, count), 3),
                    rounded(random.uniform(30.7, 31.8, count), 3),
                ),
                "text": [" ".join(terms[start : start + TEXT_TERMS]) for start in starts],
            }
        )


def _literals(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: f"'{value}'" if isinstance(value, str) else f"{value:g}"
        for name, value in row.items()
    }


Field = Callable[[np.random.Generator, int], pa.Array]


def _one_of(values: tuple[Any, ...]) -> Field:
    known = pa.array(values)

    def field(random: np.random.Generator, count: int) -> pa.Array:
        return known.take(pa.array(random.integers(0, len(values), count)))

    return field


def _number(low: float, high: float, decimals: int = 0) -> Field:
    def field(random: np.random.Generator, count: int) -> pa.Array:
        return pa.array(rounded(random.uniform(low, high, count), decimals))

    return field


def _word(random: np.random.Generator, count: int) -> pa.Array:
    ranks: Int64 = zipf_ranks(random, (count,), WORDS)
    return pa.array(words(word_codes(ranks)))


_FIELDS: Final[dict[str, Field]] = {
    "brand": _one_of(BRANDS[:4]),
    "rival": _one_of(BRANDS[4:]),
    "model": _one_of(MODELS),
    "colour": _one_of(COLOURS[:4]),
    "paint": _one_of(COLOURS[4:]),
    "least": _number(50, 400),
    "most": _number(400, 1500),
    "storage": _one_of(STORAGES[:3]),
    "more": _one_of(STORAGES[3:]),
    "rating": _number(1, 5, 1),
    "grams": _number(120, 240),
    "stock": _number(0, 50),
    "word": _word,
    "other": _word,
    "x": _number(120.8, 122.0, 3),
    "y": _number(30.7, 31.8, 3),
    "metres": _number(200, 5000),
    "west": _number(120.8, 121.4, 3),
    "east": _number(121.4, 122.0, 3),
    "south": _number(30.7, 31.2, 3),
    "north": _number(31.2, 31.8, 3),
}

_PREDICATES: Final[tuple[Callable[[Random], str], ...]] = (
    lambda random: f"brand = '{random.choice(BRANDS)}'",
    lambda random: f"model LIKE '{random.choice('APXZ')}%'",
    lambda random: f"NOT colour = '{random.choice(COLOURS)}'",
    lambda random: f"colour IN ('{random.choice(COLOURS)}', 'grey')",
    lambda random: f"price < {random.randrange(100, 1500)}",
    lambda random: f"price > {random.randrange(10, 100)}",
    lambda random: f"storage IN (64, {random.choice((128, 256, 512))})",
    lambda random: f"rating >= {random.randrange(1, 5)}",
    lambda random: f"grams BETWEEN 100 AND {random.randrange(150, 250)}",
    lambda random: f"stock != {random.randrange(0, 3)}",
    lambda random: f"boxed = {random.choice(('TRUE', 'FALSE'))}",
    lambda random: f"has_any(text, 'discount', 'word{random.randrange(1000)}')",
    lambda random: f"ST_DWithin(loc, ST_Point(121.4, 31.2), {random.randrange(500, 5000)})",
    lambda random: "text IS NOT NULL",
)
