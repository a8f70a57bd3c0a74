"""The live events of a broker: by id, by their end, and by where they are in the space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from stentor.broker.held import Held
from stentor.broker.interest import Pairs, ranges_of
from stentor.encoding.columns import Int64
from stentor.encoding.events import Arrival, encode_events
from stentor.encoding.hilbert import Ranges
from stentor.index.mics.check import check_postings
from stentor.index.mics.postings import Postings
from stentor.index.mics.projection import EVENT_RANGES
from stentor.index.mics.space import Space
from stentor.model import Event, Schema


def event_ranges(events: Iterable[Event], schema: Schema, space: Space) -> Ranges:
    """The number of each of *events* in *space*; of range events all ranges that they touch."""
    columns = encode_events((Arrival(event) for event in events), schema)
    return space.on(schema).of_events(columns, EVENT_RANGES)


class LiveEvents:
    """Events until they end, in the order in which they came."""

    def __init__(self, schema: Schema, space: Space | None) -> None:
        self._schema, self._space = schema, space
        self._held: Held[Event] = Held()
        self._unfiled: dict[str, None] = {}  # those that the postings do not have yet
        self._postings = Postings()
        self._number: dict[str, int] = {}  # by which the postings know an event
        self._id: dict[int, str] = {}
        self._free: list[int] = []

    def keep(self, event: Event) -> None:
        """Keep *event*, which ends."""
        self._held.keep(event.id, event, event.until)
        if self._space is not None:
            self._unfiled[event.id] = None

    def over(self, time: int) -> list[str]:
        """The ids of those that have ended at *time*, no longer kept."""
        ended = self._held.over(time)
        for id in ended:
            self._unfiled.pop(id, None)
        if filed := [self._number.pop(id) for id in ended if id in self._number]:
            self._postings.remove(np.array(filed))
            self._free += filed
            for number in filed:
                del self._id[number]
        return ended

    def within(self, ranges: Pairs) -> list[str]:
        """The ids of those that touch one of *ranges*. Cost: O(log events) for each, and theirs."""
        if not ranges or self._space is None:
            return []
        self._file(self._space)
        asked = ranges_of([ranges])
        _, owners = self._postings.owners_of(asked)
        return [self._id[number] for number in np.unique(owners).tolist()]

    def _file(self, space: Space) -> None:
        """Put what has come since the last question into the postings."""
        if self._postings.is_wasteful:
            self._postings, self._unfiled = Postings(), dict.fromkeys(self._held)
            self._number, self._id, self._free = {}, {}, []
        if not self._unfiled:
            return
        for id in self._unfiled:
            number = self._free.pop() if self._free else len(self._number)
            self._number[id], self._id[number] = number, id
        numbers = np.array([self._number[id] for id in self._unfiled])
        events = (self._held[id] for id in self._unfiled)
        self._postings.add(numbers, event_ranges(events, self._schema, space))
        self._unfiled = {}

    def __getitem__(self, id: str) -> Event:
        return self._held[id]

    def __contains__(self, id: object) -> bool:
        return id in self._held

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def check(self) -> None:
        """Assert that every live event is filed where it is, or waits for it."""
        if self._space is None:
            return
        assert {*self._number, *self._unfiled} == set(self._held)
        assert {number: id for id, number in self._number.items()} == self._id
        check_postings(self._postings, np.array(sorted(self._id), np.int64), self._ranges_of)

    def _ranges_of(self, numbers: Int64) -> Ranges:
        assert self._space is not None
        events = (self._held[self._id[number]] for number in numbers.tolist())
        return event_ranges(events, self._schema, self._space)
