"""Messages of real words at real places, and subscriptions that are drawn from them.

    names  words of GNIS, the names of places in the United States, where they are
    cabs   where cabs in San Francisco were taken, each tagged with 30 words of news
    ships  where ships were, each tagged with 50 words of news

A subscription is drawn from a message: one to five of its words, in a rectangle around its place.

Paper: AP-Tree, section 5.1.1: its GN, CARS and AIS; `real_files.py` says where they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stentor.encoding.columns import EventColumns, Float64, Int32, Int64, SubscriptionColumns
from stentor.encoding.events import (
    AttributeColumn,
    EventTimes,
    StringColumn,
    encode_attribute_columns,
)
from stentor.model import Box, Schema
from stentor_lab.workloads.conjunctions import Boxes, at_once, numbers, read_only
from stentor_lab.workloads.distributions import random_of
from stentor_lab.workloads.messages import KINDS
from stentor_lab.workloads.parameter_tables import Form, encoded_forms
from stentor_lab.workloads.real_files import places_of, table_of
from stentor_lab.workloads.spatial_keyword import MOST_KEYWORDS

#: The first messages tell what is likely; the others are the stream.
HISTORY_SHARE: Final = 0.05
#: Without Alaska, Hawaii and the islands.
UNITED_STATES: Final = Box(-125.0, 24.0, -66.0, 50.0)
STOP_WORDS: Final = 100
_CHUNK: Final = 100_000  # subscriptions that are drawn together

_TAGS, _REAL_SUBSCRIPTIONS = 200, 201


@dataclass(frozen=True)
class RealMessages:
    """Messages in the order in which they come."""

    vocabulary: pa.Array  # strings
    word_start: Int64  # (messages + 1,)
    word: Int32  # (words,) places in the vocabulary, each once in a message
    x: Float64  # (messages,)
    y: Float64  # (messages,)
    space: Box
    files: str

    def __len__(self) -> int:
        return len(self.x)

    @property
    def history_count(self) -> int:
        """How many of the first messages are history."""
        return int(len(self) * HISTORY_SHARE)

    def columns(self, start: int, stop: int, times: EventTimes | None = None) -> EventColumns:
        """The messages from *start* up to *stop*; with *times*, each comes and ends in time."""
        first, last = self.word_start[start], self.word_start[stop]
        offsets = pa.array(self.word_start[start : stop + 1] - first, pa.int32())
        lists = pa.ListArray.from_arrays(offsets, self.vocabulary.take(self.word[first:last]))
        joined = pc.binary_join(lists, " ").cast(pa.large_string())
        _, ends, data = joined.buffers()
        strings = StringColumn(
            read_only(np.frombuffer(ends, np.int64)[: stop - start + 1]),
            read_only(np.frombuffer(data, np.uint8)),
        )
        nothing = read_only(np.zeros(0))
        is_there = read_only(np.ones(stop - start, np.bool_))
        texts = AttributeColumn("text", is_there, nothing, nothing, strings)
        locations = numbers("loc", self.x[start:stop], self.y[start:stop])
        return encode_attribute_columns(
            [texts, locations], times or at_once(stop - start), Schema.declare(KINDS)
        )

    def subscriptions(
        self, count: int, *, seed: int = 1, smallest: float = 0.0001, largest: float = 0.01
    ) -> SubscriptionColumns:
        """*count* subscriptions, whose rectangles have such shares of the space.

        Cost: about six microseconds each.
        """
        return encoded_forms(self._forms(count, seed, smallest, largest), Schema.declare(KINDS))

    def stretched(self, space: Box) -> RealMessages:
        """The same words, their places stretched over *space*."""
        x = (self.x - self.space.west) / (self.space.east - self.space.west)
        y = (self.y - self.space.south) / (self.space.north - self.space.south)
        x = space.west + x * (space.east - space.west)
        y = space.south + y * (space.north - space.south)
        return replace(self, x=x, y=y, space=space)

    def around(self, positions: Float64, radius: Float64, *, seed: int = 1) -> SubscriptionColumns:
        """Subscriptions of subscribers at *positions* for words within *radius* metres of them."""
        random = random_of(seed, _REAL_SUBSCRIPTIONS)
        _, keywords, chosen = self._asked(random, len(radius))
        forms = self._formed(
            keywords, chosen, {"radius": radius}, "ST_DWithin(loc, here(), :radius)"
        )
        return encoded_forms(forms, Schema.declare(KINDS), positions)

    def _forms(self, count: int, seed: int, smallest: float, largest: float) -> Iterator[Form]:
        random = random_of(seed, _REAL_SUBSCRIPTIONS)
        message, keywords, chosen = self._asked(random, count)
        side = np.sqrt(random.uniform(smallest, largest, count))
        wide, high = self.space.east - self.space.west, self.space.north - self.space.south
        x, y = self.x[message], self.y[message]
        boxes = Boxes.around(self.space, x, y, side * wide, side * high)
        box = "ST_Within(loc, ST_MakeEnvelope(:west, :south, :east, :north))"
        yield from self._formed(keywords, chosen, boxes._asdict(), box)

    def _asked(self, random: np.random.Generator, count: int) -> tuple[Int64, Int64, Int32]:
        """*count* messages, and of each how many of its words are asked for, and which."""
        with_words = np.flatnonzero(np.diff(self.word_start))
        message = with_words[random.integers(0, len(with_words), count)]
        has = np.diff(self.word_start)[message]
        keywords = np.minimum(random.integers(1, MOST_KEYWORDS + 1, count), has)
        chosen = np.concatenate(
            [
                self._some_words(random, message[start : start + _CHUNK])
                for start in range(0, count, _CHUNK)
            ]
        )
        return message, keywords, chosen

    def _formed(
        self, keywords: Int64, chosen: Int32, values: Mapping[str, Float64], region: str
    ) -> Iterator[Form]:
        """A form for each number of keywords: they, and a *region* made of *values*."""
        for number in range(1, MOST_KEYWORDS + 1):
            rows = np.flatnonzero(keywords == number)
            names = [f"w{position}" for position in range(1, number + 1)]
            columns = {
                name: self.vocabulary.take(chosen[rows, position])
                for position, name in enumerate(names)
            }
            columns |= {name: pa.array(end[rows]) for name, end in values.items()}
            asked = ", ".join(f":{name}" for name in names)
            yield rows, f"has_all(text, {asked}) AND {region}", pa.table(columns)

    def _some_words(self, random: np.random.Generator, message: Int64) -> Int32:
        """Up to MOST_KEYWORDS different words of each *message*, drawn from its own."""
        start, has = self.word_start[message], np.diff(self.word_start)[message]
        most = max(MOST_KEYWORDS, int(has.max(initial=0)))
        drawn = random.random((len(message), most))
        drawn[np.arange(most) >= has[:, np.newaxis]] = 2.0  # comes last
        order = np.argsort(drawn, axis=1)[:, :MOST_KEYWORDS]
        chosen: Int32 = self.word[np.minimum(start[:, np.newaxis] + order, len(self.word) - 1)]
        return chosen


def names(seed: int = 1) -> RealMessages:
    """Named places of the United States: the words of name, class, county, state and map."""
    file = "gnis_us_names.psv"
    fields = ["name", "class", "county", "state", "map"]
    table = table_of(file, [*fields, "lat", "lon"], "|")
    x, y = places_of(table)
    space = UNITED_STATES
    inside = (x >= space.west) & (x <= space.east) & (y >= space.south) & (y <= space.north)
    table = table.take(random_of(seed, _TAGS).permutation(np.flatnonzero(inside)))
    texts = [pc.fill_null(table[field].cast(pa.string()), "") for field in fields]
    vocabulary, start, word = _words(pc.binary_join_element_wise(*texts, " "))
    return RealMessages(vocabulary, *_each_once(start, word), *places_of(table), space, file)


def cabs(seed: int = 1) -> RealMessages:
    """Where cabs were taken, tagged with 30 words each."""
    return _tagged("sf_cab_pickups.csv", 30, seed)


def ships(seed: int = 1) -> RealMessages:
    """Where ships were, tagged with 50 words each."""
    return _tagged("ais_positions.csv", 50, seed)


#: The files of each data set.
FILES: Final[dict[str, tuple[str, ...]]] = {
    "names": ("gnis_us_names.psv",),
    "cabs": ("sf_cab_pickups.csv", "news20.tsv"),
    "ships": ("ais_positions.csv", "news20.tsv"),
}
#: The paper's data sets that there are files for.
DATA_SETS: Final[dict[str, Callable[[int], RealMessages]]] = {
    "names": names,
    "cabs": cabs,
    "ships": ships,
}


def _tagged(file: str, tags: int, seed: int) -> RealMessages:
    """The places of *file*, each with so many words as they come in the news."""
    news = "news20.tsv"
    vocabulary, _, spoken = _words(table_of(news, ["text"], "\t")["text"])
    is_stop_word = np.zeros(len(vocabulary), np.bool_)
    is_stop_word[np.argsort(np.bincount(spoken))[-STOP_WORDS:]] = True
    spoken = spoken[~is_stop_word[spoken]]
    random = random_of(seed, _TAGS)
    x, y = places_of(table_of(file, ["lat", "lon"]))
    order = random.permutation(len(x))  # files go through one area after the other
    x, y = x[order], y[order]
    word = spoken[random.integers(0, len(spoken), len(x) * tags)]
    start = np.arange(len(x) + 1) * tags
    space = Box(*map(float, (x.min(), y.min(), x.max(), y.max())))
    files = f"{file}, {news}"
    return RealMessages(vocabulary, *_each_once(start, word), x, y, space, files)


def _words(texts: pa.ChunkedArray) -> tuple[pa.Array, Int64, Int32]:
    """The vocabulary of *texts*, where each text's words start, and the words.

    Words are runs of ASCII letters and digits; case does not count.
    """
    plain = pc.replace_substring_regex(pc.utf8_lower(texts), "[^a-z0-9]+", " ")
    lists = pc.split_pattern(pc.utf8_trim(plain, " "), " ").combine_chunks()
    encoded = lists.flatten().dictionary_encode()
    word = encoded.indices.to_numpy()
    is_word = pc.not_equal(encoded.dictionary, "").to_numpy(zero_copy_only=False)[word]
    before = np.concatenate(([0], np.cumsum(is_word)))  # a text of none is split into an empty one
    return encoded.dictionary, before[lists.offsets.to_numpy()], word[is_word]


def _each_once(start: Int64, word: Int32) -> tuple[Int64, Int32]:
    """The words of each message in ascending order, each once."""
    message = np.repeat(np.arange(len(start) - 1), np.diff(start))
    width = int(word.max(initial=0)) + 1
    pairs = np.sort(message * width + word)
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    counts = np.bincount(pairs // width, minlength=len(start) - 1)
    return np.concatenate(([0], np.cumsum(counts))), (pairs % width).astype(np.int32)
