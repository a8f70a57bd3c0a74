"""What clients' records are on their way through the core, and what a batch of them led to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stentor.errors import StentorError
from stentor.model.record import Op, Publish, Record, Update, Withdraw
from stentor.service.outbox import Key, OutboxRow
from stentor.service.recent import Seen
from stentor.service.refusals import error_answer


@dataclass(slots=True, eq=False)
class Records:
    """Records of one client, to be let happen together; what came of it goes to *reply*."""

    owner: str
    client: str
    raws: list[Any]
    default_op: Op | None = None
    may: frozenset[str] = frozenset(("publish", "subscribe"))
    wants_results: bool = True
    reply: Callable[[Any], None] | None = None
    arrived: float = 0.0


@dataclass(slots=True)
class RecordsAnswer:
    """What *Records* led to: how many were accepted, why others not, what each led to."""

    accepted: int = 0
    errors: list[tuple[int, StentorError]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self, owner: str, *, with_results: bool, position: str = "index") -> dict[str, Any]:
        """As clients are told."""
        response: dict[str, Any] = {
            "accepted": self.accepted,
            "rejected": [
                {position: number, "error": error_answer(error, owner)}
                for number, error in self.errors
            ],
        }
        return {**response, "results": self.results} if with_results else response


@dataclass(slots=True)
class CoreOutput:
    """What a batch of commands led to; all of it is kept."""

    answers: list[RecordsAnswer] = field(default_factory=list)
    rows: dict[Key, list[OutboxRow]] = field(default_factory=dict)
    overfull: set[Key] = field(default_factory=set)
    seen: list[Seen] = field(default_factory=list)
    withdrawn: list[tuple[str, str]] = field(default_factory=list)  # owners and ids of events
    changed: dict[str, dict[str, bool]] = field(default_factory=dict)  # owner → id → still there
    linked: set[str] = field(default_factory=set)  # neighbours for whom something waits
    is_reopened: bool = False  # the store had failed: queues may hold more than was said


@dataclass(slots=True)
class Waiting:
    """A record that was read, and whose answer goes to which place of which command."""

    record: Record
    owner: str
    id: str
    answer: RecordsAnswer
    position: int
    wants_result: bool
    body: bytes = b""  # of an event
    client: str = ""  # of a subscription
    is_created: bool = False

    @property
    def name(self) -> str:
        """What the broker calls it."""
        return f"{self.owner}/{self.id}"

    @property
    def is_about_event(self) -> bool:
        """Whether it is no change of a subscription."""
        return isinstance(self.record, Publish | Update | Withdraw)

    @property
    def changes_event(self) -> bool:
        """Whether it says something of an event that is there."""
        return isinstance(self.record, Update | Withdraw)
