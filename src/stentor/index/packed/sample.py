"""A few of the latest events that were matched: what `auto` times structures with.

They are learned: an index that replaces this one begins with them, and they are saved with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from stentor.encoding.check import fault
from stentor.encoding.columns import EventColumns, event_count, read_only_columns
from stentor.encoding.ragged import concatenate, take
from stentor.index.contract import Learned
from stentor.index.storage.arrays import bundle_of, refuse, with_prefix

#: Events of a tile that are kept, and in all; of these some are replaced now and then.
FEW_SEEN: Final = 64
MOST_SEEN, MANY_EVENTS = 256, 4096
_PREFIX: Final = "sample"


class SeenEvents:
    """Some events: all of the first ones, later a few of every some thousand."""

    def __init__(self, learned: Learned) -> None:
        """The sample that was *learned* before, or none."""
        self._parts: tuple[EventColumns, ...] = ()
        self._passed = 0  # events to go by before some are kept again
        if any(name.startswith(f"{_PREFIX}.") for name in learned):
            self._parts = (read_only_columns(bundle_of(EventColumns, _PREFIX, learned)),)

    def is_due(self, count: int) -> bool:
        """Know that *count* events are matched; whether some of them are to be kept."""
        self._passed -= count
        return self._passed < 0

    def keep(self, events: EventColumns) -> None:
        """Keep a few of *events*, in the place of the oldest where there are many."""
        self.add(take(events, np.arange(min(event_count(events), FEW_SEEN))))

    def add(self, few: EventColumns) -> None:
        """Keep *few*, which nobody else holds."""
        seen = sum(map(event_count, self._parts)) + event_count(few)
        is_full = seen > MOST_SEEN
        self._parts = (*(self._parts[1:] if is_full else self._parts), few)
        self._passed = MANY_EVENTS if is_full else 0

    @property
    def events(self) -> EventColumns | None:
        """The sample."""
        return concatenate(self._parts) if self._parts else None


def learned_of(events: EventColumns | None) -> Learned:
    """A sample of *events*, to be handed on."""
    if events is None:
        return {}
    return with_prefix(_PREFIX, take(events, np.arange(min(event_count(events), MOST_SEEN))))


def learned_from(folder: Path, arrays: Learned) -> Learned:
    """What was learned, of the *arrays* in *folder*; a FolderError where it cannot be right."""
    learned = {name: one for name, one in arrays.items() if name.startswith(f"{_PREFIX}.")}
    if learned:
        refuse(folder, fault(bundle_of(EventColumns, _PREFIX, learned)))
    return {name: array.copy() for name, array in learned.items()}
