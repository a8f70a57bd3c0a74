"""Records as users give them → what a step takes: encoded, errors beside them by record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from stentor.encoding.events import Arrival, encode_events
from stentor.encoding.subscriptions import Standing, encode_subscriptions
from stentor.engine.core import Arriving
from stentor.engine.plan import Operation, Step
from stentor.engine.report import Batch
from stentor.errors import RecordError, StentorError
from stentor.language.admit import Examined, examine
from stentor.language.printer import to_text
from stentor.model import Schema, Subscription
from stentor.model.record import Move, Publish, Record, Subscribe, Unsubscribe
from stentor.model.time import NEVER
from stentor.wire.events import learn_event
from stentor.wire.formats import ReadSettings, record_from_object
from stentor.wire.limits import RecordLimits


class Prepared:
    """Records made ready for a step; what could not be made ready is an error of the `batch`.

    Encoding happens before the walk, so a record that is refused here never takes part in the
    order.
    """

    def __init__(
        self, schema: Schema, limits: RecordLimits, clock: Callable[[], int | None]
    ) -> None:
        self._schema = schema
        self._limits = limits
        self._clock = clock
        self._steps: list[Step] = []
        self._standing: list[Standing] = []
        self._texts: list[str] = []
        self._events: list[Arrival] = []
        self._count = 0
        self._positions: list[int] = []  # of each step among the records
        self._errors: dict[int, StentorError] = {}

    def add_all(self, records: Iterable[Record | Mapping[str, Any]]) -> None:
        """Make *records* ready, one after another."""
        for record in records:
            try:
                self.add(record)
            except StentorError as error:
                self._errors[self._count - 1] = error

    def add(self, record: Record | Mapping[str, Any], examined: Examined | None = None) -> None:
        """Make one record ready, or raise what is wrong with it.

        *examined* is what is known already of a subscription's expression.
        """
        self._count += 1
        if isinstance(record, Mapping):
            record = record_from_object(record, self._schema, ReadSettings(limits=self._limits))
        elif isinstance(record, Publish):
            learn_event(record.event, self._schema)
        elif not isinstance(record, Record):
            raise RecordError(f"a record is a dict or a Record, got {type(record).__name__}")
        time = self._clock() if record.time is None else record.time
        self._steps.append(self._step(record, time, examined))
        self._positions.append(self._count - 1)

    def batch(self) -> Batch:
        """The records as a report counts them."""
        return Batch(
            self._count,
            [step.id for step in self._steps],
            np.array(self._positions, np.int64),
            self._errors,
        )

    def _step(self, record: Record, time: int | None, examined: Examined | None) -> Step:
        match record:
            case Publish(event):
                self._events.append(Arrival(event))
                until = NEVER if event.until is None else event.until
                place = len(self._events) - 1
                return Step(Operation.PUBLISH, event.id, time, place, until)
            case Subscribe(subscription):
                if examined is None:
                    where, limits = f"subscription {subscription.id!r}", self._limits.expression
                    examined = examine(
                        subscription.expression, self._schema, where=where, limits=limits
                    )
                return self._subscribe(subscription, examined, time)
            case Unsubscribe(id):
                return Step(Operation.UNSUBSCRIBE, id, time)
            case Move(id, at):
                return Step(Operation.MOVE, id, time, at=at)

    def _subscribe(self, subscription: Subscription, examined: Examined, time: int | None) -> Step:
        standing = Standing(examined.form, subscription.at, subscription.until).checked()
        self._schema.learn(examined.uses)
        self._standing.append(standing)
        self._texts.append(to_text(examined.tree))
        until = NEVER if subscription.until is None else subscription.until
        place = len(self._standing) - 1
        return Step(Operation.SUBSCRIBE, subscription.id, time, place, until)

    def arriving(self) -> Arriving:
        """What a step takes."""
        arriving = Arriving(self._steps, texts=self._texts)
        if self._standing:
            arriving.columns = encode_subscriptions(self._standing, self._schema)
        if self._events:
            arriving.events = encode_events(self._events, self._schema)
        return arriving
