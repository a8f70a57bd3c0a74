"""What all rivals share: a filter of their own, then the product's verifier.

A rival says where an alternative goes (`_insert`, `_remove`) and which alternatives an event may
match (`_find`); so it is exact for the whole language, whatever it understands of it, and the
contract suite of the product holds for it. What it cannot use as a key it always proposes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from stentor.encoding.columns import EventColumns, Float64, Int64, MatchPairs, event_count
from stentor.encoding.ragged import children, events_between
from stentor.index.structure import Structure, concatenate_pairs
from stentor.index.verify.candidates import Candidates, verify
from stentor.index.verify.single import NOTHING_PROVED

#: Candidates that fit at first, and at most: a tile that has more is halved.
FIRST_CAPACITY, MOST_CAPACITY = 1 << 16, 1 << 22
#: Fewer alternatives than this never call for measuring anew.
FEW: Final = 64


class Rival(Structure):
    """A structure of another paper.

    What it measures of its subscriptions (`_choose`: frequencies, domains) is measured anew, and
    everything inserted again, whenever their number has doubled.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_open = False
        self._inserted_since = self._chosen_for = 0

    # What a rival says of itself.

    def _choose(self, alternatives: Int64) -> None:
        """Measure what is needed of *alternatives*, and be empty."""

    def _insert(self, alternatives: Int64) -> None:
        """Insert *alternatives*."""
        raise NotImplementedError

    def _remove(self, alternatives: Int64) -> None:
        """Remove *alternatives*, those that are there; by default the verifier passes them over."""

    def _find(self, events: EventColumns, event: Int64, alternative: Int64) -> int:
        """Write pairs that may match; how many there are, of which those that fit are written."""
        raise NotImplementedError

    # What the product asks for.

    def _match_tile(self, events: EventColumns) -> MatchPairs:
        capacity, found = 0, FIRST_CAPACITY
        while found > capacity:
            if found > MOST_CAPACITY and event_count(events) > 1:
                half = event_count(events) // 2
                cuts = (events_between(events, 0, half), events_between(events, half, None))
                return concatenate_pairs([self._match_tile(one) for one in cuts])
            capacity = found
            event, alternative = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
            found = self._find(events, event, alternative)
        candidates = Candidates(event[:found], alternative[:found], NOTHING_PROVED)
        return verify(self.subscriptions.columns, self.subscriptions.validity, events, candidates)

    def _insert_rows(self, first: int) -> None:
        start = self.subscriptions.columns.alternative_start
        self._insert_or_rebuild(np.arange(start[first], start[-1]))

    def _remove_rows(self, rows: Int64) -> None:
        if not self._is_open:
            self._remove(self._alternatives_of(rows))

    def move(self, rows: Int64, positions: Float64) -> None:
        current = np.unique(rows[self.subscriptions.validity.hidden[rows] == 0])
        alternatives = self._alternatives_of(current)
        if not self._is_open:
            self._remove(alternatives)  # while it is where it is
        self.subscriptions.move(rows, positions)
        self._insert_or_rebuild(alternatives)

    def _insert_or_rebuild(self, alternatives: Int64) -> None:
        self._inserted_since += len(alternatives)
        if self._chosen_for == 0 or self._inserted_since > max(FEW, self._chosen_for):
            rows = np.flatnonzero(self.subscriptions.validity.hidden == 0)
            alternatives = self._alternatives_of(rows)
            self._choose(alternatives)
            self._inserted_since, self._chosen_for = 0, len(alternatives)
        if len(alternatives):
            self._insert(alternatives)

    def _open_arrays(self, folder: Path) -> None:
        self._insert_rows(0)
        self._is_open = True

    def _alternatives_of(self, rows: Int64) -> Int64:
        return children(self.subscriptions.columns.alternative_start, rows)[0]
