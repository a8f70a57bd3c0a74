"""What a table of mixed records amounts to: versions of subscriptions and the spans they hold for.

One pass over the records in order decides times, ids and errors. After that everything can be
done for the whole table at once, because a version knows the span of records in which it held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from stentor.engine.clock import Clock
from stentor.engine.tags import Among
from stentor.errors import AlreadyOverError, DuplicateEventError, StentorError, UnknownIdError
from stentor.model import Point
from stentor.model.record import Operation
from stentor.model.values.time import NEVER, format_timestamp

#: The column of a version that is in the index already: none of this step.
IN_INDEX = -1
#: Where times have been looked at already.
ANY_TIME = Clock(None, most_ahead=None)


class PlannedRecord(NamedTuple):
    """One record, reduced to what the order of things depends on.

    `column` is the position of the event or of the new subscription among the step's columns. `seq`
    is its number in the order; where there is none, the one after the record before.
    """

    operation: Operation
    id: str
    time: int | None
    column: int = 0
    until: int = NEVER
    at: Point | None = None
    seq: int | None = None
    among: Among | None = None


@dataclass(slots=True, eq=False)
class Version:
    """A subscription as it held from one record to another."""

    id: str
    root: Version | None  # what a move started from: a new version or one in the index
    column: int  # its position among the step's columns, or IN_INDEX
    row: int  # its row in the index, where its column is IN_INDEX
    until: int
    at: Point | None = None  # where a move put it
    since: int = 0
    upto: int | None = None  # the record that ended it


@dataclass(slots=True, eq=False)
class EventVersion:
    """A live event as it was from one record to another."""

    record: int  # of this step, which brought it, or IN_INDEX
    row: int  # its row among the live events, where it is IN_INDEX
    until: int
    among: Among | None = None


class EndedEvent(NamedTuple):
    """A record that replaced or withdrew a live event: what was live before."""

    record: int
    before: EventVersion


class Change(NamedTuple):
    """A record that changed a subscription: what held before, what holds after."""

    record: int
    seq: int
    time: int
    before: Version | None
    after: Version | None


@dataclass(slots=True)
class Plan:
    """What `plan_records` decides."""

    seqs: list[int] = field(default_factory=list)  # of every record
    times: list[int] = field(default_factory=list)  # logical time at every record
    errors: dict[int, StentorError] = field(default_factory=dict)  # by record
    changes: list[Change] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)  # new in this step, by column
    touched: dict[str, Version | None] = field(default_factory=dict)  # the last word on each id
    published: list[int] = field(default_factory=list)  # records whose events are to be matched
    ended: list[EndedEvent] = field(default_factory=list)  # live events, in order


class StateView(NamedTuple):
    """What planning needs to know of the state that the step finds."""

    subscription: Callable[[str], Version | None]
    event: Callable[[str], EventVersion | None]


class Now(Protocol):
    """What a record that comes by itself meets."""

    seq: int
    time: int

    def event_until(self, id: str) -> int | None:
        """Until when the event *id* is live; None where it is not kept."""


class Admitted(NamedTuple):
    """Where a record comes in the order, and when; and why it may not, if so."""

    seq: int
    time: int
    error: StentorError | None = None


def admit_event(id: str, until: int, said: int | None, found: Now, clock: Clock) -> Admitted:
    """When an event comes by itself that *said* its time; a refused one has a seq, too."""
    came = _come(id, until, said, found.seq + 1, found.time, clock, "event")
    live_until = found.event_until(id)
    if came.error is None and live_until is not None and live_until > came.time:
        return came._replace(error=_is_live(id, live_until))
    return came


def admit_change(id: str, until: int, said: int | None, found: Now, clock: Clock) -> Admitted:
    """The same for a change of a subscription."""
    return _come(id, until, said, found.seq + 1, found.time, clock, "subscription")


def _come(
    id: str, until: int, said: int | None, seq: int, time: int, clock: Clock, what: str
) -> Admitted:
    """When a record comes that *said* its time, where it is *time* already."""
    if said is not None:
        if not clock.allows(said, time):
            return Admitted(seq, time, clock.refusal(id, said, time))
        time = max(time, said)
    return Admitted(seq, time, _over_error(what, id, until, time) if until <= time else None)


def plan_records(
    steps: list[PlannedRecord],
    new: int,
    seq: int,
    time: int,
    found: StateView,
    clock: Clock = ANY_TIME,
) -> Plan:
    """Plan *steps* in order, of which *new* bring a subscription, after record *seq*.

    One whose time is further ahead than the *clock* allows is refused, and time stays as it is.

    Cost: O(steps), nothing is matched or encoded.
    """
    plan = Plan()
    live: dict[str, EventVersion | None] = {}
    moved = new  # columns of moved versions follow those of new ones
    for record, step in enumerate(steps):
        seq = seq + 1 if step.seq is None else step.seq
        is_event = step.operation.is_event
        what = "event" if is_event else "subscription"
        _, time, error = _come(step.id, step.until, step.time, seq, time, clock, what)
        plan.seqs.append(seq)
        plan.times.append(time)
        try:
            if error is not None:
                raise error
            if is_event:
                _plan_event(plan, record, step, time, live, found)
                continue
            before = _holding(plan, found, step.id, time)
            after: Version | None = None
            if step.operation is Operation.SUBSCRIBE:
                after = Version(step.id, None, step.column, IN_INDEX, step.until)
            elif before is None:
                raise UnknownIdError(f"no subscription has the id {step.id!r}", id=step.id)
            elif step.operation is Operation.MOVE:
                root = before.root or before
                after = Version(step.id, root, moved, IN_INDEX, before.until, step.at)
                moved += 1
        except StentorError as error:
            plan.errors[record] = error
            continue
        if before is not None:
            before.upto = seq
        if after is not None:
            after.since = seq
            plan.versions.append(after)
        plan.touched[step.id] = after
        plan.changes.append(Change(record, seq, time, before, after))
    return plan


def _holding(plan: Plan, found: StateView, id: str, time: int) -> Version | None:
    """The version of *id* that holds now; one that is over does not."""
    version = plan.touched[id] if id in plan.touched else found.subscription(id)
    return version if version is not None and version.until > time else None


def _plan_event(
    plan: Plan,
    record: int,
    step: PlannedRecord,
    time: int,
    live: dict[str, EventVersion | None],
    found: StateView,
) -> None:
    """Publish, update or withdraw an event; *live* is the last word on each id of this step."""
    before = live[step.id] if step.id in live else found.event(step.id)
    if before is not None and before.until <= time:
        before = None
    check_event_change(step.operation, step.id, None if before is None else before.until)
    if before is not None:
        plan.ended.append(EndedEvent(record, before))
        live[step.id] = None
    if step.operation is not Operation.WITHDRAW:
        plan.published.append(record)
        if step.until != NEVER:
            live[step.id] = EventVersion(record, IN_INDEX, step.until, step.among)


def check_event_change(operation: Operation, id: str, live_until: int | None) -> None:
    """Refuse an *operation* on the event *id*, which is live until then, or is not (None)."""
    if operation is Operation.PUBLISH and live_until is not None:
        raise _is_live(id, live_until)
    if operation is Operation.WITHDRAW and live_until is None:
        raise UnknownIdError(f"no live event has the id {id!r}", id=id)


def _is_live(id: str, until: int) -> DuplicateEventError:
    return DuplicateEventError(
        f"the event {id!r} is live until {format_timestamp(until)}; update it, or publish another "
        "one under another id",
        field="id",
    )


def _over_error(what: str, id: str, until: int, time: int) -> AlreadyOverError:
    return AlreadyOverError(
        f"the {what} {id!r} was over at {format_timestamp(until)}, "
        f"and it is {format_timestamp(time)} now",
        field="until",
    )
