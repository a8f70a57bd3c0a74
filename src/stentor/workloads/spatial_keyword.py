"""Spatial-keyword subscriptions and geo-tagged messages: the workload of the AP-Tree.

A message has nine different terms and a place near a hotspot; terms follow Zipf's law without its
stop words. A subscription asks for one to five terms in a rectangle of 0.01 to 1 % of the space,
centred where a message might be.

Paper: AP-Tree, section 5.1.1. Its tweets are replaced by drawn ones; a million subscriptions have
about ten matches per message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import (
    BOX,
    TERMS,
    EventColumns,
    Float64,
    Int64,
    SubscriptionColumns,
    UInt8,
)
from stentor.encoding.event_batches import assemble
from stentor.errors import SettingsError
from stentor.model import Box, Schema
from stentor.workloads.conjunctions import (
    DECIMALS,
    Boxes,
    Predicates,
    Words,
    at_once,
    conjunctions,
    numbers,
    points,
    texts,
)
from stentor.workloads.distributions import (
    MOST_WORDS,
    WORD_BYTES,
    Hotspots,
    distinct_zipf_ranks,
    random_of,
    rounded,
    word_bytes,
    word_codes,
    words,
)

SPACE: Final = Box(-10.0, 35.0, 40.0, 60.0)
KINDS: Final = {"text": "string", "loc": "point"}
MOST_KEYWORDS: Final = 5
MESSAGE_TERMS: Final = 9
#: The area of a rectangle as a share of the space.
SMALLEST, LARGEST = 0.0001, 0.01

_HOTSPOTS, _SUBSCRIPTIONS, _EVENTS = range(3)
_BEYOND_WORDS: Final = MOST_WORDS


@dataclass(frozen=True)
class SpatialKeyword:
    """The recipe; subscriptions and events of one recipe share words and hotspots."""

    seed: int = 1
    vocabulary: int = 200_000
    exponent: float = 1.0
    stop_words: int = 30
    hotspots: int = 200

    def __post_init__(self) -> None:
        if not 2 * MESSAGE_TERMS <= self.vocabulary <= MOST_WORDS:
            raise SettingsError(
                f"a vocabulary of {self.vocabulary:,} words; "
                f"take {2 * MESSAGE_TERMS} to {MOST_WORDS:,}"
            )

    @property
    def schema(self) -> Schema:
        """The schema of both; a fresh one each time."""
        return Schema.declare(KINDS)

    def subscriptions(self, count: int) -> KeywordSubscriptions:
        """*count* subscriptions. Cost: about half a microsecond each."""
        random = random_of(self.seed, _SUBSCRIPTIONS)
        keywords = random.integers(1, MOST_KEYWORDS + 1, count)
        codes = word_codes(self._ranks(random, count, MOST_KEYWORDS))
        codes[np.arange(MOST_KEYWORDS) >= keywords[:, np.newaxis]] = _BEYOND_WORDS
        codes.sort(axis=1)
        x, y = self._hotspots.places(random, count)
        side = np.sqrt(random.uniform(SMALLEST, LARGEST, count))
        width, height = SPACE.east - SPACE.west, SPACE.north - SPACE.south
        boxes = Boxes.around(SPACE, x, y, side * width, side * height)
        return KeywordSubscriptions(keywords, codes, boxes)

    def events(self, count: int) -> Messages:
        """*count* messages."""
        random = random_of(self.seed, _EVENTS)
        codes = word_codes(self._ranks(random, count, MESSAGE_TERMS))
        x, y = self._hotspots.places(random, count)
        return Messages(codes, rounded(x, DECIMALS), rounded(y, DECIMALS))

    @cached_property
    def _hotspots(self) -> Hotspots:
        random = random_of(self.seed, _HOTSPOTS)
        return Hotspots.scattered(random, SPACE, self.hotspots, spread=0.02)

    def _ranks(self, random: np.random.Generator, rows: int, columns: int) -> Int64:
        return distinct_zipf_ranks(
            random, rows, columns, self.vocabulary, self.exponent, self.stop_words
        )


@dataclass(frozen=True)
class KeywordSubscriptions:
    """Drawn subscriptions, in three forms that mean the same."""

    keywords: Int64  # (subscriptions,) how many words each asks for
    codes: Int64  # (subscriptions, MOST_KEYWORDS) the words, ascending; then _BEYOND_WORDS
    boxes: Boxes

    def __len__(self) -> int:
        return len(self.keywords)

    def columns(self) -> SubscriptionColumns:
        """What `encode_subscriptions` gives for `texts()`, at more than a million per second."""
        schema = Schema.declare(KINDS)
        stop = np.cumsum(self.keywords)
        predicates = Predicates.unbounded(len(self), 2)
        pairs = np.arange(len(self)) * 2
        for place, (kind, name, first, last) in enumerate(
            (
                (BOX, "loc", pairs, pairs + 2),
                (TERMS, "text", stop - self.keywords, stop),
            )
        ):
            predicates.kind[:, place] = kind
            predicates.attribute[:, place] = schema.code(name)
            predicates.operand_start[:, place] = first
            predicates.operand_stop[:, place] = last
        letters = word_bytes(self.codes[self.codes != _BEYOND_WORDS])
        return conjunctions(predicates, self.boxes, Words.of(letters, stop - 1, "text"))

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
        for keywords in range(1, MOST_KEYWORDS + 1):
            rows = np.flatnonzero(self.keywords == keywords)
            names = [f"w{number}" for number in range(1, keywords + 1)]
            columns = {
                name: _word_array(self.codes[rows, place]) for place, name in enumerate(names)
            }
            columns |= {name: pa.array(side[rows]) for name, side in self.boxes._asdict().items()}
            asked = ", ".join(f":{name}" for name in names)
            text = (
                f"has_all(text, {asked}) AND "
                "ST_Within(loc, ST_MakeEnvelope(:west, :south, :east, :north))"
            )
            yield rows, text, pa.table(columns)


@dataclass(frozen=True)
class Messages:
    """Drawn messages, in three forms that mean the same."""

    codes: Int64  # (messages, MESSAGE_TERMS)
    x: Float64  # (messages,)
    y: Float64  # (messages,)

    def __len__(self) -> int:
        return len(self.x)

    def columns(self) -> EventColumns:
        """What `encode_events` gives for `records()`."""
        attributes = [texts("text", _joined(self.codes)), numbers("loc", self.x, self.y)]
        return assemble(attributes, at_once(len(self)), Schema.declare(KINDS))

    def records(self) -> Iterator[dict[str, Any]]:
        """Each message as a dict, as JSON would have it."""
        for row, (text, x, y) in enumerate(
            zip(self._texts(), self.x.tolist(), self.y.tolist(), strict=True)
        ):
            yield {"id": f"m{row}", "text": text, "loc": [x, y]}

    def table(self) -> pa.Table:
        """The messages as an Arrow table."""
        ids = [f"m{row}" for row in range(len(self))]
        return pa.table({"id": ids, "text": list(self._texts()), "loc": points(self.x, self.y)})

    def _texts(self) -> Iterator[str]:
        for row in _joined(self.codes):
            yield row.tobytes().decode("ascii")


def _joined(codes: Int64) -> UInt8:
    """The words of each row of *codes*, joined by spaces: (rows, bytes)."""
    letters = word_bytes(codes)
    spaces = np.full((*codes.shape, 1), ord(" "), np.uint8)
    rows = np.concatenate((letters, spaces), axis=2)
    return rows.reshape(len(codes), (WORD_BYTES + 1) * codes.shape[1])[:, :-1].copy()


def _word_array(codes: Int64) -> pa.Array:
    letters = word_bytes(codes)
    offsets = np.arange(len(codes) + 1, dtype=np.int32) * WORD_BYTES
    return pa.StringArray.from_buffers(len(codes), pa.py_buffer(offsets), pa.py_buffer(letters))
