"""A tree of brokers in one process, and what each of its links carried."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from stentor.broker.broker import LATE, Broker
from stentor.broker.held import Held
from stentor.broker.keys import CLIENT
from stentor.broker.messages import Delivery, Message, Sent, kind_of
from stentor.broker.store import Store
from stentor.engine.report import Answer
from stentor.errors import DuplicateEventError, SettingsError, StentorError, UnknownIdError
from stentor.index.mics.space import Space
from stentor.model import Changes, Schema
from stentor.model.record import Move, Publish, Record, Subscribe, Unsubscribe
from stentor.model.time import BEGINNING
from stentor.wire.records import record_from_dict


class Carried(NamedTuple):
    """A message kind on one direction of a link."""

    sender: str
    receiver: str
    kind: str


#: Of the links that have something to carry, the place of the one that does so next.
Choose = Callable[[int], int]


class Overlay:
    """Brokers that are joined to a tree, or to several, by *links*.

    >>> overlay = Overlay(["west", "east"], [("west", "east")])
    >>> overlay.feed("east", {"op": "publish", "id": "e1", "price": 280, "until": 60, "time": 0})
    []
    >>> overlay.feed("west", {"op": "subscribe", "id": "ana", "expression": "price < 300"})
    Changes(added=['e1'], removed=[])
    >>> overlay.feed("east", {"op": "publish", "id": "e2", "price": 250})
    ['ana']

    Each *policy* is one for all or one for each broker; `mics` needs a *space*. Messages on a link
    stay in order; of the links *choose* picks the next one. Every record has the time of the
    latest, wherever it came. *stores*, or their files, by broker let it go on where another overlay
    stopped.
    """

    def __init__(
        self,
        brokers: Iterable[str],
        links: Iterable[tuple[str, str]],
        *,
        policy: str | Mapping[str, str] = "covering",
        index: str = "auto",
        schema: Schema | None = None,
        space: Space | None = None,
        stores: Mapping[str, Store | str | Path] | None = None,
        choose: Choose = lambda count: 0,
    ) -> None:
        self.schema = Schema() if schema is None else schema
        self.time = BEGINNING
        self.carried: Counter[Carried] = Counter()
        self.unwanted = 0  # events that came over a link for nothing
        self.space = space
        self._policy, self._index, self._choose = policy, index, choose
        self._stores = {
            name: store if isinstance(store, Store) else Store(store)
            for name, store in (stores or {}).items()
        }
        self.brokers = {name: self._broker(name) for name in brokers}
        if strangers := self._stores.keys() - self.brokers.keys():
            raise SettingsError(
                f"there are stores for {sorted(strangers)}, who are no brokers here"
            )
        self.links: dict[tuple[str, str], bool] = {}  # whether each is up
        self._waiting: dict[tuple[str, str], deque[Message]] = {}
        self._deliveries: list[Delivery] = []
        self._live: Held[None] = Held()  # ids of events
        self._homes: Held[str] = Held()  # the broker at which each subscription stands
        for name, broker in self.brokers.items():
            self._take_over(name, broker)
            self._deliveries += broker.undelivered()
        pairs = list(links)
        self._part({*pairs, *(pair[::-1] for pair in pairs)})
        for one, other in pairs:
            self._join(one, other)

    # Records.

    def feed(self, broker: str, record: Record | Mapping[str, Any]) -> Answer:
        """The answer to a client's *record*, or to one as a dict: what one engine would answer.

        For an event the ids of those who got it, sorted; for a change of a subscription `Changes`;
        for a record that is refused its error, as a report of an engine has it. Links carry what
        waits before it comes. What others are given is left for `deliveries`.
        """
        if not isinstance(record, Publish | Subscribe | Unsubscribe | Move):
            record = record_from_dict(record, self.schema)
        self._carry_all()
        others, self._deliveries = self._deliveries, []
        answer = self.send(broker, [record])[0]
        self._carry_all()
        own = [one for one in self._deliveries if _is_answer(one, record)]
        self._deliveries = others + [one for one in self._deliveries if not _is_answer(one, record)]
        if own and not self._deliveries:
            self._acknowledge()
        match record:
            case Publish() if isinstance(answer, list):
                return sorted(one.subscription for one in own)
            case Subscribe() | Move() if isinstance(answer, Changes):
                return Changes(
                    sorted(one.event for one in own if one.added),
                    sorted(one.event for one in own if not one.added),
                )
        return answer

    def send(self, broker: str, records: Sequence[Record]) -> list[Answer]:
        """What *broker* itself answers to its clients' *records*; the rest comes with `run`."""
        answers: list[Answer] = []
        admitted: list[Record] = []
        places: list[int] = []
        for record in records:
            try:
                admitted.append(self._admitted(broker, record))
            except StentorError as error:
                answers.append(error)
            else:
                places.append(len(answers))
                answers.append([])
        outcome = self._broker_of(broker).receive(CLIENT, admitted)
        for place, record, answer in zip(places, admitted, outcome.answers, strict=True):
            answers[place] = answer
            if not isinstance(answer, StentorError):
                self._remember(broker, record)
        self._deliveries += outcome.deliveries
        self._dispatch(broker, outcome.sent)
        return answers

    def run(self) -> list[Delivery]:
        """Carry messages until none waits; all deliveries since the last time."""
        self._carry_all()
        return self.deliveries()

    def _carry_all(self) -> None:
        while self.carry():
            pass

    def carry(self, most: int | None = None) -> bool:
        """Hand over what waits on one link, *most* messages of it; whether there was any."""
        waiting = [pair for pair, messages in self._waiting.items() if messages]
        if not waiting:
            return False
        sender, receiver = waiting[self._choose(len(waiting))]
        messages = self._waiting[sender, receiver]
        count = len(messages) if most is None else min(most, len(messages))
        taken = [messages.popleft() for _ in range(count)]
        outcome = self.brokers[receiver].receive(sender, taken)
        for answer in outcome.answers:
            if isinstance(answer, StentorError) and not isinstance(answer, LATE):
                raise answer  # brokers hand on only what they have accepted
        self.unwanted += outcome.unwanted
        self._deliveries += outcome.deliveries
        self._dispatch(receiver, outcome.sent)
        return True

    def deliveries(self) -> list[Delivery]:
        """What clients were given since the last time, whatever is still on its way."""
        deliveries, self._deliveries = self._deliveries, []
        if deliveries:
            self._acknowledge()
        return deliveries

    def _acknowledge(self) -> None:
        for broker in self.brokers.values():
            broker.delivered()

    def pass_time(self, time: int) -> None:
        """Let it be *time* everywhere; what is over is withdrawn."""
        self._pass_time(time)
        for name, broker in self.brokers.items():
            self._dispatch(name, broker.pass_time(self.time))

    # Links and brokers.

    def cut(self, one: str, other: str) -> None:
        """Take the link between *one* and *other* down; what it was carrying is lost."""
        pair = self._pair(one, other)
        self.links[pair] = False
        for sender, receiver in (pair, pair[::-1]):
            self._waiting[sender, receiver].clear()
            self.brokers[sender].disconnect(receiver)

    def heal(self, one: str, other: str) -> None:
        """Bring the link up again: both sides say what they want, and send what the other lacks."""
        pair = self._pair(one, other)
        if self.links[pair]:
            return
        self.links[pair] = True
        for sender, receiver in (pair, pair[::-1]):
            self._dispatch(sender, self.brokers[sender].connect(receiver))

    def restart(self, name: str) -> None:
        """Put a new broker, opened from its store, in the place of *name*, which is forgotten."""
        self._broker_of(name)
        if name not in self._stores:
            raise SettingsError(f"{name!r} has no store to restart from; give `stores`")
        up = [pair for pair, is_up in self.links.items() if is_up and name in pair]
        for pair in up:
            self.cut(*pair)
        self.brokers[name] = self._broker(name)
        for pair in up:
            self.heal(*pair)

    def reach(self, broker: str) -> set[str]:
        """The brokers that messages of *broker* can come to over links that are up."""
        reached, fresh = {broker}, [broker]
        while fresh:
            here = fresh.pop()
            for other in self.brokers[here].links:
                is_up = self.links.get((here, other)) or self.links.get((other, here))
                if is_up and other not in reached:
                    reached.add(other)
                    fresh.append(other)
        return reached

    def check(self) -> None:
        """Assert what must be true of each broker, and that neighbours hold what they were told.

        Links must be idle: call it after `run`.
        """
        for broker in self.brokers.values():
            broker.check()
        for pair, is_up in self.links.items():
            for sender, receiver in (pair, pair[::-1]) if is_up else ():
                assert not self._waiting[sender, receiver], "links must be idle"
                told = self.brokers[sender].links[receiver].policy.told
                assert told == self.brokers[receiver].wants(sender), f"{sender} → {receiver}"

    # Inside.

    def _broker(self, name: str) -> Broker:
        policy = self._policy if isinstance(self._policy, str) else self._policy.get(name)
        if policy is None:
            raise SettingsError(f"the broker {name!r} has no policy; give one for each, or for all")
        store = self._stores.get(name)
        return Broker(
            name,
            policy=policy,
            index=self._index,
            schema=self.schema,
            space=self.space,
            store=store,
        )

    def _take_over(self, name: str, broker: Broker) -> None:
        """Know the time and the ids of *broker*, which may have been opened from its store."""
        self._pass_time(broker.time)
        subscriptions, events = broker.standing()
        for subscription in subscriptions:
            self._homes.keep(subscription.id, name, subscription.until)
        for event in events:
            self._live.keep(event.id, None, event.until)

    def _part(self, joined: set[tuple[str, str]]) -> None:
        """Let brokers forget neighbours that they had before, and that are not *joined* now."""
        for name, broker in self.brokers.items():
            for neighbour in [one for one in broker.links if (name, one) not in joined]:
                broker.remove_neighbour(neighbour)

    def _join(self, one: str, other: str) -> None:
        for name in (one, other):
            self._broker_of(name)
        if one == other:
            raise SettingsError(f"a link joins {one!r} to itself; expected two brokers")
        if other in self.reach(one):
            raise SettingsError(
                f"a link from {one!r} to {other!r} closes a circle: expected a tree"
            )
        self.links[one, other] = False
        for sender, receiver in ((one, other), (other, one)):
            self._waiting[sender, receiver] = deque()
            if receiver not in self.brokers[sender].links:
                self.brokers[sender].add_neighbour(receiver)
        self.heal(one, other)

    def _pair(self, one: str, other: str) -> tuple[str, str]:
        for pair in ((one, other), (other, one)):
            if pair in self.links:
                return pair
        raise SettingsError(f"no link joins {one!r} and {other!r}")

    def _broker_of(self, name: str) -> Broker:
        if name not in self.brokers:
            raise SettingsError(f"no broker {name!r}; there are {', '.join(self.brokers)}")
        return self.brokers[name]

    def _dispatch(self, sender: str, sent: Iterable[Sent]) -> None:
        for receiver, message in sent:
            self._waiting[sender, receiver].append(message)
            self.carried[Carried(sender, receiver, kind_of(message))] += 1

    def _admitted(self, broker: str, record: Record) -> Record:
        """*record* at the overlay's time; refused where its id belongs elsewhere.

        No broker knows all ids, and asking everywhere would be flooding: between processes they are
        the clients' to keep apart.
        """
        if record.time is not None:
            self._pass_time(record.time)
        time = None if self.time == BEGINNING else self.time
        timed = record if record.time == time else replace(record, time=time)
        match timed:
            case Publish(event):
                if event.id in self._live:
                    raise DuplicateEventError(
                        f"the event {event.id!r} is live in this overlay; publish a change under "
                        "another id",
                        field="id",
                    )
            case Subscribe(subscription):
                self._check_home(broker, subscription.id)
            case Unsubscribe(id) | Move(id):
                if id in self._homes and self._homes[id] != broker:
                    raise UnknownIdError(f"no subscription of {broker!r} has the id {id!r}", id=id)
        return timed

    def _check_home(self, broker: str, id: str) -> None:
        if id in self._homes and self._homes[id] != broker:
            raise SettingsError(
                f"{id!r} stands at {self._homes[id]!r}; unsubscribe there before it comes here"
            )

    def _remember(self, broker: str, record: Record) -> None:
        match record:
            case Publish(event) if event.until is not None:
                self._live.keep(event.id, None, event.until)
            case Subscribe(subscription):
                self._homes.keep(subscription.id, broker, subscription.until)
            case Unsubscribe(id) if id in self._homes:
                self._homes.drop(id)

    def _pass_time(self, time: int) -> None:
        """Let it be *time*, if it is not later already; ids of what is over are free again."""
        self.time = max(self.time, time)
        self._live.over(self.time)
        self._homes.over(self.time)


def _is_answer(delivery: Delivery, record: Record) -> bool:
    """Whether *delivery*, which *record* led to, is a part of its answer."""
    match record:
        case Publish(event):
            return delivery.event == event.id
        case Subscribe(subscription):
            return delivery.subscription == subscription.id
    return delivery.subscription == record.id
