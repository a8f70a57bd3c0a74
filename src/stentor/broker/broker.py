"""One broker: message in, messages out.

    client ─┐                       ┌─▶ client: deliveries
            ├─▶ receive ─▶ tables ──┤
 neighbour ─┘                 │     └─▶ neighbour: events that it wants, each once
                              └─▶ a policy for each other link ─▶ what that neighbour is announced

One engine holds what the clients and what the neighbours want, so that an event is matched once.
Ranges that neighbours want are looked up beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from stentor.broker.announcements import Announcer, Link
from stentor.broker.interest import (
    CLIENT,
    AnyInterest,
    Interest,
    Names,
    RangeInterest,
    check_broker_name,
    is_among,
)
from stentor.broker.learning import Learning, joined_schema
from stentor.broker.messages import (
    AnnounceRanges,
    BrokerOutput,
    Delivery,
    Learned,
    LinkGreeting,
    Message,
    Outgoing,
    about,
    check_time,
    record_error,
)
from stentor.broker.policies import policy_of
from stentor.broker.store import NoStore, Store, check_settings
from stentor.broker.tables import Tables
from stentor.engine.batch import listed
from stentor.engine.clock import Clock, MostAhead
from stentor.engine.report import Answer
from stentor.errors import (
    AlreadyOverError,
    DuplicateEventError,
    SettingsError,
    StentorError,
    StoreError,
    UnknownIdError,
)
from stentor.index.mics.space import Space
from stentor.model import Changes, Event, Schema, Subscription
from stentor.model.record import Move, Publish, Record, Subscribe, Unsubscribe
from stentor.model.values.string import describe
from stentor.model.values.time import BEGINNING

#: These refuse a record, but not its time; between brokers they are no mistake.
LATE = (AlreadyOverError, DuplicateEventError, UnknownIdError)


class Broker:
    """A broker called *name*, with clients and neighbours.

    *policy* decides what its links are announced, *index* names the structure that matches, *space*
    is what the ranges on links are about, one for the whole overlay. Ids of subscriptions are the
    clients' own; ids of live events are unique in the whole overlay. With a *store* it goes on
    where the broker of that name has stopped. No time of a client's record may be further ahead of
    the broker's than *most_ahead*; with a *clock*, of the clock, nor may a neighbour's.
    What its schema learns travels to the neighbours, unless the brokers *share* one.

    Where a store fails, or a call is interrupted, it refuses everything until it is opened again.
    """

    def __init__(
        self,
        name: str,
        *,
        policy: str = "covering",
        index: str = "auto",
        schema: Schema | None = None,
        share: bool = False,
        space: Space | None = None,
        store: Store | None = None,
        clock: Callable[[], float] | None = None,
        most_ahead: MostAhead = "auto",
    ) -> None:
        check_broker_name(name)
        check_settings(schema, space, store)
        self.name, self.space = name, space
        self.time = BEGINNING
        self.links: dict[str, Link] = {}
        if not share or schema is None:
            schema = joined_schema(schema, {} if store is None else {name: store.schema()})
        self.schema = schema
        self._new_policy = policy_of(policy)
        self._new_policy(self.schema, space)  # what is wrong with it is said at once
        self._store = NoStore() if store is None else store
        self._failure = ""  # why it refuses everything
        self._clock, self._has_clock = Clock(clock, most_ahead), clock is not None
        names = Names()
        self._tables = Tables(name, index, self.schema, space, self.links, names, self._store)
        self._announcer = Announcer(self.links, names, self.schema, space)
        self._learning, self._share = Learning(name, self.schema), share
        self.conflicts = self._learning.conflicts
        if store is not None:
            with store.transaction():
                self._restore(store)
        if self._learning.news():  # greetings have all; from now on only what is new is sent
            self._store.keep_fact("schema", self.schema.to_dict())

    # Links.

    def add_neighbour(self, neighbour: str) -> None:
        """Know *neighbour*, over a link that is down. Cost: everything is put to its policy."""
        check_broker_name(neighbour)
        if neighbour in self.links:
            raise SettingsError(f"{self.name} has the neighbour {neighbour!r} already")
        with self._transaction():
            self.links[neighbour] = Link(self._new_policy(self.schema, self.space))
            self._announcer.introduce(neighbour, self._tables.interests_except(neighbour).values())
            self._store.keep_fact("neighbours", list(self.links))

    def remove_neighbour(self, neighbour: str) -> list[Outgoing]:
        """What to send when *neighbour* is none any more: what it wanted is withdrawn.

        What is not live and was on its way to it waits for `forward_stranded`.
        """
        interests, output = self._link(neighbour).interests, BrokerOutput()
        with self._transaction():
            exact = [name for name, one in interests.items() if isinstance(one, Interest)]
            self._tables.step(neighbour, [Unsubscribe(name, self.time) for name in exact])
            for name in [*interests]:
                self._remove_interest(neighbour, name, output)
            self._tables.strand_forwards(neighbour)
            del self.links[neighbour]
            self._learning.forget_conflicts(neighbour)
            self._store.keep_fact("neighbours", list(self.links))
        return output.sent

    def connect(self, neighbour: str) -> list[Outgoing]:
        """What to send when the link to *neighbour* has come up, before it is listened to.

        After the greeting, what is not live and was on its way, and is not known to have come.
        """
        link, live_ids = self._link(neighbour), frozenset(self._tables.events)
        learned = () if self._share else self._learning.all()
        greeting = Outgoing(neighbour, link.greeting(live_ids, self.time, self.space, learned))
        return [greeting, *(Outgoing(neighbour, Publish(one, self.time)) for one in link.forwards)]

    def disconnect(self, neighbour: str) -> None:
        """Send *neighbour* nothing until it is connected again; what it wants is not forgotten.

        What is not live and was on its way is: it is too late for it.
        """
        self._link(neighbour).up = False
        if self.links[neighbour].forwards:
            with self._transaction():
                self._tables.drop_forwards(neighbour)

    def forwarded(self, neighbour: str, count: int) -> None:
        """Take note that *neighbour* has kept *count* more of the events that are not live.

        Until then `connect` sends them again. Cost: no wait for the disk.
        """
        self._link(neighbour)
        with self._transaction(synced=False):
            self._tables.drop_forwards(neighbour, max(count, 0))

    # Messages.

    def receive(
        self, source: str, messages: Sequence[Message], *, is_checked: bool = False
    ) -> BrokerOutput:
        """What *messages* from *source*, a neighbour or CLIENT, lead to, in order.

        An event is answered with the clients here who want it, what is refused with its error; that
        changes nothing. All of it is kept when this returns. *is_checked* says that `wire` has made
        them with this broker's schema just now, at its own time. Cost: one step of the engine.
        """
        self._check_usable()
        if not is_among(source, (CLIENT,)):
            self._link(source)
        messages, output = [*listed(messages, "messages are in a list")], BrokerOutput()
        with self._transaction():
            self._receive(source, messages, output, is_checked)
        return output

    def strand(self) -> None:
        """Let all that is not live and is on its way wait for `forward_stranded`.

        For a broker that is opened again among others: who wants it is known when all have greeted.
        """
        if on_their_way := [one for one, link in self.links.items() if link.forwards]:
            with self._transaction():
                for neighbour in on_their_way:
                    self._tables.strand_forwards(neighbour)

    def forward_stranded(self) -> BrokerOutput:
        """What events lead to that were on their way when neighbours changed.

        They come again as from a client, once all neighbours have greeted.
        """
        self._check_usable()
        output = BrokerOutput()
        if stranded := [*self._tables.stranded]:
            with self._transaction():
                again = [Publish(event, self.time) for event in stranded]
                self._receive(CLIENT, again, output, is_checked=False)
                self._tables.drop_forwards(CLIENT)
        return output

    def _receive(
        self, source: str, messages: Sequence[Message], output: BrokerOutput, is_checked: bool
    ) -> None:
        records: list[Record] = []
        time = self.time  # when *records* have come
        for message in messages:
            mistake = None if is_checked else self._record_error(source, message, time)
            if mistake is not None:
                self._apply(source, records, output)
                output.answers.append(mistake)
                if isinstance(message, LinkGreeting) and source != CLIENT:
                    self.links[source].up = False
                continue
            time = time if message.time is None else max(time, message.time)
            match message:
                case AnnounceRanges() | LinkGreeting() | Learned():
                    self._apply(source, records, output)
                    self._handle_announcement(source, message, output)
                case _:
                    records.append(message)
        self._apply(source, records, output)
        output.sent += self._announcer.flush(self.time)
        output.numbers = self._store.keep_deliveries(output.deliveries)
        self._announce_learned(source, output)

    def undelivered(self) -> dict[int, Delivery]:
        """What clients have not acknowledged, by number; a broker that died gives it again."""
        self._check_usable()
        return self._store.deliveries()

    def acknowledge(self, numbers: Iterable[int]) -> None:
        """Take note that clients have these; where the machine loses power they may come again."""
        with self._transaction(synced=False):
            self._store.forget_deliveries(numbers)

    def pass_time(self, time: int) -> list[Outgoing]:
        """What to send when it has become *time*: what is over is withdrawn."""
        check_time(time, optional=False)
        output = BrokerOutput()
        with self._transaction():
            self._pass_time(time, output)
        return output.sent

    def fail(self, reason: BaseException) -> None:
        """Refuse everything from now on: what a call has led to got lost for this *reason*."""
        self._failure = self._failure or f"{type(reason).__name__}: {reason}".rstrip(": ")

    def close(self) -> None:
        """Let go of the store."""
        self._failure = self._failure or "it was closed"
        self._store.close()

    def _check_usable(self) -> None:
        if self._failure:
            has_store = isinstance(self._store, Store)
            then = "open it again from its store" if has_store else "make it anew: it has no store"
            raise StoreError(
                f"the broker {self.name!r} refuses everything since it has failed "
                f"({self._failure}); {then}"
            )

    @contextmanager
    def _transaction(self, *, synced: bool = True) -> Iterator[None]:
        """Keep what happens within in the store, all of it or nothing.

        Where it fails, this broker is ahead of its store, and refuses everything from then on.
        """
        self._check_usable()
        try:
            with self._store.transaction(synced=synced):
                yield
                if synced:
                    self._store.keep_fact("time", self.time)
        except BaseException as error:
            self.fail(error)
            raise

    def _record_error(self, source: str, message: Message, time: int) -> StentorError | None:
        """Why *message* of *source*, which comes when it is *time*, is refused."""
        if mistake := record_error(source, message, self.schema, self.space):
            return mistake
        said = message.time
        # A neighbour has looked at its clients' times; only with a clock we know it better.
        is_limited = source == CLIENT or self._has_clock
        if said is None or not is_limited or self._clock.allows(said, time):
            return None
        return self._clock.refusal(about(message), said, time)

    def _announce_learned(self, source: str, output: BrokerOutput) -> None:
        """Keep what was learned from *source*, and send it to the others before all else."""
        if not (news := self._learning.news()):
            return
        self._store.keep_fact("schema", self.schema.to_dict())
        others = [one for one, link in self.links.items() if link.up and one != source]
        if not self._share:
            output.sent[:0] = [Outgoing(other, Learned(news, self.time)) for other in others]

    def _apply(self, source: str, records: list[Record], output: BrokerOutput) -> None:
        """Let *records* of *source* come, in one step; none are left."""
        if not records:
            return
        timed = [self._timed(record) for record in records]
        records.clear()
        answers = self._tables.step(source, timed)
        routes = self._tables.routes(timed)
        for record, answer, ranged in zip(timed, answers, routes, strict=True):
            refused = isinstance(answer, StentorError)
            if record.time is not None and (not refused or isinstance(answer, LATE)):
                self._pass_time(record.time, output)
            output.answers.append(self._apply_one(source, record, answer, ranged, output))
        output.sent += self._announcer.flush(self.time)

    def _apply_one(
        self, source: str, record: Record, answer: Answer, ranged: list[str], output: BrokerOutput
    ) -> Answer:
        """The answer to *record* after what the engine's *answer* and *ranged* links call for."""
        match record, answer:
            case Publish(event), list(keys):
                return self._tables.forward(source, event, keys, ranged, self.time, output)
            case Publish(event), _:
                self._tables.note_holder(source, event)
            case ((Unsubscribe(name) | Move(name)), UnknownIdError()):
                return UnknownIdError(f"no subscription has the id {name!r}", id=name)
            case ((Subscribe() | Unsubscribe() | Move()), Changes(added)):
                if source == CLIENT:
                    self._client_changed(record, answer, output)
                else:
                    self._neighbour_changed(source, record, added, output)
        return answer

    def _handle_announcement(
        self, source: str, message: AnnounceRanges | LinkGreeting | Learned, output: BrokerOutput
    ) -> None:
        """Let *source* want other ranges, other things altogether, or have learned something."""
        if isinstance(message, LinkGreeting):
            link = self.links[source]
            if mistake := link.greeting_error(self.name, source, self.space, message):
                output.answers.append(mistake)
                link.up = False
                return
            self._learning.forget_conflicts(source)
        self._pass_time(message.time, output)
        if isinstance(message, AnnounceRanges):
            self._ranges_changed(source, message, output)
            return
        output.answers += self._learning.learn(source, message.learned).values()
        if isinstance(message, LinkGreeting):
            self._greeted(source, message, output)

    def _client_changed(
        self, record: Subscribe | Unsubscribe | Move, changes: Changes, output: BrokerOutput
    ) -> None:
        """Keep a client's change, answer it from the live events, and announce it."""
        id = record.subscription.id if isinstance(record, Subscribe) else record.id
        for events, added in ((changes.added, True), (changes.removed, False)):
            output.deliveries += [Delivery(id, event, added) for event in events]
        if isinstance(record, Unsubscribe):
            self._tables.remove_client(id)
            output.sent += self._announcer.withdraw(CLIENT, self._tables.name_of(id), self.time)
        else:
            self._announcer.announce(CLIENT, self._tables.insert_client(record))

    # Neighbours.

    def _neighbour_changed(
        self,
        source: str,
        record: Subscribe | Unsubscribe | Move,
        live: Iterable[str],
        output: BrokerOutput,
    ) -> None:
        """Keep a neighbour's change, send it the *live* events that it wants now, announce it."""
        self._tables.send_live(live, source, self.time, output)
        match record:
            case Unsubscribe(name):
                self._remove_interest(source, name, output)
                return
            case Subscribe(subscription):
                interest = Interest(subscription.id, subscription)
            case Move(name, at):
                known = self.links[source].interests[name]
                assert isinstance(known, Interest), "the engine knows it, so it is no ranges"
                interest = known.moved(at)
        self._insert_interest(source, interest)

    def _ranges_changed(self, source: str, announced: AnnounceRanges, output: BrokerOutput) -> None:
        """Let the neighbour *source* want ranges, or none, under a name."""
        name, ranges = announced.name, announced.ranges
        known = self.links[source].interests.get(name)
        if isinstance(known, Interest):
            self._tables.step(source, [Unsubscribe(name, self.time)])
        if ranges:
            live = self._tables.events.within(ranges)
            self._tables.send_live(live, source, self.time, output)
            self._insert_interest(source, RangeInterest(name, ranges))
        elif known is not None:
            self._remove_interest(source, name, output)

    def _greeted(self, source: str, greeting: LinkGreeting, output: BrokerOutput) -> None:
        """Let *source* want what it says now, and send it the live events that it lacks."""
        link = self.links[source]
        link.live_ids |= greeting.live_ids.intersection(self._tables.events)
        interests = {one.name: one for one in greeting.interests}
        wanted, mistakes = self._tables.replace_interests(source, interests, self.time)
        output.answers += mistakes.values()
        for interest in (one for name, one in interests.items() if name not in mistakes):
            if link.interests.get(interest.name) != interest:
                self._insert_interest(source, interest)
        for name in [*link.interests]:
            if name not in interests or name in mistakes:
                self._remove_interest(source, name, output)
        live = (id for id in self._tables.events if id in wanted)
        self._tables.send_live(live, source, self.time, output)

    def _insert_interest(self, source: str, interest: AnyInterest) -> None:
        self._tables.insert_interest(source, interest)
        self._announcer.announce(source, interest)

    def _remove_interest(self, source: str, name: str, output: BrokerOutput) -> None:
        """Let *source* want nothing under *name*; the engine has it no longer."""
        self._tables.remove_interest(source, name)
        output.sent += self._announcer.withdraw(source, name, self.time)

    # Time, state.

    def _pass_time(self, time: int, output: BrokerOutput) -> None:
        """Let it be *time*, if it is not later already; what is over by then goes."""
        self.time = max(self.time, time)
        self._tables.drop_ended_events(self.time)
        for id in self._tables.ended_clients(self.time):
            output.sent += self._announcer.withdraw(CLIENT, self._tables.name_of(id), self.time)

    def _timed(self, record: Record) -> Record:
        """*record* at its time, or the broker's own where that is later."""
        if record.time is not None and record.time >= self.time:
            return record
        return replace(record, time=None if self.time == BEGINNING else self.time)

    def _link(self, neighbour: str) -> Link:
        self._check_usable()
        if not is_among(neighbour, self.links):
            raise SettingsError(f"{self.name} has no neighbour {describe(neighbour)}")
        return self.links[neighbour]

    def _restore(self, store: Store) -> None:
        """Take over the state that is kept in *store*; every link is down."""
        store.belong_to(self.name)
        self.time = store.time()
        with store.reading("the fact 'neighbours'"):
            for neighbour in store.fact("neighbours", list[str]) or ():
                check_broker_name(neighbour)
                self.links[neighbour] = Link(self._new_policy(self.schema, self.space))
        self._tables.restore(store, self.time)
        for neighbour in self.links:
            self._announcer.introduce(neighbour, self._tables.interests_except(neighbour).values())
        store.deliveries()  # what is wrong with them is said now

    def interests_of(self, source: str) -> dict[str, AnyInterest]:
        """The subscription table of the neighbour *source*, by name."""
        return dict(self._link(source).interests)

    @property
    def tables(self) -> Tables:
        """Who wants what here, and what is live: to be read."""
        self._check_usable()
        return self._tables

    def contents(self) -> tuple[Iterable[Subscription], Iterable[Event]]:
        """The clients' subscriptions, and the live events."""
        clients, events = self.tables.clients, self.tables.events
        return [clients[id] for id in clients], [events[id] for id in events]

    def stats(self) -> dict[str, int]:
        """Counts: clients' subscriptions, what neighbours want and its ranges, live events."""
        return self.tables.stats()

    def check(self) -> None:
        """Assert that engine, tables and policies speak of the same subscriptions."""
        self._tables.check(self.time)
        for neighbour, link in self.links.items():
            link.check()
            elsewhere = self._tables.interests_except(neighbour)
            assert link.policy.interests == elsewhere, "all but its own"
            assert link.live_ids <= set(self._tables.events), "only what is live is kept as sent"
