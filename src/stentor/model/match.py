"""What the engine reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Match(NamedTuple):
    """One delivery: an event for a subscription, with its score."""

    event: str
    subscription: str
    score: float


@dataclass(frozen=True, slots=True)
class Changes:
    """How a subscription's answer among the live events changed: ids of events, sorted."""

    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)
