"""The engine in its slowest form: dictionaries and `evaluate`, one record at a time.

Give it what you give an engine and compare the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from stentor.errors import AlreadyOverError, DuplicateEventError, StentorError, UnknownIdError
from stentor.language.check import check_and_learn
from stentor.language.evaluate import Evaluation, evaluate
from stentor.model import Changes, Event, EventChanges, Schema, Scoring, Subscription
from stentor.model.record import (
    Move,
    Publish,
    Record,
    Subscribe,
    Unsubscribe,
    Update,
    Withdraw,
    lasting,
)
from stentor.model.values.time import BEGINNING, NEVER
from stentor.wire.events import learn_event
from stentor.wire.records import record_from_dict

#: What one record leads to: who wants the event, how an answer changed, or what was wrong.
Answer = list[str] | Changes | EventChanges | StentorError


class Oracle:
    """What an engine must answer, by the definition of a match and by the order of records.

    >>> oracle = Oracle()
    >>> oracle.answers([
    ...     {"op": "publish", "id": "e1", "price": 299, "until": 60, "time": 0},
    ...     {"op": "subscribe", "id": "ana", "expression": "price < 300", "time": 1},
    ...     {"op": "publish", "id": "e2", "price": 100, "time": 2},
    ... ])
    [[], Changes(added=['e1'], removed=[]), ['ana']]
    >>> oracle.answer({"op": "unsubscribe", "id": "bo"})
    UnknownIdError("no subscription has the id 'bo'")

    *clock* gives seconds since 1970 and is asked for records that carry no time of their own (None:
    such records come at the time of the last one).

    Cost: each event meets each subscription, and each change each live event.
    """

    def __init__(
        self,
        *,
        schema: Schema | Mapping[str, str] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        if schema is None:
            schema = Schema()
        self.schema = Schema.declare(schema) if isinstance(schema, Mapping) else schema
        self.time = BEGINNING
        self._clock = clock
        self._subscriptions: dict[str, Subscription] = {}
        self._live: dict[str, Event] = {}

    def answers(
        self, records: Iterable[Record | Mapping[str, Any]], *, top: int | None = None
    ) -> list[Answer]:
        """The answer to each of *records*, which come in this order."""
        return [self.answer(record, top=top) for record in records]

    def answer(self, record: Record | Mapping[str, Any], *, top: int | None = None) -> Answer:
        """What `report[i]` of an engine's step is for this record; with *top*, for the k best."""
        try:
            taken = self._admitted(record)
            self._pass_time(taken.time)
            match taken:
                case Publish(event):
                    return self._publish(event, top)
                case Update(event):
                    return self._update(lasting(event), top)
                case Withdraw(id):
                    if id not in self.live:
                        raise UnknownIdError(f"no live event has the id {id!r}", id=id)
                    return EventChanges(left=sorted(self._wanting(self._live.pop(id), top)))
                case Subscribe(subscription):
                    return self._subscribe(subscription)
                case Unsubscribe(id):
                    self._standing(id)
                    del self._subscriptions[id]
                    return Changes()
                case Move(id, at):
                    return self._replace(id, replace(self._standing(id), at=at))
        except StentorError as error:
            return error

    def top(self, event: Event, k: int, scoring: Scoring = Scoring.SUM) -> list[tuple[str, float]]:
        """The k subscriptions for which *event* scores best, best first, equal ones by id."""
        found = {
            id: self._evaluated(one, event, scoring)
            for id, one in self._holding().items()
            if event.among.items() <= one.labels.items()
        }
        scores = [(id, evaluation.score) for id, evaluation in found.items() if evaluation.truth]
        return sorted(scores, key=lambda one: (-one[1], one[0]))[:k]

    def __contains__(self, id: str) -> bool:
        return id in self._holding()

    def __len__(self) -> int:
        return len(self._holding())

    def __iter__(self) -> Iterator[str]:
        """The ids of all subscriptions that stand and are not over, sorted."""
        return iter(sorted(self._holding()))

    def __getitem__(self, id: str) -> Subscription:
        """The subscription *id* as it stands."""
        return self._standing(id)

    @property
    def live(self) -> dict[str, Event]:
        """The events that are live now, by id."""
        return {id: event for id, event in self._live.items() if not self._is_over(event)}

    # Inside.

    def _admitted(self, record: Record | Mapping[str, Any]) -> Record:
        """*record* of the model; a StentorError where it is no record, and then nothing happens."""
        if isinstance(record, Mapping):
            return record_from_dict(record, self.schema)
        if isinstance(record, Publish | Update):
            learn_event(record.event, self.schema)
        if isinstance(record, Subscribe):
            one = record.subscription
            check_and_learn(one.expression, self.schema, where=f"subscription {one.id!r}")
        return record

    def _pass_time(self, time: int | None) -> None:
        """Logical time is the largest seen so far."""
        if time is None and self._clock is not None:
            time = round(self._clock() * 1_000_000)
        if time is not None:
            self.time = max(self.time, time)

    def _publish(self, event: Event, top: int | None) -> list[str]:
        if self._is_over(event):
            raise AlreadyOverError(f"the event {event.id!r} is over", field="until")
        if event.id in self.live:
            raise DuplicateEventError(f"the event {event.id!r} is live", field="id")
        if event.until is not None:
            self._live[event.id] = event
        return self._wanting(event, top)

    def _update(self, event: Event, top: int | None) -> EventChanges:
        if self._is_over(event):
            raise AlreadyOverError(f"the event {event.id!r} is over", field="until")
        before = self.live.get(event.id)
        had = set() if before is None else set(self._wanting(before, top))
        have = set(self._wanting(event, top))
        self._live[event.id] = event
        return EventChanges(sorted(have - had), sorted(had - have), sorted(had & have))

    def _wanting(self, event: Event, top: int | None) -> list[str]:
        """The ids of those who want *event*, sorted; with *top*, of the k best, best first."""
        if top is not None:
            return [id for id, _ in self.top(event, top)]
        return sorted(id for id, one in self._holding().items() if self._wants(one, event))

    def _subscribe(self, subscription: Subscription) -> Changes:
        if self._is_over(subscription):
            raise AlreadyOverError(f"the subscription {subscription.id!r} is over", field="until")
        return self._replace(subscription.id, subscription)

    def _replace(self, id: str, after: Subscription) -> Changes:
        """Let *after* stand for *id*; what that changes among the live events."""
        before = self._holding().get(id)
        wanted = {one for one, event in self.live.items() if before and self._wants(before, event)}
        wants = {one for one, event in self.live.items() if self._wants(after, event)}
        self._subscriptions[id] = after
        return Changes(added=sorted(wants - wanted), removed=sorted(wanted - wants))

    def _wants(self, subscription: Subscription, event: Event) -> bool:
        if not event.among.items() <= subscription.labels.items():
            return False
        return self._evaluated(subscription, event).truth is True

    def _evaluated(
        self, subscription: Subscription, event: Event, scoring: Scoring = Scoring.SUM
    ) -> Evaluation:
        return evaluate(
            subscription.expression,
            event,
            here=subscription.at,
            plane=self.schema.plane,
            scoring=scoring,
        )

    def _holding(self) -> dict[str, Subscription]:
        """The subscriptions that are not over, by id."""
        return {id: one for id, one in self._subscriptions.items() if not self._is_over(one)}

    def _standing(self, id: str) -> Subscription:
        if id not in self:
            raise UnknownIdError(f"no subscription has the id {id!r}", id=id)
        return self._subscriptions[id]

    def _is_over(self, one: Subscription | Event) -> bool:
        return self.time >= (NEVER if one.until is None else one.until)
