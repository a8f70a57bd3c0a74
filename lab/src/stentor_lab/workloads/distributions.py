"""How popular words, places and attributes are: Zipf's law, made-up words, clustered places."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import Float64, Int64, UInt8
from stentor.errors import SettingsError
from stentor.model import Box

Random = np.random.Generator
Booleans = npt.NDArray[np.bool_]

# In ascending order, so that words are in the order of their codes.
_SYLLABLES: Final = np.array(
    [[ord(consonant), ord(vowel)] for consonant in "bcdfghjklmnprstvwxyz" for vowel in "aeiou"],
    np.uint8,
)
_PAIRS: Final = np.concatenate(
    (np.repeat(_SYLLABLES, 100, axis=0), np.tile(_SYLLABLES, (100, 1))), axis=1
)
#: Three syllables of a hundred each.
MOST_WORDS: Final = 100**3
WORD_BYTES: Final = 6
# Coprime to the number of words: neighbours in popularity are no neighbours in the alphabet.
_SCATTER: Final = 387_420_489


def random_of(seed: int, *stream: int) -> Random:
    """A source of random numbers; different *streams* of one *seed* are independent."""
    return np.random.default_rng([seed, *stream])


def zipf_ranks(
    random: Random, shape: tuple[int, ...], size: int, exponent: float = 1.0, skipped: int = 0
) -> Int64:
    """Ranks from 0 to *size* − 1, rank r about (r + 1 + skipped)^−exponent as often as others.

    *skipped* leaves out the most frequent ones, as a search engine leaves out stop words. This is
    Zipf's law in its continuous form, whose inverse needs no table.
    """
    low, high = 1.0 + skipped, 1.0 + skipped + size
    share = random.random(shape)
    if exponent == 1.0:
        values = low * np.exp(share * math.log(high / low))
    else:
        power = 1.0 - exponent
        values = (low**power + share * (high**power - low**power)) ** (1.0 / power)
    ranks = (values - low).astype(np.int64)
    return np.minimum(ranks, size - 1, out=ranks)  # rounding may reach the open end


def distinct_zipf_ranks(
    random: Random, rows: int, columns: int, size: int, exponent: float = 1.0, skipped: int = 0
) -> Int64:
    """`zipf_ranks` in *rows* of *columns*, all different within a row: others are drawn again."""
    if size < 2 * columns:
        raise SettingsError(
            f"{columns} different ones of {size} would be drawn again and again; "
            f"take at least {2 * columns}"
        )
    ranks = zipf_ranks(random, (rows, columns), size, exponent, skipped)
    again = np.arange(rows)
    while len(again):
        ordered = np.sort(ranks[again], axis=1)
        again = again[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
        ranks[again] = zipf_ranks(random, (len(again), columns), size, exponent, skipped)
    return ranks


def weighted_choices(random: Random, weights: Float64, counts: Int64) -> Booleans:
    """For each of *counts*, which of the things with *weights* are chosen: so many, by weight.

    Without replacement: those with the smallest exponential variates over their weights
    (Efraimidis and Spirakis, Weighted random sampling with a reservoir, 2006).
    """
    keys = random.standard_exponential((len(counts), len(weights))) / weights
    limits = np.take_along_axis(np.sort(keys, axis=1), counts[:, np.newaxis] - 1, axis=1)
    chosen: Booleans = keys <= limits
    return chosen


def word_codes(ranks: Int64) -> Int64:
    """The words of *ranks* by popularity, as codes in alphabetical order."""
    return ranks * _SCATTER % MOST_WORDS


def word_bytes(codes: Int64) -> UInt8:
    """The letters of the words *codes*: one axis more, of six ASCII letters.

    >>> word_bytes(word_codes(np.arange(3))).tobytes().decode()
    'bababalibuxuwucuvo'
    """
    hundreds = codes // 100
    letters = np.empty((*codes.shape, WORD_BYTES), np.uint8)
    letters[..., :4] = _PAIRS[hundreds]
    letters[..., 4:] = _SYLLABLES[codes - hundreds * 100]
    return letters


def words(codes: Int64) -> list[str]:
    """The words *codes* (one axis), as text."""
    letters = word_bytes(codes).tobytes().decode("ascii")
    return [letters[start : start + WORD_BYTES] for start in range(0, len(letters), WORD_BYTES)]


class Hotspots(NamedTuple):
    """Places where things happen: towns in a country, quarters of a city.

    A hotspot's popularity follows Zipf's law, places scatter around it by a normal distribution.
    """

    space: Box
    x: Float64  # (hotspots,) the most popular first
    y: Float64  # (hotspots,)
    spread: Float64  # (hotspots,) one standard deviation, as a share of the space's sides

    @classmethod
    def scattered(cls, random: Random, space: Box, count: int, spread: float) -> Hotspots:
        """*count* hotspots anywhere in *space*, some twice as wide as *spread*, some half."""
        return cls(
            space,
            random.uniform(space.west, space.east, count),
            random.uniform(space.south, space.north, count),
            spread * 2.0 ** random.uniform(-1.0, 1.0, count),
        )

    def places(self, random: Random, count: int, exponent: float = 1.0) -> tuple[Float64, Float64]:
        """The coordinates x and y of *count* places, all inside the space."""
        west, south, east, north = (
            self.space.west,
            self.space.south,
            self.space.east,
            self.space.north,
        )
        spot = zipf_ranks(random, (count,), len(self.x), exponent)
        x = self.x[spot] + random.normal(0.0, self.spread[spot]) * (east - west)
        y = self.y[spot] + random.normal(0.0, self.spread[spot]) * (north - south)
        return np.clip(x, west, east), np.clip(y, south, north)


def rounded(values: Float64, decimals: int) -> Float64:
    """*values* as their decimal text with so many *decimals* is read: texts then stay short."""
    return np.round(values, decimals) + 0.0  # no −0.0, which the language does not keep
