"""What a home of alternatives does, and what it finds.

A home holds alternatives and finds those that may want an event. It knows neither rows nor when
they hold: `index.py` does. The homes of an index do not know one another.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns, UInt8

#: The arrays of a home by name, as they are saved.
HomeArrays = dict[str, npt.NDArray[Any]]


class Found(NamedTuple):
    """Pairs that homes could not rule out, in any order, some perhaps more than once.

    What does not fit is only counted: the index grows the arrays and asks again.
    """

    event: Int64  # (capacity,) the position of the event in the batch
    alternative: Int64  # (capacity,)
    covered: UInt8  # (capacity,) 1: every predicate is proved; 0: a candidate, to be verified


def found_for(capacity: int) -> Found:
    """Memory for *capacity* pairs."""
    return Found(
        np.zeros(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.uint8)
    )


def between(found: Found, start: int, stop: int | None) -> Found:
    """The part of *found* from *start* to *stop*."""
    event, alternative, covered = found
    return Found(event[start:stop], alternative[start:stop], covered[start:stop])


class Home(Protocol):
    """Alternatives in one form of memory."""

    name: str

    @classmethod
    def build(cls, columns: SubscriptionColumns, alternatives: Int64) -> Self:
        """A home of *alternatives* (ascending, each once); nothing of *columns* is kept."""

    def match(self, events: EventColumns, found: Found) -> int:
        """How many pairs there are for *events*; threads may be in it at the same time."""

    def match_one(self, events: EventColumns, found: Found) -> int:
        """`match` for the first of *events* alone, one thread at a time, nothing allocated."""

    def remove(self, alternatives: Int64) -> None:
        """Remove *alternatives*, where they are here; an opened home need not."""

    def move(self, columns: SubscriptionColumns, alternatives: Int64) -> Int64:
        """Bring *alternatives* to their new bounds, as in *columns*; those that are here then.

        Others do not fit here any more, or were not here: somebody else must hold them now.
        """

    @property
    def count(self) -> int:
        """How many alternatives are here."""

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""

    def arrays(self) -> HomeArrays:
        """Everything, to be written to files; `over` takes it back."""

    @classmethod
    def over(cls, arrays: HomeArrays) -> Self:
        """A read-only home over *arrays*, of which nothing is copied."""

    def stats(self) -> dict[str, Any]:
        """Figures for people."""

    def check(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """Assert that *alternatives* (ascending) are here, under the bounds of *columns*."""
