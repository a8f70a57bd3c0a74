"""A subscription."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stentor.model.expression import Expression
from stentor.model.values import Point


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a subscriber wants: an expression, its location, until when (microseconds).

    `owner` is who it belongs to, `labels` are what events choose by among subscriptions.
    """

    id: str
    expression: Expression
    at: Point | None = None
    until: int | None = None
    owner: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
