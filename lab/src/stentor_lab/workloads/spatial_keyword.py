"""Spatial-keyword subscriptions and geo-tagged messages: the workload of the AP-Tree.

A message has nine different terms and a place near a hotspot; terms follow Zipf's law without its
stop words. A subscription asks for one to five terms in a rectangle of 0.01 to 1 % of the space,
centred where a message might be.

The stream may drift: what comes later has other favourite words and places.

Paper: AP-Tree, section 5.1.1. Its tweets are replaced by drawn ones; a million subscriptions have
about ten matches per message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import Float64, Int64, SubscriptionColumns, UInt8
from stentor.encoding.kinds import BOX, KEYWORDS
from stentor.errors import SettingsError
from stentor.model import Box, Schema
from stentor_lab.workloads.conjunctions import (
    DECIMALS,
    Boxes,
    Pairs,
    Predicates,
    Words,
    conjunctions,
)
from stentor_lab.workloads.distributions import (
    MOST_WORDS,
    WORD_BYTES,
    Hotspots,
    Random,
    distinct_zipf_ranks,
    random_of,
    rounded,
    word_bytes,
    word_codes,
    words,
)
from stentor_lab.workloads.messages import KINDS, MESSAGE_TERMS, Messages

SPACE: Final = Box(-10.0, 35.0, 40.0, 60.0)
MOST_KEYWORDS: Final = 5

_HOTSPOTS, _SUBSCRIPTIONS, _EVENTS, _LATER_HOTSPOTS = range(4)
_BEYOND_WORDS: Final = MOST_WORDS


@dataclass(frozen=True)
class SpatialKeyword:
    """The recipe; subscriptions and events of one recipe share words and hotspots.

    With *drift*, that share of what comes last favours other words, in other places; of what comes
    before, the less the earlier it comes.
    """

    seed: int = 1
    vocabulary: int = 200_000
    exponent: float = 1.0
    stop_words: int = 30
    hotspots: int = 200
    smallest: float = 0.0001  # the area of a rectangle as a share of the space
    largest: float = 0.01
    keywords: int = MOST_KEYWORDS  # a subscription asks for at most so many
    drift: float = 0.0
    space: Box = SPACE

    def __post_init__(self) -> None:
        if not 2 * MESSAGE_TERMS <= self.vocabulary <= MOST_WORDS:
            raise SettingsError(
                f"a vocabulary of {self.vocabulary:,} words; "
                f"take {2 * MESSAGE_TERMS} to {MOST_WORDS:,}"
            )
        if not 0.0 < self.smallest <= self.largest <= 1.0:
            raise SettingsError(
                f"rectangles of {self.smallest} to {self.largest} of the space; "
                "take shares above 0 and up to 1, the smallest first"
            )
        if not 1 <= self.keywords <= MESSAGE_TERMS:
            raise SettingsError(
                f"up to {self.keywords} keywords; a message has {MESSAGE_TERMS}: take 1 to as many"
            )
        if not 0.0 <= self.drift <= 1.0:
            raise SettingsError(f"a drift of {self.drift}; take a share of 0 to 1")

    @property
    def schema(self) -> Schema:
        """The schema of both; a fresh one each time."""
        return Schema.declare(KINDS)

    def subscriptions(self, count: int) -> KeywordSubscriptions:
        """*count* subscriptions, in the order in which they come.

        Cost: about half a microsecond each.
        """
        random = random_of(self.seed, _SUBSCRIPTIONS)
        keywords = random.integers(1, self.keywords + 1, count)
        drawn = self._drawn(random, self.keywords, np.linspace(0.0, 1.0, count))
        codes = drawn.codes
        codes[np.arange(self.keywords) >= keywords[:, np.newaxis]] = _BEYOND_WORDS
        codes.sort(axis=1)
        side = np.sqrt(random.uniform(self.smallest, self.largest, count))
        width, height = self.space.east - self.space.west, self.space.north - self.space.south
        boxes = Boxes.around(self.space, drawn.x, drawn.y, side * width, side * height)
        return KeywordSubscriptions(keywords, codes, boxes)

    def events(self, count: int, *, when: float = 0.0, part: int = 0) -> Messages:
        """*count* messages: of the beginning (*when* is 0), the end (1), or between.

        Each *part* of the stream is another; they are independent of one another.
        """
        random = random_of(self.seed, _EVENTS, part)
        drawn = self._drawn(random, MESSAGE_TERMS, np.full(count, when))
        return Messages(drawn.codes, rounded(drawn.x, DECIMALS), rounded(drawn.y, DECIMALS))

    def _drawn(self, random: Random, columns: int, when: Float64) -> Messages:
        """Different words and a place for each of *when*: 0 is the beginning, 1 the end."""
        ranks = distinct_zipf_ranks(
            random, len(when), columns, self.vocabulary, self.exponent, self.stop_words
        )
        x, y = self._hotspots.places(random, len(when))
        if self.drift:
            late = random.random(len(when)) < self.drift * when
            ranks[late] = (ranks[late] + self.vocabulary // 2) % self.vocabulary
            x[late], y[late] = self._later_hotspots.places(random, int(late.sum()))
        return Messages(word_codes(ranks), x, y)

    @cached_property
    def _hotspots(self) -> Hotspots:
        return self._scattered(_HOTSPOTS)

    @cached_property
    def _later_hotspots(self) -> Hotspots:
        return self._scattered(_LATER_HOTSPOTS)

    def _scattered(self, stream: int) -> Hotspots:
        random = random_of(self.seed, stream)
        return Hotspots.scattered(random, self.space, self.hotspots, spread=0.02)


@dataclass(frozen=True)
class KeywordSubscriptions:
    """Drawn subscriptions, in three forms that mean the same."""

    keywords: Int64  # (subscriptions,) how many words each asks for
    codes: Int64  # (subscriptions, most) the words, ascending; then _BEYOND_WORDS
    boxes: Boxes

    def __len__(self) -> int:
        return len(self.keywords)

    def columns(self) -> SubscriptionColumns:
        """What `encode_subscriptions` gives for `texts()`, at more than a million per second."""
        pairs = Pairs.of_boxes(self.boxes)
        return keyword_columns(BOX, pairs, self.keywords, self.words_asked())

    def words_asked(self) -> UInt8:
        """The letters of all words that are asked for, one subscription after the other."""
        return word_bytes(self.codes[self.codes != _BEYOND_WORDS])

    def texts(self) -> Iterator[str]:
        """Each subscription as the text of its expression."""
        corners = zip(*(side.tolist() for side in self.boxes), strict=True)
        for codes, keywords, box in zip(self.codes, self.keywords, corners, strict=True):
            asked = ", ".join(f"'{word}'" for word in words(codes[:keywords]))
            west, south, east, north = box
            yield (
                f"has_all(text, {asked}) AND "
                f"ST_Within(loc, ST_MakeEnvelope({west}, {south}, {east}, {north}))"
            )

    def tables(self) -> Iterator[tuple[Int64, str, pa.Table]]:
        """For each number of keywords: its rows, its expression with parameters, their values."""
        for keywords in range(1, self.codes.shape[1] + 1):
            rows = np.flatnonzero(self.keywords == keywords)
            names = [f"w{number}" for number in range(1, keywords + 1)]
            columns = {
                name: word_array(self.codes[rows, position]) for position, name in enumerate(names)
            }
            columns |= {name: pa.array(side[rows]) for name, side in self.boxes._asdict().items()}
            asked = ", ".join(f":{name}" for name in names)
            text = (
                f"has_all(text, {asked}) AND "
                "ST_Within(loc, ST_MakeEnvelope(:west, :south, :east, :north))"
            )
            yield rows, text, pa.table(columns)


def keyword_columns(
    kind: int, pairs: Pairs, keywords: Int64, letters: UInt8, position: Float64 | None = None
) -> SubscriptionColumns:
    """The columns of subscriptions that ask for a region of *kind* and for all of their words."""
    schema, count = Schema.declare(KINDS), len(keywords)
    stop = np.cumsum(keywords)
    predicates = Predicates.unbounded(count, 2)
    first = np.arange(count) * pairs.each
    for place, (what, name, start, end) in enumerate(
        ((kind, "loc", first, first + pairs.each), (KEYWORDS, "text", stop - keywords, stop))
    ):
        predicates.kind[:, place] = what
        predicates.attribute[:, place] = schema.code(name)
        predicates.operand_start[:, place] = start
        predicates.operand_stop[:, place] = end
    return conjunctions(predicates, pairs, Words.of(letters, stop - 1, "text"), position)


def word_array(codes: Int64) -> pa.Array:
    """The words *codes* as an Arrow column."""
    letters = word_bytes(codes)
    offsets = np.arange(len(codes) + 1, dtype=np.int32) * WORD_BYTES
    return pa.StringArray.from_buffers(len(codes), pa.py_buffer(offsets), pa.py_buffer(letters))
