"""Expressions from real texts: five letters in a row are an attribute (two) and its value (three).

So 26² attributes of 26³ values each; a name of a dozen letters has eight predicates, a title of
forty has thirty-five. A subscription asks for what one text has, or some of it; events are texts.

Paper: BE*-Tree, section VII (authors and titles of DBLP; 677 dimensions, cardinality 26³).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stentor.encoding.columns import (
    NO_STRING,
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    empty,
    read_only_columns,
)
from stentor.encoding.kinds import INTERVAL
from stentor.model.values.time import NEVER
from stentor_lab.workloads.conjunctions import at_once

LETTERS = 26
_WINDOW = 5


@dataclass(frozen=True)
class LetterExpressions:
    """What texts have: attributes, ascending within a text and each once, and their values."""

    start: Int64  # (texts + 1,)
    attribute: Int32  # (values,)
    value: Float64  # (values,)

    @classmethod
    def of(cls, texts: Sequence[str]) -> LetterExpressions:
        """The letters of *texts*; those without five in a row are left out."""
        starts, attributes, values = [0], [], []
        for text in texts:
            letters = [ord(letter) - ord("a") for letter in text.lower() if "a" <= letter <= "z"]
            found: dict[int, int] = {}
            for position in range(len(letters) - _WINDOW + 1):
                a, b, c, d, e = letters[position : position + _WINDOW]
                found.setdefault(LETTERS * a + b, LETTERS * (LETTERS * c + d) + e)
            if found:
                attributes += sorted(found)
                values += [found[attribute] for attribute in sorted(found)]
                starts.append(len(values))
        return cls(np.array(starts), np.array(attributes, np.int32), np.array(values, np.float64))

    def __len__(self) -> int:
        return len(self.start) - 1

    def subscriptions(self, most: int) -> SubscriptionColumns:
        """One for each text, with its first *most* attributes; rare attributes weigh more."""
        stop = np.minimum(self.start[1:], self.start[:-1] + most)
        position = np.arange(len(self.value))
        text = np.repeat(np.arange(len(self)), np.diff(self.start))
        kept = position[position < stop[text]]
        frequency = np.bincount(self.attribute, minlength=LETTERS**2)
        counts = stop - self.start[:-1]
        return read_only_columns(
            empty(SubscriptionColumns)._replace(
                alternative_start=np.arange(len(self) + 1),
                predicate_start=np.concatenate([[0], np.cumsum(counts)]),
                kind=np.full(len(kept), INTERVAL, np.uint8),
                attribute=self.attribute[kept],
                low=self.value[kept],
                high=self.value[kept],
                weight=1.0 / frequency[self.attribute[kept]],
                operand_start=np.zeros(len(kept), np.int32),
                operand_stop=np.zeros(len(kept), np.int32),
                position=np.full(2 * len(self), np.nan),
                until=np.full(len(self), NEVER),
            )
        )

    def events(self, rows: Int64) -> EventColumns:
        """The texts *rows* as events."""
        counts = self.start[rows + 1] - self.start[rows]
        start = np.concatenate([[0], np.cumsum(counts)])
        position = np.arange(start[-1]) + np.repeat(self.start[rows] - start[:-1], counts)
        none = np.zeros(len(rows) + 1, np.int64)
        times = at_once(len(rows))
        return read_only_columns(
            empty(EventColumns)._replace(
                value_start=start,
                attribute=self.attribute[position],
                low=self.value[position],
                high=self.value[position],
                string=np.full(len(position), NO_STRING, np.int32),
                term_start=none,
                weight_start=none,
                until=times.until,
                time=times.time,
                seq=times.seq,
            )
        )
