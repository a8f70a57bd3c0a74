"""A standing question."""

from __future__ import annotations

from dataclasses import dataclass

from stentor.model.expression import Expression
from stentor.model.value import Point


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a subscriber wants: an expression, where it stands, until when (microseconds)."""

    id: str
    expression: Expression
    at: Point | None = None
    until: int | None = None
