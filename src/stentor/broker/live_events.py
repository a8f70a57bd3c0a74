"""The live events of a broker, by id, end and range; what ends at some time; versions of events.

An event that is updated or withdrawn has a version, so that brokers that were apart know whose is
the later one when they meet again. Versions of what was withdrawn are remembered, the latest of
them, until it would have ended.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Generic, TypeVar

import numpy as np

from stentor.broker.interest import Pairs, ranges_of
from stentor.broker.messages import GoneEvent
from stentor.encoding.choices import hulls
from stentor.encoding.columns import Int64
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.hilbert.ranges import Ranges
from stentor.index.mics.check import check_postings
from stentor.index.mics.postings import Postings
from stentor.index.mics.projection import EVENT_RANGES
from stentor.index.mics.space import Space
from stentor.model import Event, Schema

Value = TypeVar("Value")
#: Ends of values that are no longer kept are swept out when they are more than the others and this.
FEW: Final = 64
#: So many withdrawn events are remembered.
REMEMBERED: Final = 1 << 16


def event_ranges(events: Iterable[Event], schema: Schema, space: Space) -> Ranges:
    """The number of each of *events* in *space*; of range events all ranges that they touch."""
    columns = encode_events((TimedEvent(event) for event in events), schema)
    return space.on(schema).of_events(hulls(columns), EVENT_RANGES)


class BrokerLiveEvents:
    """Events until they end, in the order in which they came."""

    def __init__(self, schema: Schema, space: Space | None) -> None:
        self._schema, self._space = schema, space
        self._events: ExpiringValues[Event] = ExpiringValues()
        self._waiting: dict[str, None] = {}  # those that the postings do not have yet
        self._postings = Postings()
        self._number: dict[str, int] = {}  # by which the postings know an event
        self._id: dict[int, str] = {}
        self._free: list[int] = []
        self._versions: dict[str, int] = {}  # of those that have one
        self._withdrawn: ExpiringValues[int] = ExpiringValues()  # versions of events that are gone
        self.own: set[str] = set()  # ids of events that clients here have published

    def hold(self, event: Event, version: int = 0, *, own: bool = False) -> None:
        """Hold *event*, which ends, instead of the one of its id, if there is one."""
        if event.id in self._events:
            self._forget([event.id])
        (self.own.add if own else self.own.discard)(event.id)
        self._events.keep(event.id, event, event.until)
        self._versions.pop(event.id, None)
        if version:
            self._versions[event.id] = version
        if event.id in self._withdrawn:
            self._withdrawn.drop(event.id)
        if self._space is not None:
            self._waiting[event.id] = None

    def drop(self, id: str) -> None:
        """Hold *id* no longer."""
        self._events.drop(id)
        self._forget([id])

    def remember(self, id: str, version: int, until: int | None) -> list[str]:
        """Know that *id* was withdrawn; the ids of what is forgotten for it."""
        self._withdrawn.keep(id, version, until)
        forgotten = [*islice(self._withdrawn, max(0, len(self._withdrawn) - REMEMBERED))]
        for one in forgotten:
            self._withdrawn.drop(one)
            self.own.discard(one)
        return forgotten

    def version(self, id: str) -> int:
        """The version of *id* that is live, or was withdrawn; −1 where neither is known."""
        if id in self._events:
            return self._versions.get(id, 0)
        return self._withdrawn.get(id, -1)

    def gone(self) -> tuple[GoneEvent, ...]:
        """What is known to be gone: earlier versions of those that are live, and the withdrawn."""
        live = [(id, version - 1, self._events[id].until) for id, version in self._versions.items()]
        ends = self._withdrawn
        return (*live, *((id, ends[id], ends.until(id)) for id in ends))

    def versions(self) -> dict[str, int]:
        """The versions of those that are live and have one."""
        return dict(self._versions)

    def over(self, time: int) -> list[str]:
        """The ids of those that have ended at *time*, or would have; no longer kept."""
        ended = self._events.over(time)
        self._forget(ended)
        ended += self._withdrawn.over(time)
        self.own.difference_update(ended)
        return ended

    def has_over(self, time: int) -> bool:
        """Whether one has ended at *time*."""
        return self._events.has_over(time)

    def _forget(self, ended: list[str]) -> None:
        """Let the postings no longer have those that *ended*."""
        for id in ended:
            self._waiting.pop(id, None)
            self._versions.pop(id, None)
        if gone := [self._number.pop(id) for id in ended if id in self._number]:
            self._postings.remove(np.array(gone))
            self._free += gone
            for number in gone:
                del self._id[number]

    def within(self, ranges: Pairs) -> list[str]:
        """The ids of those that touch one of *ranges*. Cost: O(log events) for each, and theirs."""
        if not ranges or self._space is None:
            return []
        self._insert_waiting(self._space)
        _, owners = self._postings.owners_of(ranges_of([ranges]))
        return [self._id[number] for number in np.unique(owners).tolist()]

    def _insert_waiting(self, space: Space) -> None:
        """Insert what has come since the last query into the postings."""
        if self._postings.is_wasteful:
            self._postings, self._waiting = Postings(), dict.fromkeys(self._events)
            self._number, self._id, self._free = {}, {}, []
        if not self._waiting:
            return
        for id in self._waiting:
            number = self._free.pop() if self._free else len(self._number)
            self._number[id], self._id[number] = number, id
        numbers = np.array([self._number[id] for id in self._waiting])
        events = (self._events[id] for id in self._waiting)
        self._postings.add(numbers, event_ranges(events, self._schema, space))
        self._waiting = {}

    def __getitem__(self, id: str) -> Event:
        return self._events[id]

    def __contains__(self, id: object) -> bool:
        return id in self._events

    def __iter__(self) -> Iterator[str]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def check(self) -> None:
        """Assert that every live event has its postings, or waits for them."""
        if self._space is None:
            return
        assert {*self._number, *self._waiting} == set(self._events)
        assert {number: id for id, number in self._number.items()} == self._id
        check_postings(self._postings, np.array(sorted(self._id), np.int64), self._ranges_of)

    def _ranges_of(self, numbers: Int64) -> Ranges:
        assert self._space is not None
        events = (self._events[self._id[number]] for number in numbers.tolist())
        return event_ranges(events, self._schema, self._space)


class ExpiringValues(Generic[Value]):
    """Values by id, some of which end, in the order in which they came."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[Value, int | None]] = {}
        self._heap: list[tuple[int, str]] = []

    def keep(self, id: str, value: Value, until: int | None) -> None:
        """Keep *value* as *id*, instead of what was there."""
        self._values[id] = value, until
        if until is not None:
            heapq.heappush(self._heap, (until, id))
        if len(self._heap) > 2 * len(self._values) + FEW:
            ends = ((until, id) for id, (_, until) in self._values.items())
            self._heap = [(until, id) for until, id in ends if until is not None]
            heapq.heapify(self._heap)

    def replace(self, id: str, value: Value) -> None:
        """Keep *value* as *id*, which ends when it did."""
        self._values[id] = value, self._values[id][1]

    def drop(self, id: str) -> None:
        """Keep *id* no longer."""
        del self._values[id]

    def over(self, time: int) -> list[str]:
        """The ids of what has ended at *time*, no longer kept; each once. Cost: O(log n) each."""
        ended = []
        while self._heap and self._heap[0][0] <= time:
            until, id = heapq.heappop(self._heap)
            if id in self._values and self._values[id][1] == until:
                del self._values[id]
                ended.append(id)
        return ended

    def has_over(self, time: int) -> bool:
        """Whether something may have ended at *time*."""
        return bool(self._heap) and self._heap[0][0] <= time

    def __getitem__(self, id: str) -> Value:
        return self._values[id][0]

    def until(self, id: str) -> int | None:
        """When the value of *id* ends."""
        return self._values[id][1]

    def get(self, id: str, default: Value) -> Value:
        """The value of *id*, or *default*."""
        return self._values.get(id, (default, None))[0]

    def __contains__(self, id: object) -> bool:
        return id in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
