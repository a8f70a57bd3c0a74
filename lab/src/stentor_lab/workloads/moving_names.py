"""Subscribers who travel through a city and ask for words that places really have.

Roads, radii and the lives of messages are those of `moving_keyword`; words, and where messages are,
come from real messages, or drawn ones of their form, in the city (`RealMessages.stretched`).

Paper: AP-Tree, section 5.2.1: GN-ODB and GN-SAN.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stentor.encoding.columns import EventColumns, Float64, Int64, SubscriptionColumns
from stentor.encoding.ragged import take
from stentor_lab.workloads.moving_keyword import MovingKeyword, living, moment, of_ten_timestamps
from stentor_lab.workloads.real_messages import RealMessages


@dataclass(frozen=True)
class MovingNames:
    """The recipe; *standing* messages live from the beginning, later ones follow them."""

    roads: MovingKeyword
    names: RealMessages
    standing: int

    def subscriptions(self, at: Float64) -> SubscriptionColumns:
        """A subscription for each of the places *at* (n, 2)."""
        return self.names.around(at, self.roads.radii(len(at)), seed=self.roads.words.seed)

    def live_messages(self) -> EventColumns:
        """Those that stand, of which a tenth comes, and later goes, with each of ten timestamps."""
        return self._messages(0, of_ten_timestamps(self.standing))

    def messages(self, count: int, step: int) -> EventColumns:
        """*count* messages that come at the timestamp *step*."""
        return self._messages(self.standing + (step - 1) * count, np.full(count, moment(step)))

    def _messages(self, start: int, time: Int64) -> EventColumns:
        """As many as there are times, from *start* on; after the last comes the first again."""
        rows = np.arange(start, start + len(time)) % len(self.names)
        low, high = int(rows.min()), int(rows.max()) + 1
        events, times = take(self.names.columns(low, high), rows - low), living(time)
        return events._replace(until=times.until, time=times.time, seq=times.seq)
