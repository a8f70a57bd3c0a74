"""The last events of a service, in memory: what people look at, and try an expression on."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from stentor.model.values.time import time_text

_MINUTE = 60_000_000


class Seen(NamedTuple):
    """An event that came as the *number*-th, and whom it matched: *total*, of which some names."""

    number: int
    time: int
    owner: str
    id: str
    body: bytes
    matched: tuple[str, ...]
    total: int

    def to_dict(self, owner: str) -> dict[str, Any]:
        """As *owner* is told."""
        prefix = owner + "/"
        own = [name.removeprefix(prefix) for name in self.matched if name.startswith(prefix)]
        is_own = self.owner == owner
        return {
            "number": self.number,
            "time": time_text(self.time),
            "event": msgspec.Raw(self.body),
            "matched": own,
            "matched_count": self.total if is_own else len(own),
        }


class Recent:
    """At most *most* events of the last *minutes*; one thread adds, any may look."""

    def __init__(self, most: int, minutes: int) -> None:
        self._events: deque[Seen] = deque(maxlen=most)
        self._span = minutes * _MINUTE

    def add(self, seen: Seen) -> None:
        """Remember *seen*, and forget what is too old."""
        events = self._events
        events.append(seen)
        while events[0].time < seen.time - self._span:
            events.popleft()

    def newest(self, owner: str, now: int, minutes: float, *, shared: bool) -> Iterator[Seen]:
        """The events that *owner* may see and that are not older, the newest first."""
        since = now - int(min(minutes * _MINUTE, self._span))
        for seen in reversed(self._snapshot()):
            if seen.time < since:
                return
            if shared or seen.owner == owner:
                yield seen

    def find(self, owner: str, id: str) -> Seen | None:
        """The last event *id* of *owner*; None where it is not remembered."""
        found = (one for one in reversed(self._snapshot()) if one.id == id and one.owner == owner)
        return next(found, None)

    def _snapshot(self) -> list[Seen]:
        while True:
            try:
                return list(itertools.islice(self._events, None))
            except RuntimeError:  # it grew while it was copied
                continue
