"""The engine's memory: an index, and the ids and texts of what stands in it."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns
from stentor.encoding.ragged import take
from stentor.engine.expiry import Expiry
from stentor.engine.names import NO_ROW, Register, Strings
from stentor.engine.plan import STANDING, Version
from stentor.index.contract import Index
from stentor.index.layered import Layered
from stentor.index.safe_distance import SafeDistances
from stentor.model.time import BEGINNING

#: Rows of what is gone are kept until they outnumber what is left, and this.
MIN_DEAD_ROWS = 4096
#: Each record pays for taking out at most so many rows that are over.
EXPIRED_PER_RECORD = 4


class State:
    """Subscriptions and live events, by row in the index and by id.

    Invariant: the register's current row of an id is the only row of that id which is not removed.
    """

    def __init__(self, index: Index, subscribers: Register | None = None) -> None:
        self.index = index
        self.subscribers = Register() if subscribers is None else subscribers
        self.texts = Strings()
        self.events = Register()
        self.safe_distances = SafeDistances(index.live)
        self.history: EventColumns | None = None  # a sample of what is published, if one was given
        self.seq = 0
        self.time = BEGINNING
        self._subscriptions_ending = Expiry()
        self._events_ending = Expiry()

    def version(self, id: str) -> Version | None:
        """The standing version of *id*, though it may be over; None where there is none."""
        row = self.subscribers.row(id)
        if row == NO_ROW:
            return None
        until = int(self.index.until(np.array([row], np.int64))[0])
        return Version(id, None, STANDING, row, until)

    def event_until(self, id: str) -> int | None:
        """Until when the event *id* is live; None where it is not kept."""
        row = self.events.row(id)
        return None if row == NO_ROW else int(self.index.live.columns.until[row])

    def insert(
        self, columns: SubscriptionColumns, ids: list[str], texts: list[str], since: Int64
    ) -> Int64:
        """File subscriptions under their ids, each holding after its *since*; their rows."""
        first = self.index.insert(columns, since)
        rows = np.arange(first, first + len(ids), dtype=np.int64)
        self.subscribers.add(ids)
        self.texts.extend(texts)
        self._subscriptions_ending.add(rows.tolist(), columns.until.tolist())
        return rows

    def watch_endings(self, until: Int64) -> None:
        """Remember when the first rows end: those of an index that was opened."""
        self._subscriptions_ending.watch(until)

    def remove(self, rows: list[int]) -> None:
        """Forget the subscriptions in *rows*."""
        if rows:
            self.index.remove(np.array(rows, np.int64))
            for row in rows:
                self.subscribers.forget(self.subscribers.ids[row], row)

    def hold(self, events: EventColumns, ids: list[str]) -> None:
        """Keep live events; one that was over under the same id no longer goes by it."""
        first = self.index.hold(events)
        self.events.add(ids)
        self._events_ending.add(range(first, first + len(ids)), events.until.tolist())

    def drop(self, rows: list[int]) -> None:
        """Forget the live events in *rows*."""
        if rows:
            self.index.drop(np.array(rows, np.int64))
            for row in rows:
                self.events.forget(self.events.ids[row], row)

    def expire(self, most: int | None = None) -> None:
        """Take out subscriptions and events that are over, at most *most* of each.

        What is asked from now on is asked at this time or later.
        """
        self.index.pass_time(self.time)
        ended = self._subscriptions_ending.over(self.time, most)
        self.remove([row for row in ended if self.index.stands(row)])
        ended = self._events_ending.over(self.time, most)
        self.drop([row for row in ended if not self.index.live.hidden[row]])

    def is_crowded(self) -> bool:
        """Whether rows of what is gone outnumber what is left, or changes have grown on a base."""
        if isinstance(self.index, Layered) and self.index.should_merge():
            return True
        rows = len(self.subscribers.ids) + len(self.events.ids)
        left = len(self.subscribers) + len(self.events)
        return rows - left > max(MIN_DEAD_ROWS, left)

    def rebuilt(self, index_class: type[Index]) -> State:
        """The same state in a fresh index without the rows of what is gone, for its history."""
        self.expire()
        rows = self.index.standing_rows()
        columns = self.index.columns_of(rows)
        fresh = State(index_class.build(columns, self.history))
        fresh.history = self.history
        fresh.subscribers.add(self.subscribers.ids.take(rows).to_pylist())
        fresh.texts.extend(self.texts.take(rows).to_pylist())
        fresh.watch_endings(columns.until)
        fresh.seq, fresh.time = self.seq, self.time
        live = self.index.live.standing_rows()
        ids = self.events.ids.take(live).to_pylist()
        fresh.hold(take(self.index.live.columns, live), ids)
        return fresh
