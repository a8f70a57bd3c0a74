"""Keywords joined by AND and OR, in a rectangle: the AP-Tree's general Boolean expressions.

The keywords of a spatial-keyword subscription are cut in two at random. Each part asks for all of
its words or for any of them, and AND or OR joins the parts: (w1 OR w2) AND w3 AND w4.

Paper: AP-Tree, section 5.1.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stentor.encoding.columns import (
    LAST,
    Int64,
    SubscriptionColumns,
    UInt8,
    empty,
    read_only_columns,
)
from stentor.encoding.kinds import BOX, KEYWORDS
from stentor.model import Schema
from stentor.model.values.time import NEVER
from stentor_lab.workloads.conjunctions import Pairs, Words
from stentor_lab.workloads.distributions import Booleans, random_of, words
from stentor_lab.workloads.messages import KINDS
from stentor_lab.workloads.spatial_keyword import KeywordSubscriptions, SpatialKeyword

_SHAPES = 4  # a stream of random numbers that the recipe itself does not use


@dataclass(frozen=True)
class BooleanSubscriptions:
    """Drawn subscriptions, in two forms that mean the same."""

    plain: KeywordSubscriptions  # the words and the rectangles
    split: Int64  # (subscriptions,) how many words the first part has; all where there is one part
    is_or: Booleans  # (subscriptions,) whether OR joins the parts
    is_any: Booleans  # (subscriptions, 2) whether any word of the part will do

    @classmethod
    def of(cls, recipe: SpatialKeyword, count: int) -> BooleanSubscriptions:
        """*count* subscriptions of *recipe*, joined at random."""
        plain = recipe.subscriptions(count)
        random = random_of(recipe.seed, _SHAPES)
        split = random.integers(1, np.maximum(plain.keywords, 2))
        is_or, is_any = random.random(count) < 0.5, random.random((count, 2)) < 0.5
        # Of a single word, all of them and any of them are the same; so are two parts and one,
        # where OR joins any and any, or AND joins all and all.
        is_any &= np.stack((split > 1, plain.keywords - split > 1), axis=1)
        split[(is_any == is_or[:, np.newaxis]).all(axis=1)] = plain.keywords.max(initial=1)
        split = np.minimum(split, plain.keywords)
        is_or &= split < plain.keywords
        return cls(plain, split, is_or, is_any)

    def __len__(self) -> int:
        return len(self.plain)

    def columns(self) -> SubscriptionColumns:
        """What `encode_subscriptions` gives for `texts()`, at about a million per second."""
        schema, count = Schema.declare(KINDS), len(self)
        keywords = self.plain.keywords
        stop = np.cumsum(keywords)
        word_start = stop - keywords
        has_two = self.split < keywords
        alternatives = 1 + self.is_or
        width = np.where(self.is_or, 4, 2 + has_two)
        first = np.cumsum(width) - width
        # A subscription's predicates: box, part, part; with OR: box, part, box, part.
        second = (first + width - 1)[has_two]
        again = (first + 2)[self.is_or]
        predicates = int(width.sum())
        is_box = np.zeros(predicates, np.bool_)
        is_box[first], is_box[again] = True, True
        start, end = np.empty(predicates, np.int32), np.empty(predicates, np.int32)
        start[is_box] = 2 * np.arange(is_box.sum())
        end[is_box] = start[is_box] + 2
        start[first + 1], end[first + 1] = word_start, word_start + self.split
        start[second], end[second] = (word_start + self.split)[has_two], stop[has_two]
        # The encoder adds the weights of an attribute up in the first of its predicates.
        weight = np.ones(predicates)
        weight[(second - 1)[~self.is_or[has_two]]], weight[second[~self.is_or[has_two]]] = 2.0, 0.0
        alternative_stop = np.cumsum(alternatives)
        predicate_start = np.zeros(int(alternatives.sum()) + 1, np.int64)
        predicate_start[alternative_stop] = first + width
        predicate_start[alternative_stop[self.is_or] - 1] = again
        pairs = Pairs.of_boxes(self.plain.boxes)
        row = np.repeat(np.arange(count), alternatives)
        asked = Words.of(self.plain.words_asked(), np.zeros(0, np.int64), "text")
        return read_only_columns(
            empty(SubscriptionColumns)._replace(
                alternative_start=np.concatenate(([0], alternative_stop)),
                predicate_start=predicate_start,
                kind=np.where(is_box, BOX, KEYWORDS),
                attribute=np.where(is_box, schema.code("loc"), schema.code("text")),
                low=np.full(predicates, -np.inf),
                high=np.full(predicates, np.inf),
                weight=weight,
                operand_start=start,
                operand_stop=end,
                pair_low=pairs.low[row].reshape(-1),
                pair_high=pairs.high[row].reshape(-1),
                string_hash=asked.hash,
                string_mark=self._marks(word_start),
                string_start=asked.start,
                string_bytes=asked.bytes,
                position=np.full(2 * count, np.nan),
                until=np.full(count, NEVER),
            )
        )

    def _marks(self, word_start: Int64) -> UInt8:
        """For each word whether it ends a group: of a part that asks for any, each does."""
        row = np.repeat(np.arange(len(self)), self.plain.keywords)
        position = np.arange(len(row)) - word_start[row]
        is_second = position >= self.split[row]
        is_last = (position == self.split[row] - 1) | (position == self.plain.keywords[row] - 1)
        return np.where(is_last | self.is_any[row, is_second.astype(int)], LAST, 0).astype(np.uint8)

    def texts(self) -> Iterator[str]:
        """Each subscription as the text of its expression."""
        plain = self.plain
        corners = zip(*(side.tolist() for side in plain.boxes), strict=True)
        shapes = zip(self.split, self.is_or, self.is_any, strict=True)
        rows = zip(plain.codes, plain.keywords, shapes, corners, strict=True)
        for codes, keywords, (split, is_or, is_any), (west, south, east, north) in rows:
            asked = [f"'{word}'" for word in words(codes[:keywords])]
            clauses = [
                f"{'has_any' if any_will_do else 'has_all'}(text, {', '.join(part)})"
                for part, any_will_do in zip((asked[:split], asked[split:]), is_any, strict=True)
                if part
            ]
            joined = (" OR " if is_or else " AND ").join(clauses)
            yield (
                f"({joined}) AND ST_Within(loc, ST_MakeEnvelope({west}, {south}, {east}, {north}))"
            )
