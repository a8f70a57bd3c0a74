"""A subscription."""

from __future__ import annotations

from dataclasses import dataclass

from stentor.model.expression import Expression
from stentor.model.values import Point


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a subscriber wants: an expression, its location, until when (microseconds)."""

    id: str
    expression: Expression
    at: Point | None = None
    until: int | None = None
