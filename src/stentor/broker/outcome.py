"""What messages led to."""

from __future__ import annotations

from dataclasses import dataclass, field

from stentor.broker.messages import Delivery, Sent
from stentor.engine.report import Answer


@dataclass(slots=True)
class Outcome:
    """An answer for each record, what to send, and what clients are given."""

    answers: list[Answer] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    unwanted: int = 0  # events from neighbours that nobody here or beyond wanted
