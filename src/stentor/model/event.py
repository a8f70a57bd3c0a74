"""Something that happened, or that somebody offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stentor.model.value import Value


@dataclass(frozen=True, slots=True)
class Event:
    """Attributes by name, weights by attribute; it stays live only where it has an `until`."""

    id: str
    attributes: Mapping[str, Value]
    weights: Mapping[str, float] = field(default_factory=dict)
    until: int | None = None
