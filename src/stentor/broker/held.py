"""What ends some day, by id: clients' subscriptions and live events."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

Ending = TypeVar("Ending")
#: Endings of what is no longer kept are swept out when there are more of them, and than this.
FEW: Final = 64


class Held(Generic[Ending]):
    """Things by id, some until an instant; in the order in which they came."""

    def __init__(self) -> None:
        self._things: dict[str, tuple[Ending, int | None]] = {}
        self._endings: list[tuple[int, str]] = []

    def keep(self, id: str, thing: Ending, until: int | None) -> None:
        """Keep *thing* as *id*, in the place of what was there."""
        self._things[id] = thing, until
        if until is not None:
            heapq.heappush(self._endings, (until, id))
        if len(self._endings) > 2 * len(self._things) + FEW:
            ends = ((until, id) for id, (_, until) in self._things.items())
            self._endings = [(until, id) for until, id in ends if until is not None]
            heapq.heapify(self._endings)

    def drop(self, id: str) -> None:
        """Keep *id* no longer."""
        del self._things[id]

    def over(self, time: int) -> list[str]:
        """The ids of what has ended at *time*, no longer kept; each once. Cost: O(log n) each."""
        ended = []
        while self._endings and self._endings[0][0] <= time:
            until, id = heapq.heappop(self._endings)
            if id in self._things and self._things[id][1] == until:
                del self._things[id]
                ended.append(id)
        return ended

    def __getitem__(self, id: str) -> Ending:
        return self._things[id][0]

    def __contains__(self, id: object) -> bool:
        return id in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)
