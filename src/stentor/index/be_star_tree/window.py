"""A window of events: a sample of what is published, from which ranks are measured."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import EventColumns, event_count
from stentor.encoding.ragged import concatenate, take

#: Published events for each one that is kept.
EVENTS_PER_SAMPLE = 64
#: Events with at most so many values are kept as they are; of others, a copy of a few.
FEW_VALUES = 256


class Window:
    """The last so many events of a sample.

    Readers add to it while no writer takes from it; what one thread loses to another is not missed.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._parts: list[EventColumns] = []
        self._seen = 0

    @property
    def is_full(self) -> bool:
        """Whether there is enough to measure from."""
        return sum(map(event_count, self._parts)) >= self._size > 0

    def add(self, events: EventColumns) -> None:
        """Keep some of *events*. Cost: a copy for one in so many."""
        self._seen += event_count(events)
        if self._seen < EVENTS_PER_SAMPLE or not self._size:
            return
        self._seen = 0
        if len(events.attribute) > FEW_VALUES:
            events = take(events, np.arange(0, event_count(events), EVENTS_PER_SAMPLE))
        self._parts.append(events)
        del self._parts[: -self._size]

    def take(self) -> EventColumns | None:
        """What was kept, which is forgotten; None where there is nothing."""
        parts, self._parts = self._parts, []
        # What is kept as it is may be a part of larger columns.
        own = [take(one, np.arange(event_count(one))) for one in parts]
        return concatenate(own) if own else None
