"""A tree of brokers in one process, and what each of its links carried."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from stentor.broker.broker import LATE, Broker
from stentor.broker.homes import Homes
from stentor.broker.interest import CLIENT, check_broker_name, check_link, is_among
from stentor.broker.learning import joined_schema
from stentor.broker.messages import (
    BrokerOutput,
    Delivery,
    Message,
    Outgoing,
    OwedDelivery,
    about,
    check_time,
    kind_of,
    record_error,
)
from stentor.broker.store import Store, check_settings
from stentor.engine.batch import listed
from stentor.engine.clock import Clock, MostAhead
from stentor.engine.report import Answer
from stentor.errors import SettingsError, StentorError
from stentor.index.mics.space import Space
from stentor.language.tree import uses
from stentor.model import Changes, EventChanges, Schema
from stentor.model.record import Move, Publish, Record, Subscribe, Update, Withdraw, lasting
from stentor.model.values.string import describe
from stentor.model.values.time import BEGINNING
from stentor.wire.records import record_from_dict


class LinkCount(NamedTuple):
    """A message kind on one direction of a link."""

    sender: str
    receiver: str
    kind: str


#: Of the links that have something to transmit, the position of the one that does so next.
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
    latest, wherever it came; none may be further ahead of it, or of the *clock*, than *most_ahead*.
    *stores*, or their files, by broker let it go on where another overlay stopped, over the same
    links or others.

    What clients are given is kept until they are known to have it: whoever calls `feed`, `send`,
    `run` or `deliveries` again, or `acknowledge`, says that they have what was handed out before.
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
        clock: Callable[[], float] | None = None,
        most_ahead: MostAhead = "auto",
        choose: Choose = lambda count: 0,
    ) -> None:
        check_settings(schema, space)
        if not (stores is None or isinstance(stores, Mapping)):
            raise SettingsError(f"stores are a dict by broker, got {describe(stores)}")
        if not isinstance(policy, str | Mapping):
            raise SettingsError(f"a policy is a text, or a dict by broker, got {describe(policy)}")
        self.time = BEGINNING
        self.carried: Counter[LinkCount] = Counter()
        self.unwanted = 0  # events that came over a link for nothing
        self.space = space
        self._policy, self._index, self._choose = policy, index, choose
        self._clock = Clock(clock, most_ahead)
        self._stores: dict[str, Store] = {}
        self.brokers: dict[str, Broker] = {}
        self.links: dict[tuple[str, str], bool] = {}  # whether each is up
        self._waiting: dict[tuple[str, str], deque[Message]] = {}
        self._deliveries: list[OwedDelivery] = []  # that nobody was given yet
        self._given: list[OwedDelivery] = []  # that nobody has acknowledged yet
        self._homes = Homes()
        self._stayed: list[str] = []  # of the last update
        joined = [check_link(link) for link in listed(links, "links are pairs in a list")]
        names = brokers.keys() if isinstance(brokers, Mapping) else brokers
        known = [*listed(names, "brokers are names in a list")]
        for name in known:
            check_broker_name(name)
        if strangers := (stores or {}).keys() - set(known):  # before files are made
            raise SettingsError(
                f"there are stores for {sorted(strangers, key=str)}, who are no brokers here"
            )
        opened: list[Store] = []
        try:
            for name, given in (stores or {}).items():
                self._stores[name] = given if isinstance(given, Store) else Store(given)
                opened += [] if isinstance(given, Store) else [self._stores[name]]
            self.schema = joined_schema(
                schema, {name: store.schema() for name, store in self._stores.items()}
            )
            self._begin(known, joined)
        except BaseException:
            for store in opened:
                store.close()
            raise

    def _begin(self, brokers: Sequence[str], links: Sequence[tuple[str, str]]) -> None:
        """Let *brokers* go on, joined by *links*."""
        for name in brokers:
            self.brokers[name] = self._broker(name)
            self._take_over(name)
            self.brokers[name].strand()
        self._part({*links, *(pair[::-1] for pair in links)})
        for one, other in links:
            self._join(one, other)

    # Records.

    def feed(self, broker: str, record: Record | Mapping[str, Any]) -> Answer:
        """The answer to a client's *record*, or to one as a dict: what one engine would answer.

        For an event the ids of those who got it, sorted; for an update or a withdrawal of one
        `EventChanges`, for a change of a subscription `Changes`; for a record that is refused its
        error, as a report of an engine has it. Links carry what waits before it comes. What others
        are given is left for `deliveries`.
        """
        if isinstance(record, Mapping):
            record = record_from_dict(record, self.schema)
        self._transmit_all()
        before, self._stayed = len(self._deliveries), []
        answer = self.send(broker, [record])[0]
        self._transmit_all()
        match record:
            case Publish() if isinstance(answer, list):
                return sorted(one.subscription for one in self._take_answer(record, before))
            case Update() | Withdraw() if isinstance(answer, EventChanges):
                own = self._take_answer(record, before)
                return EventChanges(
                    sorted(one.subscription for one in own if one.added),
                    sorted(one.subscription for one in own if not one.added),
                    sorted(self._stayed),
                )
            case Subscribe() | Move() if isinstance(answer, Changes):
                own = self._take_answer(record, before)
                return Changes(
                    sorted(one.event for one in own if one.added),
                    sorted(one.event for one in own if not one.added),
                )
        return answer

    def send(self, broker: str, records: Sequence[Record]) -> list[Answer]:
        """What *broker* itself answers to its clients' *records*; the rest comes with `run`."""
        self.acknowledge()
        answers: list[Answer] = []
        admitted: dict[int, Record] = {}  # by their positions in *answers*
        for record in listed(records, "records are in a list"):
            try:
                admitted[len(answers)] = self._admitted(broker, record)
            except StentorError as error:
                answers.append(error)
                continue
            answers.append([])
            if self._teaches(record):  # those after it are checked against what it taught
                self._hand_in(broker, admitted, answers)
                admitted = {}
        self._hand_in(broker, admitted, answers)
        return answers

    def _hand_in(self, broker: str, admitted: dict[int, Record], answers: list[Answer]) -> None:
        with self._taken_from(broker) as to:
            output = to.receive(CLIENT, [*admitted.values()])
            for (position, record), answer in zip(admitted.items(), output.answers, strict=True):
                answers[position] = answer
                if not isinstance(answer, StentorError):
                    self._homes.remember(broker, record)
            self._take(broker, output)

    def _teaches(self, record: Record) -> bool:
        """Whether an attribute of *record* has no type yet."""
        names: Iterable[str] = ()
        match record:
            case Publish(event) | Update(event):
                names = event.attributes
            case Subscribe(subscription):
                names = [use.name for use in uses(subscription.expression, "")]
        return any(name not in self.schema or self.schema.kind(name) is None for name in names)

    def run(self) -> list[Delivery]:
        """Transmit messages until none waits; all deliveries since the last time."""
        self._transmit_all()
        return self.deliveries()

    def _transmit_all(self) -> None:
        while self.transmit():
            pass

    def transmit(self, most: int | None = None) -> bool:
        """Hand over what waits on one link, *most* messages of it; whether there was any."""
        waiting = [pair for pair, messages in self._waiting.items() if messages]
        if not waiting:
            return any(self._forward_stranded(name) for name in self.brokers)
        sender, receiver = waiting[self._choose(len(waiting))]
        messages = self._waiting[sender, receiver]
        taken = [*islice(messages, most)]
        with self._taken_from(receiver) as to:
            output = to.receive(sender, taken)  # first it is kept, then it waits no longer
            for _ in taken:
                messages.popleft()
            self.unwanted += output.unwanted
            self._take(receiver, output)
        if forwarded := sum(isinstance(one, Publish) and one.event.until is None for one in taken):
            self.brokers[sender].forwarded(receiver, forwarded)
        for answer in output.answers:
            if isinstance(answer, StentorError) and not isinstance(answer, LATE):
                raise answer  # brokers forward only what they have accepted
        return True

    def _forward_stranded(self, name: str) -> bool:
        """Let *name* forward what was on its way over links of an earlier overlay, if anything."""
        with self._taken_from(name) as broker:
            output = broker.forward_stranded()
            self._take(name, output)
        return bool(output.answers)

    @contextmanager
    def _taken_from(self, name: str) -> Iterator[Broker]:
        """The broker *name*, while its output is taken.

        Where that is interrupted it is to be restarted: what it has sent may wait nowhere.
        """
        broker = self._broker_of(name)
        try:
            yield broker
        except BaseException as error:
            broker.fail(error)
            raise

    def _take(self, name: str, output: BrokerOutput) -> None:
        numbered = zip(output.numbers, output.deliveries, strict=True)
        self._deliveries += [OwedDelivery(name, *one) for one in numbered]
        self._stayed += [one.subscription for one in output.stayed]
        self._dispatch(name, output.sent)

    def deliveries(self) -> list[Delivery]:
        """What clients are given since the last time, whatever is still on its way."""
        self.acknowledge()
        self._given, self._deliveries = self._deliveries, []
        return [one.delivery for one in self._given]

    def acknowledge(self) -> None:
        """Take note that clients have all that was handed out; it does not come again."""
        for name in {one.broker: None for one in self._given}:
            self.brokers[name].acknowledge(
                [one.number for one in self._given if one.broker == name]
            )
        self._given = []

    def _take_answer(self, record: Record, before: int) -> list[Delivery]:
        """The answer to *record*, which came when there were so many deliveries.

        What it says of a subscription and an event replaces what was to be said before.
        """
        own = [one.delivery for one in self._deliveries[before:] if one.is_answer_to(record)]
        said = {(one.subscription, one.event) for one in own}
        owed, self._deliveries = self._deliveries, []
        for one in owed:
            is_said = (one.delivery.subscription, one.delivery.event) in said
            (self._given if is_said else self._deliveries).append(one)
        return own

    def pass_time(self, time: int) -> None:
        """Let it be *time* everywhere; what is over is withdrawn."""
        check_time(time, optional=False)
        self._pass_time(time)
        for name in self.brokers:
            self._catch_up(name)

    def _catch_up(self, name: str) -> None:
        """Let the broker *name* know what time it is."""
        with self._taken_from(name) as broker:
            if broker.time < self.time:
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
        self._connect(pair)

    def _connect(self, pair: tuple[str, str]) -> None:
        """Let both sides of a link greet; first both know the time, lest they send what is over."""
        for name in pair:
            self._catch_up(name)
        for sender, receiver in (pair, pair[::-1]):
            self._waiting[sender, receiver].clear()  # it is repeated, as far as it counts
            with self._taken_from(sender) as broker:
                self._dispatch(sender, broker.connect(receiver))

    def restart(self, name: str) -> None:
        """Replace the broker *name*, which is forgotten, by one opened from its store.

        Nothing gets lost by it: what links were carrying is repeated.
        """
        self._broker_of(name)
        if name not in self._stores:
            raise SettingsError(f"{name!r} has no store to restart from; give `stores`")
        self._stores[name].reopen()
        self.brokers[name] = self._broker(name)
        self._homes.forget_subscriptions(name)
        self._deliveries = [one for one in self._deliveries if one.broker != name]
        self._take_over(name)
        for pair in [pair for pair, is_up in self.links.items() if is_up and name in pair]:
            self._connect(pair)

    def close(self) -> None:
        """Let go of the stores; what was not acknowledged comes again when they are opened."""
        for broker in self.brokers.values():
            broker.close()

    def reach(self, broker: str) -> set[str]:
        """The brokers that messages of *broker* can come to over links that are up."""
        self._broker_of(broker)
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
        """Assert what must be true of each broker, and that neighbours have what was announced.

        Links must be idle: call it after `run`.
        """
        for broker in self.brokers.values():
            broker.check()
        for pair, is_up in self.links.items():
            for sender, receiver in (pair, pair[::-1]) if is_up else ():
                assert not self._waiting[sender, receiver], "links must be idle"
                announced = self.brokers[sender].links[receiver].policy.announced
                assert announced == self.brokers[receiver].interests_of(sender), (
                    f"{sender} → {receiver}"
                )

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
            share=True,
            space=self.space,
            store=store,
            most_ahead=None,  # the overlay looks at times: one broker's may lag behind
        )

    def _take_over(self, name: str) -> None:
        """Know the time, the ids and the deliveries of *name*, perhaps opened from its store."""
        broker = self.brokers[name]
        given = {one.number for one in self._given if one.broker == name}
        self._deliveries += [
            OwedDelivery(name, number, delivery)
            for number, delivery in broker.undelivered().items()
            if number not in given
        ]
        self._pass_time(broker.time)
        subscriptions, events = broker.contents()
        for subscription in subscriptions:
            self._homes.subscriptions.keep(subscription.id, name, subscription.until)
        self._homes.take_over(name, events, broker.own_events())

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
            if all(is_among(name, self.brokers) for name in pair) and pair in self.links:
                return pair
        raise SettingsError(f"no link joins {describe(one)} and {describe(other)}")

    def _broker_of(self, name: str) -> Broker:
        if not is_among(name, self.brokers):
            raise SettingsError(f"no broker {describe(name)}; there are {', '.join(self.brokers)}")
        return self.brokers[name]

    def _dispatch(self, sender: str, sent: Iterable[Outgoing]) -> None:
        for receiver, message in sent:
            self._waiting[sender, receiver].append(message)
            self.carried[LinkCount(sender, receiver, kind_of(message))] += 1

    def _admitted(self, broker: str, record: Record) -> Record:
        """*record* at the overlay's time; refused where its id belongs elsewhere."""
        if mistake := record_error(CLIENT, record, self.schema, self.space):
            raise mistake  # before it moves the time
        if record.time is not None:
            if not self._clock.allows(record.time, self.time):
                raise self._clock.refusal(about(record), record.time, self.time)
            self._pass_time(record.time)
        time = None if self.time == BEGINNING else self.time
        timed = record if record.time == time else replace(record, time=time)
        if isinstance(timed, Update):
            timed = replace(timed, event=lasting(timed.event))
        self._homes.check(broker, timed, self.time)
        return timed

    def _pass_time(self, time: int) -> None:
        """Let it be *time*, if it is not later already; ids of what is over are free again."""
        self.time = max(self.time, time)
        self._homes.over(self.time)
