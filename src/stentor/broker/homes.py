"""To which broker of an overlay each subscription and each event belongs."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from stentor.broker.live_events import REMEMBERED, ExpiringValues
from stentor.errors import DuplicateEventError, SettingsError, UnknownIdError
from stentor.model import Event
from stentor.model.record import Move, Publish, Record, Subscribe, Unsubscribe, Update, Withdraw


class Homes:
    """No broker knows all ids, and asking everywhere would be flooding: so the overlay does.

    Between processes clients keep them apart.
    """

    def __init__(self) -> None:
        self.subscriptions: ExpiringValues[str] = ExpiringValues()
        self.events: ExpiringValues[str | None] = ExpiringValues()  # None: not known
        self._withdrawn: dict[str, str] = {}  # events that were, the latest of them

    def check(self, broker: str, record: Record, time: int) -> None:
        """Refuse a client's *record* to *broker* where its id belongs elsewhere, or is taken.

        What is over at *time* already the broker refuses for that.
        """
        match record:
            case Publish(event) | Update(event) if event.until is not None and event.until <= time:
                return
            case Publish(event) if event.id in self.events:
                raise DuplicateEventError(
                    f"the event {event.id!r} is live in this overlay; update it, or publish "
                    "another one under another id",
                    field="id",
                )
            case Publish(event) | Update(event):
                self._check_event(broker, event.id)
            case Withdraw(id):
                if id not in self.events:
                    raise UnknownIdError(f"no live event has the id {id!r}", id=id)
                self._check_event(broker, id)
            case Subscribe(subscription):
                home = self._home(subscription.id, broker)
                if home != broker:
                    raise SettingsError(
                        f"{subscription.id!r} stands at {home!r}; unsubscribe there before it "
                        "comes here"
                    )
            case Unsubscribe(id) | Move(id):
                if self._home(id, broker) != broker:
                    raise UnknownIdError(f"no subscription of {broker!r} has the id {id!r}", id=id)

    def _home(self, id: str, default: str) -> str:
        return self.subscriptions.get(id, default)

    def _check_event(self, broker: str, id: str) -> None:
        home = self.events[id] if id in self.events else self._withdrawn.get(id)
        if home not in (None, broker):
            raise SettingsError(
                f"the event {id!r} came to {home!r}: that is where it is updated, withdrawn, and "
                "published again"
            )

    def remember(self, broker: str, record: Record) -> None:
        """Take note of a *record* that *broker* has accepted."""
        match record:
            case Publish(event) if event.until is not None:
                self.events.keep(event.id, broker, event.until)
            case Update(event):
                self.events.keep(event.id, broker, event.until)
            case Withdraw(id):
                self._withdrawn[id] = broker
                self.events.drop(id)
                if len(self._withdrawn) > REMEMBERED:
                    del self._withdrawn[next(iter(self._withdrawn))]
            case Subscribe(subscription):
                self.subscriptions.keep(subscription.id, broker, subscription.until)
            case Unsubscribe(id) if id in self.subscriptions:
                self.subscriptions.drop(id)

    def take_over(self, broker: str, events: Iterable[Event], own: Collection[str]) -> None:
        """Know the live *events* of *broker*, perhaps opened from its store; *own* came there."""
        for event in events:
            known = self.events.get(event.id, None)
            self.events.keep(event.id, broker if event.id in own else known, event.until)
        for id in own:
            if id not in self.events:
                self._withdrawn[id] = broker

    def over(self, time: int) -> None:
        """Let ids of what is over at *time* be free again."""
        self.events.over(time)
        self.subscriptions.over(time)

    def forget_subscriptions(self, broker: str) -> None:
        """Know no subscription of *broker* any more."""
        for id in [id for id in self.subscriptions if self.subscriptions[id] == broker]:
            self.subscriptions.drop(id)
