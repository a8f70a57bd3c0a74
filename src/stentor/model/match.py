"""What the engine reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


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


@dataclass(frozen=True)
class EventChanges:
    """How it changed who wants an event: ids of subscriptions, sorted.

    `entered` want it now and did not before, `left` the reverse, `stayed` want it as they did.
    `shrunk` are the safe regions that it made smaller.
    """

    entered: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    stayed: list[str] = field(default_factory=list)
    shrunk: list[Any] = field(default_factory=list, compare=False, repr=False)

    def __bool__(self) -> bool:
        return bool(self.entered or self.left)
