"""What a table of mixed records amounts to: versions of subscriptions and the spans they hold for.

Walking the records once in order settles times, ids and errors. After that everything can be done
for the whole table at once, because a version knows the span of records in which it held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from stentor.errors import AlreadyOverError, DuplicateEventError, StentorError, UnknownIdError
from stentor.model import Point
from stentor.model.time import NEVER, format_timestamp

#: Where a version that already stood in the index has no column of this step.
STANDING = -1


class Operation(IntEnum):
    """What a record does."""

    PUBLISH = 0
    SUBSCRIBE = 1
    UNSUBSCRIBE = 2
    MOVE = 3


class Step(NamedTuple):
    """One record, reduced to what the order of things depends on.

    `place` is the row of the event or of the new subscription among the step's columns. `seq` is
    its place in the order; where there is none, the one after the record before.
    """

    operation: Operation
    id: str
    time: int | None
    place: int = 0
    until: int = NEVER
    at: Point | None = None
    seq: int | None = None


@dataclass(slots=True, eq=False)
class Version:
    """A subscription as it held from one record to another."""

    id: str
    root: Version | None  # what a move started from: a new or a standing version
    column: int  # its place among the step's columns, or STANDING
    row: int  # its row in the index, where it is STANDING
    until: int
    at: Point | None = None  # where a move put it
    since: int = 0
    upto: int | None = None  # the record that ended it


class Change(NamedTuple):
    """A record that changed a subscription: what held before, what holds after."""

    record: int
    seq: int
    time: int
    before: Version | None
    after: Version | None


@dataclass(slots=True)
class Plan:
    """The outcome of the walk."""

    seqs: list[int] = field(default_factory=list)  # of every record
    times: list[int] = field(default_factory=list)  # logical time at every record
    errors: dict[int, StentorError] = field(default_factory=dict)  # by record
    changes: list[Change] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)  # new in this step, by column
    touched: dict[str, Version | None] = field(default_factory=dict)  # the last word on each id
    published: list[int] = field(default_factory=list)  # records whose events are to be matched


class Before(NamedTuple):
    """What the walk asks about the state that the step finds."""

    subscription: Callable[[str], Version | None]
    event_until: Callable[[str], int | None]


def walk(steps: list[Step], new: int, seq: int, time: int, found: Before) -> Plan:
    """Settle *steps* in order, of which *new* bring a subscription, after record *seq*.

    Cost: O(steps), nothing is matched or encoded.
    """
    plan = Plan()
    held: dict[str, int] = {}
    moved = new  # columns of moved versions follow those of new ones
    for record, step in enumerate(steps):
        seq = seq + 1 if step.seq is None else step.seq
        time = time if step.time is None else max(time, step.time)
        plan.seqs.append(seq)
        plan.times.append(time)
        try:
            if step.until <= time:
                raise _over(step, time)
            if step.operation is Operation.PUBLISH:
                _admit_event(step, time, held, found)
                plan.published.append(record)
                continue
            before = _holding(plan, found, step.id, time)
            after: Version | None = None
            if step.operation is Operation.SUBSCRIBE:
                after = Version(step.id, None, step.place, STANDING, step.until)
            elif before is None:
                raise UnknownIdError(f"no subscription has the id {step.id!r}", id=step.id)
            elif step.operation is Operation.MOVE:
                root = before.root or before
                after = Version(step.id, root, moved, STANDING, before.until, step.at)
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


def _holding(plan: Plan, found: Before, id: str, time: int) -> Version | None:
    """The version of *id* that holds now; one that is over does not."""
    version = plan.touched[id] if id in plan.touched else found.subscription(id)
    return version if version is not None and version.until > time else None


def _admit_event(step: Step, time: int, held: dict[str, int], found: Before) -> None:
    until = held.get(step.id)
    if until is None:
        until = found.event_until(step.id)
    if until is not None and until > time:
        raise DuplicateEventError(
            f"the event {step.id!r} is live until {format_timestamp(until)}; publish a change "
            "under another id",
            field="id",
        )
    if step.until != NEVER:
        held[step.id] = step.until


def _over(step: Step, time: int) -> AlreadyOverError:
    what = "event" if step.operation is Operation.PUBLISH else "subscription"
    return AlreadyOverError(
        f"the {what} {step.id!r} was over at {format_timestamp(step.until)}, "
        f"and it is {format_timestamp(time)} now",
        field="until",
    )
